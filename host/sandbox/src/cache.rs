//! Compiled components on disk, from one start to the next.
//!
//! What is loaded becomes machine code of this process. So it is only taken from a folder that nobody else can
//! write, only where its digest is the one that was sealed with the host's own key, and from a copy without a name that
//! was made while it was compared.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use wasmtime::Engine;

use crate::digest;
use crate::errors::SandboxError;
use crate::proof::{Fit, Proof, Subject};
use crate::seal::Seal;
use crate::stock::Stock;

/// Changes whenever what is kept, or how, changes.
const FORMAT: &str = "2";
const ARTIFACT: &str = "cwasm";
const PROOF: &str = "proof";
/// What hosts of the first format kept.
const DIGEST: &str = "sha256";
const UNFINISHED: &str = "tmp";
const KEY: &str = "key";
const OTHERS_WRITE: u32 = 0o022;
const LARGEST: u64 = 1024 * 1024 * 1024;
const LARGEST_PROOF: u64 = 64 * 1024;
/// One file of a pair may be there before the other.
const UNPAIRED: Duration = Duration::from_secs(600);

/// The folder of compiled components.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    engine: String,
    seal: Seal,
    most_unused: u64,
    temporary: AtomicU64,
    stock: Mutex<Stock>,
    /// Proofs are read, added to and written by one at a time.
    proofs: Mutex<()>,
}

/// A component that a handler uses: its artefact stays as long as this lives.
#[derive(Debug)]
pub(crate) struct Held {
    cache: Arc<Cache>,
    key: Box<str>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.cache.stock().release(&self.key);
    }
}

/// An artefact that is the one that was sealed: a copy of it that has no name, so that nobody else can open it, and
/// change or shorten it while its code runs.
#[derive(Debug)]
pub(crate) struct Kept {
    copy: File,
    proof: Proof,
}

impl Kept {
    /// A path that is this copy's as long as this lives.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.copy.as_raw_fd()))
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.proof.size).unwrap_or(0));
        (&self.copy).seek(SeekFrom::Start(0))?;
        (&self.copy).take(LARGEST).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Cache {
    /// Makes the folder and its key if they are missing, and refuses what is not this user's alone.
    ///
    /// # Errors
    /// Says what is wrong, and what to do.
    pub(crate) fn open(
        folder: &Path,
        key: Option<&Path>,
        engine: &Engine,
        most_unused: u64,
    ) -> Result<Self, SandboxError> {
        let refused = |text: String| SandboxError::Cache { path: folder.to_owned(), text };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(folder).map_err(|error| refused(format!("can't be made: {error}")))?;
        let found =
            fs::metadata(folder).map_err(|error| refused(format!("can't be read: {error}")))?;
        check_owner(&found).map_err(refused)?;
        let beside = folder.with_extension(KEY);
        let (seal, new) = Seal::open(key.unwrap_or(&beside)).map_err(refused)?;
        let stock =
            take_stock(folder, new).map_err(|error| refused(format!("can't be read: {error}")))?;
        Ok(Self {
            folder: folder.to_owned(),
            engine: digest::of_hash(&engine.precompile_compatibility_hash()),
            seal,
            most_unused,
            temporary: AtomicU64::new(0),
            stock: Mutex::new(stock),
            proofs: Mutex::new(()),
        })
    }

    /// Says that a handler uses this component, whether it is here yet or not.
    pub(crate) fn hold(self: &Arc<Self>, component: &str) -> Held {
        let key = self.key(component).into_boxed_str();
        self.stock().hold(&key);
        Held { cache: self.clone(), key }
    }

    /// Whether there is an artefact of the component. It is not read.
    pub(crate) fn has(&self, component: &str) -> bool {
        let proof = self.proof(component);
        proof.is_some_and(|proof| self.is_there(component, &proof))
    }

    /// That the component fits a handler, where that was found out before and its artefact is still there.
    pub(crate) fn fit(&self, component: &str, handler: &str) -> Option<Fit> {
        let proof = self.proof(component)?;
        let fit = proof.fit(handler)?;
        self.is_there(component, &proof).then(|| fit.clone())
    }

    /// Remembers that a component fits a handler. A failure costs time at the next start and nothing else.
    pub(crate) fn add_fit(&self, component: &str, fit: Fit) {
        let _alone = self.proofs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut proof) = self.proof(component) else { return };
        if proof.fit(&fit.handler) == Some(&fit) {
            return;
        }
        proof.add(fit);
        let path = self.path(component, PROOF);
        if let Err(error) = self.replace(&path, self.sealed(component, &proof).as_bytes()) {
            tracing::warn!(path = %path.display(), %error, "compiled component could not be kept");
        }
    }

    /// The artefact of a component, where it is there and untouched. Reads it whole, and holds no more than a piece.
    pub(crate) fn get(&self, component: &str) -> Option<Kept> {
        let proof = self.proof(component)?;
        let path = self.path(component, ARTIFACT);
        let file = match open(&path) {
            Ok(Some((file, _))) => file,
            Ok(None) => return None,
            Err(error) => {
                poisoned(&path, &error.to_string());
                return None;
            }
        };
        let copied = self.unnamed().and_then(|copy| {
            let digest = digest::of_copied((&file).take(LARGEST), &copy)?;
            Ok((digest, copy))
        });
        match copied {
            Ok((digest, copy)) if digest == proof.digest => return Some(Kept { copy, proof }),
            Ok(_) => poisoned(&path, "its bytes are others"),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "compiled component could not be read");
            }
        }
        None
    }

    /// A file without a name, on the same disk.
    fn unnamed(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        let flags = i32::try_from(OFlags::TMPFILE.bits()).unwrap_or_default();
        if let Ok(file) = options.clone().custom_flags(flags).open(&self.folder) {
            return Ok(file);
        }
        // Not every file system has such files.
        let path = self.temporary(&self.folder.join("copy"));
        let file = options.create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    }

    /// Keeps an artefact. False where that failed, which costs time at the next start.
    pub(crate) fn put(&self, component: &str, artifact: &[u8]) -> bool {
        let path = self.path(component, ARTIFACT);
        let proof = Proof::new(digest::of(artifact), artifact.len() as u64);
        let _alone = self.proofs.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = self.replace(&path, artifact).and_then(|()| {
            let sealed = self.sealed(component, &proof);
            self.replace(&self.path(component, PROOF), sealed.as_bytes())
        });
        if let Err(error) = &stored {
            tracing::warn!(path = %path.display(), %error, "compiled component could not be kept");
            return false;
        }
        self.stock().put(&self.key(component), proof.size, SystemTime::now());
        self.prune();
        true
    }

    fn key(&self, component: &str) -> String {
        digest::of(format!("{FORMAT}/{}/{component}", self.engine).as_bytes())
    }

    fn path(&self, component: &str, extension: &str) -> PathBuf {
        self.folder.join(self.key(component)).with_extension(extension)
    }

    fn subject<'a>(&'a self, component: &'a str) -> Subject<'a> {
        Subject { component, engine: &self.engine }
    }

    fn sealed(&self, component: &str, proof: &Proof) -> String {
        proof.sealed(&self.subject(component), &self.seal)
    }

    fn proof(&self, component: &str) -> Option<Proof> {
        let path = self.path(component, PROOF);
        let text = match open(&path) {
            Ok(Some((file, _))) => {
                let mut text = String::new();
                file.take(LARGEST_PROOF).read_to_string(&mut text).map(|_| text)
            }
            Ok(None) => return None,
            Err(error) => Err(error),
        };
        let sealed = text.map_err(|error| error.to_string()).and_then(|text| {
            Proof::open(&text, &self.subject(component), &self.seal)
                .ok_or_else(|| "it was not sealed with this host's key".to_owned())
        });
        sealed.inspect_err(|touched| poisoned(&path, touched)).ok()
    }

    fn is_there(&self, component: &str, proof: &Proof) -> bool {
        let found = fs::symlink_metadata(self.path(component, ARTIFACT));
        found.is_ok_and(|found| found.is_file() && found.len() == proof.size)
    }

    /// Whoever reads sees the old file or the new one, never half of one.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.temporary(path);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o400)
            .open(&temporary)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| rename(&temporary, path));
        if written.is_err() {
            drop(fs::remove_file(&temporary));
        }
        written
    }

    /// A path beside another, which nobody else takes.
    fn temporary(&self, path: &Path) -> PathBuf {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        path.with_extension(format!("{}-{number}.{UNFINISHED}", std::process::id()))
    }

    /// Removes the oldest that nobody uses, beyond what is kept of them.
    fn prune(&self) {
        let surplus = self.stock().surplus(self.most_unused);
        for key in surplus {
            let path = self.folder.join(&*key);
            drop(fs::remove_file(path.with_extension(PROOF)));
            drop(fs::remove_file(path.with_extension(ARTIFACT)));
        }
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_owner(found: &Metadata) -> Result<(), String> {
    let (owner, own) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != own {
        return Err(format!(
            "belongs to user {owner} and the host runs as user {own}; give the host a folder of its own"
        ));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(format!(
            "can be written by others (mode {:o}), who could plant machine code; run `chmod 700`",
            found.mode() & 0o7777
        ));
    }
    Ok(())
}

/// Opens a file that this host may have written; none where there is none. Follows no link and waits for no pipe.
fn open(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path);
    let file = match file {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    check_owner(&found).map_err(|text| io::Error::other(format!("it {text}")))?;
    Ok(Some((file, found)))
}

/// In place of whatever has the name.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            fs::remove_dir_all(to)?;
            fs::rename(from, to)
        }
        renamed => renamed,
    }
}

fn poisoned(path: &Path, touched: &str) {
    tracing::warn!(
        path = %path.display(),
        touched,
        "compiled component is not what was stored; it is compiled again"
    );
}

/// Lists what is there. Removes what a host left that died while it stored, what an older host kept, and everything
/// where the key is new. Whoever else stores here just now stores at the next start.
fn take_stock(folder: &Path, new_key: bool) -> io::Result<Stock> {
    let (mut stock, mut distrusted) = (Stock::default(), 0);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some(UNFINISHED | DIGEST) => drop(fs::remove_file(&path)),
            Some(PROOF) if new_key => drop(fs::remove_file(&path)),
            Some(ARTIFACT) if new_key => {
                distrusted += 1;
                drop(fs::remove_file(&path));
            }
            Some(ARTIFACT) => take_in(&mut stock, &path),
            _ => {}
        }
    }
    if distrusted > 0 {
        tracing::warn!(
            folder = %folder.display(),
            components = distrusted,
            "the key of the compiled components is new: they are compiled again"
        );
    }
    Ok(stock)
}

fn take_in(stock: &mut Stock, path: &Path) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    let stored = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    if !path.with_extension(PROOF).exists() {
        if stored.elapsed().is_ok_and(|age| age > UNPAIRED) {
            drop(fs::remove_file(path));
        }
        return;
    }
    if let Some(key) = path.file_stem().and_then(|stem| stem.to_str()) {
        stock.put(key, found.len(), stored);
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
