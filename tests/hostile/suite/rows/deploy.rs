//! Those that never get so far as to be called: what a component can do to the one who compiles it.

use super::{handler, whole};
use crate::generated;
use crate::row::{Expected, Row};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = refused();
    rows.extend(bombs());
    rows
}

fn refused() -> Vec<Row> {
    vec![
        Row::new(
            "large at the start",
            "declares 1 GiB of memory",
            || handler("initial-memory"),
            Expected::Refused(&["`limits.memory`"]),
        ),
        Row::new(
            "large table at the start",
            "declares a table of ten million elements",
            || handler("initial-table"),
            Expected::Refused(&["`limits.table`"]),
        ),
        Row::new(
            "many instances",
            "is made of a hundred core instances",
            generated::instances,
            Expected::Refused(&["than an instance of this host has"]),
        ),
        Row::new(
            "unknown import",
            "imports what nobody offers",
            || handler("import-unknown"),
            Expected::Refused(&["acme:payments/charge@1.0.0", "does not offer"]),
        ),
        Row::new(
            "thousands of imports",
            "imports 5,000 functions",
            generated::imports,
            Expected::Refused(&["does not offer", "and 4992 more"]),
        ),
        Row::new(
            "not granted",
            "imports logging without a grant",
            || whole("whole/log-out-of-bounds"),
            Expected::Refused(&["grants.logging = true"]),
        ),
        Row::new(
            "another interface",
            "exports a handler of another shape",
            || whole("misfits/shape"),
            Expected::Refused(&["another shape"]),
        ),
        Row::new(
            "core module",
            "is no component",
            || whole("misfits/core-module"),
            Expected::Refused(&["is not a WebAssembly component"]),
        ),
        Row::new(
            "cut off",
            "a component that ends early, at 16 places",
            generated::cut_off,
            Expected::Refused(&["component"]),
        ),
        Row::new(
            "deep nesting",
            "components in components, 5,000 deep",
            generated::nested,
            Expected::Refused(&["does not export"]),
        ),
    ]
}

fn bombs() -> Vec<Row> {
    vec![
        Row::new(
            "damaged",
            "a component with one byte changed, 32 times",
            generated::damaged,
            Expected::Either,
        ),
        Row::new(
            "custom section bomb",
            "64 MiB of custom sections around a handler",
            generated::custom_sections,
            Expected::Either,
        ),
        Row::new(
            "name bomb",
            "functions with names of 2 KiB, 4 MiB in all",
            generated::names,
            Expected::Either,
        ),
        Row::new(
            "many functions",
            "20,000 functions with nothing in them",
            generated::functions,
            Expected::Either,
        ),
        Row::new(
            "many data segments",
            "20,000 data segments",
            generated::segments,
            Expected::Either,
        ),
        Row::new(
            "function bomb",
            "one function of 5,000 calls and branches",
            generated::blocks,
            Expected::Either,
        ),
    ]
}
