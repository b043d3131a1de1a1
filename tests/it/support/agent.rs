//! A real `crossdesk-cli agent` process, driven over its pipes.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::TempDir;

/// Longest wait for anything the agent owes; far above what it takes on a busy two-core machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How an agent is started.
pub struct Launch {
    args: Vec<String>,
    env: Vec<(String, String)>,
    password: Option<String>,
    name: String,
}

impl Launch {
    /// An agent on `source` with a password on descriptor 3; `name` is unique in the test run.
    pub fn new(name: &str, source: &str) -> Self {
        let args = ["agent", "--stdio", "--password-fd", "3", "--source", source];
        Self {
            args: args.map(str::to_owned).to_vec(),
            env: Vec::new(),
            password: Some("correct horse\n".to_owned()),
            name: name.to_owned(),
        }
    }

    /// An agent that finds a device through the signaling server at `server`.
    pub fn remote(name: &str, server: SocketAddr) -> Self {
        let (host, port) = (server.ip().to_string(), server.port().to_string());
        let args = [
            "agent",
            "--stdio",
            "--password-fd",
            "3",
            "--plain",
            "--server",
            &host,
            "--port",
            &port,
        ];
        Self {
            args: args.map(str::to_owned).to_vec(),
            env: Vec::new(),
            password: None,
            name: name.to_owned(),
        }
    }

    /// One more argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// One more environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// What descriptor 3 holds; `None` leaves it closed.
    pub fn password(mut self, password: Option<&str>) -> Self {
        self.password = password.map(str::to_owned);
        self
    }

    /// Starts it.
    pub fn spawn(self) -> Agent {
        let dir = TempDir::new(&self.name);
        let mut command = Command::new("sh");
        // The shell is replaced by the agent: the process id stays, and descriptor 3 is inherited.
        let script = if self.password.is_some() {
            r#"exec "$0" "$@" 3<"$PASSWORD_FILE""#
        } else {
            r#"exec "$0" "$@" 3<&-"#
        };
        command
            .arg("-c")
            .arg(script)
            .arg(env!("CARGO_BIN_EXE_crossdesk-cli"))
            .args(&self.args);
        if let Some(password) = &self.password {
            let file = dir.path().join("password");
            std::fs::write(&file, password).expect("the test directory is writable");
            command.env("PASSWORD_FILE", file);
        }
        command
            .envs(self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("a shell starts");
        let stdin = child.stdin.take();
        let (lines_in, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let gate = Arc::new(Mutex::new(()));
        let passed = Arc::clone(&gate);
        thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| {
                drop(passed.lock());
                lines_in.send(line)
            })
        });
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let errors = thread::spawn(move || {
            stderr
                .lines()
                .map_while(Result::ok)
                .collect::<Vec<_>>()
                .join("\n")
        });
        Agent {
            child,
            stdin,
            lines,
            errors: Some(errors),
            gate,
            next_id: 1,
            waiting: Vec::new(),
            _dir: dir,
        }
    }
}

/// A running agent.
pub struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Option<thread::JoinHandle<String>>,
    /// Held while nobody may read stdout.
    gate: Arc<Mutex<()>>,
    next_id: u64,
    waiting: Vec<Value>,
    /// Holds the password file.
    _dir: TempDir,
}

impl Agent {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes to its stdin.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is still open");
        stdin.write_all(bytes).expect("the agent reads its stdin");
        stdin.flush().expect("the agent reads its stdin");
    }

    /// Sends a request without waiting; returns its id.
    pub fn send(&mut self, method: &str, args: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let mut request = json!({"id": id, "method": method});
        if let (Some(request), Some(args)) = (request.as_object_mut(), args.as_object()) {
            request.extend(args.clone());
        }
        self.write(format!("{request}\n").as_bytes());
        id
    }

    /// The next line on stdout, raw.
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("the agent owes a line"),
            Err(RecvTimeoutError::Disconnected) => panic!("the agent ended: {}", self.take_errors()),
        }
    }

    /// The reply to request `id`; others are kept for later.
    pub fn reply(&mut self, id: u64) -> Value {
        if let Some(place) = self.waiting.iter().position(|reply| reply["id"] == id) {
            return self.waiting.swap_remove(place);
        }
        loop {
            let line = self.line();
            let reply: Value = serde_json::from_str(&line).expect("stdout carries JSON lines only");
            if reply["id"] == id {
                return reply;
            }
            self.waiting.push(reply);
        }
    }

    /// Sends a request and returns its reply, whatever it is.
    pub fn call(&mut self, method: &str, args: &Value) -> Value {
        let id = self.send(method, args);
        self.reply(id)
    }

    /// Sends a request and returns its result.
    pub fn ok(&mut self, method: &str, args: &Value) -> Value {
        let reply = self.call(method, args);
        assert_eq!(reply["ok"], true, "{method}: {reply}");
        reply["result"].clone()
    }

    /// Sends a request and returns the code of its error.
    pub fn error(&mut self, method: &str, args: &Value) -> String {
        let reply = self.call(method, args);
        assert_eq!(reply["ok"], false, "{method}: {reply}");
        reply["error"]["code"].as_str().expect("a code").to_owned()
    }

    /// `connect` in observe mode.
    pub fn connect(&mut self) -> Value {
        self.ok(
            "connect",
            &json!({"device": "123456789", "mode": "observe", "display": 0}),
        )
    }

    /// Polls `status` until `done`; the poll itself is the wait, paced by the agent's replies.
    pub fn status_when(&mut self, what: &str, done: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let status = self.ok("status", &json!({}));
            if done(&status) {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "never {what}: {status}");
            thread::yield_now();
        }
    }

    /// Connects and polls until pictures are here.
    pub fn ready(&mut self) -> Value {
        self.connect();
        self.status_when("ready", |status| status["state"] == "ready")
    }

    /// Closes its stdin.
    pub fn close_stdin(&mut self) {
        drop(self.stdin.take());
    }

    /// Waits for its end; what it still wrote is dropped.
    pub fn wait(&mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        // stdout ends with the process, so this wakes at once and never polls.
        while self.lines.recv_timeout(PATIENCE).is_ok() {}
        let status = self.child.wait().expect("our own child");
        (status, start.elapsed())
    }

    /// Stops reading its stdout for as long as the guard lives.
    pub fn gate(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.gate)
    }

    /// Waits for its end while its stdout is not read.
    pub fn wait_unread(&mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        // Our stdin must stay open: its end would be another reason to stop.
        let stdin = self.stdin.take();
        let status = self.child.wait().expect("our own child");
        drop(stdin);
        (status, start.elapsed())
    }

    /// Everything it wrote to stderr; call it after its end.
    pub fn take_errors(&mut self) -> String {
        self.errors
            .take()
            .map(|errors| errors.join().expect("no panic"))
            .unwrap_or_default()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Already ended is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
