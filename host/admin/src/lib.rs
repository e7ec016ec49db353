//! Health, readiness, status and metrics over HTTP.
