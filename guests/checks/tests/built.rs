//! What the built components import and keep.

use std::fs;
use std::path::Path;

use wasmparser::{Name, NameSectionReader, Parser, Payload};

const LOGGING: &str = "wasi:logging/logging@0.1.0-draft";
const CONFIG: &str = "wasi:config/store@0.2.0-rc.1";

fn component(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/wasm32-wasip2/release");
    fs::read(folder.join(name).with_extension("wasm")).unwrap_or_else(|error| {
        panic!(
            "{name}: {error}; run `cargo build --release --target wasm32-wasip2` in guests/ first"
        )
    })
}

/// The names of the interfaces that the component imports.
fn imports(name: &str) -> Vec<String> {
    let bytes = component(name);
    let mut depth = 0;
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(&bytes) {
        match payload.unwrap() {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 0 => {
                found
                    .extend(section.into_iter().map(|import| import.unwrap().name.name.to_owned()));
            }
            _ => {}
        }
    }
    found
}

/// The names of all functions in the component's core modules.
fn functions(name: &str) -> Vec<String> {
    let bytes = component(name);
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(&bytes) {
        let Payload::CustomSection(section) = payload.unwrap() else { continue };
        if section.name() != "name" {
            continue;
        }
        let reader = wasmparser::BinaryReader::new(section.data(), section.data_offset());
        for names in NameSectionReader::new(reader) {
            if let Ok(Name::Function(map)) = names {
                found.extend(map.into_iter().map(|naming| naming.unwrap().name.to_owned()));
            }
        }
    }
    found
}

fn has(names: &[String], wanted: &str) -> bool {
    names.iter().any(|name| name == wanted)
}

#[test]
fn an_interface_is_imported_by_those_alone_that_use_it() {
    for (guest, logging, config) in [
        ("bench", false, false),
        ("orders", false, false),
        ("conformance", true, false),
        ("version_one", true, false),
        ("version_two", true, false),
        ("greeter", true, true),
    ] {
        let imports = imports(guest);
        assert!(has(&imports, "pumphouse:handler/types@1.0.0"), "{guest} imports {imports:?}");
        assert_eq!(has(&imports, LOGGING), logging, "{guest} imports {imports:?}");
        assert_eq!(has(&imports, CONFIG), config, "{guest} imports {imports:?}");
    }
}

#[test]
fn the_bare_guest_imports_types_alone() {
    assert_eq!(imports("bare"), ["pumphouse:handler/types@1.0.0"]);
}

#[test]
fn a_plain_handler_imports_what_an_empty_context_satisfies() {
    let odd: Vec<_> = imports("bench")
        .into_iter()
        .filter(|name| !name.starts_with("wasi:io/") && !name.starts_with("wasi:cli/"))
        .collect();
    assert_eq!(odd, ["pumphouse:handler/types@1.0.0"]);
}

#[test]
fn the_names_for_a_backtrace_are_kept() {
    let names = functions("hostile_panic");
    for part in ["look_up_customer", "read_customer_record"] {
        assert!(names.iter().any(|name| name.contains(part)), "no {part} in {names:?}");
    }
}

#[test]
fn a_component_imports_secrets_only_where_it_reads_them() {
    const SECRETS: &str = "pumphouse:secrets/store@1.0.0";
    assert!(has(&imports("secrets"), SECRETS));
    assert!(!has(&imports("greeter"), SECRETS));
}

#[test]
fn a_component_of_another_world_imports_nothing_of_ours() {
    for name in ["world_messaging", "world_spin_sqs"] {
        let imports = imports(name);
        assert!(imports.iter().all(|import| !import.starts_with("pumphouse:")), "{imports:?}");
    }
}
