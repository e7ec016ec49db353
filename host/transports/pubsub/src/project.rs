//! The project of names that have none.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::PubsubSettings;

/// The emulator's own, then those of Google's tools.
const VARIABLES: [&str; 3] = ["PUBSUB_PROJECT_ID", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"];

/// The path of a key file or another file of credentials.
const KEY_FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// Where `gcloud auth application-default login` puts its file.
const USER_FILE: &str = "gcloud/application_default_credentials.json";

/// In a file of credentials: the project of a service account, then the one that a user's calls are charged to.
const FIELDS: [&str; 2] = ["project_id", "quota_project_id"];

/// The host of the metadata server, where it is not the usual one.
const METADATA_HOST: &str = "GCE_METADATA_HOST";
const USUAL_METADATA_HOST: &str = "metadata.google.internal";
const METADATA_PATH: &str = "computeMetadata/v1/project/project-id";

/// The header of a question to the metadata server, and of its answers.
const FLAVOR: (&str, &str) = ("Metadata-Flavor", "Google");

/// On a machine without one the name is unknown, or nobody answers.
const METADATA_WAIT: Duration = Duration::from_secs(2);

/// The first that is named: by the settings, by the environment, by the credentials, by the metadata server. Where
/// there are no credentials, as with an emulator, the last two are not asked.
pub(crate) async fn find(settings: &PubsubSettings, plain: bool) -> Option<String> {
    let variable = || VARIABLES.iter().find_map(|name| variable(name));
    let named = settings.project.clone().filter(|it| !it.is_empty()).or_else(variable);
    if named.is_some() || plain {
        return named;
    }
    let of_credentials = match &settings.credentials {
        Some(json) => of_json(json),
        None => of_files().await,
    };
    match of_credentials {
        Some(project) => Some(project),
        None => of_metadata().await,
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|it| !it.is_empty())
}

fn of_json(text: &str) -> Option<String> {
    let fields: Value = serde_json::from_str(text).ok()?;
    let named = |name: &&str| fields.get(name)?.as_str().filter(|it| !it.is_empty());
    FIELDS.iter().find_map(named).map(str::to_owned)
}

/// The file that Google's tools would take: the one that is named, else the user's.
async fn of_files() -> Option<String> {
    let path = variable(KEY_FILE).map(PathBuf::from).or_else(user_file)?;
    let text = tokio::fs::read_to_string(path).await.ok()?;
    of_json(&text)
}

fn user_file() -> Option<PathBuf> {
    let folder = match variable("APPDATA").filter(|_| cfg!(windows)) {
        Some(data) => PathBuf::from(data),
        None => PathBuf::from(variable("HOME")?).join(".config"),
    };
    Some(folder.join(USER_FILE))
}

async fn of_metadata() -> Option<String> {
    let host = variable(METADATA_HOST).unwrap_or_else(|| USUAL_METADATA_HOST.to_owned());
    let client = reqwest::Client::builder().no_proxy().timeout(METADATA_WAIT).build().ok()?;
    let question =
        client.get(format!("http://{host}/{METADATA_PATH}")).header(FLAVOR.0, FLAVOR.1).send();
    let answer = question.await.ok()?.error_for_status().ok()?;
    // Some networks answer for every name.
    let theirs = answer.headers().get(FLAVOR.0).is_some_and(|it| it == FLAVOR.1);
    let text = if theirs { answer.text().await.ok()? } else { return None };
    Some(text.trim().to_owned()).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_credentials_names_its_project_or_the_one_that_pays() {
        let cases = [
            (r#"{"type":"service_account","project_id":"p","quota_project_id":"q"}"#, Some("p")),
            (r#"{"type":"authorized_user","quota_project_id":"q"}"#, Some("q")),
            (r#"{"project_id":""}"#, None),
            (r#"{"project_id":7}"#, None),
            ("no json", None),
        ];
        for (text, expected) in cases {
            assert_eq!(of_json(text).as_deref(), expected, "{text}");
        }
    }
}
