//! Logs of a whole process, as its standard error has them.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should say so at once")]

use std::process::{Command, Output};

use pumphouse_telemetry::{LogError, LogFormat, LogSettings, init_logs};

/// Set in the process that logs: the filter of its settings.
const CHILD: &str = "PUMPHOUSE_TEST_LOGS";

/// Runs the named test of this file as a process of its own.
fn child(test: &str, filter: &str, variable: Option<&str>) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(CHILD, filter).env_remove("RUST_LOG");
    if let Some(variable) = variable {
        command.env("RUST_LOG", variable);
    }
    command.output().unwrap()
}

/// What the process with its settings does.
fn log(filter: String) -> Result<(), LogError> {
    let settings = LogSettings { format: LogFormat::Auto, filter, ..LogSettings::default() };
    init_logs(&settings)?;
    tracing::debug!(attempt = 1, "detail");
    tracing::info!(attempt = 2, "lifecycle");
    assert!(matches!(init_logs(&settings), Err(LogError::SetUpAlready(_))));
    Ok(())
}

/// The messages of a child's lines, each of which is JSON because nobody sits at a terminal.
fn messages(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.map(|line| line.get("message").unwrap().as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_variable_takes_the_place_of_the_settings() {
    if let Ok(filter) = std::env::var(CHILD) {
        return log(filter).unwrap();
    }
    let seen = |filter, variable| {
        let output = child("the_variable_takes_the_place_of_the_settings", filter, variable);
        assert!(output.status.success(), "{output:?}");
        messages(&output)
    };
    assert_eq!(seen("info", None), ["lifecycle"]);
    assert_eq!(seen("info", Some("")), ["lifecycle"]);
    assert_eq!(seen("info", Some("debug")), ["detail", "lifecycle"]);
    assert_eq!(seen("debug", Some("warn")), [""; 0]);
}

#[test]
fn a_filter_that_is_not_valid_is_an_error_that_names_it_and_its_origin() {
    if let Ok(filter) = std::env::var(CHILD) {
        let error = log(filter).unwrap_err().to_string();
        return eprintln!("{error}");
    }
    let test = "a_filter_that_is_not_valid_is_an_error_that_names_it_and_its_origin";
    for (filter, variable, expected) in [
        ("info,x=loud", None, r#"log filter "info,x=loud" from the settings is not valid"#),
        ("info", Some("x=loud"), r#"log filter "x=loud" from RUST_LOG is not valid"#),
    ] {
        let output = child(test, filter, variable);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap().trim_end(), expected);
    }
}
