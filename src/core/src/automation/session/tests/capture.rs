//! Screenshots and previews.

use super::*;

fn screenshot(id: u64) -> Value {
    json!({"id": id, "method": "screenshot"})
}

#[test]
fn a_screenshot_describes_itself() {
    let mut world = World::watching();
    world.pass_ms(30);
    world.ask(json!({"id": 1, "method": "screenshot", "max_edge": 960}));
    let job = world.job.expect("a job");
    assert_eq!(
        (job.max_edge, job.max_bytes, job.region),
        (960, 2 * 1024 * 1024, None)
    );
    let image = CaptureImage {
        picture: PictureInfo {
            received: Monotonic::from_micros(1_000_000),
            ..world.info()
        },
        ..world.image(&job)
    };
    world.job = None;
    world.event(Event::CaptureDone {
        job: job.job,
        result: Ok(image),
    });
    let reply = world.next_reply();
    let expected = json!({"mime_type": "image/png", "data": "iVBORw==", "metadata": {
        "generation": 1, "geometry_epoch": 1, "frame_id": 1, "display_index": 0,
        "source_size": {"width": 1920, "height": 1080},
        "source_rect": {"x": 0, "y": 0, "width": 1920, "height": 1080},
        "image_size": {"width": 960, "height": 540}, "frame_age_ms": 30, "observation_id": "obs_1_1"}});
    assert_eq!(reply["result"], expected);
}

#[test]
fn previews_create_no_observation() {
    let mut world = World::watching();
    world.ask(json!({"id": 1, "method": "preview"}));
    assert_eq!(world.job.expect("a job").max_bytes, 256 * 1024);
    world.finish_capture();
    let metadata = world.next_reply()["result"]["metadata"].take();
    assert!(
        !metadata
            .as_object()
            .expect("object")
            .contains_key("observation_id")
    );
}

#[test]
fn screenshots_go_first_in_order_of_arrival() {
    let mut world = World::watching();
    world.ask(json!({"id": 1, "method": "preview"}));
    world.ask(json!({"id": 2, "method": "preview"}));
    world.ask(screenshot(3));
    world.ask(screenshot(4));
    let mut order = Vec::new();
    while world.job.is_some() {
        world.finish_capture();
        order.push(world.next_reply()["id"].as_u64());
    }
    assert_eq!(order, [Some(1), Some(3), Some(4), Some(2)]);
}

#[test]
fn a_region_is_cut_and_one_outside_is_refused() {
    let mut world = World::watching();
    let region = |x: u32| json!({"id": 1, "method": "screenshot", "region": {"x": x, "y": 0, "width": 400, "height": 10}});
    world.ask(region(1600));
    let cut = PixelRect {
        x: 1600,
        y: 0,
        width: 320,
        height: 10,
    };
    assert_eq!(world.job.expect("a job").region, Some(cut));
    world.finish_capture();
    world.next_reply();
    assert_eq!(world.refusal(region(1920)), "REGION_OUT_OF_BOUNDS");
}

#[test]
fn without_a_fresh_picture_it_waits_and_times_out() {
    let mut world = World::watching();
    world.pass_ms(2001);
    let mut request = screenshot(1);
    request["timeout_ms"] = json!(0);
    assert_eq!(world.refusal(request.clone()), "FRAME_TIMEOUT");
    request["timeout_ms"] = json!(500);
    world.ask(request.clone());
    world.pass_ms(499);
    assert!(world.replies.is_empty());
    world.pass_ms(1);
    assert_eq!(code(&world.next_reply()), "FRAME_TIMEOUT");
    world.ask(request);
    world.pass_ms(300);
    world.picture();
    world.finish_capture();
    assert_eq!(world.next_reply()["result"]["metadata"]["frame_id"], 2);
}

#[test]
fn two_seconds_old_is_still_fresh() {
    let mut world = World::watching();
    world.pass_ms(2000);
    world.ask(screenshot(1));
    assert!(world.job.is_some());
}

#[test]
fn before_the_first_picture_it_waits_too() {
    let mut world = World::new(true, true);
    assert_eq!(world.refusal(screenshot(1)), "NOT_CONNECTED");
    world.connect("observe");
    world.ask(screenshot(1));
    world.pass_ms(100);
    world.picture();
    assert!(world.job.is_some());
}

#[test]
fn after_frame_id_asks_for_a_newer_picture() {
    let mut world = World::watching();
    let request =
        json!({"id": 1, "method": "screenshot", "after_frame_id": 1, "generation": 1, "timeout_ms": 1000});
    world.ask(request.clone());
    assert!(world.job.is_none());
    world.pass_ms(20);
    world.picture();
    world.finish_capture();
    assert_eq!(world.next_reply()["result"]["metadata"]["frame_id"], 2);
    let mut other = request;
    other["generation"] = json!(2);
    assert_eq!(world.refusal(other), "GENERATION_CHANGED");
}

#[test]
fn a_preview_may_be_unchanged() {
    let mut world = World::watching();
    let request = json!({"id": 1, "method": "preview", "after_frame_id": 1, "generation": 1});
    world.pass_ms(100);
    let unchanged =
        json!({"unchanged": true, "frame_age_ms": 100, "stale": false, "generation": 1, "frame_id": 1});
    assert_eq!(world.reply(request.clone())["result"], unchanged);
    world.pass_ms(2000);
    let reply = world.reply(request.clone());
    assert_eq!(reply["result"]["stale"], true);
    let mut waiting = request.clone();
    waiting["timeout_ms"] = json!(300);
    world.ask(waiting);
    world.pass_ms(300);
    assert_eq!(world.next_reply()["result"]["unchanged"], true);
    world.picture();
    world.ask(request);
    assert!(world.job.is_some(), "a newer picture is encoded");
}

#[test]
fn a_preview_of_a_stale_newer_picture_times_out() {
    let mut world = World::watching();
    world.pass_ms(3000);
    let request = json!({"id": 1, "method": "preview", "after_frame_id": 0, "generation": 1});
    assert_eq!(world.refusal(request), "FRAME_TIMEOUT");
    assert_eq!(
        world.refusal(json!({"id": 1, "method": "preview"})),
        "FRAME_TIMEOUT"
    );
}

#[test]
fn the_queue_is_bounded() {
    let mut world = World::watching();
    for id in 0..17 {
        world.ask(screenshot(id));
        assert!(world.replies.is_empty(), "{id}");
    }
    assert_eq!(world.refusal(screenshot(17)), "BUSY");
    assert_eq!(world.refusal(json!({"id": 18, "method": "preview"})), "BUSY");
    world.finish_capture();
    world.next_reply();
    world.ask(screenshot(17));
    assert!(world.replies.is_empty());
}

#[test]
fn waiting_for_the_encoder_does_not_time_out() {
    let mut world = World::watching();
    world.ask(screenshot(1));
    world.ask(json!({"id": 2, "method": "screenshot", "timeout_ms": 0}));
    assert!(world.replies.is_empty());
    world.pass_ms(1000);
    world.finish_capture();
    assert_eq!(world.next_reply()["id"], 1);
    world.finish_capture();
    assert_eq!(world.next_reply()["id"], 2);
}

#[test]
fn cancelling_ends_waiting_and_running_captures() {
    let mut world = World::watching();
    world.ask(screenshot(1));
    world.ask(screenshot(2));
    for id in [2, 1] {
        world.ask(json!({"id": 10, "method": "cancel", "request_id": id}));
        let cancelled = world.next_reply();
        assert_eq!(
            (&cancelled["id"], code(&cancelled).as_str()),
            (&json!(id), "CANCELLED")
        );
        assert_eq!(
            world.next_reply()["result"],
            json!({"request_id": id, "cancelled": true})
        );
    }
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::CancelCapture { .. })),
        1
    );
    // The worker is busy until it says otherwise, and what it made is thrown away.
    world.ask(screenshot(3));
    world.finish_capture();
    assert!(world.replies.is_empty());
    world.finish_capture();
    assert_eq!(world.next_reply()["id"], 3);
}

#[test]
fn an_image_of_an_old_geometry_is_made_again() {
    let mut world = World::watching();
    world.ask(screenshot(1));
    let job = world.job.take().expect("a job");
    let old = world.image(&job);
    world.epoch = 2;
    world.picture();
    world.event(Event::CaptureDone {
        job: job.job,
        result: Ok(old),
    });
    assert!(world.replies.is_empty());
    world.finish_capture();
    let metadata = world.next_reply()["result"]["metadata"].take();
    assert_eq!(
        (&metadata["geometry_epoch"], &metadata["frame_id"]),
        (&json!(2), &json!(2))
    );
}

#[test]
fn an_encoder_ahead_of_the_session_is_believed() {
    let mut world = World::watching();
    world.ask(screenshot(1));
    world.frame += 1;
    world.epoch = 2;
    world.finish_capture();
    assert_eq!(world.next_reply()["result"]["metadata"]["geometry_epoch"], 2);
    assert_eq!(world.status()["geometry_epoch"], 2);
}

#[test]
fn a_generation_change_ends_captures() {
    let mut world = World::watching();
    world.ask(screenshot(1));
    world.ask(screenshot(2));
    world.ask(json!({"id": 3, "method": "display", "index": 0}));
    for id in [1, 2] {
        let reply = world.next_reply();
        assert_eq!(
            (&reply["id"], code(&reply).as_str()),
            (&json!(id), "GENERATION_CHANGED")
        );
    }
    assert_eq!(world.next_reply()["id"], 3);
    world.finish_capture();
    assert!(world.replies.is_empty());
}

#[test]
fn failures_have_their_codes() {
    for (failure, expected) in [
        (CaptureFailure::NoPicture, "FRAME_TIMEOUT"),
        (CaptureFailure::RegionOutOfBounds, "REGION_OUT_OF_BOUNDS"),
        (CaptureFailure::TooLarge, "IMAGE_TOO_LARGE"),
        (CaptureFailure::Failed, "CAPTURE_FAILED"),
    ] {
        let mut world = World::watching();
        world.ask(screenshot(1));
        let job = world.job.take().expect("a job").job;
        world.event(Event::CaptureDone {
            job,
            result: Err(failure),
        });
        assert_eq!(code(&world.next_reply()), expected);
    }
}

#[test]
fn an_oversized_image_is_never_sent() {
    let mut world = World::watching();
    world.ask(json!({"id": 1, "method": "preview"}));
    let job = world.job.take().expect("a job");
    let image = CaptureImage {
        png: Bytes::from(vec![0; 256 * 1024 + 1]),
        ..world.image(&job)
    };
    world.event(Event::CaptureDone {
        job: job.job,
        result: Ok(image),
    });
    assert_eq!(code(&world.next_reply()), "IMAGE_TOO_LARGE");
}
