//! Whether a component fits this host: found out when it is deployed, by name, not at its first message (FR-28).

use std::fmt;

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentNamedList, InstancePre, Lift, Lower, Resource};
use wasmtime::{Engine, error::Context};

use crate::bindings::pumphouse::handler::types::{Message, Outcome};
use crate::settings::{Grants, Limits};
use crate::worlds::{World, messaging, spin_sqs};

/// The version of the package `pumphouse:handler` that this host speaks.
pub const SPOKEN: &str = "1.0.0";

const HANDLE: &str = "handle";
const LOGGING: Interface<'_> = Interface { name: "wasi:logging/logging", version: "0.1.0-draft" };
const CONFIG: Interface<'_> = Interface { name: "wasi:config/store", version: "0.2.0-rc.1" };
const SECRETS: Interface<'_> = Interface { name: "pumphouse:secrets/store", version: "1.0.0" };
const HTTP: Interface<'_> = Interface { name: "wasi:http/outgoing-handler", version: "0.2.0" };
const HTTP_TYPES: Interface<'_> = Interface { name: "wasi:http/types", version: "0.2.0" };
const MESSAGING_TYPES: Interface<'_> =
    Interface { name: "wasi:messaging/types", version: "0.2.0-draft" };

/// The packages whose grant is to come, and the names that are kept for it.
const RESERVED: [(&str, &str); 2] =
    [("wasi:keyvalue", "grants.key_value"), ("wasi:messaging", "grants.publish")];

/// The packages that compiled guests import whatever they do. They are there and give nothing.
const SEALED: [&str; 6] =
    ["wasi:cli", "wasi:clocks", "wasi:filesystem", "wasi:io", "wasi:random", "wasi:sockets"];
const SEALED_VERSION: &str = "0.2.0";

const PAGE: u64 = 64 * 1024;
const MOST_NAMED: usize = 8;

/// Why a valid component is no handler that this host can run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It imports what a grant would give.
    #[error("it imports {import}, which is not granted; grant it with `{grant}`")]
    NotGranted {
        /// The interface.
        import: String,
        /// The line of the configuration that grants it.
        grant: &'static str,
    },
    /// It imports what a grant will give one day.
    #[error(
        "it imports {import}, which this host does not offer yet; `{grant}` is reserved for it, and a component \
         must do without until then"
    )]
    Reserved {
        /// The interface.
        import: String,
        /// The key of the configuration that will grant it.
        grant: &'static str,
    },
    /// It exports the handlers of several worlds.
    #[error("it exports {}: it must export the handler of one world alone", found.join(" and "))]
    SeveralWorlds {
        /// What it exports.
        found: Vec<String>,
    },
    /// It imports what this host has not.
    #[error("it imports {import}, which this host does not offer")]
    UnknownImport {
        /// The interface or function.
        import: String,
    },
    /// It speaks another version than this host.
    #[error("it was built for {found}, and this host speaks {spoken}")]
    OtherVersion {
        /// What the component has.
        found: String,
        /// What the host has.
        spoken: String,
    },
    /// It does not export a handler.
    #[error("it does not export {expected}; it exports {}", list(found))]
    MissingExport {
        /// The interface.
        expected: String,
        /// What it exports instead.
        found: Vec<String>,
    },
    /// An interface has the right name and another shape.
    #[error("an interface has another shape than this host's: {text}")]
    Shape {
        /// What the engine said.
        text: String,
    },
    /// It needs more at its start than any instance of this host has.
    #[error(
        "it needs more at its start than an instance of this host has: {text}; see `limits.memory` \
         and `limits.table`"
    )]
    NoInstance {
        /// What the engine said.
        text: String,
    },
    /// It needs more at its start than its limit.
    #[error("it needs {needed} {unit} at its start, more than the {limit} of `{key}`")]
    Needs {
        /// How much.
        needed: u64,
        /// Of what.
        unit: &'static str,
        /// The limit.
        limit: u64,
        /// The limit's key.
        key: &'static str,
    },
}

/// Several misfits as one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfits(pub Vec<Misfit>);

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, misfit) in self.0.iter().take(MOST_NAMED).enumerate() {
            write!(f, "{}{misfit}", if at == 0 { "" } else { "; " })?;
        }
        match self.0.len().saturating_sub(MOST_NAMED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// Compares what a component wants and gives with what this host gives and wants: the world that it exports.
///
/// # Errors
/// Every misfit at once.
pub(crate) fn check(
    engine: &Engine,
    component: &Component,
    limits: &Limits,
    grants: &Grants,
) -> Result<World, Misfits> {
    let ty = component.component_type();
    let exports: Vec<String> = ty.exports(engine).map(|(name, _)| name.to_owned()).collect();
    let world = world(&exports);
    let mut misfits: Vec<Misfit> = world.clone().err().into_iter().collect();
    let imports = ty.imports(engine).filter(|(_, item)| needs_something(engine, &item.ty));
    let known = world.as_ref().ok().copied();
    misfits.extend(imports.filter_map(|(name, _)| misfit_of_import(name, grants, known)));
    misfits.extend(misfits_of_size(component, limits));
    match world {
        Ok(world) if misfits.is_empty() => Ok(world),
        _ => Err(Misfits(misfits)),
    }
}

/// Compares the function that is called with the WIT. The bindings do that only when they instantiate it.
///
/// # Errors
/// What differs, in the engine's words.
pub(crate) fn check_shape<T>(pre: &InstancePre<T>, world: World) -> wasmtime::Result<()> {
    match world {
        World::Handler => check_function::<T, (Message<'_>,), (Outcome,)>(pre, world, HANDLE),
        World::Messaging => check_function::<
            T,
            (Resource<messaging::Letter>,),
            (Result<(), messaging::types::Error>,),
        >(pre, world, HANDLE),
        World::SpinSqs => check_function::<
            T,
            (spin_sqs::types::Message,),
            (Result<spin_sqs::types::MessageAction, spin_sqs::types::Error>,),
        >(pre, world, world.export()),
    }
}

fn check_function<T, P, R>(
    pre: &InstancePre<T>,
    world: World,
    function: &str,
) -> wasmtime::Result<()>
where
    P: ComponentNamedList + Lower,
    R: ComponentNamedList + Lift,
{
    let component = pre.component();
    let interface = Interface::of(world);
    let found = if interface.version.is_empty() {
        component.get_export(None, function)
    } else {
        let name = interface.to_string();
        let (_, index) = component.get_export(None, name.as_str()).context("it is not there")?;
        component.get_export(Some(&index), function)
    };
    match found {
        Some((ComponentItem::ComponentFunc(handle), _)) => handle
            .typecheck::<P, R>(&pre.instance_type())
            .with_context(|| format!("the function `{function}` of {world}")),
        _ => Err(wasmtime::Error::msg(format!("{interface} has no function `{function}`"))),
    }
}

/// The interfaces among a component's imports that give a network where there is one.
pub(crate) fn wants_network(engine: &Engine, component: &Component) -> bool {
    component.component_type().imports(engine).any(|(name, _)| name.starts_with("wasi:sockets/"))
}

/// The world that a component exports.
fn world(exports: &[String]) -> Result<World, Misfit> {
    let exported = |world: &World| {
        let mut found = exports.iter().map(|name| Interface::parse(name));
        Some((*world, found.find(|found| found.name == world.export())?))
    };
    let found: Vec<(World, Interface<'_>)> = World::ALL.iter().filter_map(exported).collect();
    match found.as_slice() {
        [] => Err(Misfit::MissingExport {
            expected: Interface::of(World::Handler).to_string(),
            found: exports.iter().take(MOST_NAMED).map(|name| plain(name)).collect(),
        }),
        [(world, found)] if found.fits(Interface::of(*world)) => Ok(*world),
        [(world, found)] => Err(found.other_version(Interface::of(*world))),
        several => {
            let found = several.iter().map(|(_, found)| found.to_string()).collect();
            Err(Misfit::SeveralWorlds { found })
        }
    }
}

fn misfit_of_import(name: &str, grants: &Grants, world: Option<World>) -> Option<Misfit> {
    let import = Interface::parse(name);
    if import.package() == "pumphouse:handler" {
        let spoken = Interface { name: import.name, version: SPOKEN };
        return Some(if import.fits(spoken) {
            import.unknown()
        } else {
            import.other_version(spoken)
        });
    }
    if SEALED.contains(&import.package()) {
        let spoken = Interface { name: import.name, version: SEALED_VERSION };
        return (!import.fits(spoken)).then(|| import.other_version(spoken));
    }
    if let Some((spoken, granted, grant)) = grantable(import.name, grants) {
        return match import.fits(spoken) {
            true if granted => None,
            true => Some(Misfit::NotGranted { import: import.to_string(), grant }),
            false => Some(import.other_version(spoken)),
        };
    }
    if import.name == MESSAGING_TYPES.name && world == Some(World::Messaging) {
        return (!import.fits(MESSAGING_TYPES)).then(|| import.other_version(MESSAGING_TYPES));
    }
    let reserved = RESERVED.iter().find(|(package, _)| *package == import.package());
    Some(reserved.map_or_else(
        || import.unknown(),
        |(_, grant)| Misfit::Reserved { import: import.to_string(), grant },
    ))
}

/// An interface that a grant gives: the version that is spoken, whether it is granted, and the line that does it.
fn grantable(name: &str, grants: &Grants) -> Option<(Interface<'static>, bool, &'static str)> {
    const GRANT_HTTP: &str = "grants.http = [{ host = \"api.example.com\", methods = [\"GET\"] }]";
    let http = grants.http.is_some();
    let all = [
        (LOGGING, grants.logging, "grants.logging = true"),
        (CONFIG, grants.config.is_some(), "grants.config = { name = \"value\" }"),
        (SECRETS, !grants.secrets.is_empty(), "grants.secrets.NAME = { env = \"VARIABLE\" }"),
        (HTTP, http, GRANT_HTTP),
        (HTTP_TYPES, http, GRANT_HTTP),
    ];
    all.into_iter().find(|(interface, ..)| interface.name == name)
}

/// Whether an import asks for more than the names of types.
fn needs_something(engine: &Engine, item: &ComponentItem) -> bool {
    match item {
        ComponentItem::ComponentInstance(instance) => {
            instance.exports(engine).any(|(_, item)| needs_something(engine, &item.ty))
        }
        ComponentItem::Type(_) => false,
        _ => true,
    }
}

fn misfits_of_size(component: &Component, limits: &Limits) -> Vec<Misfit> {
    let Some(needs) = component.resources_required() else { return Vec::new() };
    let memory = needs.max_initial_memory_size.unwrap_or(0).saturating_mul(PAGE);
    let elements = needs.max_initial_table_size.unwrap_or(0);
    let sizes = [
        (memory, "bytes of memory", limits.memory, "limits.memory"),
        (elements, "table elements", limits.table_elements, "limits.table"),
    ];
    let over = sizes.into_iter().filter(|(needed, _, limit, _)| needed > limit);
    over.map(|(needed, unit, limit, key)| Misfit::Needs { needed, unit, limit, key }).collect()
}

/// An interface's name and version: `namespace:package/interface@version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interface<'a> {
    name: &'a str,
    version: &'a str,
}

impl Interface<'static> {
    /// What a component of that world exports.
    fn of(world: World) -> Self {
        Self { name: world.export(), version: world.version() }
    }
}

impl<'a> Interface<'a> {
    fn parse(text: &'a str) -> Self {
        let (name, version) = text.split_once('@').unwrap_or((text, ""));
        Self { name, version }
    }

    fn package(&self) -> &'a str {
        self.name.split_once('/').map_or(self.name, |(package, _)| package)
    }

    /// Whether the engine links the one with the other: the same major version, or the same minor one of a
    /// package before 1.0. A pre-release fits itself alone.
    fn fits(&self, other: Interface<'_>) -> bool {
        self.version == other.version
            || track(self.version).is_some_and(|own| Some(own) == track(other.version))
    }

    fn other_version(&self, spoken: Interface<'_>) -> Misfit {
        Misfit::OtherVersion { found: self.to_string(), spoken: spoken.to_string() }
    }

    fn unknown(&self) -> Misfit {
        Misfit::UnknownImport { import: self.to_string() }
    }
}

impl fmt::Display for Interface<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(self.name))?;
        if self.version.is_empty() { Ok(()) } else { write!(f, "@{}", plain(self.version)) }
    }
}

fn track(version: &str) -> Option<(u64, u64)> {
    if version.contains(['-', '+']) {
        return None;
    }
    let mut parts = version.split('.').map(str::parse);
    match (parts.next()?.ok()?, parts.next()?.ok()?) {
        (0, minor) => Some((0, minor)),
        (major, _) => Some((major, 0)),
    }
}

/// A name that a component gave, fit for an error message.
fn plain(name: &str) -> String {
    crate::text::escaped(name, 200)
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fr_28_a_compatible_minor_version_fits_and_another_major_does_not() {
        let spoken = Interface::parse("pumphouse:handler/incoming-handler@1.0.0");
        for (version, fits) in [
            ("1.0.0", true),
            ("1.0.7", true),
            ("1.9.0", true),
            ("2.0.0", false),
            ("0.9.0", false),
            ("1.0.0-rc.1", false),
            ("", false),
            ("one", false),
        ] {
            assert_eq!(
                Interface { name: World::Handler.export(), version }.fits(spoken),
                fits,
                "{version}"
            );
        }
    }

    #[test]
    fn before_1_0_the_minor_version_counts_and_a_draft_fits_itself_alone() {
        let io = |version| Interface { name: "wasi:io/poll", version };
        assert!(io("0.2.6").fits(io("0.2.0")));
        assert!(!io("0.3.0").fits(io("0.2.0")));
        let draft = |version| Interface { name: "wasi:logging/logging", version };
        assert!(draft("0.1.0-draft").fits(draft("0.1.0-draft")));
        assert!(!draft("0.1.0").fits(draft("0.1.0-draft")));
    }

    #[test]
    fn fr_28_an_import_is_refused_by_name_and_with_the_grant() {
        let none = Grants::default();
        let text = |name| misfit_of_import(name, &none, None).map(|misfit| misfit.to_string());
        assert_eq!(
            text("wasi:logging/logging@0.1.0-draft").unwrap(),
            "it imports wasi:logging/logging@0.1.0-draft, which is not granted; \
             grant it with `grants.logging = true`"
        );
        let http = text("wasi:http/outgoing-handler@0.2.4").unwrap();
        assert!(http.contains("`grants.http = [{ host = "), "{http}");
        let secrets = text("pumphouse:secrets/store@1.0.0").unwrap();
        assert!(secrets.contains("`grants.secrets.NAME = "), "{secrets}");
        assert!(text("wasi:http/incoming-handler@0.2.4").unwrap().contains("does not offer"));
        assert!(text("wasi:http/types@0.3.0").unwrap().contains("speaks"));
        assert!(text("pumphouse:handler/other@1.2.0").unwrap().contains("does not offer"));
        assert!(text("pumphouse:handler/other@2.0.0").unwrap().contains("speaks"));
        assert!(text("wasi:clocks/wall-clock@0.3.0").unwrap().contains("speaks"));
        assert_eq!(text("wasi:clocks/wall-clock@0.2.9"), None);
        let granted = Grants { logging: true, ..Grants::default() };
        assert_eq!(misfit_of_import("wasi:logging/logging@0.1.0-draft", &granted, None), None);
    }

    #[test]
    fn fr_28_what_is_to_come_is_refused_with_the_name_that_is_kept_for_it() {
        let text = |name, world| {
            misfit_of_import(name, &Grants::default(), world).map(|misfit| misfit.to_string())
        };
        for (name, grant) in [
            ("wasi:keyvalue/store@0.2.0-draft", "`grants.key_value` is reserved"),
            ("wasi:messaging/producer@0.2.0-draft", "`grants.publish` is reserved"),
            ("wasi:messaging/request-reply@0.2.0-draft", "`grants.publish` is reserved"),
            ("wasi:messaging/types@0.2.0-draft", "`grants.publish` is reserved"),
        ] {
            let text = text(name, Some(World::Handler)).unwrap();
            assert!(text.contains(grant) && text.contains(name), "{text}");
        }
        let messaging = Some(World::Messaging);
        assert_eq!(text("wasi:messaging/types@0.2.0-draft", messaging), None);
        assert!(text("wasi:messaging/types@0.3.0", messaging).unwrap().contains("speaks"));
        assert!(text("wasi:messaging/producer@0.2.0-draft", messaging).is_some());
    }

    #[test]
    fn fr_28_the_export_decides_the_world_and_two_are_refused() {
        let exports =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (own, wasi) = (
            "pumphouse:handler/incoming-handler@1.0.3",
            "wasi:messaging/incoming-handler@0.2.0-draft",
        );
        for (names, found) in [
            (&[own][..], World::Handler),
            (&["memory", wasi], World::Messaging),
            (&["handle-queue-message"], World::SpinSqs),
        ] {
            assert_eq!(world(&exports(names)), Ok(found));
        }
        let other = world(&exports(&["wasi:messaging/incoming-handler@0.3.0"])).unwrap_err();
        assert!(matches!(other, Misfit::OtherVersion { .. }), "{other}");
        let two = world(&exports(&[wasi, own])).unwrap_err().to_string();
        assert_eq!(
            two,
            format!("it exports {own} and {wasi}: it must export the handler of one world alone")
        );
    }

    #[test]
    fn fr_28_a_missing_export_names_what_is_there() {
        let misfit = world(&["wasi:cli/run@0.2.0".to_owned()]).unwrap_err();
        assert_eq!(
            misfit.to_string(),
            "it does not export pumphouse:handler/incoming-handler@1.0.0; \
             it exports wasi:cli/run@0.2.0"
        );
        assert!(world(&[]).unwrap_err().to_string().ends_with("it exports nothing"));
    }
}
