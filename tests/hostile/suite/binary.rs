//! Components as bytes, where no text could say them.

/// What every component begins with.
pub(crate) const HEAD: [u8; 8] = *b"\0asm\x0d\0\x01\0";

const CUSTOM: u8 = 0;
const COMPONENT: u8 = 4;

/// A section with its length before it.
fn section(id: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![id];
    leb(&mut bytes, content.len());
    bytes.extend_from_slice(content);
    bytes
}

/// A custom section of this name.
pub(crate) fn custom(name: &str, content: &[u8]) -> Vec<u8> {
    let mut inside = Vec::with_capacity(content.len() + name.len() + 1);
    leb(&mut inside, name.len());
    inside.extend_from_slice(name.as_bytes());
    inside.extend_from_slice(content);
    section(CUSTOM, &inside)
}

/// Components in components, so many deep.
pub(crate) fn nested(depth: usize) -> Vec<u8> {
    (0..depth)
        .fold(HEAD.to_vec(), |inner, _| [HEAD.as_slice(), &section(COMPONENT, &inner)].concat())
}

/// A number in as few bytes as it takes, seven bits each.
fn leb(bytes: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        bytes.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            return;
        }
    }
}
