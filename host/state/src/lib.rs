//! The host's own store: deduplication marks.
