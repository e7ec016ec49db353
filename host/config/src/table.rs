//! The table of keys itself.

mod host;
mod subscription;
mod tenants;

use crate::keys::{Given, Key, Kind};
use crate::words::Provision;

pub(crate) use tenants::LARGEST_COMPONENT;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;

const SHARE: Kind = Kind::Integer { min: 1, max: 10_000 };
const PROVISION: Kind = Kind::Word(Provision::WORDS);

const fn key(path: &'static str, kind: Kind, given: Given, meaning: &'static str) -> Key {
    Key { path, kind, given, meaning }
}

/// Every key there is.
pub const KEYS: &[Key] = &joined();

const fn joined() -> [Key; host::KEYS.len() + tenants::KEYS.len() + subscription::KEYS.len()] {
    let mut all = [key("", Kind::Flag, Given::Required, ""); _];
    let (first, rest) = all.split_at_mut(host::KEYS.len());
    first.copy_from_slice(host::KEYS);
    let (second, rest) = rest.split_at_mut(tenants::KEYS.len());
    second.copy_from_slice(tenants::KEYS);
    rest.copy_from_slice(subscription::KEYS);
    all
}
