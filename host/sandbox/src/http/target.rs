//! Where a request goes, and whether the grant allows it.

use http::Request;
use http::uri::{Authority, Scheme};
use wasmtime_wasi_http::Error;

use super::grant::{HttpGrant, HttpRule, HttpScheme};

/// What a request asks for, as far as it is checked. What is connected to is made from this and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) scheme: HttpScheme,
    /// As the guest wrote it, an address of version 6 without its brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Target {
    pub(super) fn of<B>(request: &Request<B>) -> Result<Self, Error> {
        let uri = request.uri();
        let scheme = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => HttpScheme::Https,
            Some(scheme) if *scheme == Scheme::HTTP => HttpScheme::Http,
            _ => return Err(Error::HttpRequestUriInvalid),
        };
        let authority = uri.authority().ok_or(Error::HttpRequestUriInvalid)?;
        let (host, port) = split(authority).ok_or(Error::HttpRequestUriInvalid)?;
        Ok(Self { scheme, host: host.to_owned(), port: port.unwrap_or(scheme.port()) })
    }

    /// The rule that allows this.
    pub(super) fn rule<'a>(&self, grant: &'a HttpGrant, method: &str) -> Option<&'a HttpRule> {
        let fits = |rule: &&HttpRule| {
            rule.scheme == self.scheme
                && rule.port == self.port
                && rule.methods.iter().any(|allowed| allowed == method)
                && rule.host.fits(&self.host)
        };
        grant.rules.iter().find(fits).filter(|_| method != "CONNECT")
    }

    /// The header `host`: what was checked, and no other.
    pub(super) fn host_header(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.to_ascii_lowercase()
        };
        if self.port == self.scheme.port() { host } else { format!("{host}:{}", self.port) }
    }
}

/// Host and port. None where there is more than these, or what is there is no port.
fn split(authority: &Authority) -> Option<(&str, Option<u16>)> {
    let (text, host) = (authority.as_str(), authority.host());
    let rest = text.strip_prefix(host)?;
    let port = match rest.strip_prefix(':') {
        Some(port) => Some(port.parse().ok().filter(|port| *port != 0)?),
        None if rest.is_empty() => None,
        None => return None,
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    Some((bare.unwrap_or(host), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpHost;

    fn target(uri: &str) -> Result<Target, Error> {
        Target::of(&Request::get(uri).body(()).unwrap())
    }

    fn grant(rules: &[(HttpScheme, &str, u16, &[&str])]) -> HttpGrant {
        let rule = |(scheme, host, port, methods): &(HttpScheme, &str, u16, &[&str])| HttpRule {
            scheme: *scheme,
            host: HttpHost::parse(host).unwrap(),
            port: *port,
            methods: methods.iter().map(|method| (*method).to_owned()).collect(),
            private: false,
        };
        HttpGrant { rules: rules.iter().map(rule).collect(), ..HttpGrant::default() }
    }

    #[test]
    fn scheme_host_port_and_method_must_all_fit_one_rule() {
        let grant = grant(&[
            (HttpScheme::Https, "api.example.com", 443, &["GET", "CONNECT"]),
            (HttpScheme::Http, "*.example.net", 8080, &["POST"]),
        ]);
        for (uri, method, allowed) in [
            ("https://api.example.com/v1", "GET", true),
            ("https://API.example.com:443/", "GET", true),
            ("https://api.example.com/", "POST", false),
            ("https://api.example.com/", "get", false),
            ("https://api.example.com/", "CONNECT", false),
            ("http://api.example.com/", "GET", false),
            ("http://api.example.com:443/", "GET", false),
            ("https://api.example.com:8443/", "GET", false),
            ("http://a.example.net:8080/", "POST", true),
            ("http://a.example.net:8080/", "GET", false),
            ("https://example.com/", "GET", false),
        ] {
            let target = target(uri).unwrap();
            assert_eq!(target.rule(&grant, method).is_some(), allowed, "{method} {uri}");
        }
    }

    #[test]
    fn what_hides_a_host_is_refused() {
        for uri in [
            "https://user@api.example.com/",
            "https://api.example.com:80@evil.net/",
            "https://api.example.com:0/",
            "https://api.example.com:99999/",
            "ftp://api.example.com/",
            "/path",
        ] {
            assert!(target(uri).is_err(), "{uri}");
        }
    }

    #[test]
    fn the_host_header_is_what_was_checked() {
        for (uri, header) in [
            ("https://API.example.com:443/", "api.example.com"),
            ("https://api.example.com:8443/", "api.example.com:8443"),
            ("http://[::1]:8080/", "[::1]:8080"),
            ("http://127.0.0.1/", "127.0.0.1"),
        ] {
            assert_eq!(target(uri).unwrap().host_header(), header);
        }
    }
}
