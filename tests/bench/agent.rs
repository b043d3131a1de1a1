//! One `crossdesk-cli agent` process, driven over its protocol.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::paths;
use crate::viewer::{ORIGIN, Viewers};

/// Longest wait for a reply.
const REPLY: Duration = Duration::from_secs(10);

/// Longest wait for the first picture: opening a file and proving a decoder.
const READY: Duration = Duration::from_secs(20);

/// Between two looks at `status`, as often as a caller might.
const POLL: Duration = Duration::from_millis(50);

/// Replies waiting to be read here; one request is out at a time.
const REPLIES: usize = 16;

/// How the agent brings pictures to viewers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    Compressed,
    Raw,
}

/// The process; dropping it ends it.
pub struct Agent {
    child: Child,
    input: ChildStdin,
    replies: Receiver<Value>,
    requests: u64,
    tickets: u64,
}

impl Agent {
    /// Starts the process and waits for its answer to `hello`.
    pub fn start(arguments: &[&str]) -> anyhow::Result<Self> {
        let mut child = Command::new(paths::CLI)
            .args(["agent", "--stdio"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", paths::CLI))?;
        let input = child.stdin.take().context("a piped input")?;
        let output = BufReader::new(child.stdout.take().context("a piped output")?);
        let (sender, replies) = sync_channel(REPLIES);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let Ok(reply) = serde_json::from_str(&line) else {
                    break;
                };
                if sender.send(reply).is_err() {
                    break;
                }
            }
        });
        let mut agent = Self {
            child,
            input,
            replies,
            requests: 0,
            tickets: 0,
        };
        agent.request("hello", json!({ "protocol": "crossdesk-automation/1" }))?;
        Ok(agent)
    }

    /// Starts the process on a looped file and waits for the first picture.
    pub fn playing(clip: &Path, path: Carries) -> anyhow::Result<Self> {
        let source = format!("file:{}", clip.display());
        let mut agent = Self::start(&["--video-ws", "--source", &source])?;
        let decode_path = match path {
            Carries::Compressed => "browser",
            Carries::Raw => "minirtc",
        };
        let session = json!({
            "device": "123456789", "mode": "observe", "display": 0,
            "decode_path": decode_path, "decoder": "software",
        });
        agent.request("connect", session)?;
        agent.until(READY, |status| status["state"] == "ready")?;
        Ok(agent)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Pictures decoded since the connection began.
    pub fn pictures(&mut self) -> anyhow::Result<u64> {
        let status = self.request("status", json!({}))?;
        status["frame_id"].as_u64().context("status without frame_id")
    }

    /// Opens `count` viewers and waits until pictures reach all of them.
    pub fn open(&mut self, count: usize) -> anyhow::Result<Viewers> {
        let mut viewers = Viewers::new();
        for _ in 0..count {
            let (ticket, view, session) = (self.token(), self.token(), self.token());
            let grant = json!({
                "ticket": ticket, "view": view, "view_generation": 1, "session": session,
                "origin": ORIGIN, "apps": false,
            });
            let opened = self.request("video_open", grant)?;
            let url = opened["url"].as_str().context("video_open without url")?;
            viewers.open(port_of(url)?, &ticket)?;
        }
        viewers.wait_for(if count == 0 { 0 } else { 10 })?;
        Ok(viewers)
    }

    /// Waits until no viewer is left.
    pub fn until_unwatched(&mut self) -> anyhow::Result<()> {
        self.request("video_revoke", json!({}))?;
        self.until(REPLY, |status| status["video_output"]["viewers"] == 0)
    }

    fn until(&mut self, limit: Duration, done: impl Fn(&Value) -> bool) -> anyhow::Result<()> {
        let end = Instant::now() + limit;
        loop {
            let status = self.request("status", json!({}))?;
            if done(&status) {
                return Ok(());
            }
            if status["state"] == "failed" || Instant::now() > end {
                bail!("status stays {status}");
            }
            // Nothing comes unasked, so this only lets time pass, unless the process ends.
            if let Err(std::sync::mpsc::RecvTimeoutError::Disconnected) = self.replies.recv_timeout(POLL) {
                bail!("the agent ended");
            }
        }
    }

    /// Sends one request and returns its result.
    pub fn request(&mut self, method: &str, mut fields: Value) -> anyhow::Result<Value> {
        self.requests += 1;
        fields["id"] = json!(self.requests);
        fields["method"] = json!(method);
        writeln!(self.input, "{fields}")?;
        let end = Instant::now() + REPLY;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let mut reply = self
                .replies
                .recv_timeout(left)
                .map_err(|_| anyhow!("no reply to {method}"))?;
            if reply["id"] != self.requests {
                continue;
            }
            if reply["ok"] != true {
                bail!("{method}: {}", reply["error"]);
            }
            return Ok(reply["result"].take());
        }
    }

    /// 32 base64url characters, each time others.
    fn token(&mut self) -> String {
        self.tickets += 1;
        token(self.tickets)
    }
}

/// 24 bytes in base64url made from a number; nobody else is to be kept out here.
pub fn token(number: u64) -> String {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn port_of(url: &str) -> anyhow::Result<u16> {
    let rest = url
        .strip_prefix("ws://127.0.0.1:")
        .context("an unexpected address")?;
    Ok(rest.split('/').next().unwrap_or(rest).parse()?)
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
