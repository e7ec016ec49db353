use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

const UNBOUNDED: u64 = u64::MAX;

struct Scene {
    home: tempfile::TempDir,
    cache: Arc<Cache>,
}

impl Scene {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let cache = opened(&home, UNBOUNDED);
        Self { home, cache }
    }

    fn get(&self, component: &str) -> Option<Vec<u8>> {
        self.cache.get(component).map(|kept| kept.bytes().unwrap())
    }

    /// What the next start finds.
    fn again(&self) -> Arc<Cache> {
        opened(&self.home, UNBOUNDED)
    }
}

fn opened(home: &tempfile::TempDir, most: u64) -> Arc<Cache> {
    Arc::new(Cache::open(&home.path().join("cache"), None, &Engine::default(), most).unwrap())
}

fn fit(handler: &str) -> Fit {
    Fit { handler: handler.to_owned(), wants_network: false }
}

#[test]
fn what_is_kept_comes_back_and_nobody_else_can_read_it() {
    let scene = Scene::new();
    assert_eq!(scene.get("a"), None);
    assert!(scene.cache.put("a", b"machine code"));
    assert!(scene.cache.put("a", b"machine code"));
    assert_eq!(scene.get("a").as_deref(), Some(&b"machine code"[..]));
    assert_eq!(scene.again().get("a").unwrap().bytes().unwrap(), b"machine code");
    assert_eq!(scene.get("b"), None);
    let folder = scene.home.path().join("cache");
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|file| file.metadata().unwrap().mode() & 0o777 == 0o400));
}

#[test]
fn that_it_fits_is_remembered_as_long_as_the_artefact_is_there() {
    let scene = Scene::new();
    scene.cache.add_fit("a", fit("f"));
    assert_eq!(scene.cache.fit("a", "f"), None, "there is no artefact");
    scene.cache.put("a", b"machine code");
    scene.cache.add_fit("a", fit("f"));
    assert_eq!(scene.again().fit("a", "f"), Some(fit("f")));
    assert_eq!(scene.cache.fit("a", "g"), None);
    fs::remove_file(scene.cache.path("a", ARTIFACT)).unwrap();
    assert_eq!(scene.cache.fit("a", "f"), None);
}

/// Every way to touch a pair of files; each time nothing is taken, and it can be stored again.
#[test]
fn what_was_touched_is_not_taken() {
    let touches: [(&str, fn(&Path, &Path)); 8] = [
        ("a byte", |artifact, _| write(artifact, b"machine c0de")),
        ("truncated", |artifact, _| write(artifact, b"machine")),
        ("longer", |artifact, _| write(artifact, b"machine code and more")),
        ("a link", |artifact, _| {
            fs::rename(artifact, artifact.with_extension("moved")).unwrap();
            symlink(artifact.with_extension("moved"), artifact).unwrap();
        }),
        ("a folder", |artifact, _| {
            fs::remove_file(artifact).unwrap();
            fs::create_dir_all(artifact.join("deep")).unwrap();
        }),
        ("written by others", |artifact, _| {
            fs::set_permissions(artifact, fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("no proof", |_, proof| write(proof, b"")),
        ("a folder for a proof", |_, proof| {
            fs::remove_file(proof).unwrap();
            fs::create_dir(proof).unwrap();
        }),
    ];
    for (what, touch) in touches {
        let scene = Scene::new();
        scene.cache.put("a", b"machine code");
        touch(&scene.cache.path("a", ARTIFACT), &scene.cache.path("a", PROOF));
        assert_eq!(scene.get("a"), None, "{what}");
        assert!(scene.cache.put("a", b"machine code"), "{what}");
        assert_eq!(scene.get("a").as_deref(), Some(&b"machine code"[..]), "{what}");
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn two_pairs_that_were_swapped_are_not_taken() {
    let scene = Scene::new();
    scene.cache.put("a", b"machine code");
    scene.cache.put("b", b"other code");
    for extension in [ARTIFACT, PROOF] {
        let (a, b) = (scene.cache.path("a", extension), scene.cache.path("b", extension));
        fs::rename(&a, a.with_extension("aside")).unwrap();
        fs::rename(&b, &a).unwrap();
        fs::rename(a.with_extension("aside"), &b).unwrap();
        assert_eq!((scene.get("a"), scene.get("b")), (None, None), "{extension}");
    }
}

/// Who can write the folder and not read the key can't make a pair that is taken.
#[test]
fn what_another_key_sealed_is_not_taken() {
    let (scene, foreign) = (Scene::new(), Scene::new());
    foreign.cache.put("a", b"evil code");
    for extension in [ARTIFACT, PROOF] {
        fs::copy(foreign.cache.path("a", extension), scene.cache.path("a", extension)).unwrap();
    }
    assert_eq!(scene.get("a"), None);
}

#[test]
fn with_a_new_key_nothing_of_before_is_left() {
    let scene = Scene::new();
    scene.cache.put("a", b"machine code");
    fs::remove_file(scene.home.path().join("cache.key")).unwrap();
    assert!(scene.again().get("a").is_none());
    assert_eq!(fs::read_dir(scene.home.path().join("cache")).unwrap().count(), 0);
}

#[test]
fn what_a_host_left_unfinished_is_removed() {
    let scene = Scene::new();
    scene.cache.put("a", b"machine code");
    let folder = scene.home.path().join("cache");
    fs::write(folder.join("0123.7-0.tmp"), b"half").unwrap();
    fs::write(folder.join("0123.sha256"), b"of before").unwrap();
    assert!(scene.again().get("a").is_some());
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
}

#[test]
fn another_engine_has_other_artefacts() {
    let scene = Scene::new();
    scene.cache.put("a", b"machine code");
    let other = Engine::new(wasmtime::Config::new().epoch_interruption(true)).unwrap();
    let cache = Cache::open(&scene.home.path().join("cache"), None, &other, UNBOUNDED).unwrap();
    assert!(cache.get("a").is_none());
}

#[test]
fn a_folder_that_others_can_write_is_refused() {
    let home = tempfile::tempdir().unwrap();
    for mode in [0o777, 0o770, 0o720] {
        fs::set_permissions(home.path(), fs::Permissions::from_mode(mode)).unwrap();
        let error = Cache::open(home.path(), None, &Engine::default(), UNBOUNDED).unwrap_err();
        assert!(error.to_string().contains("chmod 700"), "{error}");
    }
}

#[test]
fn what_handlers_use_stays_and_of_the_rest_so_much() {
    let home = tempfile::tempdir().unwrap();
    let cache = opened(&home, 25);
    let held = cache.hold("used");
    for component in ["used", "old", "new", "newest"] {
        cache.put(component, b"ten bytes.");
        std::thread::sleep(Duration::from_millis(5));
    }
    let there = |component| cache.get(component).is_some();
    assert_eq!(["used", "old", "new", "newest"].map(there), [true, false, true, true]);
    drop(held);
    cache.put("last", b"ten bytes.");
    assert!(!there("used"), "nobody uses it any more, and it is the oldest");
    assert_eq!(fs::read_dir(home.path().join("cache")).unwrap().count(), 4);
}

/// Code that runs is mapped from a file: who changes or shortens what is stored changes no code and ends no process.
#[test]
fn what_was_taken_stays_as_it_was() {
    let scene = Scene::new();
    scene.cache.put("a", b"machine code");
    let kept = scene.cache.get("a").unwrap();
    for bytes in [&b"evil machine"[..], b""] {
        write(&scene.cache.path("a", ARTIFACT), bytes);
        assert_eq!(kept.bytes().unwrap(), b"machine code");
        assert_eq!(fs::read(kept.path()).unwrap(), b"machine code");
    }
    assert_eq!(fs::read_dir(scene.home.path().join("cache")).unwrap().count(), 2, "it has a name");
}
