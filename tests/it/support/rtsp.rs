//! A real RTSP server as a process beside the test.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

/// A server process that ends with this value.
pub struct Server {
    child: Child,
    _lifeline: ChildStdin,
    /// Where it listens on 127.0.0.1.
    pub port: u16,
}

impl Server {
    /// Starts the example `rtsp-server` with these arguments.
    pub fn start(arguments: &[&str]) -> Self {
        let mut path: PathBuf = std::env::current_exe().unwrap();
        path.pop();
        path.pop();
        path.push("examples/rtsp-server");
        let mut child = Command::new(&path)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; build it with --examples", path.display()));
        let lifeline = child.stdin.take().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().parse().expect("the server prints its port");
        Self {
            child,
            _lifeline: lifeline,
            port,
        }
    }

    /// The address of its stream.
    pub fn uri(&self) -> String {
        format!("rtsp://127.0.0.1:{}/live", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
