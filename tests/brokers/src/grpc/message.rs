//! Messages within the bytes of a call: each has a flag, a length of four bytes, and itself.

use bytes::{Buf, BufMut, Bytes, BytesMut};

const HEAD: usize = 5;

/// Follows the borders of messages in bytes that pass, without keeping the bytes.
#[derive(Debug, Default)]
pub(super) struct Borders {
    head: BytesMut,
    left: usize,
}

impl Borders {
    /// How many messages these bytes complete.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) -> u64 {
        let mut complete = 0;
        while !bytes.is_empty() {
            if self.head.len() < HEAD {
                let part = bytes.len().min(HEAD - self.head.len());
                self.head.put(bytes.take(part));
                bytes.advance(part);
                self.left = length(&self.head).unwrap_or_default();
            }
            let part = bytes.len().min(self.left);
            bytes.advance(part);
            self.left -= part;
            if self.head.len() == HEAD && self.left == 0 {
                self.head.clear();
                complete += 1;
            }
        }
        complete
    }

    /// Whether no message is under way.
    pub(super) fn between(&self) -> bool {
        self.head.is_empty()
    }
}

/// Bytes kept until a message is complete.
#[derive(Debug, Default)]
pub(super) struct Kept(BytesMut);

impl Kept {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The first message without its head, if it is complete.
    pub(super) fn first(&self) -> Option<&[u8]> {
        self.0.get(HEAD..HEAD + length(&self.0)?)
    }

    /// Takes the first message with its head, if it is complete.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        let end = HEAD + length(&self.0)?;
        (self.0.len() >= end).then(|| self.0.split_to(end).freeze())
    }

    pub(super) fn take_all(&mut self) -> Bytes {
        self.0.split().freeze()
    }
}

fn length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(1..HEAD)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(length)).ok()
}

/// A message with its head, changed; as it is when it is compressed.
pub(super) fn changed(framed: Bytes, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Bytes {
    let (Some(0), Some(message)) = (framed.first(), framed.get(HEAD..)) else { return framed };
    let message = change(message.to_vec());
    let Ok(length) = u32::try_from(message.len()) else { return framed };
    let mut out = BytesMut::with_capacity(HEAD + message.len());
    out.put_u8(0);
    out.put_u32(length);
    out.put_slice(&message);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0], &length[..], message].concat()
    }

    #[test]
    fn borders_are_found_however_the_bytes_are_cut() {
        let bytes = [framed(b"hello"), framed(b""), framed(&[7; 300])].concat();
        for size in [1, 2, 3, 5, 7, 64, bytes.len()] {
            let mut borders = Borders::default();
            let complete: u64 = bytes.chunks(size).map(|part| borders.pass(part)).sum();
            assert_eq!(complete, 3, "in parts of {size}");
            assert!(borders.between());
        }
        let mut borders = Borders::default();
        assert_eq!(borders.pass(&bytes[..9]), 0);
        assert!(!borders.between());
    }

    #[test]
    fn kept_bytes_give_whole_messages_alone() {
        let mut kept = Kept::default();
        kept.push(&framed(b"hello")[..7]);
        assert_eq!(kept.first(), None);
        assert_eq!(kept.take(), None);
        kept.push(&framed(b"hello")[7..]);
        kept.push(b"\0");
        assert_eq!(kept.first(), Some(&b"hello"[..]));
        assert_eq!(kept.take().unwrap(), framed(b"hello"));
        assert_eq!(kept.take_all(), &b"\0"[..]);
    }

    #[test]
    fn a_change_makes_a_new_head_and_leaves_compressed_messages() {
        let longer = |mut message: Vec<u8>| {
            message.push(b'!');
            message
        };
        assert_eq!(changed(framed(b"hello").into(), longer), framed(b"hello!"));
        let mut compressed = framed(b"hello");
        compressed[0] = 1;
        assert_eq!(changed(compressed.clone().into(), longer), compressed);
    }
}
