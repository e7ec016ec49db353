//! The attribute [`PACKED`](crate::PACKED): what of a rejected copy can't be an attribute of its own.

use std::collections::HashMap;

use bytes::Bytes;
use pumphouse_contract::{Packed, packed};

use crate::PACKED;

/// The longest value of an attribute, in bytes.
pub(crate) const LONGEST_VALUE: usize = 1_024;

/// Whether an attribute of that name is one of ours.
pub(crate) fn is_own(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PACKED) else { return false };
    let number = rest.strip_prefix('-').unwrap_or_default();
    rest.is_empty() || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The name of the n-th of ours, from 0.
fn name(at: usize) -> String {
    if at == 0 { PACKED.to_owned() } else { format!("{PACKED}-{}", at + 1) }
}

/// The text as attributes of at most [`LONGEST_VALUE`] bytes.
pub(crate) fn attributes(text: &str) -> Vec<(String, String)> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.floor_char_boundary(LONGEST_VALUE));
        parts.push((name(parts.len()), part.to_owned()));
        rest = after;
    }
    parts
}

/// The attribute that says that so many bytes stand behind the body.
pub(crate) fn behind(length: usize) -> (String, String) {
    (name(0), packed::behind(length))
}

/// Takes what is packed out of a message. Nothing is touched where it is none of ours.
pub(crate) fn take(attributes: &mut HashMap<String, String>, body: &mut Bytes) -> Option<Packed> {
    let count = (0..).take_while(|at| attributes.contains_key(&name(*at))).count();
    let text: String = (0..count).filter_map(|at| attributes.get(&name(at))).cloned().collect();
    let packed = Packed::take(&text, body)?;
    for at in 0..count {
        attributes.remove(&name(at));
    }
    Some(packed)
}
