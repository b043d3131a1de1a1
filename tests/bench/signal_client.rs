//! Signaling clients that cost as little as a client can, and the server they talk to.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use crossdesk::transport::signaling::{Fingerprint, Trust, client_config};
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::paths;

/// Longest wait for anything the server owes.
const REPLY: Duration = Duration::from_secs(20);

/// A `crossdesk-cli signal` process with TLS; dropping it ends it.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    pub fingerprint: Fingerprint,
    data: PathBuf,
}

impl Server {
    /// Starts it without devices and without a limit on registrations.
    pub fn start() -> anyhow::Result<Self> {
        let data = std::env::temp_dir().join(format!("crossdesk-bench-signal-{}", std::process::id()));
        let mut child = Command::new(paths::CLI)
            .args([
                "signal",
                "--listen",
                "127.0.0.1:0",
                "--credential-quota",
                "1000000",
                "--data",
            ])
            .arg(&data)
            .env("CROSSDESK_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", paths::CLI))?;
        let output = child.stdout.take().context("a piped output")?;
        let mut lines = BufReader::new(output).lines();
        let mut after = |start: &str| -> anyhow::Result<String> {
            let line = lines.next().context("the server says too little")??;
            let rest = line.strip_prefix(start);
            Ok(rest.with_context(|| format!("not {start}: {line}"))?.to_owned())
        };
        let address = after("listening on wss://")?.parse()?;
        let fingerprint = after("fingerprint sha256 ")?.parse()?;
        Ok(Self {
            child,
            address,
            fingerprint,
            data,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Each fails only when there is nothing left to do.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

/// Lets this process open as many sockets as the system allows.
pub fn raise_descriptor_limit() -> anyhow::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Connects clients; they share one TLS configuration.
#[derive(Clone)]
pub struct Connector {
    tls: TlsConnector,
    address: SocketAddr,
}

impl Connector {
    pub fn new(server: &Server) -> anyhow::Result<Self> {
        let config = client_config(&Trust::Pinned(server.fingerprint))?.context("TLS")?;
        let mut config = ClientConfig::clone(&config);
        // Ten thousand strangers have nothing to resume.
        config.resumption = Resumption::disabled();
        let tls = TlsConnector::from(Arc::new(config));
        let address = server.address;
        Ok(Self { tls, address })
    }

    /// A connected client that is not logged in.
    pub async fn connect(&self) -> anyhow::Result<Client> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::from(self.address.ip());
        let mut stream = self.tls.connect(name, stream).await?;
        let request = format!(
            "GET / HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut client = Client {
            stream,
            input: Vec::new(),
        };
        client.skip_head().await?;
        Ok(client)
    }
}

/// One client.
pub struct Client {
    stream: TlsStream<TcpStream>,
    input: Vec<u8>,
}

impl Client {
    async fn skip_head(&mut self) -> anyhow::Result<()> {
        const END: &[u8] = b"\r\n\r\n";
        loop {
            if let Some(at) = self.input.windows(END.len()).position(|bytes| bytes == END) {
                anyhow::ensure!(
                    self.input.starts_with(b"HTTP/1.1 101 "),
                    "the upgrade was refused"
                );
                self.input.drain(..at + END.len());
                return Ok(());
            }
            self.read_more().await?;
        }
    }

    async fn read_more(&mut self) -> anyhow::Result<()> {
        if self.stream.read_buf(&mut self.input).await? == 0 {
            bail!("the server has closed the socket");
        }
        Ok(())
    }

    pub async fn say(&mut self, message: &Value) -> anyhow::Result<()> {
        let text = message.to_string();
        let mut frame = vec![0x81];
        match text.len() {
            short @ 0..126 => frame.push(0x80 | short as u8),
            long => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&u16::try_from(long)?.to_be_bytes());
            }
        }
        // A mask of zeros leaves the payload as it is.
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        self.stream.write_all(&frame).await?;
        Ok(self.stream.flush().await?)
    }

    /// The next message, however long it takes. Nothing is lost when the wait is given up.
    pub async fn listen(&mut self) -> anyhow::Result<Value> {
        loop {
            if let Some((header, length)) = frame(&self.input)
                && self.input.len() >= header + length
            {
                anyhow::ensure!(self.input[0] == 0x81, "the server has closed the socket");
                let message = serde_json::from_slice(&self.input[header..header + length]);
                self.input.drain(..header + length);
                self.input.shrink_to(1024);
                return Ok(message?);
            }
            self.read_more().await?;
        }
    }

    /// The next message, within the time a reply may take.
    pub async fn hear(&mut self) -> anyhow::Result<Value> {
        let message = tokio::time::timeout(REPLY, self.listen()).await;
        message.context("no reply")?
    }

    /// Logs in; what the server calls this client.
    pub async fn log_in(&mut self, claim: &str) -> anyhow::Result<String> {
        self.say(&serde_json::json!({ "type": "login", "user_id": claim }))
            .await?;
        let reply = self.hear().await?;
        anyhow::ensure!(reply["status"] == "success", "login: {reply}");
        Ok(reply["user_id"].as_str().context("no id")?.to_owned())
    }
}

/// Lengths of the header and of the payload at the front of `input`.
fn frame(input: &[u8]) -> Option<(usize, usize)> {
    match input.get(1)? {
        126 => {
            let length = input.get(2..4)?;
            Some((4, usize::from(u16::from_be_bytes([length[0], length[1]]))))
        }
        short => Some((2, usize::from(*short))),
    }
}
