//! Sources built: each yields whole H.264 access units in Annex B form, in real time.

use std::sync::Arc;

use crossdesk_core::media::AccessUnit;

use crate::plan::source::{Credentials, SourceFailure, SourceSpec};

/// What happened to a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceEvent {
    /// The first access unit is about to be delivered.
    Opened {
        /// What was opened, in words fit for `status`: no credentials, no query.
        description: String,
    },
    /// A source that plays once reached its end; nothing follows.
    Ended,
    /// The source is over; nothing follows.
    Failed(SourceFailure),
}

/// Where a source delivers. Called on its own threads; must not block.
pub trait SourceOutput: Send + Sync {
    /// One whole access unit.
    fn unit(&self, unit: AccessUnit);
    /// One event; `Ended` and `Failed` come at most once and last.
    fn event(&self, event: SourceEvent);
}

/// A running source; dropping it stops it.
pub struct Source {
    output: Arc<dyn SourceOutput>,
}

impl Source {
    /// Starts `spec`; returns at once, everything else is an event.
    pub fn start(spec: SourceSpec, credentials: Option<Credentials>, output: Arc<dyn SourceOutput>) -> Self {
        let _ = (spec, credentials);
        Self { output }
    }

    /// Asks for a keyframe soon, where the source can do that; never blocks.
    pub fn request_keyframe(&self) {
        let _ = &self.output;
    }
}
