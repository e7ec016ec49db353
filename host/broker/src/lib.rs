//! The embedded broker, in memory or durable on SQLite.
