//! The trace header of AWS X-Ray as W3C trace context.

/// The `traceparent` that stands for `Root=1-…;Parent=…;Sampled=…`; none where a part is missing or no
/// hexadecimal number of the right length.
pub(crate) fn traceparent(header: &str) -> Option<String> {
    let field = |name: &str| {
        header.split(';').filter_map(|part| part.trim().split_once('=')).find(|(n, _)| *n == name)
    };
    let (_, root) = field("Root")?;
    let (_, parent) = field("Parent")?;
    let trace: String = root.strip_prefix("1-")?.split('-').collect();
    let sampled = field("Sampled").is_some_and(|(_, value)| value == "1");
    if !is_hex(&trace, 32) || !is_hex(parent, 16) {
        return None;
    }
    let flags = if sampled { "01" } else { "00" };
    Some(format!("00-{trace}-{parent}-{flags}").to_ascii_lowercase())
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_x_ray_header_becomes_a_traceparent() {
        let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
        let expected = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01";
        assert_eq!(traceparent(header).as_deref(), Some(expected));
        for wrong in [
            "",
            "Root=1-5759e988-bd862e3fe1be46a994272793",
            "Root=1-5759e988-bd862e3fe1be46a99427279;Parent=53995c3f42cd8ad8",
            "Root=1-5759e988-bd862e3fe1be46a99427279z;Parent=53995c3f42cd8ad8",
        ] {
            assert_eq!(traceparent(wrong), None, "{wrong}");
        }
    }
}
