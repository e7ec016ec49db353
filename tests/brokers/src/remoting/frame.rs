//! The frames of RocketMQ's remoting protocol: a length, a header in one of two encodings, a body.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Servers and clients take 16 MiB; a bit more, so that what is too large for them gets there.
const FRAME_LIMIT: usize = 20 * 1024 * 1024;

/// The header's length is the lower three bytes of its field, the encoding the highest.
const LENGTH_MASK: u32 = 0x00ff_ffff;
const JSON: u8 = 0;
const BINARY: u8 = 1;

/// Where the number is in a binary header.
const BINARY_OPAQUE: std::ops::Range<usize> = 5..9;

const ANSWER_FLAG: i32 = 1;
const ONE_WAY_FLAG: i32 = 2;

/// The number of the programming language "other" and of a version that understands all fields.
const LANGUAGE: &str = "OTHER";
const VERSION: i32 = 475;

/// Header fields by name.
pub type Fields = BTreeMap<String, String>;

/// What a frame says before its body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) code: i32,
    pub(crate) opaque: i32,
    pub(crate) flag: i32,
    pub(crate) remark: Option<String>,
    pub(crate) fields: Fields,
}

impl Header {
    pub(crate) fn request(code: i32, opaque: i32, fields: Fields) -> Self {
        Self { code, opaque, flag: 0, remark: None, fields }
    }

    pub(crate) fn answer(code: i32, opaque: i32, remark: &str) -> Self {
        let remark = (!remark.is_empty()).then(|| remark.to_owned());
        Self { code, opaque, flag: ANSWER_FLAG, remark, fields: Fields::new() }
    }

    pub(crate) fn is_answer(&self) -> bool {
        self.flag & ANSWER_FLAG != 0
    }

    pub(crate) fn is_one_way(&self) -> bool {
        self.flag & ONE_WAY_FLAG != 0
    }
}

/// A frame as it passes: the header encoded, so that what is passed on is what came.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    encoding: u8,
    header: Bytes,
    pub(crate) body: Bytes,
}

impl Frame {
    /// A frame with a JSON header, which every server and client reads.
    pub(crate) fn new(header: &Header, body: Bytes) -> Self {
        let mut text = json!({
            "code": header.code, "opaque": header.opaque, "flag": header.flag,
            "language": LANGUAGE, "version": VERSION, "extFields": header.fields,
            // Java's reader does without; the Rust client's takes no frame that lacks it.
            "serializeTypeCurrentRPC": "JSON",
        });
        if let (Some(remark), Some(text)) = (&header.remark, text.as_object_mut()) {
            text.insert("remark".to_owned(), Value::from(remark.as_str()));
        }
        Self { encoding: JSON, header: text.to_string().into(), body }
    }

    /// The same frame under another number.
    pub(crate) fn renumbered(&self, opaque: i32) -> Result<Self> {
        let header = match self.encoding {
            JSON => {
                let mut text: Value = serde_json::from_slice(&self.header)?;
                let text = text.as_object_mut().ok_or_else(|| malformed("no JSON object"))?;
                text.insert("opaque".to_owned(), Value::from(opaque));
                serde_json::to_vec(text)?
            }
            _ => {
                let mut bytes = self.header.to_vec();
                let number = bytes.get_mut(BINARY_OPAQUE).ok_or_else(|| malformed("too short"))?;
                number.copy_from_slice(&opaque.to_be_bytes());
                bytes
            }
        };
        Ok(Self { encoding: self.encoding, header: header.into(), body: self.body.clone() })
    }

    /// Reads the next frame; `None` at the end of the stream. Not cancel-safe.
    pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<Self>> {
        let length = match stream.read_u32().await {
            Ok(length) => usize::try_from(length).unwrap_or(usize::MAX),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        };
        if !(4..=FRAME_LIMIT).contains(&length) {
            return Err(malformed("a length outside the limits"));
        }
        // Grows with what comes: a length alone reserves nothing.
        let mut bytes = Vec::new();
        stream.take(length as u64).read_to_end(&mut bytes).await?;
        if bytes.len() < length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Self::split(bytes.into()).map(Some)
    }

    fn split(mut bytes: Bytes) -> Result<Self> {
        let head = bytes.get_u32();
        let [encoding, ..] = head.to_be_bytes();
        let length = usize::try_from(head & LENGTH_MASK).unwrap_or(usize::MAX);
        if length > bytes.len() {
            return Err(malformed("a header longer than its frame"));
        }
        let header = bytes.split_to(length);
        Ok(Self { encoding, header, body: bytes })
    }

    pub(crate) async fn write(&self, stream: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
        let (header, body) = (self.header.len(), self.body.len());
        let length = u32::try_from(4 + header + body).map_err(|_| malformed("too long"))?;
        let header = u32::try_from(header).map_err(|_| malformed("too long"))?;
        let mut bytes = BytesMut::with_capacity(8 + self.header.len() + body);
        bytes.put_u32(length);
        bytes.put_u32(u32::from(self.encoding) << 24 | header & LENGTH_MASK);
        bytes.put_slice(&self.header);
        bytes.put_slice(&self.body);
        stream.write_all(&bytes).await?;
        stream.flush().await
    }

    /// The header, from either encoding.
    pub(crate) fn header(&self) -> Result<Header> {
        match self.encoding {
            JSON => from_json(&self.header),
            BINARY => from_binary(self.header.clone()),
            _ => Err(malformed("an unknown encoding of the header")),
        }
    }
}

fn from_json(bytes: &[u8]) -> Result<Header> {
    let text: Value = serde_json::from_slice(bytes)?;
    let number = |name| text.get(name).and_then(Value::as_i64).unwrap_or_default();
    let number = |name| i32::try_from(number(name)).map_err(|_| malformed("a number too large"));
    let fields = text.get("extFields").and_then(Value::as_object);
    let fields = fields.into_iter().flatten().filter_map(|(name, value)| match value {
        Value::String(text) => Some((name.clone(), text.clone())),
        Value::Null => None,
        // Clients write numbers as such.
        other => Some((name.clone(), other.to_string())),
    });
    Ok(Header {
        code: number("code")?,
        opaque: number("opaque")?,
        flag: number("flag")?,
        remark: text.get("remark").and_then(Value::as_str).map(str::to_owned),
        fields: fields.collect(),
    })
}

fn from_binary(mut bytes: Bytes) -> Result<Header> {
    let code = i32::from(bytes.try_get_i16()?);
    let _language = bytes.try_get_u8()?;
    let _version = bytes.try_get_u16()?;
    let (opaque, flag) = (bytes.try_get_i32()?, bytes.try_get_i32()?);
    let length = bytes.try_get_u32()?;
    let remark = text(&mut bytes, length)?;
    let length = bytes.try_get_u32()?;
    let mut rest = part(&mut bytes, length)?;
    let mut fields = Fields::new();
    while rest.has_remaining() {
        let length = rest.try_get_u16()?;
        let name = text(&mut rest, length.into())?;
        let length = rest.try_get_u32()?;
        fields.insert(name, text(&mut rest, length)?);
    }
    let remark = (!remark.is_empty()).then_some(remark);
    Ok(Header { code, opaque, flag, remark, fields })
}

fn part(bytes: &mut Bytes, length: u32) -> Result<Bytes> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > bytes.len() {
        return Err(malformed("a text longer than its header"));
    }
    Ok(bytes.split_to(length))
}

fn text(bytes: &mut Bytes, length: u32) -> Result<String> {
    let part = part(bytes, length)?;
    String::from_utf8(part.into()).map_err(|_| malformed("a text that is not UTF-8"))
}

fn malformed(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
