//! Components that are made here, for they are too large or too broken to be kept.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::binary;
use crate::row::Component;
use crate::rows::{framed, made, text};

const IMPORTS: usize = 5_000;
const CUTS: usize = 16;
const DAMAGES: u64 = 32;
const NESTED: usize = 5_000;
const CUSTOM_SECTIONS: usize = 64;
const NAMED: usize = 2_048;
const FUNCTIONS: usize = 20_000;
const SEGMENTS: usize = 20_000;
const BLOCKS: usize = 5_000;

/// The honest handler that all of them are made around.
pub(crate) fn honest() -> Result<Vec<u8>> {
    Ok(wat::parse_str(framed(&text("handlers/ack")?)?)?)
}

/// Another component with the same contents: nobody has compiled it yet.
pub(crate) fn salted(salt: u64) -> Result<Vec<u8>> {
    Ok([honest()?, binary::custom("salt", &salt.to_le_bytes())].concat())
}

pub(crate) fn imports() -> Result<Vec<Component>> {
    let mut fields = String::new();
    for n in 0..IMPORTS {
        write!(fields, r#"(import "part{n}" (func))"#)?;
    }
    made(&framed(&(fields + &text("handlers/ack")?))?)
}

pub(crate) fn instances() -> Result<Vec<Component>> {
    let fields =
        "(core module $empty)".to_owned() + &"(core instance (instantiate $empty))".repeat(100);
    made(&framed(&(fields + &text("handlers/ack")?))?)
}

pub(crate) fn cut_off() -> Result<Vec<Component>> {
    let whole = honest()?;
    let cuts = (0..CUTS).map(|n| whole.get(..whole.len() * n / CUTS).unwrap_or_default().to_vec());
    Ok(cuts.map(Component::Made).collect())
}

pub(crate) fn damaged() -> Result<Vec<Component>> {
    let whole = honest()?;
    let damaged = (1..=DAMAGES).map(|seed| {
        let mut bytes = whole.clone();
        let roll = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = usize::try_from(roll >> 20).unwrap_or(0).checked_rem(bytes.len()).unwrap_or(0);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= u8::try_from(roll & 0xff).unwrap_or(0) | 1;
        }
        Component::Made(bytes)
    });
    Ok(damaged.collect())
}

pub(crate) fn nested() -> Result<Vec<Component>> {
    Ok(vec![Component::Made(binary::nested(NESTED))])
}

/// Zeros, as an archive's bomb would unfold into, around a handler that works.
pub(crate) fn custom_sections() -> Result<Vec<Component>> {
    let mut bytes = honest()?;
    let zeros = vec![0; 1 << 20];
    for n in 0..CUSTOM_SECTIONS {
        bytes.extend(binary::custom(&format!("padding-{n}"), &zeros));
    }
    Ok(vec![Component::Made(bytes)])
}

pub(crate) fn names() -> Result<Vec<Component>> {
    let padding = "n".repeat(NAMED);
    into_module(|fields| {
        (0..NAMED).try_for_each(|n| write!(fields, "(func ${padding}{n})").map_err(Into::into))
    })
}

pub(crate) fn functions() -> Result<Vec<Component>> {
    into_module(|fields| {
        (0..FUNCTIONS).try_for_each(|_| fields.write_str("(func)").map_err(Into::into))
    })
}

pub(crate) fn segments() -> Result<Vec<Component>> {
    into_module(|fields| {
        (0..SEGMENTS)
            .try_for_each(|_| fields.write_str("(data (i32.const 0) \"\")").map_err(Into::into))
    })
}

/// One function of many calls and branches, with a value that lives through all of it.
pub(crate) fn blocks() -> Result<Vec<Component>> {
    into_module(|fields| {
        fields.write_str("(func $leaf (param i64) (result i64) (local.get 0))")?;
        fields.write_str("(func (param i64) (result i64)")?;
        for n in 0..BLOCKS {
            write!(
                fields,
                "(local.set 0 (i64.add (call $leaf (i64.const {n})) (local.get 0))) \
                 (block (br_if 0 (i64.eqz (local.get 0))) (local.set 0 (i64.mul (local.get 0) (i64.const 3))))"
            )?;
        }
        fields.write_str("(local.get 0))")?;
        Ok(())
    })
}

/// The honest handler's module with more in it.
fn into_module(add: impl FnOnce(&mut String) -> Result<()>) -> Result<Vec<Component>> {
    let module = text("handlers/ack")?;
    let end = module.rfind(')').context("a module")?;
    let mut fields = module.get(..end).context("a module")?.to_owned();
    add(&mut fields)?;
    fields.push(')');
    made(&framed(&fields)?)
}
