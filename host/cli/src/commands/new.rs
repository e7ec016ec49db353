//! `pumphouse new`: a handler project that builds and passes its own test.

mod projects;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::args::New;
use crate::exit::{Exit, say};

use self::projects::Project;

/// Names that cargo refuses, or that would stand for something else in the project.
const TAKEN: [&str; 16] = [
    "alloc",
    "core",
    "proc_macro",
    "proc-macro",
    "pumphouse-sdk",
    "serde",
    "std",
    "test",
    "crate",
    "fn",
    "impl",
    "mod",
    "self",
    "super",
    "type",
    "use",
];

pub(crate) fn new(arguments: &New) -> Result<Exit> {
    let name = checked(&arguments.name)?;
    let folder = arguments.directory.join(name);
    if folder.exists() {
        bail!("{} exists already: choose another name, or another --directory", folder.display());
    }
    let project = Project::of(arguments.lang);
    for (path, text) in project.files(name) {
        write(&folder.join(path), &text)?;
    }
    say(instructions(&folder, &project.steps(name)));
    Ok(Exit::Done)
}

/// A name that cargo, the file system and the configuration all take.
fn checked(name: &str) -> Result<&str> {
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if TAKEN.contains(&name) {
        bail!("{name:?} can't be a project's name: it means something else to cargo or to Rust");
    }
    if !starts || !name.chars().all(fits) || name.len() > 64 {
        bail!(
            "{name:?} can't be a project's name: lower-case letters, digits, `-` and `_`, a letter first, at most 64"
        );
    }
    Ok(name)
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .with_context(|| format!("{} can't be made", folder.display()))?;
    std::fs::write(path, text).with_context(|| format!("{} can't be written", path.display()))
}

/// The commands, each with what it is for.
fn instructions(folder: &Path, steps: &[(String, &str)]) -> String {
    let folder = folder.display();
    let widest = steps.iter().map(|(command, _)| command.len()).max().unwrap_or(0).min(56);
    let lines: String = steps
        .iter()
        .map(|(command, about)| match *about {
            "" => format!("  {command}\n"),
            about => format!("  {command:widest$}   # {about}\n"),
        })
        .collect();
    format!("made {folder}\n\n  cd {folder}\n{lines}\nREADME.md there says how to deploy it.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_cargo_takes() {
        for good in ["orders", "order-audit", "a1_b"] {
            assert!(checked(good).is_ok(), "{good}");
        }
        for bad in ["", "Orders", "1st", "../up", "a b", "test", "self", "pumphouse-sdk", "-x"] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }
}
