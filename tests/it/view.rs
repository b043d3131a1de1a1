//! `crossdesk-cli view` where no person is watching.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use crate::support::rtsp::Server;

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
fn an_unknown_decoder_is_refused_before_anything_starts() {
    for command in [
        &["view", "--source", "test:"][..],
        &["agent", "--stdio", "--source", "test:"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_crossdesk-cli"))
            .args(command)
            .args(["--decoder", "nosuchdec"])
            .output()
            .expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("nosuchdec") && said.contains("avdec_h264"),
            "{said}"
        );
    }
}

/// Starts watching `source` as text and waits for the first line about it.
fn watching(source: &str) -> (Child, BufReader<ChildStderr>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_crossdesk-cli"))
        .args(["view", "--source", source])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    assert!(line(&mut said).contains("written as text"));
    (child, said)
}

fn line(said: &mut BufReader<ChildStderr>) -> String {
    let mut line = String::new();
    said.read_line(&mut line).expect("UTF-8");
    line
}

#[test]
fn a_network_source_that_is_not_there_yet_is_tried_again() {
    let server = Server::start(&[]);
    let (uri, port) = (server.uri(), format!("port={}", server.port));
    drop(server);
    let (mut child, mut said) = watching(&uri);
    let reason = line(&mut said);
    assert!(
        reason.starts_with("reconnecting, attempt 1: 127.0.0.1 port"),
        "{reason}"
    );
    let _back = Server::start(&[&port]);
    let mut text = String::new();
    let mut out = child.stdout.take().expect("a pipe");
    out.read_to_string(&mut text).expect("UTF-8");
    assert!(child.wait().expect("an end").success());
    assert!(text.starts_with("picture 1, 320x240"), "{text}");
}

#[test]
fn a_signal_ends_the_wait_for_a_picture_as_a_success() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let port = socket.local_addr().expect("an address").port();
    drop(socket);
    let (mut child, _said) = watching(&format!("rtp://127.0.0.1:{port}"));
    let killed = Command::new("kill").arg(child.id().to_string()).status();
    assert!(killed.expect("kill starts").success());
    assert_eq!(child.wait().expect("an end").code(), Some(0));
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

/// `view` of a remote desktop; the password is on descriptor 3.
#[cfg(target_os = "linux")]
fn view_device(device: &str, server: std::net::SocketAddr, password: &str) -> Output {
    Command::new("sh")
        .args([
            "-c",
            r#"printf '%s\n' "$SECRET" | { unset SECRET; exec "$0" "$@" 3<&0 </dev/null; }"#,
        ])
        .arg(env!("CARGO_BIN_EXE_crossdesk-cli"))
        .args(["view", device, "--plain", "--password-fd", "3"])
        .args(["--server", "127.0.0.1", "--port", &server.port().to_string()])
        .env("SECRET", password)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .output()
        .expect("the program starts")
}

#[cfg(target_os = "linux")]
#[test]
fn a_remote_desktop_is_watched_by_its_id() {
    use crate::support::host::Host;
    let server = crate::signal::process::Server::plain("view-device-server");
    let host = Host::start(
        "view-device-host",
        server.address(),
        &["--source", "test:?size=320x180&fps=30"],
    );
    let id = host.id();
    let spoken = format!("{} {} {}", &id[..3], &id[3..6], &id[6..]);
    let output = view_device(&spoken, server.address(), host.password());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(
        text.lines().filter(|line| line.ends_with(", 320x180")).count(),
        3,
        "{text}"
    );

    for (device, password, words) in [
        (id, "wrong1", "password is wrong"),
        ("999999999", host.password(), "password is wrong"),
        ("12345", host.password(), "nine digits"),
        ("123456789@secret", host.password(), "no part of an id"),
    ] {
        let output = view_device(device, server.address(), password);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(!said.contains("secret"), "{said}");
        assert!(said.contains(words), "{device}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_password_needs_a_terminal_or_a_descriptor() {
    let output = Command::new(env!("CARGO_BIN_EXE_crossdesk-cli"))
        .args(["view", "123456789", "--plain", "--server", "127.0.0.1"])
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("--password-fd") && said.contains("no terminal"),
        "{said}"
    );
}

/// `script` gives its command a terminal, which would show what is typed unless it is told not to.
#[cfg(target_os = "linux")]
#[test]
fn a_typed_password_is_not_shown_and_a_host_that_ends_is_told_of() {
    use std::io::Write as _;

    use crate::support::host::Host;
    let server = crate::signal::process::Server::plain("view-typed-server");
    let source = ["--source", "test:?size=320x180&fps=30"];
    let host = Host::start("view-typed-host", server.address(), &source);
    let command = format!(
        "stty cols 100 rows 30; '{}' view {} --plain --server 127.0.0.1 --port {}",
        env!("CARGO_BIN_EXE_crossdesk-cli"),
        host.id(),
        server.address().port()
    );
    let mut child = Command::new("script")
        .args(["-qefc", &command, "/dev/null"])
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script is installed");
    let mut out = child.stdout.take().expect("a pipe");
    let mut seen = String::new();
    let mut until = |word: &str| {
        let mut bytes = [0; 4096];
        while !seen.contains(word) {
            let count = out.read(&mut bytes).expect("a pipe");
            assert!(count > 0, "never {word:?}: {seen}");
            seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    };
    until("password of ");
    let mut keyboard = child.stdin.take().expect("a pipe");
    writeln!(keyboard, "{}\r", host.password()).expect("a pipe");
    until("320x180");
    let password = host.password().to_owned();
    host.stop();
    until("the host has ended the session\r\n");
    assert!(!seen.contains(&password));
    assert!(child.wait().expect("an end").success());
}
