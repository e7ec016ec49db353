//! What a project has, by language. What a handler is written against travels inside the binary, so that a project is
//! built with that of the host which made it.

use crate::args::Language;

/// Files by path, with `{name}`, `{component}` and `{deploy}` to be put in.
type Files = &'static [(&'static str, &'static str)];

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../../template/", $path))
    };
}

macro_rules! guests {
    ($path:literal) => {
        include_str!(concat!("../../../../../guests/", $path))
    };
}

/// What the component implements.
const WIT: Files = &[
    ("wit/deps/handler/handler.wit", guests!("sdk/wit/handler.wit")),
    ("wit/deps/config/config.wit", guests!("sdk/wit/deps/config/config.wit")),
    ("wit/deps/logging/logging.wit", guests!("sdk/wit/deps/logging/logging.wit")),
    ("wit/deps/secrets/secrets.wit", guests!("sdk/wit/deps/secrets/secrets.wit")),
    ("wit/world.wit", template!("world.wit.in")),
];

const RUST: Files = &[
    ("Cargo.toml", template!("rust/Cargo.toml.in")),
    (".cargo/config.toml", guests!(".cargo/config.toml")),
    (".gitignore", "/target\n/state\n*.wasm\n"),
    ("src/lib.rs", template!("rust/lib.rs.in")),
    ("README.md", template!("rust/README.md.in")),
];

const RUST_SDK: Files = &[
    ("sdk/Cargo.toml", guests!("sdk/Cargo.toml")),
    ("sdk/src/lib.rs", guests!("sdk/src/lib.rs")),
    ("sdk/src/message.rs", guests!("sdk/src/message.rs")),
    ("sdk/src/outcome.rs", guests!("sdk/src/outcome.rs")),
    ("sdk/src/log.rs", guests!("sdk/src/log.rs")),
    ("sdk/src/config.rs", guests!("sdk/src/config.rs")),
    ("sdk/src/secrets.rs", guests!("sdk/src/secrets.rs")),
    ("sdk/src/secrets.rs", guests!("sdk/src/secrets.rs")),
    ("sdk/src/wit.rs", guests!("sdk/src/wit.rs")),
    ("sdk/wit/handler.wit", guests!("sdk/wit/handler.wit")),
    ("sdk/wit/deps/config/config.wit", guests!("sdk/wit/deps/config/config.wit")),
    ("sdk/wit/deps/logging/logging.wit", guests!("sdk/wit/deps/logging/logging.wit")),
    ("sdk/wit/deps/secrets/secrets.wit", guests!("sdk/wit/deps/secrets/secrets.wit")),
];

const C: Files = &[
    ("handler.c", template!("c/handler.c.in")),
    ("test.c", template!("c/test.c.in")),
    ("Makefile", template!("c/Makefile.in")),
    ("requirements.txt", template!("c/requirements.txt")),
    (".gitignore", "/build\n/.venv\n/state\n*.wasm\n"),
    ("README.md", template!("c/README.md.in")),
    ("sdk/pumphouse.h", guests!("c/sdk/pumphouse.h")),
    ("sdk/pumphouse.c", guests!("c/sdk/pumphouse.c")),
    ("sdk/pumphouse_abi.c", guests!("c/sdk/pumphouse_abi.c")),
    ("sdk/ph_json.h", guests!("c/sdk/ph_json.h")),
    ("sdk/ph_json.c", guests!("c/sdk/ph_json.c")),
];

const GO: Files = &[
    ("go.mod", template!("go/go.mod.in")),
    ("main.go", template!("go/main.go.in")),
    ("handler.go", template!("go/handler.go.in")),
    ("handler_test.go", template!("go/handler_test.go.in")),
    (".gitignore", "/build\n/state\n*.wasm\n"),
    ("README.md", template!("go/README.md.in")),
    ("pumphouse/pumphouse.go", guests!("go/orders/pumphouse/pumphouse.go")),
    ("pumphouse/abi.go", guests!("go/orders/pumphouse/abi.go")),
    ("pumphouse/native.go", guests!("go/orders/pumphouse/native.go")),
];

const JS: Files = &[
    ("handler.js", template!("js/handler.js.in")),
    ("handler.test.js", template!("js/handler.test.js.in")),
    ("package.json", template!("js/package.json.in")),
    ("package-lock.json", template!("js/package-lock.json.in")),
    (".gitignore", "/node_modules\n/state\n*.wasm\n"),
    ("README.md", template!("js/README.md.in")),
    ("pumphouse.js", guests!("js/pumphouse.js")),
    ("pumphouse.d.ts", guests!("js/pumphouse.d.ts")),
];

const TS: Files = &[
    ("handler.ts", template!("ts/handler.ts.in")),
    ("handler.test.ts", template!("ts/handler.test.ts.in")),
    ("tsconfig.json", template!("ts/tsconfig.json")),
    ("package.json", template!("ts/package.json.in")),
    ("package-lock.json", template!("ts/package-lock.json.in")),
    (".gitignore", "/node_modules\n/build\n/state\n*.wasm\n"),
    ("README.md", template!("ts/README.md.in")),
    ("pumphouse.js", guests!("js/pumphouse.js")),
    ("pumphouse.d.ts", guests!("js/pumphouse.d.ts")),
];

const PYTHON: Files = &[
    ("handler.py", template!("python/handler.py.in")),
    ("test_handler.py", template!("python/test_handler.py.in")),
    ("requirements.txt", template!("python/requirements.txt")),
    (".gitignore", "/.venv\n/state\n__pycache__\n*.wasm\n"),
    ("README.md", template!("python/README.md.in")),
    ("app.py", guests!("python/app.py")),
    ("pumphouse.py", guests!("python/pumphouse.py")),
];

const RUST_STEPS: Files = &[
    ("cargo test", "the handler's own test, natively"),
    ("rustup target add wasm32-wasip2", "once"),
    ("cargo build --release --target wasm32-wasip2", "the component"),
];

const C_STEPS: Files = &[
    ("make test", "the handler's own test, natively"),
    ("python3 -m venv .venv", "the compiler, once"),
    (".venv/bin/pip install -r requirements.txt", ""),
    ("make PYTHON=.venv/bin/python", "the component"),
];

const GO_STEPS: Files = &[
    ("go test ./...", "the handler's own test, natively"),
    ("GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o build/module.wasm .", ""),
    ("pumphouse wrap build/module.wasm --output {component}", "the component"),
];

const NPM_STEPS: Files = &[
    ("npm ci --ignore-scripts", "the compiler, once"),
    ("npm test", "the handler's own test, in Node"),
    ("npm run build", "the component"),
];

const PYTHON_STEPS: Files = &[
    ("python3 -m unittest", "the handler's own test, natively"),
    ("python3 -m venv .venv", "the compiler, once"),
    (".venv/bin/pip install -r requirements.txt", ""),
    (
        ".venv/bin/componentize-py -d wit -w project componentize app -o {component}",
        "the component",
    ),
];

/// A kind of project.
pub(super) struct Project {
    files: &'static [Files],
    steps: Files,
    /// Where the component goes.
    component: &'static str,
}

impl Project {
    pub(super) fn of(language: Language) -> Self {
        match language {
            Language::Rust => Self {
                files: &[RUST, RUST_SDK],
                steps: RUST_STEPS,
                component: "target/wasm32-wasip2/release/{module}.wasm",
            },
            Language::C => {
                Self { files: &[C, WIT], steps: C_STEPS, component: "build/{name}.wasm" }
            }
            Language::Go => {
                Self { files: &[GO, WIT], steps: GO_STEPS, component: "build/{name}.wasm" }
            }
            Language::Js => Self { files: &[JS, WIT], steps: NPM_STEPS, component: "{name}.wasm" },
            Language::Ts => Self { files: &[TS, WIT], steps: NPM_STEPS, component: "{name}.wasm" },
            Language::Python => {
                Self { files: &[PYTHON, WIT], steps: PYTHON_STEPS, component: "{name}.wasm" }
            }
        }
    }

    /// Every file of a project, by its path within it.
    pub(super) fn files(&self, name: &str) -> Vec<(&'static str, String)> {
        let message = ("message.json", template!("message.json.in"));
        let files = self.files.iter().copied().flatten().chain([&message]);
        files.map(|(path, text)| (*path, self.fill(text, name))).collect()
    }

    /// From the project's folder to a call of the component, each command with what it is for.
    pub(super) fn steps(&self, name: &str) -> Vec<(String, &'static str)> {
        let invoke = ("pumphouse invoke {component} message.json", "one message");
        let steps = self.steps.iter().chain([&invoke]);
        steps.map(|(command, about)| (self.fill(command, name), *about)).collect()
    }

    fn fill(&self, text: &str, name: &str) -> String {
        text.replace("{deploy}", template!("deploy.md.in"))
            .replace("{component}", self.component)
            .replace("{module}", &name.replace('-', "_"))
            .replace("{name}", name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Language; 6] =
        [Language::Rust, Language::Js, Language::Ts, Language::Python, Language::C, Language::Go];

    #[test]
    fn nothing_is_left_to_be_put_in() {
        for language in ALL {
            let project = Project::of(language);
            let texts = project.files("my-orders").into_iter().map(|(_, text)| text);
            for text in texts.chain(project.steps("my-orders").into_iter().map(|(step, _)| step)) {
                for hole in ["{name}", "{component}", "{deploy}", "{module}"] {
                    assert!(!text.contains(hole), "{language:?}: {text}");
                }
            }
        }
    }

    #[test]
    fn the_last_step_calls_the_component_that_the_others_make() {
        for (language, component) in [
            (Language::Rust, "target/wasm32-wasip2/release/my_orders.wasm"),
            (Language::Go, "build/my-orders.wasm"),
            (Language::Python, "my-orders.wasm"),
        ] {
            let steps = Project::of(language).steps("my-orders");
            let (last, _) = steps.last().unwrap();
            assert_eq!(last, &format!("pumphouse invoke {component} message.json"));
        }
    }
}
