//! Grants for viewers of live video; what a viewer then receives is decided in `core::video`.

use crate::error::ErrorCode;

use super::effect::{Effect, VideoGrant};
use super::reply::{Revoked, VideoOpened};
use super::request::{Token, VideoOpen};
use super::session::{Session, SessionState};

/// Most grants and revocations waiting for the video service; it serves 8 viewers and answers at once.
const MAX_WAITING: usize = 16;

/// Requests the video service has not answered yet.
#[derive(Debug, Default)]
pub(super) struct Viewing {
    opening: Vec<Waiting>,
    revoking: Vec<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    job: u64,
    request: u64,
}

impl Viewing {
    /// True while a reply to `request` is owed.
    pub(super) fn owes(&self, request: u64) -> bool {
        self.opening
            .iter()
            .chain(&self.revoking)
            .any(|waiting| waiting.request == request)
    }
}

/// Removes the entry of `job` and returns its request.
fn take(waiting: &mut Vec<Waiting>, job: u64) -> Option<u64> {
    let at = waiting.iter().position(|entry| entry.job == job)?;
    Some(waiting.swap_remove(at).request)
}

impl Session {
    pub(super) fn video_open(&mut self, id: u64, open: VideoOpen) {
        if let Err(code) = self.may_open() {
            return self.refuse(id, code);
        }
        let job = self.number();
        self.viewing.opening.push(Waiting { job, request: id });
        let generation = self.generation().expect("an active session has a generation");
        self.push(Effect::OpenVideo(VideoGrant {
            job,
            ticket: open.ticket,
            view: open.view,
            view_generation: open.view_generation,
            session: open.session,
            origin: open.origin,
            apps: open.apps,
            generation,
        }));
    }

    /// A grant needs a picture of this generation; a short break of the transport does not turn viewers away.
    fn may_open(&self) -> Result<(), ErrorCode> {
        if !self.config.video_ws {
            return Err(ErrorCode::VideoDisabled);
        }
        match self.state {
            SessionState::Ready => {}
            SessionState::Connecting | SessionState::Reconnecting => return Err(ErrorCode::NotReady),
            _ => return Err(ErrorCode::NotConnected),
        }
        if self.viewing.opening.len() >= MAX_WAITING {
            return Err(ErrorCode::Busy);
        }
        Ok(())
    }

    pub(super) fn video_opened(&mut self, job: u64, result: Result<u16, ErrorCode>) {
        let Some(request) = take(&mut self.viewing.opening, job) else {
            return;
        };
        match (result, &self.connection) {
            (Ok(port), Some(connection)) => {
                let connect = &connection.request;
                let opened = VideoOpened::new(port, connect.decode_path, connect.decoder.as_str());
                self.answer(request, &opened);
            }
            (Ok(_), None) => self.refuse(request, ErrorCode::NotConnected),
            (Err(code), _) => self.refuse(request, code),
        }
    }

    /// Revoking is allowed in every state: what does not exist is revoked already.
    pub(super) fn video_revoke(&mut self, id: u64, view: Option<Token>) {
        if !self.config.video_ws {
            return self.answer(id, &Revoked { revoked: true });
        }
        if self.viewing.revoking.len() >= MAX_WAITING {
            return self.refuse(id, ErrorCode::Busy);
        }
        let job = self.number();
        self.viewing.revoking.push(Waiting { job, request: id });
        self.push(Effect::RevokeVideo { job, view });
    }

    pub(super) fn video_revoked(&mut self, job: u64) {
        if let Some(request) = take(&mut self.viewing.revoking, job) {
            self.answer(request, &Revoked { revoked: true });
        }
    }

    /// Answers who waits for a grant. Grants and sockets end with the display generation or the transport; revoking
    /// them first would tell viewers that somebody turned them away.
    pub(super) fn fail_grants(&mut self, code: ErrorCode) {
        for waiting in std::mem::take(&mut self.viewing.opening) {
            self.refuse(waiting.request, code);
        }
    }

    /// Answers who still waits when the process ends; the sockets end with it.
    pub(super) fn viewing_ends(&mut self) {
        for waiting in std::mem::take(&mut self.viewing.revoking) {
            self.answer(waiting.request, &Revoked { revoked: true });
        }
    }
}
