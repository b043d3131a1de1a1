//! Grants and revocations.

use super::*;

fn open(id: u64) -> Value {
    json!({"id": id, "method": "video_open", "ticket": TOKEN, "view": TOKEN, "view_generation": 1,
           "session": TOKEN, "origin": "http://127.0.0.1:8080", "apps": false})
}

fn grant_job(world: &World) -> u64 {
    match world.effects.last() {
        Some(Effect::OpenVideo(grant)) => grant.job,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_grant_is_answered_with_the_address() {
    let mut world = World::watching();
    world.ask(open(1));
    let job = grant_job(&world);
    world.event(Event::VideoOpened {
        job,
        result: Ok(4321),
    });
    let expected = json!({"url": "ws://127.0.0.1:4321/api/video", "transport": "loopback-websocket/1",
                          "protocol": "h264-annexb/1", "decoder": "auto", "expires_in_ms": 15000});
    assert_eq!(world.next_reply()["result"], expected);
}

#[test]
fn grants_need_the_option_and_a_picture() {
    let mut without = World::new(false, true);
    without.connect("observe");
    without.picture();
    assert_eq!(without.refusal(open(1)), "VIDEO_DISABLED");
    let mut world = World::new(true, true);
    assert_eq!(world.refusal(open(1)), "NOT_CONNECTED");
    world.connect("observe");
    assert_eq!(world.refusal(open(1)), "NOT_READY");
}

#[test]
fn a_refused_grant_carries_its_code() {
    let mut world = World::watching();
    world.ask(open(1));
    let job = grant_job(&world);
    world.event(Event::VideoOpened {
        job,
        result: Err(ErrorCode::TicketConflict),
    });
    assert_eq!(code(&world.next_reply()), "TICKET_CONFLICT");
}

#[test]
fn a_generation_change_voids_a_grant_being_made() {
    let mut world = World::watching();
    world.ask(open(1));
    let job = grant_job(&world);
    world.ask(json!({"id": 2, "method": "display", "index": 0}));
    assert_eq!(code(&world.next_reply()), "GENERATION_CHANGED");
    assert_eq!(world.next_reply()["ok"], true);
    world.event(Event::VideoOpened { job, result: Ok(1) });
    assert!(world.replies.is_empty());
}

#[test]
fn revocation_is_answered_when_it_is_done() {
    let mut world = World::watching();
    world.ask(json!({"id": 1, "method": "video_revoke", "view": TOKEN}));
    assert!(world.replies.is_empty());
    let Some(Effect::RevokeVideo { job, view: Some(_) }) = world.effects.last() else {
        panic!("a revocation");
    };
    let job = *job;
    world.event(Event::VideoRevoked { job });
    assert_eq!(world.next_reply()["result"], json!({"revoked": true}));
}

#[test]
fn revoking_works_without_video_and_without_connection() {
    let mut without = World::new(false, true);
    assert_eq!(
        without.reply(json!({"id": 1, "method": "video_revoke"}))["ok"],
        true
    );
    let mut idle = World::new(true, true);
    idle.ask(json!({"id": 1, "method": "video_revoke"}));
    assert_eq!(
        idle.count(|effect| matches!(effect, Effect::RevokeVideo { view: None, .. })),
        1
    );
    // The process ends before the video service answers: the caller still gets its reply.
    idle.event(Event::InputClosed);
    assert_eq!(idle.next_reply()["id"], 1);
}

#[test]
fn pause_leaves_viewers_alone() {
    let mut world = World::controlling();
    world.reply(json!({"id": 1, "method": "viewer_control", "operation": "pause"}));
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::RevokeVideo { .. })),
        0
    );
}

#[test]
fn secrets_stay_out_of_debug_output() {
    let mut world = World::watching();
    world.ask(open(1));
    assert!(!format!("{:?}", world.effects).contains(TOKEN));
    assert!(!format!("{:?}", world.session).contains(TOKEN));
}
