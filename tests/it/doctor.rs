//! `crossdesk-cli doctor` as a program sees it.

use std::process::{Command, Output};

use serde_json::Value;

fn doctor(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crossdesk-cli"))
        .arg("doctor")
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .expect("the program starts")
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON object on standard output")
}

fn candidate<'a>(report: &'a Value, name: &str) -> &'a Value {
    let candidates = report["candidates"].as_array().expect("a list of candidates");
    let found = candidates.iter().find(|candidate| candidate["name"] == name);
    found.expect("the candidate is listed")
}

#[test]
fn the_report_says_what_the_protocol_needs_to_know() {
    let output = doctor(&["--json"], &[]);
    assert!(output.status.success(), "{output:?}");
    let report = report(&output);
    assert_eq!(report["automation_protocol"], "crossdesk-automation/1");
    assert_eq!(report["automation_video_transport"], "loopback-websocket/1");
    assert_eq!(
        report["automation_video_protocols"],
        serde_json::json!(["h264-annexb/1", "nv12/1"])
    );
    assert_eq!(
        report["automation_video_decoders"],
        serde_json::json!(["auto", "software"])
    );
    assert_eq!(report["remote_viewing"], true);
    assert_eq!(report["loopback"]["listening"], true);
    for candidate in report["candidates"].as_array().expect("a list of candidates") {
        let installed = candidate["installed"].as_bool().expect("a truth value");
        assert_eq!(installed, candidate["plugin_version"].is_string(), "{candidate}");
    }
    let software = candidate(&report, "avdec_h264");
    // How fast it is depends on what else this machine does.
    assert!(["proven", "too slow"].contains(&software["verdict"].as_str().expect("a word")));
    assert_eq!(software["frames_held"], 0);
    assert_eq!(software["memory"], "system");
}

#[test]
fn with_every_decoder_switched_off_viewing_does_not_work() {
    let ranks = crossdesk_pipelines::plan::decoders::DECODERS
        .iter()
        .map(|row| format!("{}:NONE", row.factory))
        .collect::<Vec<_>>()
        .join(",");
    let output = doctor(&["--json"], &[("GST_PLUGIN_FEATURE_RANK", &ranks)]);
    assert_eq!(output.status.code(), Some(3));
    let report = report(&output);
    assert_eq!(report["remote_viewing"], false);
    let fix = &candidate(&report, "avdec_h264")["fix"];
    assert_eq!(fix, "remove avdec_h264:NONE from GST_PLUGIN_FEATURE_RANK");
}

#[test]
fn the_table_has_no_colours_when_it_is_not_read_on_a_terminal() {
    let output = doctor(&[], &[("COLUMNS", "100")]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!text.contains('\x1b'));
    assert!(text.contains("Remote viewing works"));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_file_that_is_not_there_is_an_error_that_names_it() {
    let output = doctor(&["--bench", "no/such/file.mp4"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no/such/file.mp4"));
}

#[test]
fn what_is_no_recording_is_not_called_missing() {
    for (file, why) in [
        ("/dev/zero", "is not a regular file"),
        ("/", "is not a regular file"),
    ] {
        let output = doctor(&["--bench", file], &[]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{said}");
    }
}
