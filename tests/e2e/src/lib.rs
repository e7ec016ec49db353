//! The binary as a process, for tests.
