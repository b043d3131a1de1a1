//! The one loop that owns a session, its connection, its video listener and its output.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Inbox, RecvTimeoutError, SyncSender};
use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::automation::{
    CaptureFailure, CaptureJob, ControlOutcome, Effect, Event, ExitReason, OutputQueue, Session,
    StartTransport, TransportState,
};
use crossdesk_core::control::ControlMessage;
use crossdesk_core::error::ErrorCode;
use crossdesk_core::time::Monotonic;
use crossdesk_pipelines::clock;

use super::capture::{CaptureWorker, picture_info};
use super::event::AgentEvent;
use super::facts::{self, Facts};
use super::input::Line;
use super::media::{Goodbye, LatestPicture, Media};
use super::output::{Writer, Written};
use super::start::{Password, Starter};
use super::viewers::Viewers;

/// Bytes handed to the stdout thread at once; small enough that `exit` never waits for one long write.
const CHUNK_BYTES: usize = 64 * 1024;
/// How long the last pictures of a source that ended are waited for: a hanging decoder is given up after 2 s.
const LAST_PICTURES: Duration = Duration::from_secs(3);
/// How long replies may take to leave after the end of the session; `exit` promises two seconds in all.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long the other side's goodbye may take beyond that.
const GOODBYE: Duration = Duration::from_millis(800);

/// What the loop is built from.
pub struct Parts {
    /// The rules.
    pub session: Session,
    /// Everything that wakes the loop.
    pub inbox: Inbox<AgentEvent>,
    /// The other end of the inbox, for workers started later.
    pub events: SyncSender<AgentEvent>,
    /// One token per request line that may be read.
    pub credits: SyncSender<()>,
    /// stdout.
    pub writer: Writer,
    /// PNG worker.
    pub captures: CaptureWorker,
    /// The video listener, with `--video-ws`.
    pub viewers: Option<Viewers>,
    /// How connections are made.
    pub starter: Starter,
}

/// The loop.
pub struct Owner {
    parts: Parts,
    output: OutputQueue,
    /// Bytes of the chunk the stdout thread is writing, and how much of it was seen to be written.
    in_flight: usize,
    written_seen: u64,
    /// Lines handled whose credit was held back because the output queue was too full.
    owed_credits: usize,
    latest: Arc<LatestPicture>,
    media: Option<Media>,
    /// A connection that is being ended.
    goodbye: Option<Goodbye>,
    /// A connection that waits for GStreamer or for the password.
    waiting: Option<StartTransport>,
    facts: Facts,
    /// Captures that wait until their large replies have room in the output queue; the session starts few.
    held_captures: VecDeque<CaptureJob>,
    /// The end of a source, told once its last pictures are out, and until when they are waited for.
    ending: Option<(Event, Monotonic)>,
    exit: Option<ExitReason>,
}

impl Owner {
    /// A loop that has not started.
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            output: OutputQueue::new(),
            in_flight: 0,
            written_seen: 0,
            owed_credits: 0,
            latest: Arc::default(),
            media: None,
            goodbye: None,
            waiting: None,
            facts: Facts::default(),
            held_captures: VecDeque::new(),
            ending: None,
            exit: None,
        }
    }

    /// Runs until the session ends and its last replies are written, or cannot be.
    pub fn run(mut self) -> ExitReason {
        let reason = loop {
            self.carry_out();
            if let Some(reason) = self.exit {
                break reason;
            }
            self.wait();
        };
        let goodbye = self.media.take().map(Media::stop).or(self.goodbye.take());
        if reason != ExitReason::OutputBlocked {
            self.say_farewell();
        }
        // A host that is told releases what is held and stops sending; one that is not finds out seconds later.
        if let Some(goodbye) = goodbye {
            goodbye.wait(GOODBYE);
        }
        reason
    }

    /// Waits for one event or the next deadline and lets the session know.
    fn wait(&mut self) {
        let now = clock::now();
        let ending = self.ending.as_ref().map(|(_, deadline)| *deadline);
        let deadline = [self.parts.session.next_deadline(), self.output.deadline(), ending]
            .into_iter()
            .flatten()
            .min();
        let event = match deadline {
            Some(deadline) => self.parts.inbox.recv_timeout(deadline.since(now)),
            None => self
                .parts
                .inbox
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        };
        let now = clock::now();
        // Disconnected cannot happen, the loop holds a sender itself; a time-out is handled below with the rest.
        if let Ok(event) = event {
            self.handle(now, event);
        }
        self.handle_picture(now);
        if self.ending.as_ref().is_some_and(|(_, deadline)| *deadline <= now) {
            self.end_source(now);
        }
        self.note_progress(now);
        if self.output.is_blocked(now) {
            self.parts.session.handle_event(now, Event::OutputBlocked);
        }
        if self
            .parts
            .session
            .next_deadline()
            .is_some_and(|deadline| deadline <= now)
        {
            self.parts.session.handle_timeout(now);
        }
    }

    fn handle(&mut self, now: Monotonic, event: AgentEvent) {
        match event {
            AgentEvent::Line(line) => self.handle_line(now, &line),
            AgentEvent::InputClosed => self.parts.session.handle_event(now, Event::InputClosed),
            // A wake-up: what was written is noted after every event.
            AgentEvent::Written(Written::All) | AgentEvent::Picture => {}
            AgentEvent::Written(Written::Closed) => {
                self.parts.session.handle_event(now, Event::OutputBlocked);
            }
            AgentEvent::Signal => self.parts.session.handle_event(now, Event::Signal),
            AgentEvent::Password(password) => self.handle_password(now, password),
            AgentEvent::MediaReady(ready) => self.handle_media_ready(now, ready),
            AgentEvent::KeyframeWanted => self.request_keyframe(),
            AgentEvent::Receive(event) => self.handle_receive(now, event),
            AgentEvent::Transport(event) => self.handle_transport(now, facts::transport(event)),
            AgentEvent::Captured { job, result } => {
                self.parts
                    .session
                    .handle_event(now, Event::CaptureDone { job, result });
            }
        }
    }

    fn handle_line(&mut self, now: Monotonic, line: &Line) {
        match line {
            Line::Complete(line) => {
                self.push_facts(now);
                self.parts.session.handle_line(now, line);
            }
            Line::TooLong => self.parts.session.handle_oversized_line(now),
        }
        self.owed_credits += 1;
    }

    /// Gives the session the counters a `status` request may ask for.
    fn push_facts(&mut self, now: Monotonic) {
        let session = &mut self.parts.session;
        if let Some(media) = &self.media {
            session.handle_event(now, Event::Diagnostics(media.diagnostics()));
        }
        if let Some(viewers) = &self.parts.viewers
            && let Some((output, rows)) = viewers.stats()
        {
            session.handle_event(now, Event::VideoOutput(output));
            self.facts.set_viewers(rows);
        }
        session.handle_event(now, Event::Latency(self.facts.latency()));
    }

    fn handle_picture(&mut self, now: Monotonic) {
        if let Some(picture) = self.latest.take_fresh() {
            self.facts.picture(&picture);
            self.parts
                .session
                .handle_event(now, Event::Picture(picture_info(&picture)));
        }
    }

    fn handle_transport(&mut self, now: Monotonic, event: Event) {
        match (&event, &self.media) {
            (Event::Transport(TransportState::Ended { .. }), Some(media)) => {
                media.finish();
                self.ending = Some((event, now + LAST_PICTURES));
            }
            _ => self.parts.session.handle_event(now, event),
        }
    }

    /// Tells the end of the source.
    fn end_source(&mut self, now: Monotonic) {
        if let Some((event, _)) = self.ending.take() {
            self.handle_picture(now);
            self.parts.session.handle_event(now, event);
        }
    }

    fn handle_receive(&mut self, now: Monotonic, event: crossdesk_pipelines::receive::ReceiveEvent) {
        let told = self.facts.receive(event);
        if told.keyframe_wanted {
            self.request_keyframe();
        }
        if let Some(event) = told.event {
            self.parts.session.handle_event(now, event);
        }
        if told.drained {
            self.end_source(now);
        }
    }

    fn request_keyframe(&self) {
        if let Some(media) = &self.media {
            media.transport().request_keyframe();
        }
    }

    fn handle_password(&mut self, now: Monotonic, password: Password) {
        self.parts.starter.set_password(password);
        self.start_waiting(now);
    }

    fn handle_media_ready(&mut self, now: Monotonic, ready: Result<(), String>) {
        self.parts.starter.set_media_ready(ready);
        self.start_waiting(now);
    }

    fn start_waiting(&mut self, now: Monotonic) {
        if self.parts.starter.is_ready()
            && let Some(start) = self.waiting.take()
        {
            self.parts.session.handle_event(now, Event::Obstacle(None));
            self.start_transport(now, &start);
        }
    }

    fn start_transport(&mut self, now: Monotonic, start: &StartTransport) {
        let publisher = self.parts.viewers.as_ref().map(|viewers| {
            viewers.begin(start.generation, start.connect.decode_path);
            viewers.publisher()
        });
        let started = self.parts.starter.start(
            start,
            Arc::clone(&self.latest),
            publisher,
            self.parts.events.clone(),
        );
        match started {
            Ok(media) => self.media = Some(media),
            Err((code, reason)) => self
                .parts
                .session
                .handle_event(now, Event::Failed { code, reason }),
        }
    }

    /// Does everything the session wants done, then moves output along.
    fn carry_out(&mut self) {
        while let Some(effect) = self.parts.session.poll_effect() {
            let now = clock::now();
            match effect {
                Effect::Reply(line) => self.reply(now, line),
                Effect::StartTransport(start) => {
                    self.waiting = Some(start);
                    let missing = self.parts.starter.missing().map(str::to_owned);
                    self.parts.session.handle_event(now, Event::Obstacle(missing));
                    self.start_waiting(now);
                }
                Effect::StopTransport => self.stop_transport(now),
                Effect::SendControl { send, message } => {
                    let outcome = self.send_control(message);
                    self.parts
                        .session
                        .handle_event(now, Event::ControlSent { send, outcome });
                }
                Effect::SelectDisplay { display, generation } => self.select_display(display, generation),
                Effect::Capture(job) => self.held_captures.push_back(job),
                // The worker finishes the job at hand within milliseconds; the session discards its result.
                Effect::CancelCapture { .. } => {}
                Effect::OpenVideo(grant) => {
                    let job = grant.job;
                    let result = self
                        .parts
                        .viewers
                        .as_ref()
                        .map_or(Err(ErrorCode::VideoDisabled), |viewers| viewers.grant(&grant));
                    self.parts
                        .session
                        .handle_event(now, Event::VideoOpened { job, result });
                }
                Effect::RevokeVideo { job, view } => {
                    let revoked = self
                        .parts
                        .viewers
                        .as_ref()
                        .is_none_or(|viewers| viewers.revoke(view.as_ref()));
                    if revoked {
                        self.parts.session.handle_event(now, Event::VideoRevoked { job });
                    }
                }
                Effect::RequestKeyframe => self.request_keyframe(),
                Effect::Exit(reason) => self.exit = Some(reason),
            }
        }
        self.feed_writer();
        self.return_credits();
        if self.start_held_captures() {
            // One that failed at once has left effects behind.
            self.carry_out();
        }
    }

    /// A reply with an image fits whenever the queue is at most half full; true when a capture was started.
    fn start_held_captures(&mut self) -> bool {
        let Some(job) = self.held_captures.pop_front_if(|_| self.output.has_room()) else {
            return false;
        };
        self.capture(clock::now(), job);
        true
    }

    fn stop_transport(&mut self, now: Monotonic) {
        self.waiting = None;
        self.ending = None;
        if let Some(viewers) = &self.parts.viewers {
            viewers.end();
        }
        if let Some(media) = self.media.take() {
            // The last counters: later requests find no connection to ask.
            self.parts
                .session
                .handle_event(now, Event::Diagnostics(media.diagnostics()));
            self.goodbye = Some(media.stop());
        }
        self.latest.clear();
    }

    fn send_control(&self, message: ControlMessage) -> ControlOutcome {
        match &self.media {
            Some(media) => media.transport().send_control(message),
            None => ControlOutcome::Refused,
        }
    }

    fn select_display(&self, display: u8, generation: u32) {
        if let Some(viewers) = &self.parts.viewers {
            viewers.next_generation(generation);
        }
        if let Some(media) = &self.media {
            media.transport().select_display(display);
        }
    }

    fn capture(&mut self, now: Monotonic, job: CaptureJob) {
        let number = job.job;
        let submitted = match self.latest.get() {
            Some(picture) => self.parts.captures.submit(job, picture),
            None => Err(CaptureFailure::NoPicture),
        };
        if let Err(failure) = submitted {
            self.parts.session.handle_event(
                now,
                Event::CaptureDone {
                    job: number,
                    result: Err(failure),
                },
            );
        }
    }

    fn reply(&mut self, now: Monotonic, line: Bytes) {
        if self.output.push(now, line).is_err() {
            // Credits keep lines from being read long before this; a parent that gets here reads nothing at all.
            self.parts.session.handle_event(now, Event::OutputBlocked);
        }
    }

    fn feed_writer(&mut self) {
        if self.in_flight > 0 || self.output.is_empty() {
            return;
        }
        let front = self.output.front();
        let chunk = Bytes::copy_from_slice(&front[..front.len().min(CHUNK_BYTES)]);
        let length = chunk.len();
        if self.parts.writer.write(chunk).is_ok() {
            self.in_flight = length;
        }
    }

    /// Tells the output queue about pieces of the chunk in flight, so that a slow reader counts as progress.
    fn note_progress(&mut self, now: Monotonic) {
        let written = self.parts.writer.written();
        let fresh = usize::try_from(written - self.written_seen)
            .unwrap_or(usize::MAX)
            .min(self.in_flight);
        self.written_seen = written;
        self.in_flight -= fresh;
        self.output.wrote(now, fresh);
    }

    fn return_credits(&mut self) {
        while self.owed_credits > 0 && self.output.has_room() {
            self.owed_credits -= 1;
            // Full cannot happen: no more credits exist than places. A reader that is gone needs none.
            let _ = self.parts.credits.try_send(());
        }
    }

    /// Writes what is queued, for at most [`FAREWELL`].
    fn say_farewell(mut self) {
        let until = clock::now() + FAREWELL;
        loop {
            self.feed_writer();
            let now = clock::now();
            if (self.output.is_empty() && self.in_flight == 0) || now >= until {
                return;
            }
            match self.parts.inbox.recv_timeout(until.since(now)) {
                Ok(AgentEvent::Written(Written::All)) => self.note_progress(clock::now()),
                Ok(AgentEvent::Written(Written::Closed)) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}
