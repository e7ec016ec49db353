//! Compiled components on disk, from one start to the next.
//!
//! What is loaded becomes machine code of this process. So it is only taken from a folder that nobody else can
//! write, only where its digest is the one that was kept beside it, and from the very bytes that were compared.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use wasmtime::Engine;

use crate::digest;
use crate::errors::SandboxError;

/// Changes whenever what is kept, or how, changes.
const FORMAT: &str = "1";
const ARTIFACT: &str = "cwasm";
const DIGEST: &str = "sha256";
const UNFINISHED: &str = "tmp";
const OTHERS_WRITE: u32 = 0o022;
const LARGEST: u64 = 1024 * 1024 * 1024;
const MOST_KEPT: usize = 1_024;

/// The folder of compiled components.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    engine: String,
    temporary: AtomicU64,
}

impl Cache {
    /// Makes the folder if it is missing, and refuses one that is not this user's alone.
    pub(crate) fn open(folder: &Path, engine: &Engine) -> Result<Self, SandboxError> {
        let refused = |text: String| SandboxError::Cache { path: folder.to_owned(), text };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(folder).map_err(|error| refused(format!("can't be made: {error}")))?;
        let found =
            fs::metadata(folder).map_err(|error| refused(format!("can't be read: {error}")))?;
        let (owner, own) = (found.uid(), rustix::process::geteuid().as_raw());
        if owner != own {
            return Err(refused(format!(
                "belongs to user {owner} and the host runs as user {own}; give the host a folder of its own"
            )));
        }
        if found.mode() & OTHERS_WRITE != 0 {
            return Err(refused(format!(
                "can be written by others (mode {:o}), who could plant machine code; run `chmod 700`",
                found.mode() & 0o7777
            )));
        }
        forget_unfinished(folder).map_err(|error| refused(format!("can't be read: {error}")))?;
        let engine = digest::of_hash(&engine.precompile_compatibility_hash());
        Ok(Self { folder: folder.to_owned(), engine, temporary: AtomicU64::new(0) })
    }

    /// The artefact of a component, where it is there and untouched.
    pub(crate) fn get(&self, component: &str) -> Option<Vec<u8>> {
        let (artifact, beside) = self.paths(component);
        let kept = String::from_utf8(read(&beside)?).ok()?;
        let bytes = read(&artifact)?;
        if digest::of(&bytes) == kept.trim() {
            return Some(bytes);
        }
        tracing::warn!(
            path = %artifact.display(),
            "compiled component is not what was stored; it is compiled again"
        );
        None
    }

    /// Keeps an artefact. A failure costs time at the next start and nothing else.
    pub(crate) fn put(&self, component: &str, artifact: &[u8]) {
        let (path, beside) = self.paths(component);
        let stored = self
            .replace(&path, artifact)
            .and_then(|()| self.replace(&beside, digest::of(artifact).as_bytes()));
        if let Err(error) = stored.and_then(|()| self.prune()) {
            tracing::warn!(path = %path.display(), %error, "compiled component could not be kept");
        }
    }

    fn paths(&self, component: &str) -> (PathBuf, PathBuf) {
        let key = digest::of(format!("{FORMAT}/{}/{component}", self.engine).as_bytes());
        let path = self.folder.join(key);
        (path.with_extension(ARTIFACT), path.with_extension(DIGEST))
    }

    /// Whoever reads sees the old file or the new one, never half of one.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary =
            path.with_extension(format!("{}-{number}.{UNFINISHED}", std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            drop(fs::remove_file(&temporary));
        }
        written
    }

    /// Forgets the oldest beyond the number that is kept.
    fn prune(&self) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == ARTIFACT) {
                kept.push((fs::metadata(&path)?.modified()?, path));
            }
        }
        kept.sort();
        for (_, path) in kept.iter().take(kept.len().saturating_sub(MOST_KEPT)) {
            fs::remove_file(path)?;
            fs::remove_file(path.with_extension(DIGEST))?;
        }
        Ok(())
    }
}

/// Removes what a host left that died while it stored. Whoever else stores here just now stores at the next start.
fn forget_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == UNFINISHED) {
            drop(fs::remove_file(path));
        }
    }
    Ok(())
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn cache(folder: &Path) -> Cache {
        Cache::open(folder, &Engine::default()).unwrap()
    }

    #[test]
    fn what_is_kept_comes_back_and_nobody_else_can_read_it() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("deep/cache");
        let cache = cache(&folder);
        assert_eq!(cache.get("a"), None);
        cache.put("a", b"machine code");
        cache.put("a", b"machine code");
        assert_eq!(cache.get("a").as_deref(), Some(&b"machine code"[..]));
        assert_eq!(cache.get("b"), None);
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(files.len(), 2);
        assert!(files.iter().all(|file| file.metadata().unwrap().mode() & 0o777 == 0o600));
    }

    #[test]
    fn what_was_touched_is_not_taken() {
        let home = tempfile::tempdir().unwrap();
        let cache = cache(home.path());
        cache.put("a", b"machine code");
        let (path, beside) = cache.paths("a");
        fs::write(&path, b"machine c0de").unwrap();
        assert_eq!(cache.get("a"), None);
        cache.put("a", b"machine code");
        fs::write(&beside, b"").unwrap();
        assert_eq!(cache.get("a"), None);
    }

    #[test]
    fn what_a_host_left_unfinished_is_removed() {
        let home = tempfile::tempdir().unwrap();
        cache(home.path()).put("a", b"machine code");
        fs::write(home.path().join("0123.7-0.tmp"), b"half").unwrap();
        assert!(cache(home.path()).get("a").is_some());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    }

    #[test]
    fn another_engine_has_other_artefacts() {
        let home = tempfile::tempdir().unwrap();
        cache(home.path()).put("a", b"machine code");
        let other = Engine::new(wasmtime::Config::new().epoch_interruption(true)).unwrap();
        assert_eq!(Cache::open(home.path(), &other).unwrap().get("a"), None);
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        let home = tempfile::tempdir().unwrap();
        for mode in [0o777, 0o770, 0o720] {
            fs::set_permissions(home.path(), fs::Permissions::from_mode(mode)).unwrap();
            let error = Cache::open(home.path(), &Engine::default()).unwrap_err();
            assert!(error.to_string().contains("chmod 700"), "{error}");
        }
    }

    #[test]
    fn only_so_many_are_kept() {
        let home = tempfile::tempdir().unwrap();
        let cache = cache(home.path());
        for n in 0..MOST_KEPT {
            let (path, beside) = cache.paths(&n.to_string());
            fs::write(path, b"x").unwrap();
            fs::write(beside, b"y").unwrap();
        }
        cache.put("new", b"machine code");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2 * MOST_KEPT);
        assert!(cache.get("new").is_some());
    }
}
