//! The peer: what applications call. How inputs become outputs is in `drive`.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossdesk_core::time::Monotonic;
use is::{Candidate, IceAgent, IceCreds};

use super::CandidateIgnored;
use super::candidate;
use super::channels::{ChannelId, Channels, SendRefused};
use super::config::Config;
use super::dcep::ChannelConfig;
use super::event::{Event, Path, Transmit};
use super::media::{Media, OutgoingUnit, UnitRefused};
use super::negotiate::{Local, NegotiationError, Plan, Remote};
use super::random::Random;
use super::sdp::{self, Setup};
use super::secure::Secure;
use super::srtp::Srtp;
use super::stats::PeerStats;

/// Most candidates of the other side, with those that wait for its description.
const MAX_REMOTE_CANDIDATES: usize = 64;
/// Pairs of addresses that are tried.
const MAX_PAIRS: usize = 100;
/// Bytes that wait for the sockets: beyond, units are refused. Two key frames of 4K.
const MAX_WAITING_BYTES: usize = 1024 * 1024;
/// Least time between two checks of ICE, and its retransmissions: a pair that fails is tried anew after 15 s at most.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
const MAX_STUN_RTO: Duration = Duration::from_millis(1500);
const STUN_RETRANSMITS: usize = 6;

/// Where the exchange of descriptions stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchange {
    Fresh,
    Offered,
    Done,
}

/// Turns our time into that of the parts and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeline {
    epoch: Instant,
    start: Monotonic,
}

impl Timeline {
    pub(super) fn instant(self, now: Monotonic) -> Instant {
        self.epoch + now.since(self.start)
    }

    pub(super) fn monotonic(self, at: Instant) -> Monotonic {
        self.start + at.saturating_duration_since(self.epoch)
    }
}

/// One end of a WebRTC connection.
///
/// Call `handle_*` with whatever came, then [`poll_event`](Self::poll_event) and
/// [`poll_transmit`](Self::poll_transmit) until both give nothing, then wait for input or
/// [`next_deadline`](Self::next_deadline).
pub struct Peer {
    pub(super) config: Config,
    pub(super) random: Random,
    pub(super) time: Timeline,
    pub(super) now: Monotonic,
    pub(super) agent: IceAgent,
    pub(super) plan: Option<Plan>,
    pub(super) remote: Option<Remote>,
    pub(super) exchange: Exchange,
    offering: bool,
    session: u64,
    version: u64,
    early_candidates: Vec<Candidate>,
    remote_candidates: usize,
    /// Addresses that proved by ICE that they belong to the other side.
    pub(super) known: VecDeque<SocketAddr>,
    pub(super) path: Option<Path>,
    pub(super) secure: Option<Secure>,
    pub(super) srtp: Option<Srtp>,
    pub(super) channels: Channels,
    pub(super) media: Option<Media>,
    pub(super) connected: bool,
    pub(super) over: bool,
    /// When waiting for a connection, or for its return, ends.
    pub(super) patience: Option<Monotonic>,
    pub(super) interrupted: bool,
    /// When the other side was last heard.
    pub(super) heard: Monotonic,
    pub(super) ice_deadline: Option<Monotonic>,
    pub(super) events: VecDeque<Event>,
    pub(super) waiting: VecDeque<Transmit>,
    pub(super) waiting_bytes: usize,
    /// Something was polled or changed that may let more out.
    pub(super) stale: bool,
    pub(super) stats: PeerStats,
    pub(super) sampled: (Monotonic, u64, u64),
}

impl Peer {
    /// A peer that has neither offered nor answered.
    pub fn new(now: Monotonic, config: Config) -> Self {
        let mut random = Random::new(config.seed.clone());
        let mut agent = IceAgent::new(credentials(&mut random));
        agent.set_control_tie_breaker(random.u64());
        agent.set_max_candidate_pairs(MAX_PAIRS);
        agent.set_timing_advance(CHECK_INTERVAL);
        agent.set_max_stun_rto(MAX_STUN_RTO);
        agent.set_max_stun_retransmits(STUN_RETRANSMITS);
        let time = Timeline {
            epoch: config.epoch,
            start: now,
        };
        Self {
            session: random.u64(),
            random,
            time,
            now,
            agent,
            plan: None,
            remote: None,
            exchange: Exchange::Fresh,
            offering: false,
            version: 0,
            early_candidates: Vec::new(),
            remote_candidates: 0,
            known: VecDeque::new(),
            path: None,
            secure: None,
            srtp: None,
            channels: Channels::new(),
            media: None,
            connected: false,
            over: false,
            patience: None,
            interrupted: false,
            heard: now,
            ice_deadline: None,
            events: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            stale: false,
            stats: PeerStats::default(),
            sampled: (now, 0, 0),
            config,
        }
    }

    /// Begins as the side that offers and returns the offer. Candidates added before are in it.
    ///
    /// # Errors
    /// When descriptions were exchanged already.
    pub fn offer(&mut self, now: Monotonic) -> Result<String, NegotiationError> {
        if self.exchange != Exchange::Fresh {
            return Err(NegotiationError::WrongState);
        }
        self.now = now;
        self.offering = true;
        self.agent.set_controlling(true);
        self.plan = Some(Plan::offer(&self.config, &mut self.random));
        self.exchange = Exchange::Offered;
        Ok(self.describe(Setup::ActPass))
    }

    /// Takes the answer to the offer.
    ///
    /// # Errors
    /// When it is no answer to it, or leaves nothing to use.
    pub fn handle_answer(&mut self, now: Monotonic, sdp: &str) -> Result<(), NegotiationError> {
        let (Exchange::Offered, Some(plan)) = (self.exchange, &self.plan) else {
            return Err(NegotiationError::WrongState);
        };
        let answer = sdp::parse(sdp)?;
        let mut plan = plan.clone();
        plan.accept(&answer)?;
        let remote = plan.remote(&answer)?;
        let client = match remote.setup {
            Some(Setup::Active) | None => false,
            Some(Setup::Passive) => true,
            Some(Setup::ActPass) => return Err(NegotiationError::SetupConflict),
        };
        self.agree(now, plan, remote, client)
    }

    /// Takes an offer and returns the answer; a later offer of the same connection restarts ICE.
    ///
    /// # Errors
    /// When it cannot be read, or has nothing that this side can use.
    pub fn handle_offer(&mut self, now: Monotonic, sdp: &str) -> Result<String, NegotiationError> {
        if self.offering {
            return Err(NegotiationError::WrongState);
        }
        let offer = sdp::parse(sdp)?;
        let plan = match &self.plan {
            Some(plan) if plan.slots.len() == offer.sections.len() => plan.clone(),
            Some(_) => return Err(NegotiationError::OtherSections),
            None => Plan::answer(&self.config, &offer, &mut self.random)?,
        };
        let remote = plan.remote(&offer)?;
        if let Some(before) = &self.remote
            && before.ufrag != remote.ufrag
        {
            let fresh = credentials(&mut self.random);
            self.agent.ice_restart(fresh, true);
        }
        // The first to speak saves half a round trip.
        let client = !matches!(remote.setup, Some(Setup::Active));
        self.agree(now, plan, remote, client)?;
        self.description().ok_or(NegotiationError::WrongState)
    }

    /// Asks for other addresses on the same connection: a new offer, whose answer
    /// [`handle_answer`](Self::handle_answer) takes. Media flow on meanwhile.
    ///
    /// # Errors
    /// On the side that answers, and before the first answer.
    pub fn restart_ice(&mut self, now: Monotonic) -> Result<String, NegotiationError> {
        if !self.offering || self.exchange != Exchange::Done || self.over {
            return Err(NegotiationError::WrongState);
        }
        self.now = now;
        let fresh = credentials(&mut self.random);
        self.agent.ice_restart(fresh, true);
        self.remote_candidates = 0;
        self.exchange = Exchange::Offered;
        self.patience = Some(now + self.config.connect_timeout);
        Ok(self.describe(Setup::ActPass))
    }

    /// This side's latest description with all candidates found so far; `None` before there is one.
    pub fn description(&mut self) -> Option<String> {
        self.plan.as_ref()?;
        let setup = match (self.exchange, &self.secure) {
            (Exchange::Done, Some(secure)) if !self.offering && secure.is_client() => Setup::Active,
            (Exchange::Done, Some(_)) if !self.offering => Setup::Passive,
            _ => Setup::ActPass,
        };
        Some(self.describe(setup))
    }

    /// The name of the section that candidates are signaled with; `None` before there is a description.
    pub fn candidate_mid(&self) -> Option<&str> {
        self.plan.as_ref()?.first_mid()
    }

    /// Adds the address of a UDP socket and returns the line to signal; `None` when it is of no use.
    pub fn add_host_candidate(&mut self, socket: SocketAddr) -> Option<String> {
        self.add_local(Candidate::host(socket, "udp").ok()?)
    }

    /// Adds the address at which a STUN server sees `socket`.
    pub fn add_reflexive_candidate(&mut self, address: SocketAddr, socket: SocketAddr) -> Option<String> {
        self.add_local(Candidate::server_reflexive(address, socket, "udp").ok()?)
    }

    /// Adds the address that a TURN server relays for `socket`; what goes out from it has it as
    /// [`Transmit::local`].
    pub fn add_relayed_candidate(&mut self, address: SocketAddr, socket: SocketAddr) -> Option<String> {
        self.add_local(Candidate::relayed(address, socket, "udp").ok()?)
    }

    /// Takes a candidate of the other side, with or without `a=` and `candidate:`; it may come before the description.
    ///
    /// # Errors
    /// When it is of no use; the connection is not harmed.
    pub fn add_remote_candidate(&mut self, now: Monotonic, text: &str) -> Result<(), CandidateIgnored> {
        let candidate = candidate::parse(text)?;
        if self.remote_candidates == MAX_REMOTE_CANDIDATES {
            return Err(CandidateIgnored::TooMany);
        }
        self.remote_candidates += 1;
        if self.agent.remote_credentials().is_none() {
            self.early_candidates.push(candidate);
            return Ok(());
        }
        self.agent.add_remote_candidate(candidate);
        self.check_paths(now);
        Ok(())
    }

    /// Opens a data channel, at once or when the connection is there; `None` when there are too many.
    pub fn open_channel(&mut self, config: ChannelConfig) -> Option<ChannelId> {
        self.stale = true;
        self.channels.open(config)
    }

    /// Closes a data channel.
    pub fn close_channel(&mut self, channel: ChannelId) {
        self.stale = true;
        self.channels.close(channel);
    }

    /// Sends a message; at most 512 KiB wait on all channels together.
    ///
    /// # Errors
    /// When the channel is not open, the message too long, or too much waits.
    pub fn send_message(&mut self, channel: ChannelId, binary: bool, data: &[u8]) -> Result<(), SendRefused> {
        self.stale = true;
        self.channels.send(channel, binary, data)
    }

    /// Bytes that wait to be sent on all data channels.
    pub fn buffered_bytes(&mut self) -> usize {
        self.channels.buffered()
    }

    /// Sends an access unit on a video track.
    ///
    /// # Errors
    /// When it is not sent; [`Event::KeyframeRequested`] follows where an IDR would help.
    pub fn send_unit(
        &mut self,
        now: Monotonic,
        track: usize,
        unit: &OutgoingUnit,
    ) -> Result<(), UnitRefused> {
        let full = self.waiting_bytes > MAX_WAITING_BYTES;
        let media = self.media.as_mut().filter(|_| self.connected && !self.over);
        let media = media.ok_or(UnitRefused::NotConnected)?;
        let sent = media.send(now, track, unit, full);
        self.advance(now);
        sent
    }

    /// Units were lost before they got here; each track needs an IDR next, which is asked for.
    pub fn lose_units(&mut self) {
        if let Some(media) = &mut self.media {
            media.lose_units();
            self.stale = true;
        }
    }

    /// Sends an Opus packet with its media time, 48 kHz.
    ///
    /// # Errors
    /// When audio is not sent, or there is no connection.
    pub fn send_audio(&mut self, now: Monotonic, data: Bytes, timestamp: u32) -> Result<(), UnitRefused> {
        let media = self.media.as_mut().filter(|_| self.connected && !self.over);
        let media = media.ok_or(UnitRefused::NotConnected)?;
        if self.waiting_bytes > MAX_WAITING_BYTES {
            return Err(UnitRefused::Full);
        }
        let sent = media.send_audio(now, data, timestamp);
        self.advance(now);
        sent
    }

    /// Asks the other side for a key frame of a video track; nothing happens before its first packet.
    pub fn request_keyframe(&mut self, track: usize) {
        if let Some(media) = &mut self.media {
            media.request_keyframe(track);
            self.stale = true;
        }
    }

    /// The counters.
    pub fn stats(&self) -> PeerStats {
        let mut stats = self.stats.clone();
        if let Some(media) = &self.media {
            media.fill(&mut stats);
        }
        stats.round_trip = stats.round_trip.or_else(|| self.agent.nominated_pair_rtt());
        stats
    }

    fn add_local(&mut self, candidate: Candidate) -> Option<String> {
        let line = self.agent.add_local_candidate(candidate)?.to_sdp_string();
        self.stale = true;
        Some(line)
    }

    fn agree(
        &mut self,
        now: Monotonic,
        plan: Plan,
        remote: Remote,
        client: bool,
    ) -> Result<(), NegotiationError> {
        let creds = IceCreds {
            ufrag: remote.ufrag.clone(),
            pass: remote.password.0.clone(),
        };
        self.agent.set_remote_credentials(creds);
        if self.secure.is_none() {
            let certificate = &self.config.certificate;
            let instant = self.time.instant(now);
            match Secure::new(certificate, client, remote.fingerprints.clone(), instant) {
                Ok(secure) => self.secure = Some(secure),
                Err(failure) => self.fail(failure),
            }
            self.media = Some(Media::new(&plan, &mut self.random));
            self.patience = Some(now + self.config.connect_timeout);
        } else if self
            .remote
            .as_ref()
            .is_some_and(|before| before.fingerprints != remote.fingerprints)
        {
            // The same connection has the same certificate.
            return Err(NegotiationError::NoFingerprint);
        }
        (self.plan, self.exchange) = (Some(plan), Exchange::Done);
        for candidate in std::mem::take(&mut self.early_candidates) {
            self.agent.add_remote_candidate(candidate);
        }
        for line in &remote.candidates {
            // One that is of no use leaves the others.
            let _ = self.add_remote_candidate(now, line);
        }
        self.remote = Some(remote);
        self.check_paths(now);
        Ok(())
    }

    fn describe(&mut self, setup: Setup) -> String {
        self.version += 1;
        let mut candidates: Vec<String> = Vec::new();
        for candidate in self.agent.local_candidates() {
            candidates.push(candidate.to_sdp_string());
        }
        let creds = self.agent.local_credentials();
        let local = Local {
            session: self.session,
            version: self.version,
            ufrag: &creds.ufrag,
            password: &creds.pass,
            fingerprint: &self.config.certificate.fingerprint,
            setup,
            candidates,
        };
        self.plan
            .as_ref()
            .map_or_else(String::new, |plan| plan.write(&local))
    }
}

/// Unguessable credentials of ICE: 48 and 144 bits.
fn credentials(random: &mut Random) -> IceCreds {
    IceCreds {
        ufrag: random.letters(8),
        pass: random.letters(24),
    }
}
