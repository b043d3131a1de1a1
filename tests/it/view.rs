//! `crossdesk-cli view` where no person is watching.

use std::process::{Command, Output};

fn view(source: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crossdesk-cli"))
        .args(["view", "--source", source])
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .output()
        .expect("the program starts")
}

#[test]
fn a_few_pictures_are_written_as_text_and_the_program_ends() {
    let output = view("test:?size=320x180&fps=30");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let titles: Vec<&str> = text.lines().filter(|line| line.starts_with("picture ")).collect();
    assert_eq!(titles.len(), 3, "{text}");
    assert!(titles.iter().all(|title| title.ends_with(", 320x180")), "{text}");
    assert_eq!(text.lines().count(), 3 * 25);
}

#[test]
fn errors_name_what_is_wrong_and_whose_it_is() {
    for (source, words, status) in [
        ("file:no/such/file.mp4", "no/such/file.mp4", 1),
        ("gopher://x", "--source", 2),
    ] {
        let output = view(source);
        assert_eq!(output.status.code(), Some(status), "{source}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(words),
            "{source}: {output:?}"
        );
        assert!(output.stdout.is_empty(), "{source}");
    }
}

#[test]
fn a_window_without_a_display_says_what_to_do_instead() {
    let output = Command::new(env!("CARGO_BIN_EXE_crossdesk-cli"))
        .args(["view", "--window", "--source", "test:"])
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("leave --window out"));
}
