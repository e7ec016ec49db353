//! Runs tests as `cargo test` does, more at once than there are cores: they wait more than they work.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use crate::build::forget_own;

/// A test by its path.
pub type Named = (&'static str, fn());

/// Names the tests of a module, for [`run_all`]. One that is not named is an unused function, which the lints refuse.
#[macro_export]
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const TESTS: &[$crate::Named] =
            &[$((concat!(module_path!(), "::", stringify!($name)), $name)),+];
    };
}

/// Runs these tests, so many at once unless the command line says otherwise.
#[must_use]
pub fn run_all(at_once: usize, modules: &[&[Named]]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(at_once);
    let trials = modules.iter().copied().flatten().map(|&(path, test)| {
        let name = path.split_once("::").map_or(path, |(_, rest)| rest);
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    let ended = libtest_mimic::run(&arguments, trials.collect());
    forget_own();
    ended.exit_code()
}
