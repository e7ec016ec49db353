//! What went wrong, in the words of `wasi:http`. None of them has a path, a header or a body in it.

use wasmtime_wasi_http::Error;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;

/// The largest head of a response, in bytes.
pub(super) const MOST_HEAD: usize = 32 * 1024;

/// Of a request that got no response.
pub(super) fn of_request(error: &hyper::Error) -> Error {
    if error.is_parse_too_large() {
        return Error::HttpResponseHeaderSectionSize(u32::try_from(MOST_HEAD).ok());
    }
    if error.is_parse() {
        return Error::HttpProtocolError;
    }
    Error::ConnectionTerminated
}

/// Of a response that did not come whole.
pub(super) fn of_body(error: &hyper::Error) -> Error {
    if error.is_parse_too_large() {
        return Error::HttpResponseTrailerSectionSize(u32::try_from(MOST_HEAD).ok());
    }
    if error.is_parse() { Error::HttpProtocolError } else { Error::HttpResponseIncomplete }
}

/// The code of an error that ended a response's body. The library knows it of errors before the body alone.
pub(super) fn code(error: &Error) -> Option<ErrorCode> {
    Some(match error {
        Error::HttpResponseBodySize(size) => ErrorCode::HttpResponseBodySize(*size),
        Error::HttpResponseTrailerSectionSize(size) => {
            ErrorCode::HttpResponseTrailerSectionSize(*size)
        }
        Error::HttpResponseTimeout => ErrorCode::HttpResponseTimeout,
        Error::ConnectionReadTimeout => ErrorCode::ConnectionReadTimeout,
        Error::HttpResponseIncomplete => ErrorCode::HttpResponseIncomplete,
        Error::HttpProtocolError => ErrorCode::HttpProtocolError,
        Error::HttpRequestBodySize(size) => ErrorCode::HttpRequestBodySize(*size),
        _ => return None,
    })
}
