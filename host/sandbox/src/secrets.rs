//! Secrets: values that a handler may read and nobody else.

use std::fmt;
use std::sync::Arc;

/// A text that is not shown: neither `Debug` nor `Display` has it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Arc<str>);

impl SecretText {
    /// Takes a value.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value, for whoever has a right to it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

impl fmt::Display for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
