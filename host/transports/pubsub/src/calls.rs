//! One call of the API: its bound, and what its failure means.

use std::error::Error as _;
use std::future::Future;
use std::time::Duration;

use google_cloud_gax::error::{CredentialsError, Error};
use pumphouse_contract::with_causes;
use tonic::{Code, Response, Status};

/// What a failed call means for whoever made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No answer, or the service's own fault.
    Unavailable,
    /// Too many calls.
    Throttled,
    /// No such topic or subscription.
    Missing,
    /// These credentials may not.
    Denied,
    /// The service will not take this request.
    Sender,
}

/// A failed call.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// What the service answered; none where it did not.
    pub(crate) status: Option<Box<Status>>,
}

impl Fault {
    pub(crate) fn unavailable(text: impl Into<String>) -> Self {
        Self { kind: Kind::Unavailable, text: text.into(), status: None }
    }
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        let text = match status.message() {
            "" => format!("{:?}", status.code()),
            message => format!("{:?}: {message}", status.code()),
        };
        Self { kind: kind(status.code()), text, status: Some(Box::new(status)) }
    }
}

/// What a status means. What the service calls its own fault, and what may pass, is `Unavailable`.
pub(crate) fn kind(code: Code) -> Kind {
    match code {
        Code::Ok
        | Code::Unavailable
        | Code::DeadlineExceeded
        | Code::Internal
        | Code::Unknown
        | Code::Aborted
        | Code::Cancelled
        | Code::DataLoss => Kind::Unavailable,
        Code::ResourceExhausted => Kind::Throttled,
        Code::NotFound => Kind::Missing,
        Code::PermissionDenied | Code::Unauthenticated => Kind::Denied,
        Code::InvalidArgument
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented => Kind::Sender,
    }
}

/// Waits for a call for at most `limit`. Giving up drops the call, which resets its stream.
pub(crate) async fn bounded<T>(
    limit: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Fault> {
    match tokio::time::timeout(limit, call).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(status.into()),
        Err(_) => Err(Fault::unavailable(format!("no answer within {limit:?}"))),
    }
}

/// What an error of Google's library means.
pub(crate) fn of_library(error: &Error) -> Fault {
    if let Some(status) = error.status() {
        return Status::new(Code::from(status.code as i32), &status.message).into();
    }
    let passes = || {
        let source = error.source().and_then(|it| it.downcast_ref::<CredentialsError>());
        source.is_some_and(CredentialsError::is_transient)
    };
    let kind = match error.http_status_code() {
        Some(404) => Kind::Missing,
        Some(401 | 403) => Kind::Denied,
        Some(429) => Kind::Throttled,
        Some(400..=499) => Kind::Sender,
        _ if error.is_authentication() && !passes() => Kind::Denied,
        _ if error.is_binding() || error.is_serialization() => Kind::Sender,
        _ => Kind::Unavailable,
    };
    Fault { kind, text: with_causes(error), status: None }
}
