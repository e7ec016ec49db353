//! The way of somebody who is new here, in other languages than Rust: `pumphouse new`, then the commands that it prints.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pumphouse_e2e::{LONG, Ran, Scene, binary, root, run_within};

pumphouse_e2e::tests! {
    a_newcomer_with_c_gets_to_a_component,
    a_newcomer_with_go_gets_to_a_component,
    a_newcomer_with_javascript_gets_to_a_component,
    a_newcomer_with_typescript_gets_to_a_component,
    a_newcomer_with_python_gets_to_a_component,
}

/// What one command may take on a busy machine: fetching a compiler, or compiling Python's interpreter, which gives way to
/// all that runs beside it.
const STEP: Duration = Duration::from_secs(600);

/// Set where a missing tool is a mistake: in CI.
const ALL: &str = "PUMPHOUSE_ALL_GUESTS";

fn a_newcomer_with_c_gets_to_a_component() {
    newcomer("c", "python3", "3 passed, 0 failed");
}

fn a_newcomer_with_go_gets_to_a_component() {
    newcomer("go", "go", "ok  \torders");
}

fn a_newcomer_with_javascript_gets_to_a_component() {
    newcomer("js", "npm", "# pass 3");
}

fn a_newcomer_with_typescript_gets_to_a_component() {
    newcomer("ts", "npm", "# pass 3");
}

fn a_newcomer_with_python_gets_to_a_component() {
    newcomer("python", "python3", "Ran 3 tests");
}

/// Every command that `new` prints, in a shell, one after another.
#[expect(clippy::print_stderr, reason = "what is left out is said")]
fn newcomer(language: &str, tool: &str, tested: &str) {
    if !is_there(tool) {
        assert!(std::env::var_os(ALL).is_none(), "{tool} is not there");
        eprintln!("skipped: {tool} is not there");
        return;
    }
    let scene = Scene::new("");
    let new = ["new", "orders", "--lang", language];
    let made = run_within(LONG, &mut scene.pumphouse(&new), "").ok();
    let steps = steps(&made.stdout);
    let programs = programs(&scene);
    let ran: Vec<Ran> = steps
        .iter()
        .map(|step| run_within(STEP, &mut shell(step, &scene.path("orders"), &programs), "").ok())
        .collect();
    let said =
        |text: &str| ran.iter().any(|ran| ran.stdout.contains(text) || ran.stderr.contains(text));
    assert!(said(tested), "{ran:#?}");
    assert!(ran.last().unwrap().stdout.contains(r#""outcome": "ack""#), "{ran:#?}");
}

fn is_there(tool: &str) -> bool {
    let version = if tool == "go" { "version" } else { "--version" };
    let mut command = Command::new(tool);
    command.arg(version).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The commands, without the comments behind them and the change of the folder.
fn steps(printed: &str) -> Vec<String> {
    let indented = printed.lines().filter_map(|line| line.strip_prefix("  "));
    let commands = indented.map(|line| line.split("   #").next().unwrap().trim().to_owned());
    let steps: Vec<String> = commands.filter(|step| !step.starts_with("cd ")).collect();
    assert!(steps.len() > 2 && steps.last().unwrap().starts_with("pumphouse invoke"), "{steps:?}");
    steps
}

/// A folder with the binary under its own name.
fn programs(scene: &Scene) -> PathBuf {
    let folder = scene.path("bin");
    fs::create_dir_all(&folder).unwrap();
    symlink(binary(), folder.join("pumphouse")).unwrap();
    folder
}

fn shell(step: &str, project: &Path, programs: &Path) -> Command {
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", step]).current_dir(project);
    shell.env("PATH", format!("{}:{path}", programs.display()));
    // What Zig compiles of its library is good for every project.
    shell.env("ZIG_GLOBAL_CACHE_DIR", root().join("target/test-servers/guests/zig"));
    shell.env("NO_COLOR", "1").env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    shell
}
