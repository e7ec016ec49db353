//! Who calls: Application Default Credentials, a key of the configuration, or nobody in particular.

use google_cloud_auth::credentials::{
    Builder, CacheableResource, Credentials, anonymous, external_account, impersonated,
    service_account, user_account,
};
use pumphouse_contract::with_causes;
use serde_json::Value;
use tonic::metadata::MetadataMap;

use crate::PubsubError;
use crate::calls::{Fault, Kind};

/// Makes the libraries of Google and our own connections use one cryptography, whatever else is linked.
pub(crate) fn ensure_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread was quicker.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// For an emulator.
pub(crate) fn nobody() -> Credentials {
    anonymous::Builder::new().build()
}

/// What the environment has: `GOOGLE_APPLICATION_CREDENTIALS`, the file of `gcloud auth`, the metadata server.
pub(crate) fn of_the_environment() -> Result<Credentials, PubsubError> {
    Builder::default().build().map_err(failed)
}

/// The JSON of a key file.
pub(crate) fn of_json(text: &str) -> Result<Credentials, PubsubError> {
    let json: Value = serde_json::from_str(text)
        .map_err(|_| PubsubError::Credentials("they are no JSON of a key file".to_owned()))?;
    let kind = json.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "service_account" => service_account::Builder::new(json).build().map_err(failed),
        "authorized_user" => user_account::Builder::new(json).build().map_err(failed),
        "external_account" => external_account::Builder::new(json).build().map_err(failed),
        "impersonated_service_account" => impersonated::Builder::new(json).build().map_err(failed),
        other => Err(PubsubError::Credentials(format!(
            "their type is {other:?}, not one of service_account, authorized_user, external_account, \
             impersonated_service_account"
        ))),
    }
}

fn failed(error: impl std::error::Error) -> PubsubError {
    PubsubError::Credentials(with_causes(&error))
}

/// Puts what proves who we are into a call's metadata. A token is fetched where none is fresh.
pub(crate) async fn authorise(
    credentials: &Credentials,
    metadata: &mut MetadataMap,
) -> Result<(), Fault> {
    let found = credentials.headers(http_extensions()).await.map_err(|error| Fault {
        kind: if error.is_transient() { Kind::Unavailable } else { Kind::Denied },
        text: format!("the credentials gave no token: {error}"),
        status: None,
    })?;
    if let CacheableResource::New { data, .. } = found {
        let mut headers = std::mem::take(metadata).into_headers();
        headers.extend(data);
        *metadata = MetadataMap::from_headers(headers);
    }
    Ok(())
}

fn http_extensions() -> tonic::codegen::http::Extensions {
    tonic::codegen::http::Extensions::new()
}
