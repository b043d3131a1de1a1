//! Data channels: one SCTP association inside DTLS (RFC 8831).

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event, Payload,
    PayloadProtocolIdentifier as Ppid, ServerConfig, StreamEvent, Transmit, TransportConfig,
};

use super::dcep::{self, ChannelConfig, Dcep};
use super::negotiate::MAX_MESSAGE_BYTES;

/// Most channels, of both sides together.
const MAX_CHANNELS: usize = 64;
/// Streams of the association.
const MAX_STREAMS: u16 = 1024;
/// Bytes that wait to be sent on all channels. The association becomes slow when it holds more.
pub(super) const MAX_BUFFERED_BYTES: usize = 512 * 1024;
/// Bytes that the association holds for messages that are not whole or not taken; the sender waits then.
const RECEIVE_BUFFER_BYTES: u32 = 1024 * 1024;
/// Messages and bytes that are taken from it and not polled yet.
const MAX_EVENTS: usize = 256;
const MAX_EVENT_BYTES: usize = 1024 * 1024;
/// Retransmission timer, in milliseconds: the defaults are made for networks of the year 2000.
const RTO_MS: [u64; 3] = [300, 100, 5_000];
/// Largest packet inside a DTLS record inside a datagram. The association does not count the padding of small messages:
/// a tenth of the packet, in bursts of them.
const PACKET_BYTES: usize = super::DATAGRAM_BYTES - 100;
/// The association wants an address of the other side; DTLS has none.
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5000);

/// Names a data channel of one peer; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(u32);

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendRefused {
    /// The channel is not open, or not any more.
    NotOpen,
    /// Longer than the other side takes.
    TooLong {
        /// Most bytes of a message.
        limit: usize,
    },
    /// So much waits that it has to be tried later.
    Full,
}

impl fmt::Display for SendRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen => f.write_str("the data channel is not open"),
            Self::TooLong { limit } => write!(f, "the message is longer than {limit} bytes"),
            Self::Full => f.write_str("too many bytes wait for being sent"),
        }
    }
}

impl std::error::Error for SendRefused {}

/// What happened on a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelEvent {
    /// It is open.
    Opened {
        /// Which.
        id: ChannelId,
        /// Its number in the association; a side's own are all even or all odd and rise.
        stream: u16,
        /// What it is like.
        config: ChannelConfig,
        /// True when the other side opened it.
        remote: bool,
    },
    /// A message arrived.
    Message {
        /// On which.
        id: ChannelId,
        /// True for bytes, false for text; text is not checked to be UTF-8.
        binary: bool,
        /// The message.
        data: Bytes,
    },
    /// It is closed; nothing follows.
    Closed {
        /// Which.
        id: ChannelId,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Waits for the association.
    Waiting,
    /// Waits for the other side's consent.
    Opening,
    Open,
}

struct Channel {
    stream: Option<u16>,
    state: State,
    config: ChannelConfig,
}

/// The association and its channels.
pub(super) struct Channels {
    endpoint: Endpoint,
    handle: AssociationHandle,
    association: Option<Association>,
    transport: Arc<TransportConfig>,
    established: bool,
    client: bool,
    max_message_bytes: usize,
    channels: BTreeMap<ChannelId, Channel>,
    next_id: u32,
    events: VecDeque<ChannelEvent>,
    event_bytes: usize,
}

impl Channels {
    pub(super) fn new() -> Self {
        let [initial, least, most] = RTO_MS;
        let transport = TransportConfig::default()
            .with_max_init_retransmits(None)
            .with_max_data_retransmits(None)
            .with_rto_initial_ms(initial)
            .with_rto_min_ms(least)
            .with_rto_max_ms(most)
            .with_max_num_inbound_streams(MAX_STREAMS)
            .with_max_num_outbound_streams(MAX_STREAMS)
            .with_max_receive_buffer_size(RECEIVE_BUFFER_BYTES)
            .with_max_receive_message_size(MAX_MESSAGE_BYTES);
        let transport = Arc::new(transport);
        let mut config = EndpointConfig::new();
        config.max_payload_size((PACKET_BYTES - 28) as u32);
        let mut server = ServerConfig::new();
        server.transport = Arc::clone(&transport);
        Self {
            endpoint: Endpoint::new(Arc::new(config), Some(Arc::new(server))),
            handle: AssociationHandle(0),
            association: None,
            transport,
            established: false,
            client: false,
            max_message_bytes: 0,
            channels: BTreeMap::new(),
            next_id: 0,
            events: VecDeque::new(),
            event_bytes: 0,
        }
    }

    /// DTLS is up; its client begins the association.
    pub(super) fn start(&mut self, client: bool, max_message_bytes: u32) {
        self.client = client;
        self.max_message_bytes = max_message_bytes as usize;
        if client && self.association.is_none() {
            let mut config = ClientConfig::new();
            config.transport = Arc::clone(&self.transport);
            match self.endpoint.connect(config, ADDRESS) {
                Ok((handle, association)) => {
                    (self.handle, self.association) = (handle, Some(association));
                }
                Err(error) => tracing::warn!(%error, "no SCTP association"),
            }
        }
    }

    /// Opens a channel, at once or when the association is up; `None` when there are too many.
    pub(super) fn open(&mut self, config: ChannelConfig) -> Option<ChannelId> {
        let id = self.add(None, State::Waiting, config)?;
        self.open_waiting();
        Some(id)
    }

    /// Takes a message for the other side.
    pub(super) fn send(&mut self, id: ChannelId, binary: bool, data: &[u8]) -> Result<(), SendRefused> {
        let channel = self
            .channels
            .get(&id)
            .filter(|channel| channel.state == State::Open);
        let stream = channel
            .and_then(|channel| channel.stream)
            .ok_or(SendRefused::NotOpen)?;
        if data.len() > self.max_message_bytes {
            let limit = self.max_message_bytes;
            return Err(SendRefused::TooLong { limit });
        }
        if self.buffered() + data.len() > MAX_BUFFERED_BYTES {
            return Err(SendRefused::Full);
        }
        // SCTP has no empty messages: a byte stands for nothing.
        let (kind, data) = match (binary, data) {
            (true, []) => (Ppid::BinaryEmpty, &[0][..]),
            (false, []) => (Ppid::StringEmpty, &[0][..]),
            (true, data) => (Ppid::Binary, data),
            (false, data) => (Ppid::String, data),
        };
        self.write(stream, kind, data).ok_or(SendRefused::NotOpen)
    }

    /// Bytes that wait to be sent, on all channels.
    pub(super) fn buffered(&mut self) -> usize {
        let Some(association) = &mut self.association else {
            return 0;
        };
        let streams = self.channels.values().filter_map(|channel| channel.stream);
        streams
            .filter_map(|stream| association.stream(stream).ok()?.buffered_amount().ok())
            .sum()
    }

    /// Closes a channel.
    pub(super) fn close(&mut self, id: ChannelId) {
        if let Some(channel) = self.channels.remove(&id) {
            self.reset(channel.stream);
            self.push(ChannelEvent::Closed { id });
        }
    }

    /// Takes the plain bytes of one DTLS record.
    pub(super) fn handle_data(&mut self, now: Instant, data: Bytes) {
        match self.endpoint.handle(now, ADDRESS, None, None, data) {
            // Another association than the first is nothing that WebRTC knows.
            Some((handle, DatagramEvent::NewAssociation(association))) if self.association.is_none() => {
                (self.handle, self.association) = (handle, Some(association));
            }
            Some((handle, DatagramEvent::AssociationEvent(event))) if handle == self.handle => {
                if let Some(association) = &mut self.association {
                    association.handle_event(event);
                }
            }
            _ => {}
        }
        self.collect();
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(association) = &mut self.association {
            association.handle_timeout(now);
        }
        self.collect();
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.association.as_ref()?.poll_timeout()
    }

    /// The next packets for DTLS, each a record of its own.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Vec<Bytes>> {
        let transmit: Transmit = match self.endpoint.poll_transmit() {
            Some(transmit) => transmit,
            None => self.association.as_mut()?.poll_transmit(now)?,
        };
        match transmit.payload {
            Payload::RawEncode(packets) => Some(packets),
            Payload::PartialDecode(_) => Some(Vec::new()),
        }
    }

    /// The next event; what waits in the association moves up.
    pub(super) fn poll_event(&mut self) -> Option<ChannelEvent> {
        if self.events.is_empty() {
            self.read();
        }
        let event = self.events.pop_front()?;
        if let ChannelEvent::Message { data, .. } = &event {
            self.event_bytes -= data.len();
        }
        Some(event)
    }

    fn collect(&mut self) {
        while let Some(association) = &mut self.association {
            if let Some(event) = association.poll_endpoint_event() {
                if let Some(back) = self.endpoint.handle_event(self.handle, event) {
                    association.handle_event(back);
                }
                continue;
            }
            match association.poll() {
                Some(Event::Connected) => {
                    association.set_max_send_message_size(self.max_message_bytes as u32);
                    self.established = true;
                    self.open_waiting();
                }
                Some(Event::Stream(StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. })) => {
                    self.finished(id);
                }
                Some(Event::AssociationLost { reason } | Event::HandshakeFailed { reason }) => {
                    tracing::debug!(%reason, "the SCTP association is gone");
                    self.lose();
                    return;
                }
                Some(_) => {}
                None => break,
            }
        }
        self.read();
    }

    fn lose(&mut self) {
        self.established = false;
        for id in std::mem::take(&mut self.channels).into_keys() {
            self.push(ChannelEvent::Closed { id });
        }
    }

    fn finished(&mut self, stream: u16) {
        if let Some(id) = self.at(stream) {
            self.channels.remove(&id);
            self.reset(Some(stream));
            self.push(ChannelEvent::Closed { id });
        }
    }

    /// Reads what has arrived, as long as there is room for it.
    fn read(&mut self) {
        let streams = match &self.association {
            Some(association) if self.established => association.stream_ids(),
            _ => return,
        };
        for stream in streams {
            while self.events.len() < MAX_EVENTS && self.event_bytes < MAX_EVENT_BYTES {
                let Some((kind, data)) = self.read_one(stream) else {
                    break;
                };
                self.arrived(stream, kind, data);
            }
        }
    }

    fn read_one(&mut self, stream: u16) -> Option<(Ppid, Bytes)> {
        let chunks = self
            .association
            .as_mut()?
            .stream(stream)
            .ok()?
            .read_sctp()
            .ok()??;
        let mut data = BytesMut::zeroed(chunks.len());
        chunks.read(&mut data).ok()?;
        Some((chunks.ppi, data.freeze()))
    }

    fn arrived(&mut self, stream: u16, kind: Ppid, data: Bytes) {
        let id = self.at(stream);
        let binary = match kind {
            Ppid::Dcep => return self.negotiate(stream, id, &data),
            Ppid::Binary | Ppid::BinaryEmpty => true,
            Ppid::String | Ppid::StringEmpty => false,
            Ppid::Unknown => return,
        };
        let Some(id) = id else {
            // Data on a stream that nobody opened.
            return self.reset(Some(stream));
        };
        let empty = matches!(kind, Ppid::BinaryEmpty | Ppid::StringEmpty);
        let data = if empty { Bytes::new() } else { data };
        self.opened(id);
        self.event_bytes += data.len();
        self.push(ChannelEvent::Message { id, binary, data });
    }

    /// Opening, by the other side or of ours.
    fn negotiate(&mut self, stream: u16, id: Option<ChannelId>, data: &[u8]) {
        match (dcep::parse(data), id) {
            (Some(Dcep::Ack), Some(id)) => self.opened(id),
            (Some(Dcep::Open(config)), None) => {
                let added = self.add(Some(stream), State::Open, config.clone());
                let accepted = added.filter(|_| self.accept(stream, &config).is_some());
                match accepted {
                    Some(id) => self.push(ChannelEvent::Opened {
                        id,
                        stream,
                        config,
                        remote: true,
                    }),
                    None => {
                        self.channels.retain(|_, channel| channel.stream != Some(stream));
                        self.reset(Some(stream));
                    }
                }
            }
            (None, Some(id)) => self.close(id),
            (None, None) => self.reset(Some(stream)),
            (Some(_), _) => {}
        }
    }

    fn accept(&mut self, stream: u16, config: &ChannelConfig) -> Option<()> {
        self.configure(stream, config)?;
        self.write(stream, Ppid::Dcep, &dcep::write(&Dcep::Ack))
    }

    /// Our channel is open with the first sign of consent.
    fn opened(&mut self, id: ChannelId) {
        if let Some(channel) = self.channels.get_mut(&id)
            && channel.state == State::Opening
            && let Some(stream) = channel.stream
        {
            channel.state = State::Open;
            let config = channel.config.clone();
            self.push(ChannelEvent::Opened {
                id,
                stream,
                config,
                remote: false,
            });
        }
    }

    fn open_waiting(&mut self) {
        if !self.established {
            return;
        }
        let waiting = self
            .channels
            .iter()
            .filter(|(_, channel)| channel.state == State::Waiting);
        let waiting: Vec<ChannelId> = waiting.map(|(id, _)| *id).collect();
        for id in waiting {
            if self.open_one(id).is_none() {
                self.close(id);
            }
        }
    }

    fn open_one(&mut self, id: ChannelId) -> Option<()> {
        // The DTLS client's streams are even, the server's odd (RFC 8832, section 6).
        let first = u16::from(!self.client);
        let association = self.association.as_mut()?;
        let taken = association.stream_ids();
        let mut free = (first..MAX_STREAMS)
            .step_by(2)
            .filter(|stream| !taken.contains(stream));
        let stream = free.find(|stream| association.open_stream(*stream, Ppid::Binary).is_ok())?;
        let channel = self.channels.get_mut(&id)?;
        (channel.stream, channel.state) = (Some(stream), State::Opening);
        let config = channel.config.clone();
        self.configure(stream, &config)?;
        self.write(stream, Ppid::Dcep, &dcep::write(&Dcep::Open(config)))
    }

    fn configure(&mut self, stream: u16, config: &ChannelConfig) -> Option<()> {
        let (kind, parameter) = config.reliability.parameters();
        let mut stream = self.association.as_mut()?.stream(stream).ok()?;
        stream
            .set_reliability_params(!config.ordered, kind, parameter)
            .ok()
    }

    fn write(&mut self, stream: u16, kind: Ppid, data: &[u8]) -> Option<()> {
        let mut stream = self.association.as_mut()?.stream(stream).ok()?;
        stream.write_with_ppi(data, kind).ok().map(|_| ())
    }

    fn reset(&mut self, stream: Option<u16>) {
        if let (Some(association), Some(stream)) = (&mut self.association, stream)
            && let Ok(mut stream) = association.stream(stream)
            && let Err(error) = stream.close()
        {
            tracing::debug!(%error, "a data channel's stream could not be closed");
        }
    }

    fn add(&mut self, stream: Option<u16>, state: State, config: ChannelConfig) -> Option<ChannelId> {
        if self.channels.len() == MAX_CHANNELS {
            return None;
        }
        let id = ChannelId(self.next_id);
        self.next_id += 1;
        self.channels.insert(
            id,
            Channel {
                stream,
                state,
                config,
            },
        );
        Some(id)
    }

    fn at(&self, stream: u16) -> Option<ChannelId> {
        let mut channels = self.channels.iter();
        channels
            .find(|(_, channel)| channel.stream == Some(stream))
            .map(|(id, _)| *id)
    }

    fn push(&mut self, event: ChannelEvent) {
        self.events.push_back(event);
    }
}
