//! The SDK carries its own copy of the WIT so that it can be built inside somebody's project. This test lives
//! beside the copy's original and is not part of what such a project gets.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &Path, root: &Path, into: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // Others' worlds are the host's business alone.
            if path == root.join("worlds") {
                continue;
            }
            files(&path, root, into);
        } else {
            let text = fs::read_to_string(&path).unwrap();
            into.insert(path.strip_prefix(root).unwrap().to_owned(), text);
        }
    }
}

fn tree(folder: &str) -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = BTreeMap::new();
    files(&root, &root, &mut found);
    found
}

#[test]
fn the_copied_wit_is_the_hosts_wit() {
    let original = tree("../../wit");
    assert!(original.contains_key(Path::new("handler.wit")), "the host's WIT has no handler.wit");
    assert_eq!(tree("wit"), original, "copy wit/ to guests/sdk/wit/");
}
