//! Input: who may send it, what is sent, what happens when it stops.

use super::*;
use crate::automation::event::TransportState;

fn drag(id: u64, operation: &str, observation: &str) -> Value {
    let path = json!([{"x": 0, "y": 0}, {"x": 100, "y": 100}]);
    action(
        id,
        operation,
        observation,
        json!({"type": "drag", "path": path, "duration_ms": 1000}),
    )
}

fn hotkey(id: u64, operation: &str, observation: &str) -> Value {
    action(
        id,
        operation,
        observation,
        json!({"type": "hotkey", "keys": ["CTRL", "C"]}),
    )
}

/// Presses that were not released.
fn held(sent: &[ControlMessage]) -> i32 {
    sent.iter()
        .map(|message| match message {
            ControlMessage::MouseButton { down, .. } | ControlMessage::Key { down, .. } => {
                if *down {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        })
        .sum()
}

#[test]
fn a_click_is_sent_step_by_step_and_answered_at_its_end() {
    let mut world = World::controlling();
    let observation = world.observe();
    world.ask(click(1, "a", &observation));
    assert!(world.replies.is_empty());
    assert_eq!(world.sent.len(), 1, "the press waits for the pointer to settle");
    world.picture();
    world.pass_ms(1000);
    assert_eq!(world.sent.len(), 3);
    let expected = json!({"operation_id": "a", "status": "submitted", "retryable": false,
                          "side_effect_possible": true, "generation": 1, "after_frame_id": 2});
    assert_eq!(world.next_reply()["result"], expected);
    assert_eq!(world.session.next_deadline(), None);
}

#[test]
fn coordinates_go_through_the_image_to_the_source() {
    let mut world = World::controlling();
    world.ask(json!({"id": 1, "method": "screenshot", "max_edge": 64,
                     "region": {"x": 960, "y": 540, "width": 640, "height": 360}}));
    world.finish_capture();
    let observation = world.next_reply()["result"]["metadata"]["observation_id"]
        .as_str()
        .expect("id")
        .to_owned();
    let to = |x, y| json!({"type": "move", "x": x, "y": y});
    world.ask(action(2, "a", &observation, to(32, 18)));
    world.next_reply();
    let Some(ControlMessage::MouseMove { at }) = world.sent.last() else {
        panic!("a move")
    };
    assert!((at.x - (960.0 + 325.0) / 1920.0).abs() < 1e-9, "{at:?}");
    assert!((at.y - (540.0 + 185.0) / 1080.0).abs() < 1e-9, "{at:?}");
    assert_eq!(
        world.refusal(action(3, "b", &observation, to(64, 0))),
        "COORDINATE_OUT_OF_BOUNDS"
    );
    assert_eq!(
        world.refusal(action(3, "b", &observation, to(0, 36))),
        "COORDINATE_OUT_OF_BOUNDS"
    );
}

#[test]
fn every_reason_to_refuse_has_its_code() {
    let mut idle = World::new(true, false);
    assert_eq!(idle.refusal(click(1, "a", "obs_1_1")), "NOT_CONNECTED");
    let mut watching = World::watching();
    assert_eq!(watching.refusal(click(1, "a", "obs_1_1")), "CONTROL_DENIED");

    let mut world = World::new(true, false);
    world.connect("control");
    assert_eq!(world.refusal(click(1, "a", "obs_1_1")), "NOT_READY");
    world.picture();
    assert_eq!(world.refusal(click(1, "a", "obs_1_1")), "CONTROL_DENIED");
    world.event(Event::Control {
        allowed: true,
        text: false,
    });
    assert_eq!(world.refusal(click(1, "a", "obs_9_9")), "OBSERVATION_INVALID");
    let observation = world.observe();
    let text = action(1, "a", &observation, json!({"type": "type_text", "text": "x"}));
    assert_eq!(world.refusal(text), "TEXT_UNSUPPORTED");
    world.reply(json!({"id": 2, "method": "control", "enabled": false}));
    assert_eq!(world.refusal(click(1, "a", &observation)), "CONTROL_DISABLED");
    world.reply(json!({"id": 2, "method": "viewer_control", "operation": "pause"}));
    assert_eq!(world.refusal(click(1, "a", &observation)), "HUMAN_PAUSED");
    world.reply(json!({"id": 2, "method": "viewer_control", "operation": "resume"}));
    world.reply(json!({"id": 2, "method": "control", "enabled": true}));
    world.pass_ms(2001);
    assert_eq!(world.refusal(click(1, "a", &observation)), "VIDEO_STALE");
    assert!(world.sent.is_empty());
    // None of these used the operation id up.
    world.picture();
    world.ask(click(1, "a", &observation));
    world.pass_ms(1000);
    assert_eq!(world.next_reply()["result"]["status"], "submitted");
}

#[test]
fn observations_expire_after_thirty_seconds() {
    let mut world = World::controlling();
    let observation = world.observe();
    world.pass_ms(29_999);
    world.picture();
    world.ask(action(
        1,
        "a",
        &observation,
        json!({"type": "move", "x": 0, "y": 0}),
    ));
    assert_eq!(world.next_reply()["result"]["status"], "submitted");
    world.pass_ms(1);
    assert_eq!(world.refusal(click(1, "b", &observation)), "OBSERVATION_INVALID");
}

#[test]
fn an_operation_acts_once() {
    let mut world = World::controlling();
    let observation = world.observe();
    world.ask(click(1, "a", &observation));
    let running = world.reply(click(2, "a", &observation));
    assert_eq!(running["result"]["status"], "in_progress");
    assert_eq!(world.refusal(click(3, "b", &observation)), "BUSY");
    assert_eq!(world.refusal(hotkey(3, "a", &observation)), "OPERATION_CONFLICT");
    world.pass_ms(1000);
    let first = world.next_reply()["result"].take();
    let sent = world.sent.len();
    // The result stays readable while input is refused.
    world.pass_ms(5000);
    world.reply(json!({"id": 4, "method": "viewer_control", "operation": "pause"}));
    assert_eq!(world.reply(click(5, "a", &observation))["result"], first);
    world.reply(json!({"id": 6, "method": "disconnect"}));
    assert_eq!(world.reply(click(7, "a", &observation))["result"], first);
    assert_eq!(world.sent.len(), sent);
}

/// A code, and what causes it.
type Stop = (&'static str, fn(&mut World));

#[test]
fn whatever_stops_a_sequence_releases_what_it_holds() {
    let stops: [Stop; 7] = [
        ("CANCELLED", |world| {
            world.ask(json!({"id": 50, "method": "cancel", "request_id": 1}));
        }),
        ("HUMAN_PAUSED", |world| {
            world.ask(json!({"id": 50, "method": "viewer_control", "operation": "pause"}));
        }),
        ("CONTROL_DISABLED", |world| {
            world.ask(json!({"id": 50, "method": "control", "enabled": false}));
        }),
        ("GENERATION_CHANGED", |world| {
            world.ask(json!({"id": 50, "method": "display", "index": 0}));
        }),
        ("DISCONNECTED", |world| {
            world.ask(json!({"id": 50, "method": "disconnect"}));
        }),
        ("DISCONNECTED", |world| world.event(Event::InputClosed)),
        ("CONTROL_LOST", |world| {
            world.event(Event::Control {
                allowed: false,
                text: false,
            });
        }),
    ];
    for (code, stop) in stops {
        for request in [drag, hotkey] {
            let mut world = World::controlling();
            let observation = world.observe();
            world.ask(request(1, "a", &observation));
            world.pass_ms(20);
            assert!(held(&world.sent) > 0, "{code}");
            stop(&mut world);
            let result = world.next_reply()["result"].take();
            assert_eq!(
                (&result["status"], &result["code"]),
                (&json!("outcome_unknown"), &json!(code))
            );
            assert_eq!(result["side_effect_possible"], true);
            assert_eq!(held(&world.sent), 0, "{code}");
            let sent = world.sent.len();
            world.pass_ms(5000);
            assert_eq!(world.sent.len(), sent, "nothing follows");
        }
    }
}

#[test]
fn releases_leave_before_the_transport_stops() {
    let mut world = World::controlling();
    let observation = world.observe();
    world.ask(drag(1, "a", &observation));
    world.pass_ms(20);
    world.session.handle_event(world.now, Event::InputClosed);
    let effects: Vec<_> = std::iter::from_fn(|| world.session.poll_effect()).collect();
    let release = effects
        .iter()
        .position(|effect| matches!(effect, Effect::SendControl { .. }));
    let stop = effects
        .iter()
        .position(|effect| matches!(effect, Effect::StopTransport));
    assert!(release.expect("a release") < stop.expect("a stop"));
    assert!(matches!(
        effects.last(),
        Some(Effect::Exit(ExitReason::InputClosed))
    ));
}

#[test]
fn a_new_geometry_stops_pointer_sequences_only() {
    for (request, status) in [
        (drag as fn(u64, &str, &str) -> Value, "outcome_unknown"),
        (hotkey, "submitted"),
    ] {
        let mut world = World::controlling();
        let observation = world.observe();
        world.ask(request(1, "a", &observation));
        world.pass_ms(20);
        world.epoch = 2;
        world.picture();
        world.pass_ms(2000);
        assert_eq!(world.next_reply()["result"]["status"], status);
        assert_eq!(held(&world.sent), 0);
    }
}

#[test]
fn a_broken_transport_stops_a_sequence() {
    let mut world = World::controlling();
    let observation = world.observe();
    world.ask(hotkey(1, "a", &observation));
    world.event(Event::Transport(TransportState::Reconnecting {
        attempt: 1,
        code: ErrorCode::ConnectionLost,
        reason: String::new(),
    }));
    let result = world.next_reply()["result"].take();
    assert_eq!(
        (&result["status"], &result["code"]),
        (&json!("outcome_unknown"), &json!("CONNECTION_LOST"))
    );
    assert_eq!(held(&world.sent), 0);
}

#[test]
fn a_failed_send_leaves_the_outcome_unknown() {
    let mut world = World::controlling();
    let observation = world.observe();
    world.outcome = Some(ControlOutcome::Failed);
    let result = world.reply(hotkey(1, "a", &observation))["result"].take();
    assert_eq!(
        (&result["status"], &result["code"]),
        (&json!("outcome_unknown"), &json!("SEND_FAILED"))
    );
    assert_eq!(result["retryable"], false);
    assert_eq!(held(&world.sent), 0, "a press that may have arrived is released");
}

#[test]
fn a_first_message_certainly_kept_back_failed_before_submit() {
    let mut world = World::controlling();
    let observation = world.observe();
    world.outcome = Some(ControlOutcome::Refused);
    let result = world.reply(hotkey(1, "a", &observation))["result"].take();
    let expected = json!({"operation_id": "a", "status": "failed_before_submit", "retryable": true,
                          "side_effect_possible": false, "generation": 1, "after_frame_id": 1, "code": "BUSY"});
    assert_eq!(result, expected);
    assert_eq!(world.sent.len(), 1, "nothing to release");
}

#[test]
fn a_later_message_kept_back_leaves_the_outcome_unknown() {
    let mut world = World::controlling();
    let observation = world.observe();
    world.ask(hotkey(1, "a", &observation));
    world.outcome = Some(ControlOutcome::Refused);
    world.pass_ms(1000);
    assert_eq!(world.next_reply()["result"]["status"], "outcome_unknown");
}

#[test]
fn a_silent_transport_is_given_up() {
    let mut world = World::controlling();
    let observation = world.observe();
    world.outcome = None;
    world.ask(hotkey(1, "a", &observation));
    world.pass_ms(4999);
    assert!(world.replies.is_empty());
    world.pass_ms(1);
    assert_eq!(world.next_reply()["result"]["status"], "outcome_unknown");
    assert_eq!(held(&world.sent), 0);
}

#[test]
fn typed_text_leaves_no_trace() {
    let mut world = World::controlling();
    let observation = world.observe();
    let typed = action(
        1,
        "a",
        &observation,
        json!({"type": "type_text", "text": "hunter2"}),
    );
    let reply = world.reply(typed);
    assert_eq!(reply["result"]["status"], "submitted");
    assert!(!reply.to_string().contains("hunter2"));
    assert!(!format!("{:?}", world.session).contains("hunter2"));
    assert!(matches!(world.sent.last(), Some(ControlMessage::Text(text)) if text.expose() == "hunter2"));
}
