//! Live sources on the network: RTSP, and bare RTP over UDP.
//!
//! Nothing is held back: packets in order pass the jitter buffer at once, the depayloader ends an access
//! unit at the RTP marker, and the sink delivers on the streaming thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crossdesk_core::error::ErrorCode;
use crossdesk_core::time::Monotonic;
use gst::prelude::*;
use gst_app::AppSink;

use super::elements::{self, Pipeline};
use super::file;
use super::port::{Port, Wake};
use super::reach::{self, Place};
use crate::clock;
use crate::plan::source::sdp::{self, MAX_SDP_BYTES};
use crate::plan::source::{Credentials, FileSource, RtpSource, RtspSource, SourceFailure};

/// How long a missing packet is waited for; packets in order never wait.
const RTSP_LATENCY_MS: u32 = 50;
/// UDP that stays silent this long is blocked on the way: TCP is tried next.
const UDP_SILENCE: Duration = Duration::from_secs(2);
/// A server that does not answer a request within this is called unreachable.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// From start to first access unit: an answer, silent UDP and a second handshake over TCP fit in.
const START_LIMIT: Duration = Duration::from_secs(14);
/// A live picture source that is silent this long is called stalled.
const STALL_LIMIT: Duration = Duration::from_secs(5);
/// How often wishes of the owner are looked at while waiting for messages.
const PATIENCE: gst::ClockTime = gst::ClockTime::from_mseconds(20);

/// Receives from an RTSP server.
pub(super) fn rtsp(
    source: &RtspSource,
    credentials: Option<&Credentials>,
    port: &Arc<Port>,
) -> Result<(), SourceFailure> {
    let pipeline = Pipeline(gst::Pipeline::new());
    let (entry, sink) = depayload(&pipeline.0, port)?;
    let client = elements::make("rtspsrc")?;
    configure_client(&client, source, credentials);
    pipeline
        .0
        .add(&client)
        .map_err(|error| elements::broken(error.to_string()))?;
    let offered = Arc::new(Offered::default());
    select_h264(&client, &offered);
    let place = Place {
        host: source.host.clone(),
        port: source.port,
    };
    client.connect_pad_added(move |_, pad| {
        if let Some(target) = entry.static_pad("sink").filter(|target| !target.is_linked())
            && pad.link(&target).is_err()
        {
            tracing::warn!("an RTSP stream could not be linked");
        }
    });
    let watch = Watch {
        sink,
        port,
        started: clock::now(),
        limits: Limits::Ending(place.clone()),
    };
    let result = watch.run(&pipeline.0).map_err(|over| match over {
        Over::Here(failure) => failure,
        Over::Refused => elements::broken("an RTSP client cannot be started"),
        _ if offered.lacks_h264() => {
            let reason = format!("{place} offers no H.264 video");
            SourceFailure::lasting(ErrorCode::SourceInvalid, reason)
        }
        Over::Ended => {
            let reason = format!("{place} ended the stream");
            SourceFailure::passing(ErrorCode::ConnectionLost, reason)
        }
        Over::Error(error) => {
            let asked = Asked {
                place: &place,
                path: source.path(),
                credentials: credentials.is_some(),
                played: port.last_unit().is_some(),
            };
            asked.explain(&error)
        }
    });
    if let Err(failure) = result {
        // Said before the graph is taken down: a client whose server goes on sending drops by drop cannot be stopped.
        port.fail(failure);
    }
    Ok(())
}

fn configure_client(client: &gst::Element, source: &RtspSource, credentials: Option<&Credentials>) {
    let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    client.set_property("location", &source.uri);
    client.set_property("latency", RTSP_LATENCY_MS);
    client.set_property("drop-on-latency", true);
    client.set_property_from_str("protocols", "udp+tcp");
    client.set_property("timeout", micros(UDP_SILENCE));
    client.set_property("tcp-timeout", micros(ANSWER_LIMIT));
    client.set_property("udp-reconnect", false);
    if let Some(credentials) = credentials {
        client.set_property("user-id", credentials.user());
        client.set_property("user-pw", credentials.password());
    }
}

/// What the server's description offered.
#[derive(Default)]
struct Offered {
    any: AtomicBool,
    /// Number of the first H.264 stream. The question comes again when TCP is tried after UDP.
    h264: OnceLock<u32>,
}

impl Offered {
    fn lacks_h264(&self) -> bool {
        self.any.load(Ordering::Acquire) && self.h264.get().is_none()
    }
}

/// Sets up the first H.264 stream and nothing else.
fn select_h264(client: &gst::Element, offered: &Arc<Offered>) {
    let offered = Arc::clone(offered);
    client.connect("select-stream", false, move |values| {
        offered.any.store(true, Ordering::Release);
        let caps = values.get(2).and_then(|value| value.get::<gst::Caps>().ok());
        let h264 = caps
            .as_ref()
            .and_then(|caps| caps.structure(0))
            .is_some_and(|format| {
                format.get::<&str>("media") == Ok("video")
                    && format.get::<&str>("encoding-name") == Ok("H264")
            });
        let number = values
            .get(1)
            .and_then(|value| value.get::<u32>().ok())
            .unwrap_or(0);
        let selected = h264 && *offered.h264.get_or_init(|| number) == number;
        Some(selected.to_value())
    });
}

/// What was asked of a server, for the words that say why it did not come.
struct Asked<'a> {
    place: &'a Place,
    path: &'a str,
    credentials: bool,
    /// An access unit has come since.
    played: bool,
}

impl Asked<'_> {
    /// What an error of the client means. GStreamer's own words name neither the server nor, mostly, the cause.
    fn explain(&self, error: &gst::message::Error) -> SourceFailure {
        let place = self.place;
        let told = elements::failure(error);
        match error.error().kind::<gst::ResourceError>() {
            Some(gst::ResourceError::NotAuthorized) if self.credentials => SourceFailure::lasting(
                ErrorCode::AuthenticationFailed,
                format!("{place} refused the user name or the password (401)"),
            ),
            Some(gst::ResourceError::NotAuthorized) => SourceFailure::lasting(
                ErrorCode::CredentialsMissing,
                format!("{place} wants credentials (401) and the password descriptor held none"),
            ),
            Some(gst::ResourceError::NotFound) => SourceFailure::passing(
                ErrorCode::SourceRefused,
                format!("{place} knows no path {} (404)", self.path),
            ),
            Some(
                gst::ResourceError::OpenReadWrite | gst::ResourceError::Read | gst::ResourceError::Write,
            ) if !self.played => {
                let reason = reach::server_trouble(place, ANSWER_LIMIT).unwrap_or_else(|| {
                    let detail = elements::detail(error);
                    format!("{place} takes connections but does not answer as an RTSP server: {detail}")
                });
                SourceFailure::passing(ErrorCode::SourceUnreachable, reason)
            }
            Some(gst::ResourceError::Read | gst::ResourceError::Write) => SourceFailure::passing(
                ErrorCode::ConnectionLost,
                format!("the connection to {place} broke: {}", elements::detail(error)),
            ),
            _ => SourceFailure {
                reason: format!("{place}: {}", told.reason),
                ..told
            },
        }
    }
}

/// Receives the stream that a session description names.
pub(super) fn sdp(file: &FileSource, port: &Arc<Port>) -> Result<(), SourceFailure> {
    let (path, text) = file::read_head(&file.candidates, MAX_SDP_BYTES)?;
    let source = sdp::receiver(&String::from_utf8_lossy(&text)).map_err(|reason| {
        SourceFailure::lasting(ErrorCode::SourceInvalid, format!("{}: {reason}", path.display()))
    })?;
    rtp(&source, port)
}

/// Receives bare RTP.
pub(super) fn rtp(source: &RtpSource, port: &Arc<Port>) -> Result<(), SourceFailure> {
    let pipeline = Pipeline(gst::Pipeline::new());
    let (entry, sink) = depayload(&pipeline.0, port)?;
    let socket = elements::make("udpsrc")?;
    socket.set_property("address", &source.host);
    socket.set_property("port", i32::from(source.port));
    socket.set_property("caps", packet_caps(source));
    let jitter = elements::make("rtpjitterbuffer")?;
    jitter.set_property(
        "latency",
        u32::try_from(source.latency.as_millis()).unwrap_or(u32::MAX),
    );
    jitter.set_property("drop-on-latency", true);
    pipeline
        .0
        .add_many([&socket, &jitter])
        .map_err(|error| elements::broken(error.to_string()))?;
    gst::Element::link_many([&socket, &jitter, &entry])
        .map_err(|error| elements::broken(error.to_string()))?;
    let place = Place {
        host: source.host.clone(),
        port: source.port,
    };
    let watch = Watch {
        sink,
        port,
        started: clock::now(),
        limits: Limits::Waiting(format!("no H.264 arrives on {place} (bare RTP, UDP)")),
    };
    watch.run(&pipeline.0).map_err(|over| match over {
        Over::Here(failure) => failure,
        Over::Ended => SourceFailure::passing(ErrorCode::ConnectionLost, format!("{place} was closed")),
        Over::Refused | Over::Error(_) => {
            let told = match over {
                Over::Error(error) => elements::failure(&error),
                _ => SourceFailure::passing(ErrorCode::SourceUnreachable, "cannot be listened on"),
            };
            // The graph still has the socket when it failed later than at its opening.
            drop(pipeline);
            reach::listen_trouble(&place).unwrap_or_else(|| SourceFailure {
                reason: format!("{place}: {}", told.reason),
                ..told
            })
        }
    })
}

fn packet_caps(source: &RtpSource) -> gst::Caps {
    let clock_rate = i32::try_from(source.clock_rate).unwrap_or(i32::MAX);
    let mut caps = gst::Caps::builder("application/x-rtp")
        .field("media", "video")
        .field("encoding-name", "H264")
        .field("clock-rate", clock_rate);
    if let Some(payload_type) = source.payload_type {
        caps = caps.field("payload", i32::from(payload_type));
    }
    if let Some(sets) = &source.parameter_sets {
        caps = caps.field("sprop-parameter-sets", sets);
    }
    caps.build()
}

/// RTP packets in, access units out; gives the first element of that chain.
fn depayload(pipeline: &gst::Pipeline, port: &Arc<Port>) -> Result<(gst::Element, AppSink), SourceFailure> {
    let depay = elements::make("rtph264depay")?;
    if depay.find_property("request-keyframe").is_some() {
        depay.set_property("request-keyframe", true);
    }
    // Left alone the two agree on NAL units, and the parser then waits for the next access unit.
    let whole = elements::make("capsfilter")?;
    let caps = elements::UNIT_CAPS.parse::<gst::Caps>();
    whole.set_property("caps", caps.map_err(|error| elements::broken(error.to_string()))?);
    let parser = elements::parser(true)?;
    let sink = elements::unit_sink(2)?;
    elements::deliver(&sink, port);
    elements::chain(pipeline, &[&depay, &whole, &parser, sink.upcast_ref()])?;
    Ok((depay, sink))
}

/// What silence means.
enum Limits {
    /// The server at this place is gone: end with a failure.
    Ending(Place),
    /// Nobody promised anything: say so and keep listening.
    Waiting(String),
}

/// Why a graph is over.
enum Over {
    /// Something failed.
    Error(gst::message::Error<gst::Message>),
    /// The graph did not start, and said no more than that.
    Refused,
    /// The other side ended the stream.
    Ended,
    /// This side gave up, for this reason.
    Here(SourceFailure),
}

/// Watches one running graph.
struct Watch<'a> {
    sink: AppSink,
    port: &'a Port,
    started: Monotonic,
    limits: Limits,
}

impl Watch<'_> {
    /// Runs until the owner leaves (`Ok`) or the graph is over (`Err`).
    fn run(&self, pipeline: &gst::Pipeline) -> Result<(), Over> {
        let bus = pipeline
            .bus()
            .ok_or_else(|| Over::Here(elements::broken("a pipeline without a bus")))?;
        let kinds = [gst::MessageType::Error, gst::MessageType::Eos];
        if pipeline.set_state(gst::State::Playing).is_err() {
            // A receiver whose address has no meaning leaves no reason on the bus.
            let reason = bus.pop_filtered(&[gst::MessageType::Error]);
            return Err(match reason.as_ref().map(|message| message.view()) {
                Some(gst::MessageView::Error(error)) => Over::Error(error.to_owned()),
                _ => Over::Refused,
            });
        }
        let mut silent = false;
        loop {
            let message = bus.timed_pop_filtered(PATIENCE, &kinds);
            match message.as_ref().map(|message| message.view()) {
                Some(gst::MessageView::Error(error)) => return Err(Over::Error(error.to_owned())),
                Some(gst::MessageView::Eos(_)) => return Err(Over::Ended),
                _ => {}
            }
            match self.port.wait_until(Monotonic::ZERO) {
                Wake::Stop => return Ok(()),
                Wake::Keyframe => self.ask_for_keyframe(),
                Wake::Time => {}
            }
            self.check_silence(&mut silent).map_err(Over::Here)?;
        }
    }

    /// Sends the wish upstream; the RTP session turns it into PLI where the stream offers that.
    fn ask_for_keyframe(&self) {
        let event = gst_video::UpstreamForceKeyUnitEvent::builder()
            .all_headers(true)
            .build();
        self.sink.send_event(event);
    }

    fn check_silence(&self, silent: &mut bool) -> Result<(), SourceFailure> {
        let newest = self.port.last_unit();
        let limit = match (&self.limits, newest) {
            (Limits::Ending(_), None) => START_LIMIT,
            _ => STALL_LIMIT,
        };
        let idle = clock::now().since(newest.unwrap_or(self.started));
        let was_silent = std::mem::replace(silent, idle > limit);
        match &self.limits {
            _ if was_silent || !*silent => Ok(()),
            Limits::Waiting(reason) => {
                self.port.waiting(reason.clone());
                Ok(())
            }
            Limits::Ending(place) if newest.is_none() => {
                let reason = format!("{place} sent no video within {} s", START_LIMIT.as_secs());
                Err(SourceFailure::passing(ErrorCode::SourceStalled, reason))
            }
            Limits::Ending(place) => {
                let reason = format!("{place} sent no video for {} s", STALL_LIMIT.as_secs());
                Err(SourceFailure::passing(ErrorCode::SourceStalled, reason))
            }
        }
    }
}
