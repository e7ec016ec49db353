use std::time::Instant;

use bytes::Bytes;

use super::code;
use super::frame::{Fields, Header};
use crate::faults;

/// One of the servers that the proxy is in front of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// The name server.
    Namesrv,
    /// The broker of this number, the first being 0.
    Broker(usize),
}

/// A request that passed, or should have.
#[derive(Debug, Clone)]
pub struct Request {
    /// Whom the client asked.
    pub server: Server,
    /// What for; a number of [`code`].
    pub code: i32,
    /// Whether the client wants no answer.
    pub is_one_way: bool,
    /// The header fields; those of `SEND_MESSAGE_V2` have names of one letter.
    pub fields: Fields,
    /// What follows the header; in the journal, cut at 16 KiB.
    pub body: Bytes,
    /// When it had arrived in full.
    pub at: Instant,
}

impl Request {
    pub(super) fn new(server: Server, header: &Header, body: &Bytes) -> Self {
        Self {
            server,
            code: header.code,
            is_one_way: header.is_one_way(),
            fields: header.fields.clone(),
            body: body.clone(),
            at: Instant::now(),
        }
    }

    /// A header field such as `topic`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// As it is kept in the journal.
    pub(super) fn kept(&self) -> Self {
        Self { body: faults::kept(&self.body), ..self.clone() }
    }
}

/// A code as rules and journal know it.
pub(super) fn operation(code: i32) -> String {
    if code == code::ANY { faults::ANY.to_owned() } else { code.to_string() }
}
