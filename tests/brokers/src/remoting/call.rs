use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::frame::{Fields, Frame, Header};
use crate::Error;

/// Longer than any answer takes that is not a long poll.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// What a server said.
#[derive(Debug, Clone)]
pub struct Answer {
    /// 0 is success; others are in [`code`](super::code).
    pub code: i32,
    /// The server's words, most often on a failure.
    pub remark: Option<String>,
    /// The header fields.
    pub fields: Fields,
    /// What follows the header, not decoded.
    pub body: Bytes,
}

/// Asks a name server or broker, `HOST:PORT`, on a connection of its own and unsigned, as a
/// program that is not ours does.
///
/// # Errors
/// When no answer comes within 30 seconds. An answer with a failure's code is no error.
pub async fn call(
    server: &str,
    code: i32,
    fields: &[(&str, &str)],
    body: &[u8],
) -> Result<Answer, Error> {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let request = Header::request(code, 1, fields.collect());
    let request = Frame::new(&request, Bytes::copy_from_slice(body));
    let failed = |detail| Error::Call { endpoint: server.to_owned(), detail };
    timeout(CALL_TIMEOUT, exchange(server, &request))
        .await
        .map_err(|_| failed(format!("no answer in {} s", CALL_TIMEOUT.as_secs())))?
        .map_err(|error| failed(error.to_string()))
}

async fn exchange(server: &str, request: &Frame) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    request.write(&mut stream).await?;
    loop {
        let frame = Frame::read(&mut stream).await?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let header = frame.header()?;
        // A broker asks its clients, too.
        if header.is_answer() {
            let Header { code, remark, fields, .. } = header;
            return Ok(Answer { code, remark, fields, body: frame.body });
        }
    }
}
