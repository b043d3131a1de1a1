//! Random lists of requests and events: invariants hold, every request gets one reply, nothing stays pressed.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::automation::event::TransportState;
use crate::testing::oracles::automation_line;

/// One random thing to do.
#[derive(Clone, Debug)]
enum Op {
    Request(u8),
    Pass(u16),
    Picture,
    NewGeometry,
    FinishCapture,
    FailCapture,
    Outcome(u8),
    Break,
    Control(bool),
    Answer,
    End,
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0_u8..24).prop_map(Op::Request),
        6 => (0_u16..3000).prop_map(Op::Pass),
        6 => Just(Op::Picture),
        1 => Just(Op::NewGeometry),
        6 => Just(Op::FinishCapture),
        1 => Just(Op::FailCapture),
        2 => (0_u8..6).prop_map(Op::Outcome),
        1 => Just(Op::Break),
        2 => prop_oneof![4 => Just(true), 1 => Just(false)].prop_map(Op::Control),
        4 => Just(Op::Answer),
        1 => Just(Op::End),
    ]
}

/// Runs operations and keeps account of replies.
struct Runner {
    world: World,
    next_id: u64,
    asked: HashMap<u64, u32>,
    observation: String,
    video_jobs: Vec<(u64, bool)>,
}

impl Runner {
    fn new() -> Self {
        Self {
            world: World::controlling(),
            next_id: 0,
            asked: HashMap::new(),
            observation: "obs_1_1".into(),
            video_jobs: Vec::new(),
        }
    }

    fn request(&self, kind: u8) -> Value {
        let last = self.next_id.saturating_sub(1);
        let body = match kind {
            0 => json!({"method": "hello", "protocol": "crossdesk-automation/1"}),
            1 => json!({"method": "status"}),
            2 | 3 => json!({"method": "screenshot", "timeout_ms": 700}),
            4 => json!({"method": "screenshot", "after_frame_id": self.world.frame, "generation": 1}),
            5 => json!({"method": "preview", "timeout_ms": 100}),
            6 => json!({"method": "preview", "after_frame_id": self.world.frame, "generation": 1}),
            7 => json!({"method": "video_open", "ticket": TOKEN, "view": TOKEN, "view_generation": 1,
                        "session": TOKEN, "origin": "http://127.0.0.1:8080", "apps": true}),
            8 => json!({"method": "video_revoke"}),
            9 => json!({"method": "control", "enabled": true}),
            10 => json!({"method": "control", "enabled": false}),
            11 => json!({"method": "viewer_control", "operation": "pause"}),
            12 => json!({"method": "viewer_control", "operation": "resume"}),
            13 => json!({"method": "display", "index": 0}),
            14 => json!({"method": "cancel", "request_id": last}),
            15 => json!({"method": "nonsense"}),
            _ => self.action(kind),
        };
        let mut body = body;
        body["id"] = json!(self.next_id);
        body
    }

    fn action(&self, kind: u8) -> Value {
        let what = match kind % 4 {
            0 => json!({"type": "click", "x": 5, "y": 5}),
            1 => json!({"type": "drag", "path": [{"x": 1, "y": 1}, {"x": 9, "y": 9}]}),
            2 => json!({"type": "hotkey", "keys": ["CTRL", "ALT", "DELETE"]}),
            _ => json!({"type": "type_text", "text": "x"}),
        };
        action(0, &format!("op{}", self.next_id / 2), &self.observation, what)
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Request(kind) => {
                self.asked.insert(self.next_id, 0);
                let request = self.request(*kind);
                self.next_id += 1;
                self.world.ask(request);
            }
            Op::Pass(ms) => self.world.pass_ms(u64::from(*ms)),
            Op::Picture => self.world.picture(),
            Op::NewGeometry => {
                self.world.epoch += 1;
                self.world.picture();
            }
            Op::FinishCapture if self.world.job.is_some() => self.world.finish_capture(),
            Op::FinishCapture => {}
            Op::FailCapture => self.fail_capture(),
            Op::Outcome(n) => {
                self.world.outcome = match n {
                    0 => None,
                    1 => Some(ControlOutcome::Failed),
                    2 => Some(ControlOutcome::Refused),
                    _ => Some(ControlOutcome::Sent),
                };
            }
            Op::Break => self.world.event(Event::Transport(TransportState::Reconnecting {
                attempt: 1,
                code: ErrorCode::ConnectionLost,
                reason: String::new(),
            })),
            Op::Control(allowed) => self.world.event(Event::Control {
                allowed: *allowed,
                text: *allowed,
            }),
            Op::Answer => self.answer_video(),
            Op::End => self.world.event(Event::Transport(TransportState::Ended {
                code: ErrorCode::SourceEnded,
                reason: String::new(),
            })),
        }
        self.account();
    }

    fn fail_capture(&mut self) {
        if let Some(job) = self.world.job.take() {
            self.world.event(Event::CaptureDone {
                job: job.job,
                result: Err(CaptureFailure::Failed),
            });
        }
    }

    fn answer_video(&mut self) {
        for (job, revoke) in std::mem::take(&mut self.video_jobs) {
            self.world.event(if revoke {
                Event::VideoRevoked { job }
            } else {
                Event::VideoOpened { job, result: Ok(1) }
            });
        }
    }

    fn account(&mut self) {
        for effect in self.world.effects.drain(..) {
            match effect {
                Effect::OpenVideo(grant) => self.video_jobs.push((grant.job, false)),
                Effect::RevokeVideo { job, .. } => self.video_jobs.push((job, true)),
                _ => {}
            }
        }
        for reply in self.world.replies.drain(..) {
            let id = reply["id"].as_u64().expect("an id");
            *self.asked.get_mut(&id).expect("a reply to a request") += 1;
            if let Some(observation) = reply["result"]["metadata"]["observation_id"].as_str() {
                observation.clone_into(&mut self.observation);
            }
        }
        for (id, replies) in &self.asked {
            assert!(*replies <= 1, "request {id} was answered {replies} times");
        }
    }

    /// Ends the process: whoever still waited has an answer, and nothing is pressed.
    fn finish(mut self) {
        self.world.event(Event::InputClosed);
        self.account();
        for (id, replies) in &self.asked {
            assert_eq!(*replies, 1, "request {id}");
        }
        let mut held = crate::automation::sequence::Held::default();
        for message in &self.world.arrived {
            held.note(message);
        }
        assert!(held.release().is_empty(), "something stays pressed");
    }
}

/// Text close to a request: right words in wrong places, with a bite taken out of it now and then.
fn any_request_like() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("id"),
        Just("method"),
        Just("protocol"),
        Just("device"),
        Just("mode"),
        Just("display"),
        Just("timeout_ms"),
        Just("region"),
        Just("action"),
    ];
    let value = prop_oneof![
        any::<u64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        Just("\"hello\"".to_owned()),
        Just("\"status\"".to_owned()),
        Just("\"exit\"".to_owned()),
        Just("\"connect\"".to_owned()),
        Just("\"crossdesk-automation/1\"".to_owned()),
        Just("\"123456789\"".to_owned()),
        Just("\"observe\"".to_owned()),
        Just("{\"x\":0,\"x\":1}".to_owned()),
        Just("null".to_owned()),
        (0_usize..60).prop_map(|depth| "[".repeat(depth) + &"]".repeat(depth)),
    ];
    let member = (name, value).prop_map(|(name, value)| format!("\"{name}\":{value}"));
    let object =
        proptest::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(",")));
    (object, proptest::option::weighted(0.2, 0_usize..200)).prop_map(|(mut text, bite)| {
        if let Some(at) = bite.filter(|at| text.is_char_boundary(*at) && *at < text.len()) {
            text.remove(at);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn any_list_of_operations_keeps_the_rules(ops in proptest::collection::vec(any_op(), 1..80)) {
        let mut runner = Runner::new();
        for op in &ops {
            runner.run(op);
        }
        runner.finish();
    }

    #[test]
    fn any_bytes_get_one_reply(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        automation_line(&line);
    }

    #[test]
    fn anything_like_a_request_gets_one_reply(line in any_request_like()) {
        automation_line(line.as_bytes());
    }
}
