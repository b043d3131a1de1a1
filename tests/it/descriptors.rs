//! Descriptors as some parents hand them down: never read, in non-blocking mode, a pipe where a file belongs.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
use serde_json::{Value, json};

use crate::support::TempDir;
use crate::support::agent::Launch;

/// Longest wait for anything here; far above what it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

const HELLO: &[u8] = b"{\"id\":1,\"method\":\"hello\",\"protocol\":\"crossdesk-automation/1\"}\n";

/// An agent that is killed with the test.
struct Running(Child);

impl Running {
    fn start(stdin: impl Into<Stdio>, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crossdesk-cli"));
        command
            .args(["agent", "--stdio", "--source", "test:?size=320x240&fps=30"])
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr);
        Self(command.spawn().expect("the agent starts"))
    }

    /// Its end, or a kill and a panic when it does not come.
    fn wait(mut self) -> ExitStatus {
        let (ended, end) = channel();
        let pid = rustix::process::Pid::from_child(&self.0);
        let waiting = thread::spawn(move || {
            let status = self.0.wait().expect("our own child");
            ended.send(()).expect("the test waits");
            status
        });
        let timely = end.recv_timeout(PATIENCE);
        if timely.is_err() {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("our own child");
        }
        let status = waiting.join().expect("no panic");
        assert!(timely.is_ok(), "the agent did not end");
        status
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already ended is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn set_mode(end: impl AsFd, mode: OFlags) {
    rustix::fs::fcntl_setfl(end, mode).expect("pipes have modes");
}

/// A pipe into which nothing more fits.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().expect("pipes are available");
    set_mode(&writer, OFlags::NONBLOCK);
    while writer.write(&[b'.'; 4096]).is_ok() {}
    set_mode(&writer, OFlags::empty());
    (reader, writer)
}

/// Lines of a stream, read on a thread so that waiting for one has an end.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    thread::spawn(move || {
        let mut all = BufReader::new(stream).lines().map_while(Result::ok);
        all.try_for_each(|line| send.send(line))
    });
    lines
}

fn next(lines: &Receiver<String>) -> Value {
    let line = lines.recv_timeout(PATIENCE).expect("the agent owes a line");
    serde_json::from_str(&line).expect("JSON")
}

#[test]
fn an_unread_standard_error_costs_the_log_only() {
    let (_unread, full) = full_pipe();
    let mut agent = Running::start(Stdio::piped(), Stdio::piped(), full);
    let mut stdin = agent.0.stdin.take().expect("piped");
    let replies = lines(agent.0.stdout.take().expect("piped"));
    let connect =
        json!({"id": 1, "method": "connect", "device": "123456789", "mode": "observe", "display": 0});
    writeln!(stdin, "{connect}").expect("it reads");
    assert_eq!(next(&replies)["ok"], true);
    // The generated desktop logs which encoder it tries before its first picture.
    let shot = json!({"id": 2, "method": "screenshot", "timeout_ms": 5000});
    writeln!(stdin, "{shot}").expect("it reads");
    let reply = next(&replies);
    assert_eq!(reply["ok"], true, "{reply}");
    drop(stdin);
    assert_eq!(agent.wait().code(), Some(0));
}

#[test]
fn an_error_nobody_reads_does_not_keep_the_process() {
    let (_unread, full) = full_pipe();
    let (gone, stdout) = pipe().expect("pipes are available");
    drop(gone);
    let mut agent = Running::start(Stdio::piped(), stdout, full);
    let mut stdin = agent.0.stdin.take().expect("piped");
    stdin.write_all(HELLO).expect("it reads");
    assert_eq!(agent.wait().code(), Some(1));
}

#[test]
fn pipes_in_non_blocking_mode_are_waited_for() {
    let (stdin, mut requests) = pipe().expect("pipes are available");
    let (replies, stdout) = pipe().expect("pipes are available");
    set_mode(&stdin, OFlags::NONBLOCK);
    set_mode(&stdout, OFlags::NONBLOCK);
    let agent = Running::start(stdin, stdout, Stdio::inherit());
    requests.write_all(HELLO).expect("room for a line");
    let mut replies = BufReader::new(replies);
    let mut hello = String::new();
    // It has found its standard input empty by the time its answer is read, or is about to.
    replies.read_line(&mut hello).expect("an answer");
    assert!(hello.starts_with("{\"id\":1,\"ok\":true"), "{hello}");
    // Far more answers than the pipe takes while nobody reads it.
    const STATUSES: usize = 300;
    for id in 0..STATUSES {
        writeln!(requests, "{{\"id\":{id},\"method\":\"status\"}}").expect("it reads");
    }
    drop(requests);
    let answers = replies.lines().map_while(Result::ok).count();
    assert_eq!(answers, STATUSES);
    assert_eq!(agent.wait().code(), Some(0));
}

#[test]
fn a_pipe_in_place_of_the_log_file_costs_the_log_only() {
    let dir = TempDir::new("log-pipe");
    let made = Command::new("mkfifo").arg(dir.path().join("agent.log")).status();
    assert!(made.expect("mkfifo is there").success());
    let path = dir.path().display().to_string();
    let mut agent = Launch::new("log-pipe-agent", "test:?size=320x240&fps=30")
        .arg("--log-dir")
        .arg(path)
        .spawn();
    agent.ready();
    agent.call("exit", &json!({}));
    assert_eq!(agent.wait().0.code(), Some(0));
    assert!(agent.take_errors().contains("no log is written"));
}
