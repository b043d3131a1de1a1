//! The session on virtual time, with a control channel that records.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::automation::effect::CaptureJob;
use crate::automation::event::{CaptureFailure, CaptureImage, ControlOutcome, PictureInfo};
use crate::control::ControlMessage;
use crate::units::{PixelRect, PixelSize};

#[cfg(test)]
mod acting;
#[cfg(test)]
mod capture;
#[cfg(test)]
mod connection;
#[cfg(test)]
mod random;
#[cfg(test)]
mod viewing;

const TOKEN: &str = "abcdefghijklmnopqrstuvwxyzAB-_09";
const SIZE: PixelSize = PixelSize::new(1920, 1080);

/// A session with everything around it: it acknowledges sends, makes pictures and keeps what was written.
struct World {
    session: Session,
    now: Monotonic,
    replies: VecDeque<Value>,
    effects: Vec<Effect>,
    sent: Vec<ControlMessage>,
    /// Those of them that may have reached the host: a press that was refused certainly did not.
    arrived: Vec<ControlMessage>,
    /// What becomes of sends; `None` leaves them unanswered.
    outcome: Option<ControlOutcome>,
    job: Option<CaptureJob>,
    frame: u64,
    epoch: u32,
}

impl World {
    fn new(video_ws: bool, direct_source: bool) -> Self {
        Self {
            session: Session::new(SessionConfig {
                video_ws,
                direct_source,
            }),
            now: Monotonic::from_micros(1_000_000),
            replies: VecDeque::new(),
            effects: Vec::new(),
            sent: Vec::new(),
            arrived: Vec::new(),
            outcome: Some(ControlOutcome::Sent),
            job: None,
            frame: 0,
            epoch: 1,
        }
    }

    /// Connected to a remote host that accepts input, with a picture.
    fn controlling() -> Self {
        let mut world = Self::new(true, false);
        world.connect("control");
        world.event(Event::Control {
            allowed: true,
            text: true,
        });
        world.picture();
        world
    }

    /// Connected to a direct source, with a picture.
    fn watching() -> Self {
        let mut world = Self::new(true, true);
        world.connect("observe");
        world.picture();
        world
    }

    fn connect(&mut self, mode: &str) -> Value {
        self.reply(json!({"id": 900, "method": "connect", "device": "123456789", "mode": mode, "display": 0}))
    }

    /// Hands in a request and lets everything settle.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "calls with a json!() literal read better"
    )]
    fn ask(&mut self, request: Value) {
        let line = request.to_string();
        self.session.handle_line(self.now, line.as_bytes());
        self.settle();
    }

    /// The one reply this request causes at once.
    fn reply(&mut self, request: Value) -> Value {
        assert_eq!(self.replies, [] as [Value; 0], "unread replies");
        self.ask(request);
        self.next_reply()
    }

    fn next_reply(&mut self) -> Value {
        self.replies.pop_front().expect("a reply")
    }

    /// The code of the one error reply this request causes.
    fn refusal(&mut self, request: Value) -> String {
        let reply = self.reply(request);
        code(&reply)
    }

    fn event(&mut self, event: Event) {
        self.session.handle_event(self.now, event);
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(effect) = self.session.poll_effect() {
            match effect {
                Effect::Reply(line) => {
                    let line = line.strip_suffix(b"\n").expect("replies end with a newline");
                    assert!(!line.contains(&b'\n'));
                    self.replies
                        .push_back(serde_json::from_slice(line).expect("replies are JSON"));
                }
                Effect::SendControl { send, message } => {
                    let press = matches!(
                        message,
                        ControlMessage::Key { down: true, .. }
                            | ControlMessage::MouseButton { down: true, .. }
                    );
                    if !press || self.outcome != Some(ControlOutcome::Refused) {
                        self.arrived.push(message.clone());
                    }
                    self.sent.push(message);
                    if let Some(outcome) = self.outcome {
                        self.session
                            .handle_event(self.now, Event::ControlSent { send, outcome });
                    }
                }
                Effect::Capture(job) => {
                    assert!(self.job.is_none(), "two captures at once");
                    self.job = Some(job);
                }
                other => self.effects.push(other),
            }
        }
        self.session.check_invariants();
    }

    /// Lets time pass, waking the session whenever it asks to be woken.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(deadline) = self.session.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            self.session.handle_timeout(self.now);
            self.settle();
        }
        self.now = end;
    }

    fn pass_ms(&mut self, ms: u64) {
        self.pass(Duration::from_millis(ms));
    }

    fn picture(&mut self) {
        self.frame += 1;
        self.event(Event::Picture(self.info()));
    }

    fn info(&self) -> PictureInfo {
        PictureInfo {
            frame_id: self.frame,
            size: SIZE,
            received: self.now,
            decoded: self.now,
            geometry_epoch: self.epoch,
        }
    }

    /// Finishes the running capture with the newest picture.
    fn finish_capture(&mut self) {
        let job = self.job.take().expect("a capture is running");
        let result = Ok(self.image(&job));
        self.event(Event::CaptureDone { job: job.job, result });
    }

    fn image(&self, job: &CaptureJob) -> CaptureImage {
        let source_rect = job.region.unwrap_or(PixelRect::whole(SIZE));
        let scale = f64::from(job.max_edge) / f64::from(source_rect.size().longest_edge());
        let scaled = |edge: u32| (f64::from(edge) * scale.min(1.0)).round() as u32;
        CaptureImage {
            picture: self.info(),
            source_rect,
            image_size: PixelSize::new(scaled(source_rect.width), scaled(source_rect.height)),
            png: Bytes::from_static(b"\x89PNG"),
        }
    }

    /// Takes a screenshot and returns its observation id.
    fn observe(&mut self) -> String {
        self.ask(json!({"id": 901, "method": "screenshot"}));
        self.finish_capture();
        let reply = self.next_reply();
        let id = &reply["result"]["metadata"]["observation_id"];
        id.as_str().expect("an observation").to_owned()
    }

    fn status(&mut self) -> Value {
        self.reply(json!({"id": 902, "method": "status"}))["result"].take()
    }

    fn count(&self, pick: impl Fn(&Effect) -> bool) -> usize {
        self.effects.iter().filter(|effect| pick(effect)).count()
    }
}

fn code(reply: &Value) -> String {
    assert_eq!(reply["ok"], false, "{reply}");
    reply["error"]["code"].as_str().expect("a code").to_owned()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "calls with a json!() literal read better"
)]
fn action(id: u64, operation: &str, observation: &str, action: Value) -> Value {
    json!({"id": id, "method": "action", "operation_id": operation, "observation_id": observation, "action": action})
}

fn click(id: u64, operation: &str, observation: &str) -> Value {
    action(
        id,
        operation,
        observation,
        json!({"type": "click", "x": 10, "y": 10}),
    )
}

#[test]
fn rejected_lines_get_one_reply_each() {
    let mut world = World::new(false, true);
    for line in [
        &b""[..],
        b"x",
        b"[1]",
        b"{\"id\":1}",
        b"\xff",
        b"{\"id\":2,\"method\":\"status\",\"x\":1}",
    ] {
        world.session.handle_line(world.now, line);
        world.settle();
        let reply = world.next_reply();
        assert_eq!(reply["ok"], false);
        assert!(reply.as_object().expect("object").contains_key("id"));
        assert!(world.replies.is_empty());
    }
    world.session.handle_oversized_line(world.now);
    world.settle();
    let reply = world.next_reply();
    assert_eq!(
        (&reply["id"], code(&reply).as_str()),
        (&Value::Null, "REQUEST_TOO_LARGE")
    );
}

#[test]
fn an_id_in_flight_may_not_repeat_and_a_finished_one_may() {
    let mut world = World::watching();
    world.ask(json!({"id": 1, "method": "screenshot"}));
    assert_eq!(
        world.refusal(json!({"id": 1, "method": "status"})),
        "DUPLICATE_ID"
    );
    world.finish_capture();
    assert_eq!(world.next_reply()["ok"], true);
    assert_eq!(world.reply(json!({"id": 1, "method": "status"}))["ok"], true);
}

#[test]
fn nothing_is_answered_after_exit() {
    let mut world = World::watching();
    let reply = world.reply(json!({"id": 1, "method": "exit"}));
    assert_eq!(reply["result"]["state"], "disconnected");
    assert_eq!(world.effects.last(), Some(&Effect::Exit(ExitReason::Requested)));
    world.ask(json!({"id": 2, "method": "status"}));
    world.session.handle_line(world.now, b"x");
    world.settle();
    assert!(world.replies.is_empty());
}

#[test]
fn closed_input_and_signals_end_everything_once() {
    for event in [Event::InputClosed, Event::Signal, Event::OutputBlocked] {
        let mut world = World::watching();
        world.ask(json!({"id": 1, "method": "screenshot"}));
        world.event(event);
        assert_eq!(code(&world.next_reply()), "DISCONNECTED");
        world.event(Event::Signal);
        assert_eq!(world.count(|effect| matches!(effect, Effect::Exit(_))), 1);
        assert_eq!(world.count(|effect| matches!(effect, Effect::StopTransport)), 1);
    }
}

#[test]
fn control_switches_obey_mode_and_pause() {
    let mut watching = World::watching();
    assert_eq!(
        watching.refusal(json!({"id": 1, "method": "control", "enabled": true})),
        "CONTROL_DENIED"
    );
    let off = watching.reply(json!({"id": 1, "method": "control", "enabled": false}));
    assert_eq!(off["result"]["control_enabled"], false);

    let mut world = World::controlling();
    let paused = world.reply(json!({"id": 1, "method": "viewer_control", "operation": "pause"}));
    assert_eq!(paused["result"]["human_paused"], true);
    assert_eq!(
        world.refusal(json!({"id": 2, "method": "control", "enabled": true})),
        "HUMAN_PAUSED"
    );
    assert_eq!(world.status()["human_paused"], true);
    world.reply(json!({"id": 3, "method": "viewer_control", "operation": "resume"}));
    let on = world.reply(json!({"id": 4, "method": "control", "enabled": true}));
    assert_eq!(on["result"]["control_enabled"], true);
}

#[test]
fn pause_and_resume_work_in_observe_mode() {
    let mut world = World::watching();
    world.reply(json!({"id": 1, "method": "viewer_control", "operation": "pause"}));
    assert_eq!(world.status()["human_paused"], true);
    world.reply(json!({"id": 1, "method": "viewer_control", "operation": "resume"}));
    assert_eq!(world.status()["human_paused"], false);
    assert_eq!(world.status()["state"], "ready");
    let gone = world.reply(json!({"id": 1, "method": "viewer_control", "operation": "disconnect"}));
    assert_eq!(gone["result"]["state"], "disconnected");
    assert_eq!(
        world.refusal(json!({"id": 2, "method": "viewer_control", "operation": "pause"})),
        "NOT_CONNECTED"
    );
}

#[test]
fn cancelling_nothing_is_answered_too() {
    let mut world = World::watching();
    let reply = world.reply(json!({"id": 1, "method": "cancel", "request_id": 77}));
    assert_eq!(reply["result"], json!({"request_id": 77, "cancelled": false}));
}
