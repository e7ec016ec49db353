//! What one version of a handler may see and do beyond its message, made ready when it is deployed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::http::{Outside, Reach};
use crate::secrets::{Redactor, SecretText};
use crate::settings::Grants;
use crate::tenant::Tenant;

/// The services of one version. Its calls share them.
#[derive(Debug, Default)]
pub(crate) struct Services {
    pub(crate) logging: bool,
    pub(crate) config: Option<BTreeMap<String, String>>,
    pub(crate) secrets: BTreeMap<String, SecretText>,
    pub(crate) http: Option<Arc<Reach>>,
    /// None where there is nothing to hide.
    pub(crate) redactor: Option<Redactor>,
    /// Whose log rate its lines count for.
    pub(crate) tenant: Option<Arc<Tenant>>,
}

impl Services {
    /// What these grants give. May read files: the certificates that the machine trusts.
    ///
    /// # Errors
    /// TLS is granted and no certificate authority is trusted.
    pub(crate) fn new(outside: &Outside, handler: &str, grants: &Grants) -> Result<Self, String> {
        let http = grants.http.as_ref().map(|grant| outside.reach(handler, grant)).transpose()?;
        let redactor = redactor(grants);
        if let Some(redactor) =
            redactor.as_ref().filter(|redactor| !redactor.too_short().is_empty())
        {
            tracing::warn!(
                handler,
                secrets = redactor.too_short().join(", "),
                "secrets of fewer than 8 bytes can't be kept out of the log: use longer ones"
            );
        }
        Ok(Self {
            logging: grants.logging,
            config: grants.config.clone(),
            secrets: grants.secrets.clone(),
            http: http.map(Arc::new),
            redactor,
            tenant: None,
        })
    }

    /// Of a tenant's handler.
    pub(crate) fn of(self, tenant: Arc<Tenant>) -> Self {
        Self { tenant: Some(tenant), ..self }
    }
}

/// Secrets, and the settings that came by reference as secrets do.
fn redactor(grants: &Grants) -> Option<Redactor> {
    let secrets = grants.secrets.iter().map(|(name, value)| (name.as_str(), value.expose()));
    let config = grants.config.iter().flatten();
    let references = config.filter(|(name, _)| grants.config_references.contains(*name));
    let references = references.map(|(name, value)| (name.as_str(), value.as_str()));
    let values: Vec<_> = secrets.chain(references).collect();
    (!values.is_empty()).then(|| Redactor::new(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_came_by_reference_are_hidden_and_others_are_not() {
        let grants = Grants {
            config: Some(
                [("url".into(), "postgres://secret".into()), ("mode".into(), "production".into())]
                    .into(),
            ),
            config_references: ["url".into()].into(),
            ..Grants::default()
        };
        let redactor = redactor(&grants).unwrap();
        let text = redactor.apply("postgres://secret in production");
        assert_eq!(text, "[secret url] in production");
        assert!(super::redactor(&Grants::default()).is_none());
    }
}
