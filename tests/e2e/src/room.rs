//! A small disk that only some processes see, so that it can be full.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::wait::until;

/// A mount namespace with a small file system in memory at one place. It lasts until dropped, whatever becomes of
/// the hosts in it.
#[derive(Debug)]
pub struct Room {
    holder: Child,
    place: PathBuf,
}

impl Room {
    /// A disk of this size, as `mount` takes it, at this place.
    ///
    /// # Panics
    /// When the system does not let this user make one.
    #[must_use]
    pub fn at(place: &Path, size: &str) -> Self {
        fs::create_dir_all(place).expect("a folder");
        let script = format!(
            "mount -t tmpfs -o size={size},mode=700 tmpfs \"$1\" && touch \"$1/there\" && exec sleep 600"
        );
        let mut unshare = Command::new("unshare");
        if !is_root() {
            unshare.arg("--map-root-user");
        }
        let holder = unshare
            .args(["--mount", "sh", "-c", &script, "sh"])
            .arg(place)
            .stdin(Stdio::null())
            .spawn()
            .expect("`unshare` of util-linux");
        let room = Self { holder, place: place.to_owned() };
        until(Duration::from_secs(10), "a small disk: may this user make namespaces?", || {
            room.inside().join("there").exists()
        });
        fs::remove_file(room.inside().join("there")).expect("the mark goes");
        room
    }

    /// What runs a program in it.
    #[must_use]
    pub fn enter(&self) -> Vec<String> {
        let target = self.holder.id().to_string();
        let mut words = vec!["nsenter", "--target", &target, "--mount"];
        if !is_root() {
            words.extend(["--user", "--preserve-credentials"]);
        }
        words.into_iter().map(str::to_owned).collect()
    }

    /// The place as it is in there, seen from outside.
    #[must_use]
    pub fn inside(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.place.strip_prefix("/").expect("a whole path"))
    }

    /// Fills it to the last byte.
    ///
    /// # Panics
    /// When it does not become full.
    pub fn fill(&self) {
        let mut file = fs::File::options()
            .create(true)
            .append(true)
            .open(self.inside().join("filler"))
            .expect("a file that fills");
        for block in [1 << 16, 1 << 12, 1] {
            let block = vec![b'x'; block];
            while file.write_all(&block).is_ok() {}
        }
    }

    /// Makes room again.
    ///
    /// # Panics
    /// When it was not full.
    pub fn empty(&self) {
        fs::remove_file(self.inside().join("filler")).expect("a file that filled");
    }

    /// Lets nobody write any more.
    ///
    /// # Panics
    /// When somebody has a file open there.
    pub fn seal(&self) {
        let mut words = self.enter();
        words.extend(["mount", "-o", "remount,ro"].map(str::to_owned));
        let status = Command::new(&words[0]).args(&words[1..]).arg(&self.place).status();
        assert!(status.expect("`nsenter` of util-linux").success(), "the disk is in use");
    }
}

/// Whether namespaces can be made without one for users around them.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

impl Drop for Room {
    fn drop(&mut self) {
        // Its disk goes with it.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
