//! What a component needs of a pool, read from its bytes before anything is compiled.

use std::ops::Range;

use wasmparser::{Instance, Parser, Payload, TableSectionReader};

use crate::engine::Profile;
use crate::limits::LEAN;
use crate::settings::Runtime;

/// The code and data of a compiled guest are smaller, and those of an interpreter larger.
const MOST_LEAN: u64 = 1024 * 1024;

/// What was counted in all modules of a component, nested ones included.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    /// Bytes of code and data. Names and debugging information are none.
    substance: u64,
    core_instances: u64,
    tables: u64,
    table_elements: u64,
}

/// The profile of a component's pool: what its handler says, or what the component needs.
pub(crate) fn profile(runtime: Runtime, component: &[u8]) -> Profile {
    match runtime {
        Runtime::Lean => Profile::Lean,
        Runtime::Heavy => Profile::Heavy,
        Runtime::Auto if Needs::of(component).fit_lean() => Profile::Lean,
        Runtime::Auto => Profile::Heavy,
    }
}

impl Needs {
    /// Reads as far as the component can be read: who compiles it says what is wrong with it.
    fn of(component: &[u8]) -> Self {
        let mut needs = Self::default();
        let payloads = Parser::new(0).parse_all(component);
        payloads.map_while(Result::ok).for_each(|payload| needs.add(payload));
        needs
    }

    fn add(&mut self, payload: Payload<'_>) {
        match payload {
            Payload::CodeSectionStart { range, .. } => self.substance += length(&range),
            Payload::DataSection(section) => self.substance += length(&section.range()),
            Payload::TableSection(section) => self.add_tables(section),
            Payload::InstanceSection(section) => {
                let instances = section.into_iter().map_while(Result::ok);
                let made = instances.filter(|one| matches!(one, Instance::Instantiate { .. }));
                self.core_instances += made.count() as u64;
            }
            _ => {}
        }
    }

    fn add_tables(&mut self, section: TableSectionReader<'_>) {
        for table in section.into_iter().map_while(Result::ok) {
            self.tables += 1;
            self.table_elements = self.table_elements.max(table.ty.initial);
        }
    }

    fn fit_lean(&self) -> bool {
        self.substance <= MOST_LEAN
            && self.core_instances <= u64::from(LEAN.core_instances)
            && self.tables <= u64::from(LEAN.tables)
            && self.table_elements <= LEAN.table_elements
    }
}

fn length(range: &Range<usize>) -> u64 {
    range.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(text: &str) -> Needs {
        Needs::of(&wat::parse_str(text).unwrap())
    }

    #[test]
    fn a_small_component_is_lean_and_its_names_do_not_count() {
        let needs = needs(
            r#"(component
                (core module $m (table 7 funcref) (func) (@custom "debug" "0123456789"))
                (core instance (instantiate $m))
                (core instance (instantiate $m)))"#,
        );
        assert_eq!(
            needs,
            Needs { substance: needs.substance, core_instances: 2, tables: 1, table_elements: 7 }
        );
        assert!(needs.substance < 10 && needs.fit_lean(), "{needs:?}");
    }

    #[test]
    fn what_the_lean_pool_has_no_room_for_is_heavy() {
        let instances = "(core instance (instantiate $m))".repeat(17);
        let data = "x".repeat(1024 * 1024 + 1);
        for text in [
            format!("(component (core module $m) {instances})"),
            "(component (core module $m (table 20001 funcref)))".to_owned(),
            format!("(component (core module (memory 17) (data (i32.const 0) \"{data}\")))"),
            "(component (component (core module $m (table 20001 funcref))))".to_owned(),
        ] {
            let bytes = wat::parse_str(&text).unwrap();
            assert_eq!(profile(Runtime::Auto, &bytes), Profile::Heavy);
            assert_eq!(profile(Runtime::Lean, &bytes), Profile::Lean);
        }
    }

    #[test]
    fn what_can_not_be_read_is_lean_and_the_compilers_business() {
        let mut bytes = wat::parse_str("(component (core module $m (func)))").unwrap();
        bytes.truncate(bytes.len() - 2);
        assert_eq!(profile(Runtime::Auto, &bytes), Profile::Lean);
        assert_eq!(profile(Runtime::Heavy, b""), Profile::Heavy);
    }
}
