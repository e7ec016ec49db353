//! Changes to inputs without any knowledge of them, from a seed: what the short run does in the place of coverage.

/// Random numbers from a seed: the same ones for the same seed.
#[derive(Debug, Clone)]
pub struct Roll(u64);

impl Roll {
    /// Of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below this number; 0 where that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.next() & 0xff).unwrap_or(0)
    }
}

/// Numbers at which programs go wrong.
const EDGES: [u64; 8] =
    [0, 1, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, u64::MAX];

/// One of the inputs, changed in a few places, sometimes with a part of another, and never longer than this.
#[must_use]
pub fn mutated(corpus: &[Vec<u8>], roll: &mut Roll, longest: usize) -> Vec<u8> {
    let pick = |roll: &mut Roll| corpus.get(roll.below(corpus.len())).cloned().unwrap_or_default();
    let mut bytes = pick(roll);
    for _ in 0..=roll.below(6) {
        let other = pick(roll);
        change(&mut bytes, &other, roll);
    }
    bytes.truncate(longest);
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], roll: &mut Roll) {
    let at = roll.below(bytes.len() + 1);
    match roll.below(8) {
        0 => flip(bytes, at, 1 << roll.below(8)),
        1 => put(bytes, at, &[roll.byte()]),
        2 => put_edge(bytes, at, roll),
        3 => bytes.insert(at.min(bytes.len()), roll.byte()),
        4 => remove(bytes, at, roll.below(16)),
        5 => bytes.truncate(at),
        6 => insert(bytes, at, part(other, roll)),
        _ => {
            let own = part(bytes, roll).to_vec();
            insert(bytes, at, &own);
        }
    }
}

fn flip(bytes: &mut [u8], at: usize, bits: usize) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= u8::try_from(bits).unwrap_or(1);
    }
}

fn put_edge(bytes: &mut [u8], at: usize, roll: &mut Roll) {
    let edge = EDGES.get(roll.below(EDGES.len())).copied().unwrap_or_default();
    let width = 1 << roll.below(4);
    if roll.below(2) == 0 {
        put(bytes, at, edge.to_le_bytes().get(..width).unwrap_or_default());
    } else {
        put(bytes, at, edge.to_be_bytes().get(8 - width..).unwrap_or_default());
    }
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    for (to, from) in bytes.iter_mut().skip(at).zip(what) {
        *to = *from;
    }
}

fn remove(bytes: &mut Vec<u8>, at: usize, length: usize) {
    let end = at.saturating_add(length).min(bytes.len());
    bytes.drain(at.min(end)..end);
}

fn insert(bytes: &mut Vec<u8>, at: usize, what: &[u8]) {
    let at = at.min(bytes.len());
    bytes.splice(at..at, what.iter().copied());
}

fn part<'a>(of: &'a [u8], roll: &mut Roll) -> &'a [u8] {
    let from = roll.below(of.len() + 1);
    let end = from.saturating_add(roll.below(32)).min(of.len());
    of.get(from..end).unwrap_or_default()
}

/// A good file with other bytes in it: the first two say where, the third whether what follows is cut off. It is always
/// another file than the good one.
#[must_use]
pub fn spliced(good: &[u8], data: &[u8]) -> Vec<u8> {
    let byte = |at: usize| usize::from(data.get(at).copied().unwrap_or(0));
    let at = (byte(0) << 8 | byte(1)) * (good.len() + 1) / 65_536;
    let mut bytes = good.to_vec();
    let what = data.get(3..).unwrap_or_default();
    let end = at.saturating_add(what.len());
    if byte(2) % 2 == 1 {
        bytes.truncate(at);
        bytes.extend_from_slice(what);
    } else {
        bytes.resize(bytes.len().max(end), 0);
        put(&mut bytes, at, what);
    }
    if bytes == good {
        bytes.push(0);
    }
    bytes
}
