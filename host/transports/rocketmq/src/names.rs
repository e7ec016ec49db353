//! Names on the wire.

/// A topic or a group in its namespace.
pub(crate) fn within(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}%{name}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_its_namespace() {
        assert_eq!(within(None, "orders"), "orders");
        assert_eq!(within(Some("acme"), "orders"), "acme%orders");
    }
}
