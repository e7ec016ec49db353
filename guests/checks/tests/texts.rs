//! The hostile guests in text are valid components, so that a host has to run them to see what they are; so are
//! the misfits, but for the core module.

use std::fs;
use std::path::{Path, PathBuf};

use wasmparser::{Parser, Validator};

fn texts(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hostile/wat").join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|kind| kind == "wat")).collect()
}

fn assert_component(path: &Path, text: &str) {
    let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if let Err(error) = Validator::new().validate_all(&bytes) {
        panic!("{}: {error}", path.display());
    }
    assert!(Parser::is_component(&bytes), "{} is no component", path.display());
}

#[test]
fn every_hostile_handler_is_a_valid_component() {
    let frame = include_str!("../../hostile/wat/handler.wat");
    let handlers = texts("handlers");
    assert!(!handlers.is_empty(), "no hostile handler was found");
    for path in handlers {
        let fields = fs::read_to_string(&path).unwrap();
        assert_component(&path, &frame.replace(";; FIELDS", &fields));
    }
}

#[test]
fn every_misfit_is_valid_and_one_is_a_core_module() {
    let (modules, components): (Vec<_>, Vec<_>) =
        texts("misfits").into_iter().partition(|path| path.ends_with("core-module.wat"));
    assert_eq!(modules.len(), 1, "misfits/core-module.wat is missing");
    assert!(Parser::is_core_wasm(&wat::parse_file(&modules[0]).unwrap()));
    assert!(!components.is_empty(), "no other misfit was found");
    for path in components {
        assert_component(&path, &fs::read_to_string(&path).unwrap());
    }
}

#[test]
fn every_handler_that_is_whole_is_a_valid_component() {
    let whole = texts("whole");
    assert!(!whole.is_empty(), "no whole handler was found");
    for path in whole {
        assert_component(&path, &fs::read_to_string(&path).unwrap());
    }
}
