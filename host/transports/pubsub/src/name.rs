//! The names of resources.

/// The full name of a topic that is spelled by id or in full.
pub(crate) fn topic(project: &str, spelled: &str) -> String {
    full(project, "topics", spelled)
}

/// The full name of a subscription that is spelled by id or in full.
pub(crate) fn subscription(project: &str, spelled: &str) -> String {
    full(project, "subscriptions", spelled)
}

fn full(project: &str, collection: &str, spelled: &str) -> String {
    if spelled.starts_with("projects/") {
        return spelled.to_owned();
    }
    format!("projects/{project}/{collection}/{spelled}")
}

/// The project of a full name.
pub(crate) fn project(spelled: &str) -> Option<&str> {
    let (project, _) = spelled.strip_prefix("projects/")?.split_once('/')?;
    Some(project).filter(|project| !project.is_empty())
}

/// The last part of a full name, or an id as it is.
pub(crate) fn id(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_belong_to_the_project_and_full_names_stay() {
        assert_eq!(topic("p", "t"), "projects/p/topics/t");
        assert_eq!(topic("p", "projects/q/topics/t"), "projects/q/topics/t");
        assert_eq!(subscription("p", "s"), "projects/p/subscriptions/s");
        assert_eq!(id("projects/q/topics/t"), "t");
        assert_eq!(id("t"), "t");
        assert_eq!(project("projects/q/topics/t"), Some("q"));
        for none in ["t", "projects/", "projects/q", "projects//topics/t"] {
            assert_eq!(project(none), None, "{none}");
        }
    }
}
