//! A receipt holds when its message was received, since the 12 hours of a delay begin there.

use std::time::Duration;

use pumphouse_contract::{Mono, Receipt};

/// The receipt of a message that was received at `received` under this handle.
pub(crate) fn seal(received: Mono, handle: &str) -> Receipt {
    Receipt::from(format!("{} {handle}", received.0.as_millis()))
}

/// When the message was received, and the handle; none where the receipt is not one of ours.
pub(crate) fn open(receipt: &Receipt) -> Option<(Mono, &str)> {
    let text = std::str::from_utf8(&receipt.0).ok()?;
    let (millis, handle) = text.split_once(' ')?;
    Some((Mono(Duration::from_millis(millis.parse().ok()?)), handle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_gives_back_what_it_was_made_of() {
        let received = Mono(Duration::from_millis(12_345));
        assert_eq!(open(&seal(received, "AQEB a/b+c==")), Some((received, "AQEB a/b+c==")));
        for foreign in ["", "AQEB", "x AQEB", "-1 AQEB"] {
            assert_eq!(open(&Receipt::from(foreign.to_owned())), None, "{foreign}");
        }
    }
}
