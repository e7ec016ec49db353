//! What a host and its compile worker say to each other: lengths of eight bytes, little-endian, and what they are of.

use std::io::{self, Read, Write};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const ARTIFACT: u8 = b'A';
const REFUSED: u8 = b'R';

/// What a compiler says of a component that is none is a line or two.
const LONGEST_TEXT: u64 = 16 * 1024;

/// The worker's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer<'a> {
    Artifact(&'a [u8]),
    /// Why the component is not a valid one.
    Refused(&'a str),
}

/// Hands a component to the worker.
pub(crate) async fn write_component(
    mut to: impl AsyncWrite + Unpin,
    component: &[u8],
) -> io::Result<()> {
    to.write_u64_le(component.len() as u64).await?;
    to.write_all(component).await?;
    to.shutdown().await
}

/// The component, in the worker.
pub(crate) fn read_component(mut from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > most {
        return Err(io::Error::other(format!("a component of {length} bytes, more than {most}")));
    }
    let mut component = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    from.take(length).read_to_end(&mut component)?;
    if component.len() as u64 == length {
        return Ok(component);
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Answers, in the worker.
pub(crate) fn write_answer(mut to: impl Write, answer: Answer<'_>) -> io::Result<()> {
    let (kind, bytes) = match answer {
        Answer::Artifact(bytes) => (ARTIFACT, bytes),
        Answer::Refused(text) => (REFUSED, text.as_bytes()),
    };
    let most = usize::try_from(LONGEST_TEXT).unwrap_or(usize::MAX);
    let bytes = if kind == REFUSED { bytes.get(..most).unwrap_or(bytes) } else { bytes };
    to.write_all(&[kind])?;
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

/// The worker's answer: an artefact of at most so many bytes, or why there is none.
///
/// # Errors
/// It ended before it had answered, or said what no worker says.
pub(crate) async fn read_answer(
    mut from: impl AsyncRead + Unpin,
    most: u64,
) -> io::Result<Result<Vec<u8>, String>> {
    let kind = from.read_u8().await?;
    let length = from.read_u64_le().await?;
    let most = match kind {
        ARTIFACT => most,
        REFUSED => LONGEST_TEXT,
        _ => return Err(io::Error::other("it said what no worker says")),
    };
    if length > most {
        return Err(io::Error::other(format!("its answer has {length} bytes, more than {most}")));
    }
    let mut bytes = Vec::new();
    (&mut from).take(length).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if from.read(&mut [0]).await? != 0 {
        return Err(io::Error::other("it said more than its answer"));
    }
    Ok(if kind == ARTIFACT { Ok(bytes) } else { Err(String::from_utf8_lossy(&bytes).into_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(answer: Answer<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_answer(&mut bytes, answer).unwrap();
        bytes
    }

    #[tokio::test]
    async fn both_directions() {
        let mut bytes = Vec::new();
        write_component(&mut bytes, b"component").await.unwrap();
        assert_eq!(read_component(&bytes[..], 9).unwrap(), b"component");
        assert!(read_component(&bytes[..], 8).is_err(), "more than may be sent");
        assert!(read_component(&bytes[..bytes.len() - 1], 9).is_err(), "cut off");

        let artifact = written(Answer::Artifact(b"code"));
        assert_eq!(read_answer(&artifact[..], 4).await.unwrap(), Ok(b"code".to_vec()));
        let refused = written(Answer::Refused("no"));
        assert_eq!(read_answer(&refused[..], 4).await.unwrap(), Err("no".to_owned()));
        let long = written(Answer::Refused(&"x".repeat(1 << 20)));
        assert!(
            read_answer(&long[..], 4).await.unwrap().is_err_and(|text| text.len() == 16 * 1024)
        );
    }

    #[tokio::test]
    async fn what_no_worker_says_is_no_answer() {
        let good = written(Answer::Artifact(b"code"));
        for length in 0..good.len() {
            assert!(read_answer(&good[..length], 4).await.is_err(), "the first {length} bytes");
        }
        assert!(read_answer(&good[..], 3).await.is_err(), "more than an artefact may have");
        let mut endless = good.clone();
        endless[1..9].copy_from_slice(&u64::MAX.to_le_bytes());
        let more = [&good[..], b"!"].concat();
        for bytes in [&b"garbage of a shell\n"[..], &endless, &more] {
            assert!(read_answer(bytes, 1 << 20).await.is_err(), "{bytes:?}");
        }
    }
}
