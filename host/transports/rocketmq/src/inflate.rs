//! Bodies that their sender's client compressed, as it does with large ones.

use std::io::{self, Read};

use bytes::Bytes;
use rocketmq_model::common::sys_flag::message_sys_flag::MessageSysFlag;

/// The most bytes that a body may become. RocketMQ's own clients send 4 MiB unless they are told otherwise; a body of
/// nothing but zeros becomes a thousand times as long.
const MOST: usize = 64 * 1024 * 1024;

/// The same as a power of two, for the window of zstd.
const WINDOW_LOG: u32 = 26;

/// The body as it was before it was compressed; the same one where it was not.
///
/// # Errors
/// Says why it can't be had.
pub(crate) fn inflate(body: Bytes, sys_flag: i32) -> Result<Bytes, String> {
    if sys_flag & MessageSysFlag::COMPRESSED_FLAG == 0 {
        return Ok(body);
    }
    let way = (sys_flag & MessageSysFlag::COMPRESSION_TYPE_COMPARATOR) >> 8;
    let result = match way {
        1 => read(lz4_flex::frame::FrameDecoder::new(body.as_ref())),
        2 => zstd(&body),
        // Clients of before 5.0 name none.
        0 | 3 => read(flate2::read::ZlibDecoder::new(body.as_ref())),
        other => return Err(format!("the body is compressed in an unknown way ({other})")),
    };
    result.map_err(|error| format!("the body can't be decompressed: {error}"))
}

fn zstd(body: &[u8]) -> io::Result<Bytes> {
    let mut decoder = zstd::stream::read::Decoder::new(body)?;
    decoder.window_log_max(WINDOW_LOG)?;
    read(decoder)
}

fn read(source: impl Read) -> io::Result<Bytes> {
    let mut whole = Vec::new();
    source.take(MOST as u64 + 1).read_to_end(&mut whole)?;
    if whole.len() > MOST {
        return Err(io::Error::other(format!("it becomes more than {MOST} bytes")));
    }
    Ok(whole.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const COMPRESSED: i32 = MessageSysFlag::COMPRESSED_FLAG;

    fn zlib(body: &[u8]) -> Bytes {
        let mut encoder =
            flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(body).expect("in memory");
        encoder.finish().expect("in memory").into()
    }

    fn lz4(body: &[u8]) -> Bytes {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(body).expect("in memory");
        encoder.finish().expect("in memory").into()
    }

    #[test]
    fn a_body_is_what_it_was_before_it_was_compressed() {
        let body = "a body of some length, ".repeat(500);
        let zstd: Bytes = zstd::encode_all(body.as_bytes(), 0).expect("in memory").into();
        for (how, flag) in [
            (lz4(body.as_bytes()), MessageSysFlag::COMPRESSION_LZ4_TYPE),
            (zstd, MessageSysFlag::COMPRESSION_ZSTD_TYPE),
            (zlib(body.as_bytes()), MessageSysFlag::COMPRESSION_ZLIB_TYPE),
            (zlib(body.as_bytes()), 0),
        ] {
            assert_eq!(inflate(how, COMPRESSED | flag).as_deref(), Ok(body.as_bytes()), "{flag}");
        }
        let plain = Bytes::from_static(b"plain");
        assert_eq!(inflate(plain.clone(), MessageSysFlag::COMPRESSION_ZLIB_TYPE), Ok(plain));
    }

    #[test]
    fn fr_06_what_can_t_be_decompressed_is_told() {
        for way in 0..8 {
            let error = inflate(Bytes::from_static(b"nonsense"), COMPRESSED | way << 8);
            assert!(error.expect_err("nonsense").starts_with("the body"), "{way}");
        }
    }

    /// A small body can't fill the memory.
    #[test]
    fn a_body_that_becomes_too_long_is_not_read_to_its_end() {
        let bomb = zlib(&vec![0; MOST + 1]);
        assert!(bomb.len() < 100_000);
        let error = inflate(bomb, COMPRESSED).expect_err("too long");
        assert!(error.contains("becomes more than 67108864 bytes"), "{error}");
    }
}
