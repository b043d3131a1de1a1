//! A `crossdesk-cli signal` process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process};

use super::client::{PATIENCE, Peer};
use crate::support::TempDir;

const CLI: &str = env!("CARGO_BIN_EXE_crossdesk-cli");

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    log: Option<JoinHandle<String>>,
    address: SocketAddr,
    fingerprint: Option<String>,
    data: TempDir,
    arguments: Vec<String>,
}

impl Server {
    /// Without TLS; `name` is unique in the test run.
    pub fn plain(name: &str) -> Self {
        Self::start(TempDir::new(name), vec!["--plain".to_owned()])
    }

    /// Without TLS, and with more arguments.
    pub fn plain_with(name: &str, arguments: &[&str]) -> Self {
        let arguments = ["--plain"].iter().chain(arguments).map(|text| (*text).to_owned());
        Self::start(TempDir::new(name), arguments.collect())
    }

    /// With a certificate of its own.
    pub fn tls(name: &str) -> Self {
        Self::start(TempDir::new(name), Vec::new())
    }

    /// Without TLS, with a TURN server whose secret is on descriptor 3.
    pub fn with_turn(name: &str, secret: &str) -> Self {
        let data = TempDir::new(name);
        std::fs::write(data.path().join("secret"), secret).expect("a writable folder");
        let arguments = [
            "--plain",
            "--turn",
            "turn:turn.example.net",
            "--turn-secret-fd",
            "3",
        ];
        Self::start(data, arguments.map(str::to_owned).to_vec())
    }

    fn start(data: TempDir, arguments: Vec<String>) -> Self {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start_at(anywhere, data, arguments)
    }

    fn start_at(listen: SocketAddr, data: TempDir, arguments: Vec<String>) -> Self {
        let folder = data.path().to_str().expect("UTF-8 paths");
        // The shell is replaced by the server: the process id stays, and descriptor 3 is inherited.
        let script = if arguments.iter().any(|argument| argument == "--turn-secret-fd") {
            "exec \"$@\" 3<\"$0/secret\""
        } else {
            "exec \"$@\""
        };
        let mut child = Command::new("sh")
            .args([
                "-c",
                script,
                folder,
                CLI,
                "signal",
                "--listen",
                &listen.to_string(),
            ])
            .args(["--data", folder])
            .args(&arguments)
            .env("CROSSDESK_LOG", "trace")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let log = collect(child.stderr.take().expect("a piped log"));
        let mut lines = BufReader::new(child.stdout.take().expect("a piped output")).lines();
        let mut line = || lines.next().expect("a line").expect("text");
        let first = line();
        let (scheme, address) = first
            .strip_prefix("listening on ")
            .and_then(|url| url.split_once("://"))
            .expect("an address");
        let fingerprint = (scheme == "wss").then(|| {
            let line = line();
            line.strip_prefix("fingerprint sha256 ")
                .expect("a fingerprint")
                .to_owned()
        });
        Self {
            child,
            log: Some(log),
            address: address.parse().expect("an address"),
            fingerprint,
            data,
            arguments,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn fingerprint(&self) -> &str {
        self.fingerprint.as_deref().expect("a server with TLS")
    }

    pub fn data(&self) -> &str {
        self.data.path().to_str().expect("UTF-8 paths")
    }

    /// A connected client that trusts the printed fingerprint.
    pub fn peer(&self) -> Peer {
        match &self.fingerprint {
            None => Peer::plain(self.address),
            Some(fingerprint) => Peer::pinned(self.address, fingerprint).expect("the pinned certificate"),
        }
    }

    /// What the page at `path` says, headers included.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("a listening server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).expect("an open socket");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// Asks it to end.
    pub fn terminate(self) -> Ending {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("a running process");
        Ending(self)
    }

    /// Ends it; its log.
    pub fn stop(self) -> String {
        let mut ending = self.terminate();
        ending.0.child.wait().expect("its status");
        let log = ending.0.log.take().expect("collected once");
        log.join().expect("the log's thread")
    }

    /// Ends it and starts another on the same data and port.
    pub fn restart(mut self) -> Self {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("a running process");
        self.child.wait().expect("its status");
        let data = std::mem::replace(&mut self.data, TempDir::new("signal-restart-unused"));
        let arguments = std::mem::take(&mut self.arguments);
        Self::start_at(self.address, data, arguments)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that was asked to end.
pub struct Ending(Server);

impl Ending {
    pub fn wait(mut self) -> ExitStatus {
        self.0.child.wait().expect("its status")
    }
}

fn collect(mut log: ChildStderr) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).expect("a log in UTF-8");
        text
    })
}

/// Exit code and standard error of a start that fails.
pub fn refused(name: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let data = TempDir::new(name);
    let mut command = Command::new(CLI);
    command.arg("signal").args(arguments);
    if !arguments.contains(&"--data") {
        command.arg("--data").arg(data.path());
    }
    let Output { status, stderr, .. } = command.stdin(Stdio::null()).output().expect("the program");
    (status.code(), String::from_utf8(stderr).expect("UTF-8"))
}

/// What coturn computes for a user name.
pub fn hmac_sha1_base64(secret: &str, text: &str) -> String {
    use sha1::{Digest as _, Sha1};
    assert!(secret.len() <= 64, "longer keys are hashed first");
    let key = |pad: u8| {
        let mut block = [pad; 64];
        block
            .iter_mut()
            .zip(secret.bytes())
            .for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha1::new().chain_update(key(0x36)).chain_update(text).finalize();
    let outer = Sha1::new().chain_update(key(0x5c)).chain_update(inner).finalize();
    STANDARD.encode(outer)
}
