//! A source joined to a receiver: pictures go to whoever shows them, keyframe wishes back to the source.

use std::sync::Arc;
use std::sync::mpsc::{Receiver as Wishes, SyncSender, sync_channel};
use std::thread;

use anyhow::Context;
use crossdesk_core::media::{AccessUnit, TapUnit};
use crossdesk_pipelines::gst::receive::Receiver;
use crossdesk_pipelines::gst::source::{Source, SourceEvent, SourceOutput};
use crossdesk_pipelines::picture::Picture;
use crossdesk_pipelines::plan::source::{Credentials, SourceSpec};
use crossdesk_pipelines::receive::{DecoderChoice, Receive, ReceiveConfig, ReceiveEvent, ReceiveOutput};

/// Whoever shows pictures to a person. Called on streaming threads; must not block.
pub trait Screen: Send + Sync {
    /// Shows this picture next.
    fn picture(&self, picture: Picture);
    /// Names the decoder at work.
    fn decoder(&self, name: &str);
    /// Says something about the stream, such as why it stands still.
    fn note(&self, text: &str);
    /// Nothing follows; the reason is for people. Only the first one counts.
    fn end(&self, end: End);
}

/// Why nothing follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The source reached its end, as it was asked to.
    Finished,
    /// It cannot go on.
    Failed(String),
}

/// A stream being watched; dropping it stops everything.
pub struct Watch {
    _source: Arc<Source>,
}

/// What to watch, and how.
pub struct Stream {
    /// Where it comes from.
    pub spec: SourceSpec,
    /// User and password, for a source that asks for them.
    pub credentials: Option<Credentials>,
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
        let units = Arc::new(Units { receiver, screen });
        let source = Arc::new(Source::start(stream.spec, stream.credentials, units));
        grant(wishes, &source)?;
        Ok(Self { _source: source })
    }
}

/// Passes keyframe wishes on, until the receiver that has them is gone.
fn grant(wishes: Wishes<()>, source: &Arc<Source>) -> anyhow::Result<()> {
    // A strong reference here would keep the source, and with it the receiver and this thread, alive for ever.
    let source = Arc::downgrade(source);
    thread::Builder::new()
        .name("keyframes".to_owned())
        .spawn(move || {
            for () in wishes {
                let Some(source) = source.upgrade() else { return };
                source.request_keyframe();
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

/// What the source delivers to.
struct Units {
    receiver: Receiver,
    screen: Arc<dyn Screen>,
}

impl SourceOutput for Units {
    fn unit(&self, unit: AccessUnit) {
        if let Err(refused) = self.receiver.push(unit) {
            tracing::debug!(%refused, "an access unit was not taken");
        }
    }

    fn event(&self, event: SourceEvent) {
        match event {
            SourceEvent::Opened { description } => tracing::info!(%description, "the source is open"),
            SourceEvent::Waiting { reason } => tracing::info!(%reason, "the source is silent"),
            // Pictures still held for reordering come out first; `Drained` follows.
            SourceEvent::Ended => self.receiver.finish(),
            SourceEvent::Failed(failure) => self.screen.end(End::Failed(failure.reason)),
        }
    }
}
