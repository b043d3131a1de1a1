//! The DTLS session below data channels and SRTP keys, and the check of the other side's certificate.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::{Config, Dtls, Output, SrtpProfile};

use super::certificate::{Certificate, digest};
use super::{DATAGRAM_BYTES, Failure};

/// First wait for an answer of the handshake; doubled with each repetition. Browsers begin with 50 ms: a lost flight
/// is otherwise most of the time that connecting takes.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const RETRIES: usize = 9;
/// The connection's own limit comes first.
const HANDSHAKE: Duration = Duration::from_secs(60);
/// Longest record read or written.
const RECORD_BYTES: usize = 17 * 1024;

/// What comes out of the session.
pub(super) enum Secured {
    /// A datagram for the wire.
    Packet(Bytes),
    /// Keys of SRTP, once.
    Keys(SrtpProfile, Vec<u8>),
    /// The handshake is done, and the other side is who the signaling said.
    Connected,
    /// Plain bytes for data channels.
    Data(Bytes),
    /// The other side said goodbye.
    Closed,
}

/// One DTLS session.
pub(super) struct Secure {
    dtls: Dtls,
    client: bool,
    accepted: Vec<[u8; 32]>,
    verified: bool,
    outputs: VecDeque<Secured>,
    deadline: Option<Instant>,
    buffer: Vec<u8>,
}

impl Secure {
    /// A session with whoever has a certificate of one of the digests `accepted`.
    pub(super) fn new(
        certificate: &Certificate,
        client: bool,
        accepted: Vec<[u8; 32]>,
        now: Instant,
    ) -> Result<Self, Failure> {
        let config = Config::builder()
            .mtu(DATAGRAM_BYTES)
            .flight_start_rto(FIRST_RETRY)
            .flight_retries(RETRIES)
            .handshake_timeout(HANDSHAKE)
            // ICE has checked the address already.
            .use_server_cookie(false)
            .build();
        let config = config.map_err(|error| Failure::Dtls(error.to_string()))?;
        let mut dtls = Dtls::new_auto(Arc::new(config), certificate.dtls.clone(), now);
        dtls.set_active(client);
        Ok(Self {
            dtls,
            client,
            accepted,
            verified: false,
            outputs: VecDeque::new(),
            deadline: None,
            buffer: vec![0; RECORD_BYTES],
        })
    }

    pub(super) fn is_client(&self) -> bool {
        self.client
    }

    /// Takes a datagram of the wire.
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &[u8]) -> Result<(), Failure> {
        self.dtls.handle_timeout(now).map_err(failure)?;
        self.collect()?;
        self.dtls.handle_packet(packet).map_err(failure)?;
        self.collect()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> Result<(), Failure> {
        self.dtls.handle_timeout(now).map_err(failure)?;
        self.collect()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Sends plain bytes; only after the handshake.
    pub(super) fn send(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.dtls.send_application_data(data).map_err(failure)?;
        self.collect()
    }

    /// Says goodbye.
    pub(super) fn close(&mut self) {
        // Whoever leaves has no use for an error.
        if self.dtls.close().is_ok() {
            let _ = self.collect();
        }
    }

    pub(super) fn poll(&mut self) -> Option<Secured> {
        self.outputs.pop_front()
    }

    /// Takes everything out; the session keeps few packets of its own.
    fn collect(&mut self) -> Result<(), Failure> {
        loop {
            let output = match self.dtls.poll_output(&mut self.buffer) {
                Output::Timeout(at) => {
                    self.deadline = Some(at);
                    return Ok(());
                }
                Output::BufferTooSmall { needed } => {
                    self.buffer.resize(needed, 0);
                    continue;
                }
                Output::PeerCert(certificate) => {
                    if !self.accepted.contains(&digest(certificate)) {
                        return Err(Failure::WrongFingerprint);
                    }
                    self.verified = true;
                    continue;
                }
                Output::Packet(packet) => Secured::Packet(Bytes::copy_from_slice(packet)),
                Output::KeyingMaterial(keys, profile) => Secured::Keys(profile, keys.to_vec()),
                Output::Connected if !self.verified => return Err(Failure::WrongFingerprint),
                Output::Connected => Secured::Connected,
                Output::ApplicationData(data) => Secured::Data(Bytes::copy_from_slice(data)),
                Output::CloseNotify => Secured::Closed,
                _ => continue,
            };
            self.outputs.push_back(output);
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn failure(error: dimpl::Error) -> Failure {
    Failure::Dtls(error.to_string())
}
