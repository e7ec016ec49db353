//! One call of the API: its bound, and what its failure means.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use pumphouse_contract::with_causes;

/// What a failed call means for whoever made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No answer, or the service's own fault.
    Unavailable,
    /// Too many calls.
    Throttled,
    /// No such queue, topic or subscription.
    Missing,
    /// These credentials may not.
    Denied,
    /// The receipt is no longer good.
    Gone,
    /// The service will not take this request.
    Sender,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    /// The service's name for it; empty where it said nothing.
    pub(crate) code: String,
    pub(crate) text: String,
}

/// Waits for a call for at most `limit`. Giving up drops the call, and with it its connection.
pub(crate) async fn bounded<T, E>(
    limit: Duration,
    call: impl Future<Output = Result<T, SdkError<E, HttpResponse>>>,
) -> Result<T, Fault>
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match tokio::time::timeout(limit, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(fault(&error)),
        Err(_) => Err(Fault {
            kind: Kind::Unavailable,
            code: String::new(),
            text: format!("no answer within {limit:?}"),
        }),
    }
}

fn fault<E>(error: &SdkError<E, HttpResponse>) -> Fault
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let SdkError::ServiceError(service) = error else {
        let text = with_causes(error);
        return Fault { kind: Kind::Unavailable, code: String::new(), text };
    };
    let code = service.err().code().unwrap_or_default();
    let message = service.err().message().unwrap_or_default();
    let kind = match (classify(code, message), service.raw().status().as_u16()) {
        (Kind::Sender, 500..) => Kind::Unavailable,
        (Kind::Sender, 429) => Kind::Throttled,
        (Kind::Sender, 403) => Kind::Denied,
        (kind, _) => kind,
    };
    Fault { kind, code: code.to_owned(), text: said(code, message) }
}

/// Code and message of the service in one line.
pub(crate) fn said(code: &str, message: &str) -> String {
    match (code, message) {
        ("", "") => "the service gave no reason".to_owned(),
        (code, "") => code.to_owned(),
        ("", message) => message.to_owned(),
        (code, message) => format!("{code}: {message}"),
    }
}

/// What an error code means. Servers spell the same one with and without a namespace.
pub(crate) fn classify(code: &str, message: &str) -> Kind {
    match code.rsplit(['.', '#']).next().unwrap_or_default() {
        // It is the key that is missing, not the queue.
        "NotFoundException" if code.contains("KMS.") => Kind::Sender,
        "QueueDoesNotExist"
        | "NonExistentQueue"
        | "NotFound"
        | "NotFoundException"
        | "ResourceNotFound"
        | "ResourceNotFoundException" => Kind::Missing,
        "AccessDenied"
        | "AccessDeniedException"
        | "AuthorizationError"
        | "KmsAccessDenied"
        | "InvalidClientTokenId"
        | "UnrecognizedClientException"
        | "SignatureDoesNotMatch"
        | "InvalidSecurity"
        | "OptInRequired" => Kind::Denied,
        "RequestThrottled"
        | "Throttling"
        | "ThrottlingException"
        | "Throttled"
        | "TooManyRequestsException"
        | "KmsThrottled" => Kind::Throttled,
        // The credentials are fetched anew for the next call; a queue's name is free again after a minute.
        "ExpiredToken"
        | "ExpiredTokenException"
        | "RequestExpired"
        | "QueueDeletedRecently"
        | "InternalError"
        | "InternalFailure"
        | "ServiceUnavailable"
        | "RequestTimeout" => Kind::Unavailable,
        "ReceiptHandleIsInvalid" | "MessageNotInflight" => Kind::Gone,
        "InvalidParameterValue" | "InvalidParameterValueException" if is_about_receipt(message) => {
            Kind::Gone
        }
        _ => Kind::Sender,
    }
}

/// Whether an unspecific code is about a receipt whose time is over.
fn is_about_receipt(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("expired") || message.contains("does not exist or is not available")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_code_is_known_in_every_spelling() {
        let table = [
            ("AWS.SimpleQueueService.NonExistentQueue", "", Kind::Missing),
            ("com.amazonaws.sqs#QueueDoesNotExist", "", Kind::Missing),
            ("QueueDoesNotExist", "", Kind::Missing),
            ("AccessDeniedException", "", Kind::Denied),
            ("KMS.AccessDeniedException", "", Kind::Denied),
            ("KMS.NotFoundException", "", Kind::Sender),
            ("KMS.ThrottlingException", "", Kind::Throttled),
            ("ExpiredToken", "", Kind::Unavailable),
            ("ReceiptHandleIsInvalid", "", Kind::Gone),
            ("InvalidParameterValue", "Reason: The receipt handle has expired.", Kind::Gone),
            ("InvalidParameterValue", "Value for parameter DelaySeconds", Kind::Sender),
            ("", "", Kind::Sender),
        ];
        for (code, message, kind) in table {
            assert_eq!(classify(code, message), kind, "{code} {message}");
        }
    }
}
