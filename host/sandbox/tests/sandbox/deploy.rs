//! What is refused when it is deployed, and what comes from the cache.

use std::fs;
use std::path::Path;

use pumphouse_contract::Outcome;
use pumphouse_contract::ports::{Handler, Handlers};
use pumphouse_sandbox::{DeployError, Grants, HandlerSpec, Limits, Sandbox, SandboxSettings};

use crate::common::{self, call, component, file, guest, handler_with};

/// Why a component is refused, with the grants that are given.
async fn refusal(path: &Path, grants: Grants) -> String {
    let spec = HandlerSpec { grants, ..common::spec("refused", path) };
    match common::shared().load(spec).await {
        Ok(_) => panic!("{} was taken: {}", path.display(), fs::metadata(path).unwrap().len()),
        Err(error) => error.to_string(),
    }
}

/// FR-28: five fixtures, and some more. Each error names the file, what is wrong and what to do.
#[tokio::test]
async fn fr_28_what_does_not_fit_is_refused_by_name() {
    let ack = common::text_of("handlers/ack.wat");
    let import = handler_with(&common::text_of("handlers/import-unknown.wat"));
    let http = handler_with(&format!(
        r#"(import "wasi:http/types@0.2.4" (instance (export "go" (func)))) {ack}"#
    ));
    for (text, parts) in [
        (
            common::text_of("misfits/core-module.wat"),
            &["is not a WebAssembly component", "core module", "wasm32-wasip2"][..],
        ),
        (common::text_of("misfits/empty.wat"), &["does not export", "it exports nothing"]),
        (
            common::text_of("misfits/no-export.wat"),
            &["pumphouse:handler/incoming-handler@1.0.0", "it exports run"],
        ),
        (
            common::text_of("misfits/version-2.wat"),
            &["pumphouse:handler/incoming-handler@2.0.0", "speaks", "@1.0.0"],
        ),
        (common::text_of("misfits/shape.wat"), &["another shape", "handle"]),
        (import, &["acme:payments/charge@1.0.0", "does not offer"]),
        (http, &["wasi:http/types@0.2.4", "`grants.http = ["]),
        (
            handler_with(&common::text_of("handlers/initial-memory.wat")),
            &["1073741824", "`limits.memory`"],
        ),
        (
            handler_with(&common::text_of("handlers/initial-table.wat")),
            &["10000000", "`limits.table`"],
        ),
    ] {
        let path = component(&text);
        let refusal = refusal(&path, Grants::default()).await;
        for part in parts.iter().chain([&path.to_str().unwrap()]) {
            assert!(refusal.contains(part), "{part:?} in {refusal:?}");
        }
    }
}

/// What the pool has room for can still be more than the handler's own limits.
#[tokio::test]
async fn a_start_beyond_the_handlers_own_limits_is_refused() {
    let large = handler_with(
        r#"(core module $guest
          (memory (export "memory") 32)
          (table 100 funcref)
          (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
          (func (export "handle") (param i32) (result i32) (i32.const 16))
          (func (export "post") (param i32)))"#,
    );
    let limits = Limits { memory: 1 << 20, table_elements: 99, ..Limits::default() };
    let refused = common::load("start", &component(&large), limits).await.unwrap_err().to_string();
    assert!(refused.contains(
        "2097152 bytes of memory at its start, more than the 1048576 of `limits.memory`"
    ));
    assert!(refused.contains("100 table elements at its start, more than the 99"), "{refused}");
}

/// FR-28: a compatible minor version is accepted.
#[tokio::test]
async fn fr_28_a_compatible_minor_version_runs() {
    let text = handler_with(&common::text_of("handlers/ack.wat")).replace("@1.0.0", "@1.7.2");
    let handler = common::load("minor", &component(&text), Limits::default()).await.unwrap();
    assert_eq!(call(&handler, "").await.result, Ok(Outcome::Ack));
}

#[tokio::test]
async fn what_is_not_granted_is_refused_with_the_grant() {
    let logging = refusal(&guest("hostile_flood"), Grants::default()).await;
    assert!(logging.contains("wasi:logging/logging@0.1.0-draft"), "{logging}");
    assert!(logging.contains("`grants.logging = true`"), "{logging}");
    let both = refusal(&guest("greeter"), Grants::default()).await;
    assert!(both.contains("grants.logging") && both.contains("grants.config"), "{both}");
    let config = refusal(&guest("greeter"), Grants { logging: true, ..Grants::default() }).await;
    assert!(!config.contains("grants.logging") && config.contains("grants.config"), "{config}");
}

#[tokio::test]
async fn what_is_no_component_is_refused() {
    let whole = fs::read(guest("bench")).unwrap();
    for (bytes, part) in [
        (&b""[..], "the file is empty"),
        (b"#!/bin/sh", "does not begin as WebAssembly does"),
        (b"\0asm\x07\0\x01\0", "a version of the format"),
        (&whole[..whole.len() / 2], "does not compile"),
    ] {
        let refusal = refusal(&file(bytes), Grants::default()).await;
        assert!(refusal.contains(part), "{part:?} in {refusal:?}");
    }
    let missing = refusal(Path::new("/nowhere/orders.wasm"), Grants::default()).await;
    assert!(missing.contains("/nowhere/orders.wasm can't be read"), "{missing}");
}

/// FR-21: a limit that the pool could not give is refused, not ignored.
#[tokio::test]
async fn fr_21_a_limit_beyond_the_hosts_own_is_refused() {
    let limits = Limits { memory: 65 << 20, ..Limits::default() };
    let refused = common::load("large", &guest("bench"), limits).await.unwrap_err();
    assert!(matches!(refused, DeployError::Limit { key: "limits.memory", .. }), "{refused}");
    assert!(refused.to_string().contains("restart the host"), "{refused}");
    let settings = SandboxSettings { max_memory: 128 << 20, pool_slots: 4, ..common::settings() };
    let large = Sandbox::new(settings).unwrap();
    let limits = Limits { memory: 100 << 20, ..Limits::default() };
    let spec = HandlerSpec { limits, ..common::spec("large", &guest("hostile_memory")) };
    let ended = call(&large.load(spec).await.unwrap(), "").await;
    assert!(ended.usage.memory_peak > 64 << 20, "{ended:?}");
}

#[tokio::test]
async fn handlers_are_listed_by_name_with_their_version() {
    let sandbox = Sandbox::new(SandboxSettings { pool_slots: 2, ..common::settings() }).unwrap();
    let b = sandbox.load(common::spec("b", &guest("bench"))).await.unwrap();
    let a = sandbox.load(common::spec("a", &guest("version_one"))).await.unwrap();
    let list = sandbox.list();
    let names: Vec<_> = list.iter().map(|status| status.name.as_str()).collect();
    assert_eq!(names, ["test/a", "test/b"]);
    assert_eq!(list[1].digest, b.begin().digest());
    assert_eq!(list[1].digest.len(), 64);
    assert_eq!(list[1].problem, None);
    assert!(list[1].component.ends_with("bench.wasm"));
    // A second one of the name, prepared and dropped, leaves the first as it was.
    let again = sandbox.load(common::spec("a", &guest("version_two"))).await.unwrap();
    assert_eq!(sandbox.list()[0].digest, again.begin().digest());
    drop(again);
    assert_eq!(sandbox.list()[0].digest, a.begin().digest());
    sandbox.unload("test/a");
    assert_eq!(sandbox.list().len(), 1);
    drop(b);
    assert_eq!(sandbox.list().len(), 0);
}

/// The files of a cache folder by extension.
fn cached(folder: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// A cached artefact is used; a poisoned one is found out, compiled again and replaced.
#[tokio::test]
async fn a_poisoned_artefact_is_found_out() {
    let home = tempfile::tempdir().unwrap();
    let settings = || SandboxSettings {
        cache: Some(home.path().join("compiled")),
        pool_slots: 2,
        ..SandboxSettings::default()
    };
    let component = component(&handler_with(&common::text_of("handlers/ack.wat")));
    let run = async || {
        let sandbox = Sandbox::new(settings()).unwrap();
        let handler = sandbox.load(common::spec("cached", &component)).await.unwrap();
        assert_eq!(call(&handler, "").await.result, Ok(Outcome::Ack));
    };
    run().await;
    let artefacts = cached(&home.path().join("compiled"), "cwasm");
    let [artefact] = artefacts.as_slice() else { panic!("{artefacts:?}") };
    let good = fs::read(artefact).unwrap();
    let written = fs::metadata(artefact).unwrap().modified().unwrap();
    run().await;
    assert_eq!(fs::metadata(artefact).unwrap().modified().unwrap(), written, "compiled twice");
    let mut poisoned = good.clone();
    let middle = poisoned.len() / 2;
    poisoned[middle] ^= 0xff;
    for bytes in [&poisoned[..], &good[..good.len() / 2], b""] {
        fs::write(artefact, bytes).unwrap();
        run().await;
        assert!(fs::read(artefact).unwrap().len() == good.len(), "it was not replaced");
    }
}

#[tokio::test]
async fn a_cache_that_others_can_write_stops_the_start() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let settings = SandboxSettings { cache: Some(home.path().to_owned()), ..common::settings() };
    let error = Sandbox::new(settings).unwrap_err().to_string();
    assert!(error.contains("chmod 700"), "{error}");
}
