//! Those that want to see or keep what is not theirs, and messages that are hostile themselves.

use pumphouse_contract::{FaultKind, HeaderValue, Outgoing};
use pumphouse_sandbox::HttpGrant;

use super::built;
use crate::row::{Answer, Expected, Own, Row};

/// As many as fit into a message of the embedded broker, nearly.
const HEADERS: usize = 20_000;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new(
            "looking around",
            "looks for variables, files, sockets, input",
            || built("hostile_probe"),
            Expected::Harmless("answers; saw nothing", Answer::Says(saw_nothing)),
        ),
        Row::new(
            "fine timer",
            "measures how fine the clocks are",
            || built("hostile_timer"),
            Expected::Harmless("answers; saw steps of 1 ms", Answer::Says(is_coarse)),
        ),
        Row::new(
            "kept handles",
            "keeps 500 handles and acknowledges",
            || built("hostile_keep"),
            Expected::Harmless("acknowledges; the host let go of them", Answer::Ack),
        ),
        Row::new(
            "forged log",
            "puts line ends, terminal commands and JSON into texts",
            || built("hostile_forge"),
            Expected::Harmless(
                "answers; the texts are escaped",
                Answer::Says(|text| text.contains("FORGED")),
            ),
        )
        .logging(),
        Row::new(
            "header flood",
            "a message with 20,000 headers of nearly one name",
            || built("hostile_headers"),
            Expected::Harmless("answers", Answer::Says(|text| text == "20000")),
        )
        .with(flood),
        Row::new(
            "header flood to the host",
            "gives the host's HTTP a request with 20,000 headers",
            || built("http"),
            Expected::Fault(FaultKind::ResultSize),
        )
        .granted(|grants| grants.http = Some(HttpGrant::default()))
        .with(outgoing_flood)
        .swapped(),
        Row::new(
            "poisoned artefact",
            "compiled code in the cache was changed, cut off and emptied",
            || built("hostile_headers"),
            Expected::Own("found out, compiled anew", Own::PoisonedCache),
        ),
    ]
}

/// Names that agree in all but their last bytes, as one takes them to make a weak hash collide.
fn flood() -> Outgoing {
    let headers =
        (0..HEADERS).map(|n| (format!("x-aaaaaaaaaaaaaaaa-{n:05}"), HeaderValue::from("v")));
    Outgoing { headers: headers.collect(), body: "count".into(), ..Outgoing::default() }
}

/// The same, for the guest to send.
fn outgoing_flood() -> Outgoing {
    let headers = (0..HEADERS).map(|n| format!(r#"["x-aaaaaaaaaaaaaaaa-{n:05}","v"]"#));
    let headers = headers.collect::<Vec<_>>().join(",");
    let body = format!(r#"{{"requests":[{{"authority":"127.0.0.1:9","headers":[{headers}]}}]}}"#);
    Outgoing { body: body.into(), ..Outgoing::default() }
}

fn saw_nothing(found: &str) -> bool {
    found.lines().count() >= 12
        && found.lines().all(|line| line.ends_with("=0") || line.ends_with("=denied"))
}

/// `monotonic=… wall=… claimed=…`, in nanoseconds. A wall clock that is set meanwhile steps by more.
fn is_coarse(found: &str) -> bool {
    let numbers = found.split(' ').filter_map(|part| part.split_once('=')?.1.parse::<u64>().ok());
    let numbers: Vec<u64> = numbers.collect();
    numbers.len() == 3 && numbers.iter().all(|step| *step >= 1_000_000)
}
