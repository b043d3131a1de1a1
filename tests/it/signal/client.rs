//! A WebSocket client with what hosts and guests say.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crossdesk::transport::signaling::{Trust, client_config};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};
use tungstenite::{Message, WebSocket};

/// Longest wait for anything the server owes; far above what it takes on a busy two-core machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// One client.
pub struct Peer(WebSocket<Box<dyn Stream>>);

impl Peer {
    /// Over plain WebSocket.
    pub fn plain(address: SocketAddr) -> Self {
        Self::try_plain(address).expect("an upgrade")
    }

    /// The same, when it may be refused.
    pub fn try_plain(address: SocketAddr) -> Result<Self, String> {
        Self::over(address, Box::new(connect(address)))
    }

    /// Over TLS, trusting the certificate with this fingerprint and no other.
    pub fn pinned(address: SocketAddr, fingerprint: &str) -> Result<Self, String> {
        let trust = Trust::Pinned(fingerprint.parse().expect("a fingerprint"));
        let config = client_config(&trust).expect("a configuration").expect("TLS");
        let name = ServerName::from(address.ip());
        let session = ClientConnection::new(config, name).expect("a client");
        Self::over(address, Box::new(StreamOwned::new(session, connect(address))))
    }

    fn over(address: SocketAddr, stream: Box<dyn Stream>) -> Result<Self, String> {
        let upgraded = tungstenite::client(format!("ws://{address}/"), stream);
        upgraded
            .map(|(socket, _)| Self(socket))
            .map_err(|error| error.to_string())
    }

    pub fn say(&mut self, message: &Value) {
        self.say_text(&message.to_string());
    }

    pub fn say_text(&mut self, text: &str) {
        self.0.send(Message::text(text)).expect("an open socket");
    }

    pub fn say_bytes(&mut self, bytes: &[u8]) {
        self.0
            .send(Message::binary(bytes.to_vec()))
            .expect("an open socket");
    }

    pub fn hear(&mut self) -> Value {
        match self.0.read().expect("an open socket") {
            Message::Text(text) => serde_json::from_str(&text).expect("JSON"),
            other => panic!("not a text: {other:?}"),
        }
    }

    /// Code and reason of the close frame that comes after any number of texts.
    pub fn close_after_texts(&mut self) -> (u16, String) {
        loop {
            match self.0.read().expect("a text or a close frame") {
                Message::Text(_) => {}
                Message::Close(Some(frame)) => return (frame.code.into(), frame.reason.to_string()),
                other => panic!("neither text nor close: {other:?}"),
            }
        }
    }

    /// Code and reason of the close frame that comes next.
    pub fn close(&mut self) -> (u16, String) {
        match self.0.read().expect("a close frame") {
            Message::Close(Some(frame)) => (frame.code.into(), frame.reason.to_string()),
            other => panic!("not a close: {other:?}"),
        }
    }

    /// Becomes a new device; its id and password.
    pub fn register(&mut self) -> String {
        let claim = self.log_in("");
        assert!(claim.contains('@'), "a password is told once");
        claim
    }

    /// The id the server knows this client by.
    pub fn log_in(&mut self, claim: &str) -> String {
        self.say(&json!({ "type": "login", "user_id": claim }));
        let reply = self.hear();
        assert_eq!(reply["status"], "success", "{reply}");
        reply["user_id"].as_str().expect("an id").to_owned()
    }

    pub fn join(&mut self, user: &str, host: &str) {
        self.say(&json!({ "type": "join_transmission", "user_id": user, "transmission_id": host }));
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a listening server");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream
}
