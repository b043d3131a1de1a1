//! What the loop knows about the connection and the session wants to report.

use std::collections::VecDeque;

use crossdesk_core::automation::{
    DecoderFailure, DecoderReport, Event, LatencyStats, Percentiles, ViewerLatency,
};
use crossdesk_core::error::ErrorCode;
use crossdesk_pipelines::picture::Picture;
use crossdesk_pipelines::receive::{ReceiveEvent, ReceiveFailure};

use crate::transport::TransportEvent;

/// Pictures whose decode time is remembered: four seconds at 60 pictures a second.
const DECODE_SAMPLES: usize = 240;
/// Failures kept for `status`; a connection tries each candidate once, so more than the table holds is a loop.
const FAILURES: usize = 32;

/// Facts gathered from events.
#[derive(Debug, Default)]
pub struct Facts {
    decoder: DecoderReport,
    /// Microseconds from access unit received to picture decoded, newest last.
    decode_us: VecDeque<u64>,
    viewers: Vec<ViewerLatency>,
    /// An access unit was refused, which says more than that no keyframe came.
    refused: bool,
}

/// What a receive event means for the loop.
#[derive(Debug, Default, PartialEq)]
pub struct Told {
    /// For the session.
    pub event: Option<Event>,
    /// The source must be asked for an IDR picture.
    pub keyframe_wanted: bool,
    /// Every picture of a source that ended has come out.
    pub drained: bool,
}

impl Facts {
    /// Takes note of a picture.
    pub fn picture(&mut self, picture: &Picture) {
        if self.decode_us.len() == DECODE_SAMPLES {
            self.decode_us.pop_front();
        }
        let span = picture.decoded.since(picture.received).as_micros();
        self.decode_us.push_back(u64::try_from(span).unwrap_or(u64::MAX));
    }

    /// Takes note of what the viewers' latencies are.
    pub fn set_viewers(&mut self, viewers: Vec<ViewerLatency>) {
        self.viewers = viewers;
    }

    /// The `latency` object of `status`.
    pub fn latency(&self) -> LatencyStats {
        LatencyStats {
            receive_to_decode: percentiles(&self.decode_us),
            viewers: self.viewers.clone(),
        }
    }

    /// Translates a receive event.
    pub fn receive(&mut self, event: ReceiveEvent) -> Told {
        match event {
            ReceiveEvent::DecoderSelected { name, hardware, .. } => {
                self.decoder.name = Some(name);
                self.decoder.hardware = Some(hardware);
                self.decoder_changed()
            }
            ReceiveEvent::DecoderFailed(failure) => {
                if self.decoder.failures.len() < FAILURES {
                    let reason = format!("{}: {}", failure.stage.as_str(), failure.reason);
                    self.decoder.failures.push(DecoderFailure {
                        name: failure.name,
                        reason,
                    });
                }
                self.decoder_changed()
            }
            ReceiveEvent::KeyframeWanted => {
                let better_known = self.refused || !self.decoder.failures.is_empty();
                Told {
                    keyframe_wanted: true,
                    event: (!better_known).then(|| obstacle("there is no keyframe to start from")),
                    ..Told::default()
                }
            }
            ReceiveEvent::Failed { code, reason } => Told {
                event: Some(Event::Failed {
                    code: failure_code(code),
                    reason,
                }),
                ..Told::default()
            },
            ReceiveEvent::UnitRefused { sequence, reason } => {
                tracing::debug!(sequence, reason, "access unit refused");
                self.refused = true;
                Told {
                    event: Some(obstacle(&reason)),
                    ..Told::default()
                }
            }
            ReceiveEvent::Overloaded => {
                tracing::warn!("decoding is slower than the stream: skipping to the next IDR");
                Told::default()
            }
            ReceiveEvent::Drained => Told {
                drained: true,
                ..Told::default()
            },
        }
    }

    fn decoder_changed(&self) -> Told {
        Told {
            event: Some(Event::Decoder(self.decoder.clone())),
            ..Told::default()
        }
    }
}

/// Access units come, and no picture: this is why.
fn obstacle(why: &str) -> Event {
    Event::Obstacle(Some(format!("access units arrive, but {why}")))
}

/// Translates a transport event.
pub fn transport(event: TransportEvent) -> Event {
    match event {
        TransportEvent::State(state) => Event::Transport(state),
        TransportEvent::Displays(displays) => Event::Displays(displays),
        TransportEvent::HostPlatform(name) => Event::HostPlatform(name),
        TransportEvent::Control { allowed, text } => Event::Control { allowed, text },
    }
}

fn failure_code(failure: ReceiveFailure) -> ErrorCode {
    match failure {
        ReceiveFailure::DecoderUnavailable | ReceiveFailure::DecoderFailed => ErrorCode::DecoderUnavailable,
        ReceiveFailure::StreamUnsupported => ErrorCode::StreamUnsupported,
    }
}

fn percentiles(samples: &VecDeque<u64>) -> Option<Percentiles> {
    let mut sorted: Vec<u64> = samples.iter().copied().collect();
    sorted.sort_unstable();
    let at = |percent: usize| sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)));
    Some(Percentiles {
        p50_us: *at(50)?,
        p95_us: *at(95)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_more_than_a_missing_keyframe() {
        let mut facts = Facts::default();
        let told = facts.receive(ReceiveEvent::KeyframeWanted);
        assert!(told.keyframe_wanted);
        let why = "access units arrive, but there is no keyframe to start from";
        assert_eq!(told.event, Some(Event::Obstacle(Some(why.to_owned()))));
        let refusal = ReceiveEvent::UnitRefused {
            sequence: 7,
            reason: "its SPS is missing".to_owned(),
        };
        let why = "access units arrive, but its SPS is missing";
        assert_eq!(
            facts.receive(refusal).event,
            Some(Event::Obstacle(Some(why.to_owned())))
        );
        let again = facts.receive(ReceiveEvent::KeyframeWanted);
        assert!(again.keyframe_wanted);
        assert_eq!(again.event, None);
    }
}
