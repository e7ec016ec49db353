//! The example handler in other languages than Rust, each by the tools that a handler's author uses.
//!
//! A component is built again only when its sources or its tools changed. A language whose tools this machine has not is
//! left out, and said to be; where `PUMPHOUSE_ALL_GUESTS` is set, as in CI, that is an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::run::{root, run, target};

/// Set where a language that can't be built is a mistake.
const ALL: &str = "PUMPHOUSE_ALL_GUESTS";
/// A folder for what is fetched, kept from one clone to the next.
const CACHE: &str = "PUMPHOUSE_TEST_CACHE";

/// What all of them are built against, and by.
const SHARED: [&str; 3] = ["wit", "host/cli/template/world.wit.in", "xtask/src/languages.rs"];

struct Language {
    name: &'static str,
    /// A program that must be there, and the arguments that have it say its version.
    needs: &'static [(&'static str, &'static [&'static str])],
    advice: &'static str,
    /// What the component is made of.
    sources: &'static [&'static str],
    build: fn(&Workshop, &Path) -> Result<()>,
}

const LANGUAGES: [Language; 5] = [
    Language {
        name: "c",
        needs: &[PYTHON],
        advice: "install Python 3.10 or later with pip",
        sources: &["guests/c", "host/cli/template/c", "host/cli/src/commands/wrap.rs"],
        build: c,
    },
    Language {
        name: "go",
        needs: &[("go", &["version"])],
        advice: "install Go 1.24 or later",
        sources: &["guests/go", "host/cli/src/commands/wrap.rs"],
        build: go,
    },
    Language {
        name: "js",
        needs: &NODE,
        advice: "install Node 20 or later with npm",
        sources: &["guests/js", "host/cli/template/ts/package-lock.json.in"],
        build: js,
    },
    Language {
        name: "ts",
        needs: &NODE,
        advice: "install Node 20 or later with npm",
        sources: &["guests/js", "host/cli/template/ts/package-lock.json.in"],
        build: ts,
    },
    Language {
        name: "python",
        needs: &[PYTHON],
        advice: "install Python 3.10 or later with pip",
        sources: &["guests/python", "host/cli/template/python/requirements.txt"],
        build: python,
    },
];

const PYTHON: (&str, &[&str]) = ("python3", &["-m", "pip", "--version"]);
const NODE: [(&str, &[&str]); 2] = [("node", &["--version"]), ("npm", &["--version"])];

/// Builds what is not there, or changed. `pumphouse` makes components of modules.
pub(crate) fn build(pumphouse: &Path) -> Result<()> {
    let workshop = Workshop::open(pumphouse)?;
    for language in &LANGUAGES {
        if let Some(missing) = language.missing() {
            let text = format!(
                "no handler in {}: {missing} does not run; {}",
                language.name, language.advice
            );
            if std::env::var_os(ALL).is_some() {
                bail!("{text}");
            }
            println!("skipped: {text}");
            continue;
        }
        workshop.build(language).with_context(|| format!("the handler in {}", language.name))?;
    }
    Ok(())
}

/// Where the components go.
fn folder() -> PathBuf {
    root().join("guests/target/languages")
}

impl Language {
    /// The program that is not there.
    fn missing(&self) -> Option<&'static str> {
        let there = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        self.needs.iter().find(|(program, arguments)| !there(program, arguments)).map(|need| need.0)
    }
}

/// Folders and tools.
struct Workshop {
    pumphouse: PathBuf,
    /// The world that the tools which want one are given.
    wit: PathBuf,
    tools: PathBuf,
}

impl Workshop {
    fn open(pumphouse: &Path) -> Result<Self> {
        let kept =
            std::env::var_os(CACHE).map_or_else(|| target().join("test-servers"), PathBuf::from);
        let (wit, tools) = (folder().join("wit"), kept.join("guests"));
        fs::create_dir_all(&tools)?;
        copy(&root().join("wit/deps"), &wit.join("deps"))?;
        copy(&root().join("wit/handler.wit"), &wit.join("deps/handler/handler.wit"))?;
        copy(&root().join("host/cli/template/world.wit.in"), &wit.join("world.wit"))?;
        Ok(Self { pumphouse: pumphouse.to_owned(), wit, tools })
    }

    fn build(&self, language: &Language) -> Result<()> {
        let component = folder().join(format!("orders-{}.wasm", language.name));
        let sources = SHARED.iter().chain(language.sources);
        let mark = mark(sources.map(|path| root().join(path)))?;
        let marked = component.with_extension("mark");
        if component.exists() && fs::read_to_string(&marked).is_ok_and(|found| found == mark) {
            println!("the handler in {} is as it was built", language.name);
            return Ok(());
        }
        (language.build)(self, &component)?;
        Ok(fs::write(marked, mark)?)
    }

    /// A folder with packages of Python, by a file that pins them.
    fn packages(&self, requirements: &str) -> Result<PathBuf> {
        let requirements = root().join(requirements);
        let folder =
            self.tools.join(format!("python-{}", mark([requirements.clone()].into_iter())?));
        if !folder.join("done").exists() {
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"]);
            run(pip.arg(&folder).arg("--requirement").arg(requirements))?;
            fs::write(folder.join("done"), "")?;
        }
        Ok(folder)
    }

    /// A folder with `node_modules`, by the lock of a project's template.
    fn modules(&self) -> Result<PathBuf> {
        let template = root().join("host/cli/template/ts");
        let lock = template.join("package-lock.json.in");
        let folder = self.tools.join(format!("node-{}", mark([lock.clone()].into_iter())?));
        if !folder.join("done").exists() {
            fs::create_dir_all(&folder)?;
            for (from, to) in
                [("package.json.in", "package.json"), ("package-lock.json.in", "package-lock.json")]
            {
                let text = fs::read_to_string(template.join(from))?;
                fs::write(folder.join(to), text.replace("{name}", "orders"))?;
            }
            let mut npm = Command::new("npm");
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
            run(npm.current_dir(&folder))?;
            fs::write(folder.join("done"), "")?;
        }
        Ok(folder.join("node_modules/.bin"))
    }

    fn wrap(&self, module: &Path, component: &Path) -> Result<()> {
        run(Command::new(&self.pumphouse).arg("wrap").arg(module).arg("--output").arg(component))
    }
}

fn c(shop: &Workshop, component: &Path) -> Result<()> {
    let packages = shop.packages("host/cli/template/c/requirements.txt")?;
    let (sources, module) = (root().join("guests/c"), component.with_extension("module"));
    let mut zig = Command::new("python3");
    zig.args(["-m", "ziglang", "cc", "-target", "wasm32-wasi", "-std=c11", "-O2"]);
    zig.args(["-Wall", "-Wextra", "-Werror", "-mexec-model=reactor"]);
    zig.args(["-Wl,-z,stack-size=262144", "-Wl,--initial-memory=2097152", "-Wl,--strip-debug"]);
    zig.arg("-I").arg(sources.join("sdk"));
    for file in ["orders/orders.c", "sdk/pumphouse.c", "sdk/pumphouse_abi.c", "sdk/ph_json.c"] {
        zig.arg(sources.join(file));
    }
    zig.env("PYTHONPATH", packages)
        .env("ZIG_GLOBAL_CACHE_DIR", shop.tools.join("zig"))
        .env("ZIG_LOCAL_CACHE_DIR", shop.tools.join("zig"));
    run(zig.arg("-o").arg(&module))?;
    shop.wrap(&module, component)
}

fn go(shop: &Workshop, component: &Path) -> Result<()> {
    let module = component.with_extension("module");
    let mut go = Command::new("go");
    go.args(["build", "-buildmode=c-shared", "-o"]).arg(&module).arg(".");
    go.env("GOOS", "wasip1").env("GOARCH", "wasm").current_dir(root().join("guests/go/orders"));
    run(&mut go)?;
    shop.wrap(&module, component)
}

fn js(shop: &Workshop, component: &Path) -> Result<()> {
    let sources = root().join("guests/js");
    quickjs(shop, &sources.join("orders/handler.js"), &sources, component)
}

fn ts(shop: &Workshop, component: &Path) -> Result<()> {
    let (bin, sources) = (shop.modules()?, root().join("guests/js"));
    let bundle = component.with_extension("js");
    run(Command::new(bin.join("tsc")).arg("--project").arg(sources.join("orders")))?;
    let mut esbuild = Command::new(bin.join("esbuild"));
    esbuild.arg(sources.join("orders/handler.ts")).args(["--bundle", "--format=esm"]);
    run(esbuild.arg(format!("--outfile={}", bundle.display())))?;
    quickjs(shop, &bundle, &folder(), component)
}

fn quickjs(shop: &Workshop, entry: &Path, sources: &Path, component: &Path) -> Result<()> {
    let mut tool = Command::new(shop.modules()?.join("componentize-qjs"));
    tool.arg("--wit").arg(&shop.wit).arg("--js").arg(entry).arg("--module-root").arg(sources);
    run(tool.arg("--sync").arg("--output").arg(component))
}

fn python(shop: &Workshop, component: &Path) -> Result<()> {
    let packages = shop.packages("host/cli/template/python/requirements.txt")?;
    let sources = root().join("guests/python");
    let mut tool = Command::new("python3");
    tool.arg(packages.join("bin/componentize-py"));
    tool.arg("--wit-path").arg(&shop.wit).args(["--world", "project", "componentize", "app"]);
    tool.arg("--python-path").arg(&sources).arg("--python-path").arg(sources.join("orders"));
    // Else it leaves compiled modules among the sources.
    tool.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    run(tool.arg("--output").arg(component))
}

/// What tells sources from others: a number of their paths and bytes.
fn mark(paths: impl Iterator<Item = PathBuf>) -> Result<String> {
    let mut files = Vec::new();
    paths.into_iter().try_for_each(|path| collect(&path, &mut files))?;
    files.sort();
    let mut number = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let bytes = fs::read(&file).with_context(|| format!("{}", file.display()))?;
        let path = file.strip_prefix(root()).unwrap_or(&file).to_string_lossy().into_owned();
        for byte in path.bytes().chain(bytes) {
            number = (number ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    Ok(format!("{number:016x}"))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?.path();
        if !entry.ends_with("__pycache__") {
            collect(&entry, files)?;
        }
    }
    Ok(())
}

/// A file or a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut files = Vec::new();
    collect(from, &mut files)?;
    for file in files {
        let within = file.strip_prefix(from).unwrap_or(Path::new(""));
        let place = if within.as_os_str().is_empty() { to.to_owned() } else { to.join(within) };
        fs::create_dir_all(place.parent().unwrap_or(to))?;
        fs::copy(&file, place)?;
    }
    Ok(())
}
