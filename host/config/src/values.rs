//! One value of the file, as its kind says.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use toml_span::value::{Table, Value};

use crate::diagnostic::Code;
use crate::keys::Kind;
use crate::spelling::nearest;
use crate::types::{DeduplicationKey, Secret, Setting};
use crate::units::{parse_duration, parse_size};
use crate::walk::article;

/// Why a value is not taken. What is allowed is said by its key.
#[derive(Debug)]
pub(crate) struct Bad {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) nearest: Option<String>,
    /// Whether the value may be a secret and must not be shown.
    pub(crate) secret: bool,
}

impl Bad {
    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self { code: Code::WrongValue, message: message.into(), nearest: None, secret: false }
    }

    pub(crate) fn kind(expected: &str, value: &Value<'_>) -> Self {
        let found = article(value.as_ref().type_str());
        let message = format!("expected {expected}, found {found}");
        Self { code: Code::WrongType, ..Self::value(message) }
    }

    fn hidden(self, code: Code) -> Self {
        Self { code, secret: true, ..self }
    }
}

pub(crate) fn flag(value: &Value<'_>, _: &Kind) -> Result<bool, Bad> {
    value.as_bool().ok_or_else(|| Bad::kind("`true` or `false`", value))
}

pub(crate) fn integer(value: &Value<'_>, kind: &Kind) -> Result<i64, Bad> {
    let number = value.as_integer().ok_or_else(|| Bad::kind("an integer", value))?;
    match kind {
        Kind::Integer { min, max } if !(*min..=*max).contains(&number) => {
            Err(Bad::value(format!("{number} is out of bounds")))
        }
        _ => Ok(number),
    }
}

pub(crate) fn duration(value: &Value<'_>, kind: &Kind) -> Result<Duration, Bad> {
    let text = with_unit(value, "a duration with its unit, such as `\"30s\"`")?;
    let duration = parse_duration(text).ok_or_else(|| {
        Bad::value(format!(
            "{text:?} is no duration: write whole numbers with `ms`, `s`, `m`, `h` or `d`, such as `\"1h30m\"`"
        ))
    })?;
    match kind {
        Kind::Duration { min, max }
            if !(u128::from(*min)..=u128::from(*max)).contains(&duration.as_millis()) =>
        {
            Err(Bad::value(format!("{text} is out of bounds")))
        }
        _ => Ok(duration),
    }
}

pub(crate) fn size(value: &Value<'_>, kind: &Kind) -> Result<u64, Bad> {
    let text = with_unit(value, "a size with its unit, such as `\"64MiB\"`")?;
    let size = parse_size(text).ok_or_else(|| {
        Bad::value(format!(
            "{text:?} is no size: write a whole number with `B`, `KiB`, `MiB`, `GiB`, `KB`, `MB` or `GB`"
        ))
    })?;
    match kind {
        Kind::Size { min, max } if !(*min..=*max).contains(&size) => {
            Err(Bad::value(format!("{text} is out of bounds")))
        }
        _ => Ok(size),
    }
}

fn with_unit<'a>(value: &'a Value<'_>, expected: &str) -> Result<&'a str, Bad> {
    value.as_str().ok_or_else(|| Bad::kind(expected, value))
}

pub(crate) fn word(value: &Value<'_>, kind: &Kind) -> Result<&'static str, Bad> {
    let text = value.as_str().ok_or_else(|| Bad::kind("a text", value))?;
    let Kind::Word(words) = kind else { return Err(Bad::value(format!("{text:?} is unknown"))) };
    let exact = words.iter().copied().find(|word| *word == text);
    exact.ok_or_else(|| Bad {
        nearest: nearest(text, words.iter().copied()).map(str::to_owned),
        ..Bad::value(format!("{text:?} is none of the words that stand here"))
    })
}

pub(crate) fn text(value: &Value<'_>, _: &Kind) -> Result<String, Bad> {
    match value.as_str() {
        Some("") => Err(Bad::value("the text is empty")),
        Some(text) => Ok(text.to_owned()),
        None => Err(Bad::kind("a text", value)),
    }
}

pub(crate) fn path(value: &Value<'_>, kind: &Kind) -> Result<PathBuf, Bad> {
    text(value, kind).map(PathBuf::from)
}

pub(crate) fn listen(value: &Value<'_>, kind: &Kind) -> Result<Option<SocketAddr>, Bad> {
    let text = text(value, kind)?;
    if text == "off" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        Bad::value(format!("{text:?} is no IP address with a port, such as `\"127.0.0.1:9180\"`"))
    })
}

pub(crate) fn url(value: &Value<'_>, kind: &Kind) -> Result<String, Bad> {
    let text = text(value, kind)?;
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let Some(rest) = rest else {
        return Err(Bad::value(format!("{text:?} does not begin with `http://` or `https://`")));
    };
    if rest.contains('@') {
        let bad = Bad::value(
            "an address holds no user and no password: the file is no place for secrets",
        );
        return Err(bad.hidden(Code::LiteralSecret));
    }
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#');
    if rest.starts_with(['/', ':']) || rest.is_empty() || rest.contains(odd) {
        return Err(Bad::value(format!("{text:?} is no address of a service")));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

pub(crate) fn secret(value: &Value<'_>, _: &Kind) -> Result<Secret, Bad> {
    match value.as_table() {
        Some(table) => reference(table),
        None if value.as_str().is_some() => Err(Bad::value(
            "a secret never stands in the file: name the environment variable or the file that holds it",
        )
        .hidden(Code::LiteralSecret)),
        None => Err(Bad::kind("a reference to a secret", value).hidden(Code::WrongType)),
    }
}

fn reference(table: &Table<'_>) -> Result<Secret, Bad> {
    let only = |name: &str| table.get(name).filter(|_| table.len() == 1).and_then(Value::as_str);
    match (only("env"), only("file")) {
        (Some(name), _) if !name.is_empty() && !name.contains(['=', '\0']) => {
            Ok(Secret::Env(name.to_owned()))
        }
        (_, Some(path)) if !path.is_empty() => Ok(Secret::File(PathBuf::from(path))),
        _ => Err(Bad::value("this is no reference to a secret").hidden(Code::WrongValue)),
    }
}

pub(crate) fn setting(value: &Value<'_>, kind: &Kind) -> Result<Setting, Bad> {
    if let Some(text) = value.as_str() {
        return Ok(Setting::Text(text.to_owned()));
    }
    if value.as_table().is_none() {
        return Err(Bad::kind("a text", value));
    }
    secret(value, kind).map(Setting::Secret)
}

pub(crate) fn handler(value: &Value<'_>, kind: &Kind) -> Result<String, Bad> {
    let text = text(value, kind)?;
    match text.split_once('/') {
        Some((tenant, name)) if !tenant.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(text)
        }
        _ => Err(Bad::value(format!("{text:?} is no tenant and handler"))),
    }
}

pub(crate) fn deduplication_key(value: &Value<'_>, kind: &Kind) -> Result<DeduplicationKey, Bad> {
    let text = text(value, kind)?;
    match text.split_once(':') {
        None if text == "id" => Ok(DeduplicationKey::Id),
        Some(("header", name)) if !name.trim().is_empty() => {
            Ok(DeduplicationKey::Header(name.trim().to_owned()))
        }
        _ => Err(Bad::value(format!("{text:?} names no key"))),
    }
}

/// A host as the sandbox reads it: a name, an address, or all names below one of at least two labels.
pub(crate) fn http_host(value: &Value<'_>, kind: &Kind) -> Result<String, Bad> {
    let text = text(value, kind)?;
    let host = text.to_ascii_lowercase();
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&host);
    if bare.parse::<Ipv6Addr>().is_ok() || host.parse::<Ipv4Addr>().is_ok() {
        return Ok(bare.to_owned());
    }
    let wrong = |why: &str| Err(Bad::value(format!("{text:?} {why}")));
    if host.contains(['/', ':', '@', '?', '#']) {
        return wrong(
            "is more than a host: `scheme` and `port` have keys of their own, and a path is not asked for",
        );
    }
    match host.strip_prefix("*.") {
        None if host == "*" => wrong("would be every host: name them"),
        None if !is_domain(&host) => wrong("is no name of a host"),
        Some(parent) if !is_domain(parent) => wrong("is no pattern of hosts"),
        Some(parent) if !parent.contains('.') => wrong("stands for the names of many owners"),
        None | Some(_) => Ok(host),
    }
}

/// Letters, digits, hyphens and underscores; the last label is no number, which would be an address to some.
fn is_domain(text: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
    let label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(plain);
    let last = text.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|c| c.is_ascii_digit()) || last.starts_with("0x");
    text.len() <= 253 && text.split('.').all(label) && !numeric
}

/// The methods of requests, in capitals.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

pub(crate) fn methods(value: &Value<'_>, _: &Kind) -> Result<Vec<String>, Bad> {
    let items = value.as_array().ok_or_else(|| Bad::kind("a list of methods", value))?;
    if items.is_empty() {
        return Err(Bad::value("a host without a method can't be asked anything"));
    }
    let mut methods: Vec<String> = Vec::new();
    for item in items {
        let method = item.as_str().ok_or_else(|| Bad::kind("a method", item))?;
        if !METHODS.contains(&method) {
            let near = nearest(method, METHODS).map(str::to_owned);
            let message = format!("{method:?} is none of {}", METHODS.join(", "));
            return Err(Bad { nearest: near, ..Bad::value(message) });
        }
        if methods.iter().any(|one| one == method) {
            return Err(Bad::value(format!("{method} stands twice")));
        }
        methods.push(method.to_owned());
    }
    Ok(methods)
}
