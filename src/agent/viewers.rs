//! The video listener in the session's words.

use crossdesk_core::automation::{DecodePath, Token, VideoGrant, VideoOutputStats, ViewerLatency};
use crossdesk_core::error::ErrorCode;
use crossdesk_core::video::{Grant, Protocol, ViewId, ViewerReport};

use crate::video::{Publisher, VideoService, VideoServiceError};

/// The listener of this process.
pub struct Viewers {
    service: VideoService,
    protocol: std::cell::Cell<Protocol>,
}

impl Viewers {
    /// Wraps a listener that serves nobody yet.
    pub fn new(service: VideoService) -> Self {
        Self {
            service,
            protocol: std::cell::Cell::new(Protocol::H264AnnexB),
        }
    }

    /// Where streaming threads deliver.
    pub fn publisher(&self) -> Publisher {
        self.service.publisher()
    }

    /// A connection begins.
    pub fn begin(&self, generation: u32, path: DecodePath) {
        self.protocol.set(match path {
            DecodePath::Browser => Protocol::H264AnnexB,
            DecodePath::Minirtc => Protocol::Nv12,
        });
        self.next_generation(generation);
    }

    /// Another display of the same connection begins.
    pub fn next_generation(&self, generation: u32) {
        report(self.service.begin(generation, self.protocol.get()));
    }

    /// The connection ends.
    pub fn end(&self) {
        report(self.service.end());
    }

    /// Grants one viewer and tells the port to connect to.
    ///
    /// # Errors
    /// The code for the caller.
    pub fn grant(&self, grant: &VideoGrant) -> Result<u16, ErrorCode> {
        let grant = Grant::from_request(grant).ok_or(ErrorCode::InvalidArgument)?;
        match self.service.grant(grant) {
            Ok(()) => Ok(self.service.port()),
            Err(VideoServiceError::Grant(refusal)) => Err(refusal.code()),
            Err(VideoServiceError::NotAnswering) => Err(ErrorCode::VideoUnavailable),
        }
    }

    /// Revokes one view or all; false when that could not be confirmed.
    pub fn revoke(&self, view: Option<&Token>) -> bool {
        match view.map(|view| ViewId::parse(view.expose())) {
            // A view of another shape was never granted.
            Some(None) => true,
            Some(Some(view)) => self.service.revoke(Some(view)).is_ok(),
            None => self.service.revoke(None).is_ok(),
        }
    }

    /// Counters and latencies; `None` while the listener does not answer.
    pub fn stats(&self) -> Option<(VideoOutputStats, Vec<ViewerLatency>)> {
        let stats = self.service.stats().ok()?;
        Some((
            stats.output,
            stats.viewers.iter().map(ViewerReport::latency).collect(),
        ))
    }
}

fn report(result: Result<(), VideoServiceError>) {
    if let Err(error) = result {
        tracing::error!(%error, "live video is not available");
    }
}
