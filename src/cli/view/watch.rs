//! A transport joined to a receiver: pictures go to whoever shows them, keyframe wishes back to the sender.

use std::sync::Arc;
use std::sync::mpsc::{Receiver as Wishes, SyncSender, sync_channel};
use std::thread;

use anyhow::Context;
use crossdesk_core::automation::TransportState;
use crossdesk_core::media::{AccessUnit, TapUnit};
use crossdesk_pipelines::gst::receive::Receiver;
use crossdesk_pipelines::picture::Picture;
use crossdesk_pipelines::receive::{DecoderChoice, Receive, ReceiveConfig, ReceiveEvent, ReceiveOutput};

use crate::transport::{Transport, TransportEvent, TransportOutput};

use super::origin::Origin;

/// Whoever shows pictures to a person. Called on streaming threads; must not block.
pub trait Screen: Send + Sync {
    /// Shows this picture next.
    fn picture(&self, picture: Picture);
    /// Names the decoder at work.
    fn decoder(&self, name: &str);
    /// Says something about the stream, such as why it stands still; an empty text takes that back.
    fn note(&self, text: &str);
    /// Nothing follows; the reason is for people. Only the first one counts.
    fn end(&self, end: End);
}

/// Why nothing follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The source reached its end, as it was asked to.
    Finished,
    /// The other side has ended it, as it may; the reason is for people.
    Left(String),
    /// It cannot go on.
    Failed(String),
}

/// A stream being watched; dropping it stops everything.
pub struct Watch {
    _transport: Arc<dyn Transport>,
}

/// What to watch, and how.
pub struct Stream {
    /// Where it comes from.
    pub origin: Origin,
    /// Which decoders may be used.
    pub decoder: DecoderChoice,
}

impl Watch {
    /// Starts decoding `stream` for `screen`.
    pub fn start(stream: Stream, screen: Arc<dyn Screen>) -> anyhow::Result<Self> {
        // One wish is enough: a second one before the first is granted says nothing new.
        let (wish, wishes) = sync_channel(1);
        let pictures = Arc::new(Pictures {
            screen: Arc::clone(&screen),
            wish,
        });
        let config = ReceiveConfig {
            decoder: stream.decoder,
            ..ReceiveConfig::default()
        };
        let receiver = Receiver::start(&config, pictures)?;
        screen.note(&stream.origin.waiting());
        let units = Arc::new(Units {
            receiver,
            screen,
            live: stream.origin.is_live(),
        });
        let transport = stream.origin.dial(units);
        grant(wishes, &transport)?;
        Ok(Self {
            _transport: transport,
        })
    }
}

/// Passes keyframe wishes on, until the receiver that has them is gone.
fn grant(wishes: Wishes<()>, transport: &Arc<dyn Transport>) -> anyhow::Result<()> {
    // A strong reference here would keep the transport, and with it the receiver and this thread, alive for ever.
    let transport = Arc::downgrade(transport);
    thread::Builder::new()
        .name("keyframes".to_owned())
        .spawn(move || {
            for () in wishes {
                let Some(transport) = transport.upgrade() else {
                    return;
                };
                transport.request_keyframe();
            }
        })
        .context("cannot start a thread")?;
    Ok(())
}

/// What the receiver delivers to.
struct Pictures {
    screen: Arc<dyn Screen>,
    wish: SyncSender<()>,
}

impl ReceiveOutput for Pictures {
    fn unit(&self, _unit: TapUnit) {}

    fn picture(&self, picture: Picture) {
        self.screen.picture(picture);
    }

    fn event(&self, event: ReceiveEvent) {
        match event {
            ReceiveEvent::DecoderSelected { name, .. } => self.screen.decoder(&name),
            ReceiveEvent::DecoderFailed(failure) => {
                self.screen
                    .note(&format!("{} failed: {}", failure.name, failure.reason));
            }
            ReceiveEvent::KeyframeWanted => {
                // Full means that a wish is already on its way.
                let _ = self.wish.try_send(());
            }
            ReceiveEvent::Failed { reason, .. } => self.screen.end(End::Failed(reason)),
            ReceiveEvent::Drained => self.screen.end(End::Finished),
            ReceiveEvent::UnitRefused { .. } | ReceiveEvent::Overloaded => {}
        }
    }
}

/// What the transport delivers to.
struct Units {
    receiver: Receiver,
    screen: Arc<dyn Screen>,
    /// No picture is held back that would have to come out at the end.
    live: bool,
}

impl TransportOutput for Units {
    fn unit(&self, unit: AccessUnit) {
        if let Err(refused) = self.receiver.push(unit) {
            tracing::debug!(%refused, "an access unit was not taken");
        }
    }

    fn event(&self, event: TransportEvent) {
        match event {
            TransportEvent::State(TransportState::Ended { reason, .. }) if self.live => {
                self.screen.end(End::Left(reason));
            }
            // Pictures still held for reordering come out first; `Drained` follows.
            TransportEvent::State(TransportState::Ended { .. }) => self.receiver.finish(),
            TransportEvent::State(state) => tell(&*self.screen, state),
            TransportEvent::Displays(_)
            | TransportEvent::HostPlatform(_)
            | TransportEvent::Control { .. } => {}
        }
    }
}

/// Tells people where the transport stands.
fn tell(screen: &dyn Screen, state: TransportState) {
    match state {
        TransportState::Connecting | TransportState::Ended { .. } => {}
        TransportState::Connected => screen.note(""),
        TransportState::Reconnecting { attempt, reason, .. } => {
            screen.note(&format!("reconnecting, attempt {attempt}: {reason}"));
        }
        TransportState::Failed { reason, .. } => screen.end(End::Failed(reason)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use crossdesk_core::error::ErrorCode;

    use super::*;

    /// Remembers what people were told.
    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Screen for Told {
        fn picture(&self, _picture: Picture) {}

        fn decoder(&self, _name: &str) {}

        fn note(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }

        fn end(&self, end: End) {
            self.0.lock().unwrap().push(format!("{end:?}"));
        }
    }

    #[test]
    fn a_loss_is_told_with_its_reason_and_taken_back_by_the_return() {
        let told = Told::default();
        let lost = TransportState::Reconnecting {
            attempt: 2,
            code: ErrorCode::SourceUnreachable,
            reason: "gone".to_owned(),
        };
        let failed = TransportState::Failed {
            code: ErrorCode::SourceInvalid,
            reason: "no H.264".to_owned(),
        };
        for state in [
            TransportState::Connecting,
            lost,
            TransportState::Connected,
            failed,
        ] {
            tell(&told, state);
        }
        assert_eq!(
            *told.0.lock().unwrap(),
            ["reconnecting, attempt 2: gone", "", "Failed(\"no H.264\")"]
        );
    }
}
