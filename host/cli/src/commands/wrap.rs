//! `pumphouse wrap`: a component of the module that a compiler of C or Go makes.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as PREVIEW1,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, UnresolvedPackageGroup, WorldId};

use crate::args::Wrap;
use crate::commands::read;
use crate::exit::{Exit, say};

/// What a module may be written against.
const PACKAGES: [(&str, &str); 5] = [
    ("config.wit", include_str!("../../../../wit/deps/config/config.wit")),
    ("logging.wit", include_str!("../../../../wit/deps/logging/logging.wit")),
    ("secrets.wit", include_str!("../../../../wit/deps/secrets/secrets.wit")),
    ("handler.wit", include_str!("../../../../wit/handler.wit")),
    ("wrapped.wit", WORLD),
];

/// What is imported here and not by the module is not imported by the component.
const WORLD: &str = "package local:wrapped;
world wrapped {
    include pumphouse:handler/handler@1.0.0;
    import pumphouse:secrets/store@1.0.0;
}";

const MAGIC: &[u8] = b"\0asm";
const CORE_MODULE: &[u8] = &[1, 0, 0, 0];

pub(crate) fn wrap(arguments: &Wrap) -> Result<Exit> {
    let module = read(&arguments.module)?;
    let shown = arguments.module.display();
    let component = component(module).with_context(|| format!("{shown} makes no component"))?;
    let output = &arguments.output;
    std::fs::write(output, &component)
        .with_context(|| format!("{} can't be written", output.display()))?;
    say(format!("made {} ({} KiB)", output.display(), component.len().div_ceil(1024)));
    Ok(Exit::Done)
}

/// The component of a module whose exports are named as the canonical ABI has it. It imports what the module does.
fn component(mut module: Vec<u8>) -> Result<Vec<u8>> {
    match (module.get(..4), module.get(4..8)) {
        (Some(MAGIC), Some(CORE_MODULE)) => {}
        (Some(MAGIC), Some(_)) => bail!("it is a component already"),
        _ => bail!("it is no WebAssembly module"),
    }
    let (resolve, world) = world()?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    ComponentEncoder::default().validate(true).module(&module)?.adapter(PREVIEW1, ADAPTER)?.encode()
}

fn world() -> Result<(Resolve, WorldId)> {
    let mut resolve = Resolve::default();
    let mut last = None;
    for (path, text) in PACKAGES {
        let group = UnresolvedPackageGroup::parse(Path::new(path), text);
        let group = group.map_err(|(_, error)| anyhow!("{path}: {error}"))?;
        last = Some(resolve.push_group(group).map_err(|error| anyhow!("{path}: {error}"))?);
    }
    let world = resolve.select_world(last.as_slice(), None)?;
    Ok((resolve, world))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_is_said_to_be_none() {
        let error = |bytes: &[u8]| component(bytes.to_vec()).unwrap_err().to_string();
        assert_eq!(error(b""), "it is no WebAssembly module");
        assert_eq!(error(b"#!/bin/sh"), "it is no WebAssembly module");
        assert_eq!(error(b"\0asm\x0d\0\x01\0"), "it is a component already");
    }

    #[test]
    fn a_module_without_a_handler_is_refused_by_what_it_lacks() {
        let error = component(b"\0asm\x01\0\0\0".to_vec()).unwrap_err();
        assert!(format!("{error:#}").contains("incoming-handler"), "{error:#}");
    }
}
