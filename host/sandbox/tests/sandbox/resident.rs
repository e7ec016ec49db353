//! More handlers than there is room for in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::ports::{Handler, Version};
use pumphouse_contract::{FaultKind, Outcome};
use pumphouse_sandbox::{
    Grants, HandlerSpec, LoadedHandler, Sandbox, SandboxSettings, TenantLimits,
};
use tempfile::TempDir;

use crate::common::{self, call, description, eventually, fault, invocation};
use crate::watch::version;

/// A folder of components, and a cache for them that outlives each sandbox.
struct Scene {
    home: TempDir,
}

impl Scene {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { home }
    }

    fn sandbox(&self, resident: usize) -> Sandbox {
        let settings = SandboxSettings {
            pool_slots: 32,
            cache: Some(self.home.path().join("cache")),
            resident,
            ..common::settings()
        };
        Sandbox::new(settings).unwrap()
    }

    /// The file of a component that says its number.
    fn component(&self, number: u32) -> PathBuf {
        let path = self.home.path().join(format!("{number}.wasm"));
        if !path.exists() {
            fs::write(&path, version(number)).unwrap();
        }
        path
    }

    async fn load(&self, sandbox: &Sandbox, number: u32) -> Arc<LoadedHandler> {
        let spec = common::spec(&number.to_string(), &self.component(number));
        sandbox.load(spec).await.unwrap()
    }

    fn artefacts(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home.path().join("cache")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|found| found == "cwasm")).collect()
    }
}

async fn says(handler: &LoadedHandler) -> u32 {
    description(&call(handler, "").await).parse().unwrap()
}

/// Numbers without order, the same in every run.
fn shuffled(seed: u64) -> impl Iterator<Item = u64> {
    let step =
        |n: &u64| Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040));
    std::iter::successors(Some(seed), step).map(|n| n >> 33)
}

/// 300 handlers, 16 of them in memory: several tasks call them in random order while some are swapped, and every call
/// is answered by the right component.
#[tokio::test(flavor = "multi_thread")]
async fn many_more_handlers_than_room_answer_in_any_order() {
    const MANY: u32 = 300;
    const SWAPPED: u32 = 10;
    const CALLS: usize = 400;
    let scene = Scene::new();
    let sandbox = scene.sandbox(16);
    let mut handlers = Vec::new();
    for number in 0..MANY {
        let spec = common::spec(&number.to_string(), &scene.component(number));
        let spec = HandlerSpec { watch: number < SWAPPED, ..spec };
        handlers.push(sandbox.load(spec).await.unwrap());
    }
    assert!(sandbox.resident() <= 16, "{}", sandbox.resident());
    let handlers = Arc::new(handlers);
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..4 {
        let handlers = handlers.clone();
        tasks.spawn(async move {
            for n in shuffled(task).take(CALLS) {
                let number = u32::try_from(n).unwrap() % MANY;
                let said = says(&handlers[number as usize]).await;
                let swapped = number < SWAPPED && said == number + MANY;
                assert!(said == number || swapped, "{number} said {said}");
            }
        });
    }
    for number in 0..SWAPPED {
        fs::write(scene.home.path().join("new"), version(number + MANY)).unwrap();
        fs::rename(scene.home.path().join("new"), scene.component(number)).unwrap();
    }
    tasks.join_all().await;
    for number in 0..SWAPPED {
        let handler = &handlers[number as usize];
        let digest = crate::watch::pumphouse_digest(&version(number + MANY));
        eventually("the new version", || handler.status().digest == digest).await;
        assert_eq!(says(handler).await, number + MANY);
    }
    assert!(sandbox.resident() <= 16, "{}", sandbox.resident());
}

/// What was found to fit at an earlier start is not compiled again; beyond the room in memory it is loaded when a
/// message comes.
#[tokio::test]
async fn a_handler_from_the_cache_is_loaded_by_its_first_call() {
    let scene = Scene::new();
    let first = scene.sandbox(100);
    for number in 0..20 {
        scene.load(&first, number).await;
    }
    drop(first);
    let sandbox = scene.sandbox(5);
    let mut handlers = Vec::new();
    for number in 0..20 {
        handlers.push(scene.load(&sandbox, number).await);
    }
    assert_eq!(sandbox.resident(), 5);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let handler = handlers[7].clone();
        calls.spawn(async move { says(&handler).await });
    }
    let said = calls.join_all().await;
    assert!(said.iter().all(|number| *number == 7), "{said:?}");
    assert!(sandbox.resident() <= 5, "{}", sandbox.resident());
}

/// Those that were called last stay, and a handler that leaves is still there.
#[tokio::test]
async fn the_one_that_was_called_longest_ago_leaves() {
    let scene = Scene::new();
    let sandbox = scene.sandbox(2);
    let handlers = [
        scene.load(&sandbox, 0).await,
        scene.load(&sandbox, 1).await,
        scene.load(&sandbox, 2).await,
    ];
    let log = common::log();
    let loads = |number: usize| {
        let lines = log.lines_with("component loaded again");
        lines.iter().filter(|line| line.contains(handlers[number].current().digest())).count()
    };
    assert_eq!(sandbox.resident(), 2);
    assert_eq!([says(&handlers[1]).await, says(&handlers[2]).await], [1, 2]);
    assert_eq!([loads(0), loads(1), loads(2)], [0; 3]);
    assert_eq!([says(&handlers[0]).await, says(&handlers[2]).await], [0, 2]);
    assert_eq!([loads(0), loads(1), loads(2)], [1, 0, 0]);
    assert_eq!(says(&handlers[1]).await, 1);
    assert_eq!([loads(0), loads(1), loads(2)], [1, 1, 0]);
    assert_eq!(sandbox.resident(), 2);
}

/// FR-27: a call that is in a component when it leaves ends in it.
#[tokio::test(flavor = "multi_thread")]
async fn fr_27_a_call_ends_in_the_component_that_it_began_with() {
    let scene = Scene::new();
    let sandbox = scene.sandbox(1);
    let spec = common::spec("slow", &common::guest("conformance"));
    let slow = sandbox.load(spec).await.unwrap();
    let body = r#"{"do":"sleep","ms":4000,"then":{"do":"reject","text":"still here"}}"#;
    let version = slow.begin();
    let running = tokio::spawn(async move { version.call(invocation("m", body)).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    for number in 0..3 {
        let handler = scene.load(&sandbox, number).await;
        assert_eq!(says(&handler).await, number);
    }
    assert!(!running.is_finished());
    assert_eq!(description(&running.await.unwrap()), "still here");
}

/// An artefact that is gone, or is not what was stored, is compiled again, if the component is still there.
#[tokio::test]
async fn what_is_gone_from_the_cache_is_compiled_again() {
    let log = common::log();
    let scene = Scene::new();
    drop(scene.load(&scene.sandbox(1), 7).await);
    let sandbox = scene.sandbox(1);
    let handler = scene.load(&sandbox, 7).await;
    let other = scene.load(&sandbox, 8).await;
    let [seven] = scene.artefacts_but_newest();
    let good = fs::read(&seven).unwrap();
    let size = good.len() as u64;
    let poison: [&dyn Fn(); 3] = [
        &|| fs::remove_file(&seven).unwrap(),
        &|| overwrite(&seven, &[&good[..], b"!"].concat()),
        &|| overwrite(&seven, b""),
    ];
    for poison in poison {
        assert_eq!(says(&other).await, 8);
        poison();
        assert_eq!(says(&handler).await, 7);
        // No two compilations need be equal byte for byte, and none is as poison was.
        assert_eq!(fs::metadata(&seven).unwrap().len(), size);
    }
    let name = seven.file_name().unwrap().to_str().unwrap();
    let warnings = log.lines_with("is not what was stored");
    assert_eq!(warnings.iter().filter(|line| line.contains(name)).count(), 2);
}

fn overwrite(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

impl Scene {
    /// The oldest artefact, where there are two.
    fn artefacts_but_newest(&self) -> [PathBuf; 1] {
        let mut all = self.artefacts();
        all.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
        assert_eq!(all.len(), 2);
        all.truncate(1);
        all.try_into().unwrap()
    }
}

/// Without an artefact and without its component, a handler's messages end in a fault that says so.
#[tokio::test]
async fn what_is_gone_altogether_is_a_fault_of_the_host() {
    let scene = Scene::new();
    drop(scene.load(&scene.sandbox(1), 7).await);
    let sandbox = scene.sandbox(1);
    let handler = scene.load(&sandbox, 7).await;
    // There is room for one of them.
    drop(scene.load(&sandbox, 8).await);
    fs::remove_dir_all(scene.home.path().join("cache")).unwrap();
    fs::write(scene.component(7), version(8)).unwrap();
    for _ in 0..2 {
        let fault = fault(&handler, "").await;
        assert_eq!(fault.kind, FaultKind::Host, "{fault:?}");
        assert!(fault.detail.contains("could not be loaded again"), "{fault:?}");
        assert!(fault.detail.contains("7.wasm"), "{fault:?}");
    }
}

/// FR-28: that a component fits one handler says nothing about another with other grants or limits.
#[tokio::test]
async fn fr_28_what_fits_one_handler_may_not_fit_another() {
    let scene = Scene::new();
    let component = common::guest("greeter");
    let granted = || common::spec("granted", &component);
    drop(scene.sandbox(10).load(granted()).await.unwrap());
    let sandbox = scene.sandbox(10);
    let handler = sandbox.load(granted()).await.unwrap();
    assert_eq!(sandbox.resident(), 1);
    for _ in 0..2 {
        let without = HandlerSpec { grants: Grants::default(), ..granted() };
        let refused = sandbox.load(without).await.unwrap_err().to_string();
        assert!(refused.contains("grants.logging"), "{refused}");
        let mut small = granted();
        small.limits.memory = 64 * 1024;
        let refused = sandbox.load(small).await.unwrap_err().to_string();
        assert!(refused.contains("`limits.memory`"), "{refused}");
    }
    assert!(matches!(call(&handler, "{}").await.result, Ok(Outcome::Ack | Outcome::Reject(_))));
}

/// FR-21: the limits of a tenant are real ones, at deploy.
#[tokio::test]
async fn fr_21_a_tenant_has_so_many_handlers_and_so_large_components() {
    let scene = Scene::new();
    let sandbox = scene.sandbox(10);
    let spec =
        |name: &str| HandlerSpec { name: name.into(), ..common::spec("", &scene.component(1)) };
    let limits = TenantLimits { handlers: Some(2), ..TenantLimits::default() };
    sandbox.set_tenant("a", limits);
    let one = sandbox.load(spec("a/one")).await.unwrap();
    let _two = sandbox.load(spec("a/two")).await.unwrap();
    let refused = sandbox.load(spec("a/three")).await.unwrap_err().to_string();
    assert!(refused.contains("a/three") && refused.contains("`limits.handlers`"), "{refused}");
    assert!(refused.contains("number 3") && refused.contains("the 2 of"), "{refused}");
    // The same once more is how a configuration is prepared; another tenant is another matter.
    drop(sandbox.load(spec("a/one")).await.unwrap());
    drop(sandbox.load(spec("b/three")).await.unwrap());
    drop(one);
    drop(sandbox.load(spec("a/three")).await.unwrap());

    let size = fs::metadata(scene.component(1)).unwrap().len();
    let limits = TenantLimits { component_bytes: Some(size - 1), ..TenantLimits::default() };
    sandbox.set_tenant("c", limits);
    let refused = sandbox.load(spec("c/one")).await.unwrap_err().to_string();
    for part in ["1.wasm", &size.to_string(), &(size - 1).to_string(), "`limits.component`"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
}
