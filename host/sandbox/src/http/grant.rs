//! `grants.http`: which servers a handler may call, and how.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// The longest name that the domain name system has.
const LONGEST_HOST: usize = 253;
const LONGEST_LABEL: usize = 63;

/// Outgoing HTTP: what is allowed, and how much of it. Only what a rule names is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpGrant {
    /// `grants.http`: the allow-list. The first rule that fits a request decides.
    pub rules: Vec<HttpRule>,
    /// `limits.http.time`: from the request to the end of the response's body; never beyond the call's deadline.
    pub timeout: Duration,
    /// `limits.http.request`: the largest body of a request, in bytes.
    pub request_bytes: u64,
    /// `limits.http.response`: the largest body of a response, in bytes.
    pub response_bytes: u64,
    /// `limits.http.calls`: the requests that one call may have open at once. More are refused, not queued.
    pub concurrency: usize,
}

impl Default for HttpGrant {
    /// No rule: nothing is allowed.
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            timeout: Duration::from_secs(10),
            request_bytes: MIB,
            response_bytes: 4 * MIB,
            concurrency: 4,
        }
    }
}

/// One line of the allow-list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRule {
    /// How the server is spoken to.
    pub scheme: HttpScheme,
    /// The server's name or address.
    pub host: HttpHost,
    /// The server's port.
    pub port: u16,
    /// The methods, in capitals. None is allowed that is not named; `CONNECT` never is.
    pub methods: Vec<String>,
    /// Whether the server may be at an address that is not on the public internet: loopback, a private or a
    /// link-local network, a cloud's metadata service.
    pub private: bool,
}

impl HttpRule {
    /// What a rule allows that names no methods.
    pub const DEFAULT_METHODS: [&'static str; 2] = ["GET", "HEAD"];

    /// `GET` and `HEAD` over TLS at port 443 of public addresses.
    #[must_use]
    pub fn new(host: HttpHost) -> Self {
        Self {
            scheme: HttpScheme::Https,
            host,
            port: HttpScheme::Https.port(),
            methods: Self::DEFAULT_METHODS.map(str::to_owned).to_vec(),
            private: false,
        }
    }
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HttpScheme {
    /// In plain text.
    Http,
    /// Over TLS.
    Https,
}

impl HttpScheme {
    /// The port where none is named.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Display for HttpScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

/// The host of a rule: a name, an address, or all names below one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpHost {
    /// In lower case; an address in its shortest form.
    name: String,
    /// Whether names below it are meant instead, at any depth.
    below: bool,
}

/// A text that is no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no host: give a name (`api.example.com`), all names below one (`*.example.com`), or an address, \
     without scheme, port or path"
)]
pub struct HttpHostError {
    text: String,
}

impl HttpHost {
    /// Reads `api.example.com`, `*.example.com`, `192.0.2.1`, `2001:db8::1` or `[2001:db8::1]`.
    ///
    /// `*.example.com` stands for all names below `example.com` at any depth, and not for `example.com` itself.
    ///
    /// # Errors
    /// The text is something else, or a star that stands for more than one owner's names (`*`, `*.com`).
    pub fn parse(text: &str) -> Result<Self, HttpHostError> {
        let error = || HttpHostError { text: text.to_owned() };
        if let Some(parent) = text.strip_prefix("*.") {
            let name = domain(parent).filter(|name| name.contains('.')).ok_or_else(error)?;
            return Ok(Self { name, below: true });
        }
        let name = normal(text).ok_or_else(error)?;
        Ok(Self { name, below: false })
    }

    /// Whether the host of a URL is this one, or one of those that this one stands for.
    #[must_use]
    pub fn fits(&self, host: &str) -> bool {
        let Some(host) = normal(host) else { return false };
        if !self.below {
            return host == self.name;
        }
        let label = host.strip_suffix(&self.name).and_then(|rest| rest.strip_suffix('.'));
        label.is_some_and(|label| !label.is_empty())
    }
}

impl fmt::Display for HttpHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.below { "*." } else { "" }, self.name)
    }
}

/// A host in the form in which two of them are compared.
fn normal(text: &str) -> Option<String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Ok(address) = bare.unwrap_or(text).parse::<Ipv6Addr>() {
        return Some(address.to_string());
    }
    match text.parse::<Ipv4Addr>() {
        Ok(address) => Some(address.to_string()),
        Err(_) => domain(text),
    }
}

/// A name of letters, digits, hyphens and underscores, whose last label is not a number: such a one is an
/// address to some and a name to others.
fn domain(text: &str) -> Option<String> {
    let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
    let label = |label: &str| (1..=LONGEST_LABEL).contains(&label.len()) && label.bytes().all(fits);
    let numeric =
        |label: &str| label.bytes().all(|c| c.is_ascii_digit()) || label.starts_with("0x");
    let last = text.rsplit('.').next()?;
    let valid = text.len() <= LONGEST_HOST && text.split('.').all(label) && !numeric(last);
    valid.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_an_address_or_all_names_below_one() {
        for (rule, host, fits) in [
            ("api.example.com", "api.example.com", true),
            ("api.example.com", "API.Example.COM", true),
            ("api.example.com", "example.com", false),
            ("api.example.com", "evil-api.example.com", false),
            ("api.example.com", "api.example.com.", false),
            ("api.example.com", "api.example.com.evil.net", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", ".example.com", false),
            ("*.example.com", "evilexample.com", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.1", false),
            ("127.0.0.1", "0x7f000001", false),
            ("127.0.0.1", "2130706433", false),
            ("2001:DB8:0::1", "[2001:db8::1]", true),
            ("[::1]", "[0:0::1]", true),
            ("::ffff:127.0.0.1", "127.0.0.1", false),
            ("localhost", "localhost", true),
        ] {
            assert_eq!(HttpHost::parse(rule).unwrap().fits(host), fits, "{rule} {host}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            "*",
            "*.com",
            "*.",
            "a.*.com",
            "https://a.com",
            "a.com:443",
            "a.com/path",
            "u@a.com",
            "a..com",
            "ä.com",
            "127.1",
            "1.2.3",
            "0x7f000001",
            "a.com.",
        ] {
            let error = HttpHost::parse(text).unwrap_err();
            assert!(error.to_string().contains("api.example.com"), "{text}");
        }
    }

    #[test]
    fn a_rule_without_more_reads_from_the_public_internet_over_tls() {
        let rule = HttpRule::new(HttpHost::parse("api.example.com").unwrap());
        assert_eq!((rule.scheme, rule.port, rule.private), (HttpScheme::Https, 443, false));
        assert_eq!(rule.methods, ["GET", "HEAD"]);
        assert!(HttpGrant::default().rules.is_empty());
    }
}
