//! The project of names that have none.

use crate::{PubsubError, PubsubSettings};

const VARIABLES: [&str; 2] = ["PUBSUB_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"];

pub(crate) async fn find(settings: &PubsubSettings, _plain: bool) -> Result<String, PubsubError> {
    let of_environment =
        || VARIABLES.iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    settings.project.clone().or_else(of_environment).ok_or(PubsubError::NoProject)
}
