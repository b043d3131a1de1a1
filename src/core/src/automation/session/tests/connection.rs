//! Connecting, generations, breaks, ends, and `status`.

use super::*;
use crate::automation::event::{DecoderFailure, DecoderReport, Display, TransportState, VideoOutputStats};

fn reconnecting() -> Event {
    Event::Transport(TransportState::Reconnecting {
        attempt: 1,
        code: ErrorCode::SourceUnreachable,
        reason: "refused".into(),
    })
}

#[test]
fn connecting_ends_with_the_first_picture() {
    let mut world = World::new(true, true);
    assert_eq!(world.status()["state"], "idle");
    let reply = world.connect("observe");
    assert_eq!(
        reply["result"],
        json!({"state": "connecting", "generation": 1, "display_index": 0})
    );
    assert!(matches!(&world.effects[..], [Effect::StartTransport(start)] if start.generation == 1));
    world.event(Event::Transport(TransportState::Connected));
    assert_eq!(world.status()["state"], "connecting");
    world.picture();
    let status = world.status();
    assert_eq!(
        (&status["state"], &status["transport_state"]),
        (&json!("ready"), &json!("connected"))
    );
    assert_eq!(world.session.next_deadline(), None);
}

#[test]
fn one_attempt_per_process() {
    let mut world = World::new(true, true);
    world.connect("observe");
    let again = json!({"id": 1, "method": "connect", "device": "123456789", "mode": "observe", "display": 0});
    assert_eq!(world.refusal(again.clone()), "ALREADY_CONNECTED");
    world.reply(json!({"id": 2, "method": "disconnect"}));
    assert_eq!(world.refusal(again), "ALREADY_CONNECTED");
}

#[test]
fn control_of_a_direct_source_is_refused_and_costs_nothing() {
    let mut world = World::new(true, true);
    let reply = world.connect("control");
    assert_eq!(code(&reply), "CONTROL_UNSUPPORTED");
    assert!(world.effects.is_empty());
    assert_eq!(world.status()["state"], "idle");
    assert_eq!(world.connect("observe")["ok"], true);
}

#[test]
fn thirty_seconds_without_a_picture_fail() {
    let mut world = World::new(true, true);
    world.connect("observe");
    world.pass_ms(10_000);
    world.event(reconnecting());
    assert_eq!(world.status()["state"], "reconnecting");
    assert_eq!(world.status()["error"]["code"], "SOURCE_UNREACHABLE");
    world.pass_ms(19_999);
    assert_eq!(world.status()["state"], "reconnecting");
    world.pass_ms(1);
    let status = world.status();
    assert_eq!(status["state"], "failed");
    assert_eq!(status["error"]["code"], "CONNECT_TIMEOUT");
    assert_eq!(
        status["transport_state"], "closed",
        "it was stopped, nothing reconnects"
    );
    assert!(
        status["error"]["reason"]
            .as_str()
            .expect("text")
            .contains("refused")
    );
    assert_eq!(world.count(|effect| matches!(effect, Effect::StopTransport)), 1);
}

#[test]
fn what_kept_the_first_picture_from_coming_is_told_in_the_end() {
    let reason_after = |obstacles: &[Option<&str>]| {
        let mut world = World::new(true, true);
        world.connect("observe");
        for obstacle in obstacles {
            world.event(Event::Obstacle(obstacle.map(str::to_owned)));
            assert_eq!(world.status()["error"], json!(null), "it may still come");
        }
        world.pass_ms(30_000);
        world.status()["error"]["reason"].clone()
    };
    let bare = "no picture arrived within 30 s";
    assert_eq!(reason_after(&[]), bare);
    assert_eq!(
        reason_after(&[Some("no keyframe")]),
        format!("{bare}: no keyframe")
    );
    assert_eq!(reason_after(&[Some("no password"), None]), bare);
}

#[test]
fn a_break_keeps_the_generation_and_forgets_observations() {
    let mut world = World::controlling();
    let observation = world.observe();
    world.event(reconnecting());
    let status = world.status();
    assert_eq!(
        (&status["state"], &status["generation"]),
        (&json!("reconnecting"), &json!(1))
    );
    assert_eq!(world.refusal(click(1, "a", &observation)), "NOT_READY");
    world.pass_ms(1);
    world.picture();
    assert_eq!(world.status()["state"], "ready");
    assert_eq!(world.status()["error"], Value::Null);
    assert_eq!(world.refusal(click(1, "a", &observation)), "OBSERVATION_INVALID");
    // After the first picture there is no limit on a break.
    world.event(reconnecting());
    world.pass_ms(120_000);
    assert_eq!(world.status()["state"], "reconnecting");
}

#[test]
fn a_late_picture_from_before_the_break_does_not_count() {
    let mut world = World::watching();
    world.frame += 1;
    let late = world.info();
    world.pass_ms(1);
    world.event(reconnecting());
    world.event(Event::Picture(late));
    assert_eq!(world.status()["state"], "reconnecting");
}

#[test]
fn ends_and_failures_give_state_and_reason() {
    let ended = Event::Transport(TransportState::Ended {
        code: ErrorCode::SourceEnded,
        reason: "played once".into(),
    });
    let failed = Event::Failed {
        code: ErrorCode::StreamUnsupported,
        reason: "4:2:2".into(),
    };
    for (event, state, transport, code) in [
        (ended, "disconnected", "ended", "SOURCE_ENDED"),
        (failed, "failed", "failed", "STREAM_UNSUPPORTED"),
    ] {
        let mut world = World::watching();
        world.event(event);
        let status = world.status();
        assert_eq!(
            (
                &status["state"],
                &status["transport_state"],
                &status["error"]["code"]
            ),
            (&json!(state), &json!(transport), &json!(code))
        );
        world.picture();
        assert_eq!(
            world.status()["state"],
            state,
            "pictures after the end are ignored"
        );
        let again = world.reply(json!({"id": 1, "method": "disconnect"}));
        assert_eq!(again["result"]["state"], state, "a reason is not overwritten");
    }
}

#[test]
fn disconnect_leaves_no_error() {
    let mut world = World::watching();
    assert_eq!(
        world.reply(json!({"id": 1, "method": "disconnect"}))["result"]["state"],
        "disconnected"
    );
    let status = world.status();
    assert_eq!(
        (&status["error"], &status["transport_state"]),
        (&Value::Null, &json!("closed"))
    );
    assert!(world.effects.contains(&Effect::StopTransport));
    assert_eq!(
        world.refusal(json!({"id": 2, "method": "display", "index": 0})),
        "NOT_CONNECTED"
    );
}

#[test]
fn selecting_a_display_starts_a_generation() {
    let mut world = World::controlling();
    let display = |index| Display {
        index,
        name: "d".into(),
        size: None,
    };
    world.event(Event::Displays(vec![display(0), display(3)]));
    let observation = world.observe();
    world.frame += 1;
    let old = world.info();
    world.pass_ms(1);
    let reply = world.reply(json!({"id": 1, "method": "display", "index": 3}));
    assert_eq!(
        reply["result"],
        json!({"state": "connecting", "generation": 2, "display_index": 3})
    );
    let tail = &world.effects[world.effects.len() - 2..];
    assert_eq!(
        tail,
        [
            Effect::SelectDisplay {
                display: 3,
                generation: 2
            },
            Effect::RequestKeyframe
        ]
    );
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::RevokeVideo { .. })),
        0,
        "the new generation ends viewers, nobody turns them away"
    );
    world.event(Event::Picture(old));
    assert_eq!(
        world.status()["state"],
        "connecting",
        "a picture of the old display is not enough"
    );
    world.picture();
    assert_eq!(world.status()["state"], "ready");
    assert_eq!(world.refusal(click(2, "a", &observation)), "OBSERVATION_INVALID");
    assert!(world.observe().starts_with("obs_2_"));
    assert_eq!(
        world.refusal(json!({"id": 3, "method": "display", "index": 1})),
        "DISPLAY_UNAVAILABLE"
    );
}

#[test]
fn a_direct_source_has_the_display_that_was_named() {
    let mut world = World::new(true, true);
    world.ask(json!({"id": 1, "method": "connect", "device": "123456789", "mode": "observe", "display": 63}));
    assert_eq!(world.next_reply()["ok"], true);
    world.picture();
    let status = world.status();
    assert_eq!(status["display_index"], 63);
    assert_eq!(
        status["displays"],
        json!([{"index": 63, "name": "", "size": {"width": 1920, "height": 1080}}])
    );
    assert_eq!(
        world.refusal(json!({"id": 2, "method": "display", "index": 0})),
        "DISPLAY_UNAVAILABLE"
    );
    assert_eq!(
        world.reply(json!({"id": 3, "method": "display", "index": 63}))["result"]["generation"],
        2
    );
}

#[test]
fn a_new_geometry_forgets_observations_and_keeps_the_generation() {
    let mut world = World::controlling();
    let observation = world.observe();
    world.epoch = 2;
    world.picture();
    let status = world.status();
    assert_eq!(
        (&status["generation"], &status["geometry_epoch"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(world.refusal(click(1, "a", &observation)), "OBSERVATION_INVALID");
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::RevokeVideo { .. })),
        0
    );
}

#[test]
fn status_has_every_member_in_every_state() {
    let members = [
        "state",
        "transport_state",
        "mode",
        "generation",
        "geometry_epoch",
        "frame_id",
        "frame_age_ms",
        "source_size",
        "display_index",
        "displays",
        "control_allowed",
        "control_enabled",
        "human_paused",
        "host_platform",
        "video",
        "native_video_decoder",
        "decoder",
        "video_output",
        "transport",
        "latency",
        "error",
    ];
    let mut ended = World::watching();
    ended.reply(json!({"id": 1, "method": "disconnect"}));
    for mut world in [
        World::new(false, true),
        World::watching(),
        World::controlling(),
        ended,
    ] {
        let status = world.status();
        for member in members {
            assert!(
                status.as_object().expect("object").contains_key(member),
                "{member}"
            );
        }
    }
}

#[test]
fn status_shows_what_was_pushed_in() {
    let mut world = World::watching();
    world.event(Event::Decoder(DecoderReport {
        name: Some("avdec_h264".into()),
        hardware: Some(false),
        failures: vec![DecoderFailure {
            name: "vah264dec".into(),
            reason: "no device".into(),
        }],
    }));
    world.event(Event::VideoOutput(VideoOutputStats {
        viewers: 2,
        ..VideoOutputStats::default()
    }));
    world.event(Event::HostPlatform("linux".into()));
    world.pass_ms(250);
    let status = world.status();
    assert_eq!(status["native_video_decoder"], "avdec_h264");
    assert_eq!(status["decoder"]["hardware"], false);
    assert_eq!(
        status["decoder"]["failures"],
        json!([{"name": "vah264dec", "reason": "no device"}])
    );
    let output = &status["video_output"];
    assert_eq!(
        (&output["transport"], &output["viewers"]),
        (&json!("loopback-websocket/1"), &json!(2))
    );
    assert_eq!(
        status["video"],
        json!({"decode_path": "browser", "decoder": "auto"})
    );
    assert_eq!(status["frame_age_ms"], 250);
    assert_eq!(status["source_size"], json!({"width": 1920, "height": 1080}));
    assert_eq!(status["host_platform"], "linux");
}
