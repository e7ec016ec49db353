//! The W3C trace context that travels in a message's headers.

use std::fmt;

use crate::Headers;

/// The header that carries the context.
pub const TRACEPARENT: &str = "traceparent";

/// The flag that says that the caller may have recorded its part of the trace.
const SAMPLED: u8 = 1;

/// Where a message stands in its trace.
///
/// Its `Display` is a `traceparent` of version 00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace; never 0.
    pub trace_id: u128,
    /// The span that caused this; never 0.
    pub parent_id: u64,
    /// Whether the caller may have recorded its part.
    pub sampled: bool,
}

impl TraceContext {
    /// Reads a `traceparent`, without allocating. None where it is not a valid one, as if there were none.
    ///
    /// A version later than 00 is read by its first four parts, as the specification asks.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (version, rest) = text.split_once('-')?;
        let (trace_id, rest) = rest.split_once('-')?;
        let (parent_id, rest) = rest.split_once('-')?;
        let (flags, more) = rest.split_once('-').map_or((rest, None), |(f, m)| (f, Some(m)));
        let version = hexadecimal(version, 2)?;
        if version == 0xff || (version == 0 && more.is_some()) {
            return None;
        }
        Self::new(
            hexadecimal(trace_id, 32)?,
            u64::try_from(hexadecimal(parent_id, 16)?).ok()?,
            u8::try_from(hexadecimal(flags, 2)?).ok()? & SAMPLED != 0,
        )
    }

    /// Where the message with these headers stands.
    #[must_use]
    pub fn of(headers: &Headers) -> Option<Self> {
        headers.text(TRACEPARENT).and_then(Self::parse)
    }

    /// A context of these parts. None where an id is 0, which the specification forbids.
    #[must_use]
    pub fn new(trace_id: u128, parent_id: u64, sampled: bool) -> Option<Self> {
        (trace_id != 0 && parent_id != 0).then_some(Self { trace_id, parent_id, sampled })
    }

    /// The context to hand on from a span of ours. `span_id` is drawn by chance; 0 stands for 1.
    #[must_use]
    pub fn child(self, span_id: u64) -> Self {
        Self { parent_id: span_id.max(1), ..self }
    }

    /// The trace id for logs: 32 hexadecimal digits.
    #[must_use]
    pub fn trace(self) -> impl fmt::Display {
        Hexadecimal::<32>(self.trace_id)
    }

    /// The id of the causing span for logs: 16 hexadecimal digits.
    #[must_use]
    pub fn parent(self) -> impl fmt::Display {
        Hexadecimal::<16>(u128::from(self.parent_id))
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace_id,
            self.parent_id,
            u8::from(self.sampled)
        )
    }
}

struct Hexadecimal<const DIGITS: usize>(u128);

impl<const DIGITS: usize> fmt::Display for Hexadecimal<DIGITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

/// Exactly so many lower-case digits; the specification allows no others.
fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let valid = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == digits && text.bytes().all(valid))
        .then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_specification_is_read_and_written() {
        let context = TraceContext::parse(EXAMPLE).unwrap();
        assert_eq!(context.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(context.parent_id, 0x00f0_67aa_0ba9_02b7);
        assert!(context.sampled);
        assert_eq!(context.to_string(), EXAMPLE);
        assert_eq!(context.trace().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.parent().to_string(), "00f067aa0ba902b7");
    }

    #[test]
    fn what_is_not_valid_is_none() {
        for text in [
            "",
            "-",
            "---",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47361-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-ébf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_later_version_is_read_by_its_first_parts() {
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes";
        assert_eq!(TraceContext::parse(later), TraceContext::parse(EXAMPLE));
    }

    #[test]
    fn only_the_first_flag_says_sampled() {
        for (flags, sampled) in [("00", false), ("01", true), ("02", false), ("ff", true)] {
            let text = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
            assert_eq!(TraceContext::parse(&text).map(|c| c.sampled), Some(sampled), "{flags}");
        }
    }

    #[test]
    fn a_child_stays_in_its_trace_and_is_never_without_an_id() {
        let context = TraceContext::parse(EXAMPLE).unwrap();
        let child = context.child(7);
        assert_eq!((child.trace_id, child.parent_id), (context.trace_id, 7));
        assert_eq!(context.child(0).parent_id, 1);
        assert_eq!(TraceContext::parse(&child.to_string()), Some(child));
        assert_eq!(TraceContext::new(0, 1, true), None);
        assert_eq!(TraceContext::new(1, 0, true), None);
    }
}
