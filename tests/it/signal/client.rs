//! A WebSocket client with what hosts and guests say.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme,
    StreamOwned,
};
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
        let provider = Arc::new(ring::default_provider());
        let verifier = Pinned {
            fingerprint: fingerprint.to_owned(),
            provider: Arc::clone(&provider),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider's versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let name = ServerName::from(address.ip());
        let session = ClientConnection::new(Arc::new(config), name).expect("a client");
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

/// Trusts one certificate.
#[derive(Debug)]
struct Pinned {
    fingerprint: String,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let digest = Sha256::digest(certificate.as_ref());
        let pairs: Vec<String> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
        if pairs.join(":") == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
