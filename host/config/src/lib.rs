//! Strict configuration with every finding at once.
