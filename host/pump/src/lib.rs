//! The message pump: receive, admit, call, decide, settle.
