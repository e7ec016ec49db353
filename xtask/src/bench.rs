//! The benchmarks: ratios within one run, beside their targets.

use anyhow::Result;

use crate::guests;
use crate::run;

pub(crate) fn run(only: Option<&str>) -> Result<()> {
    guests::build_some(&["bench-guest", "bare-guest", "hostile-busy", "hostile-loop"])?;
    let mut arguments = vec!["run", "--release", "-p", "pumphouse-bench", "--"];
    arguments.extend(only);
    run::run(&mut run::cargo(&arguments))
}
