//! A real `crossdesk-cli host` process.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::TempDir;

/// Longest wait for anything a host owes; far above what it takes on a busy two-core machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running host; killed when dropped.
pub struct Host {
    child: Child,
    notes: Receiver<String>,
    id: String,
    password: String,
    data: TempDir,
}

impl Host {
    /// One that is joinable through `server`; `name` is unique in the test run.
    pub fn start(name: &str, server: SocketAddr, arguments: &[&str]) -> Self {
        Self::start_in(TempDir::new(name), server, arguments)
    }

    /// The same with a data directory of an earlier one.
    pub fn start_in(data: TempDir, server: SocketAddr, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crossdesk-cli"))
            .args(["host", "--json", "--plain", "--server", &server.ip().to_string()])
            .args(["--port", &server.port().to_string(), "--data"])
            .arg(data.path())
            .args(arguments)
            .env("CROSSDESK_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let (tell, notes) = channel();
        // A test that is over listens no more.
        thread::spawn(move || {
            stderr
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| tell.send(line))
        });
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        stdout.read_line(&mut line).expect("text");
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let notes: Vec<String> = notes.iter().collect();
            panic!("the host is not joinable: {notes:?}")
        });
        let text = |name: &str| told[name].as_str().expect("a text").to_owned();
        Self {
            id: text("id"),
            password: text("password"),
            child,
            notes,
            data,
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn password(&self) -> &str {
        &self.password
    }

    /// Waits for a line on standard error that contains `word`.
    pub fn note(&self, word: &str) -> String {
        loop {
            let line = self.notes.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("the host says nothing of {word:?}"));
            if line.contains(word) {
                return line;
            }
        }
    }

    /// Asks it to end and waits.
    pub fn stop(mut self) -> (ExitStatus, TempDir) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("a running process");
        let status = self.child.wait().expect("its status");
        let data = std::mem::replace(&mut self.data, TempDir::new("host-stopped"));
        (status, data)
    }

    /// Ends it without a goodbye, as a power cut does.
    pub fn kill(&mut self) {
        self.child.kill().expect("a running process");
        self.child.wait().expect("its status");
    }

    /// Waits for its own end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("its status")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
