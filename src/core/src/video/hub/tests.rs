//! Each rule on virtual time, then random behaviour against the invariants.

use std::num::NonZeroU64;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::media::TapUnit;
use crate::units::PixelSize;
use crate::video::{
    ACK_DEADLINE, GROUP_UNITS, MAX_GRANTS, MAX_UNACKED_BYTES, MAX_UNACKED_FRAMES, Nv12Picture, OriginRule,
    PanelOrigin, SessionId, TICKET_LIFETIME, Ticket,
};

const GENERATION: u32 = 7;
/// What units are made of, so that large ones cost nothing.
static ZEROS: [u8; 4 * MAX_UNACKED_BYTES] = [0; 4 * MAX_UNACKED_BYTES];
const NOTHING: [u32; 0] = [];
const ORIGIN: &str = "http://127.0.0.1:9000";
const OTHER_ORIGIN: &str = "http://127.0.0.1:9001";

fn token(n: u32) -> String {
    let mut bytes = [0; 24];
    bytes[..4].copy_from_slice(&n.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn grant_for(ticket: u32, view: u32, view_generation: u64) -> Grant {
    Grant {
        ticket: Ticket::parse(&token(ticket)).unwrap(),
        view: ViewId::parse(&token(view)).unwrap(),
        view_generation: NonZeroU64::new(view_generation).unwrap(),
        session: SessionId::parse(&token(0)).unwrap(),
        origin: OriginRule {
            panel: PanelOrigin::parse(ORIGIN).unwrap(),
            apps: false,
        },
        generation: GENERATION,
    }
}

/// A hub, a clock, and what the sockets have seen.
struct World {
    hub: Hub,
    now: Monotonic,
    tickets: u32,
    sequence: u32,
    closed: Vec<(ConnectionId, CloseReason)>,
    keyframes: Vec<Monotonic>,
}

impl World {
    fn new(protocol: Protocol) -> Self {
        let mut world = Self {
            hub: Hub::default(),
            now: Monotonic::from_micros(1_000_000),
            tickets: 0,
            sequence: 0,
            closed: Vec::new(),
            keyframes: Vec::new(),
        };
        world.hub.begin(GENERATION, protocol);
        world
    }

    fn h264() -> Self {
        Self::new(Protocol::H264AnnexB)
    }

    fn settle(&mut self) {
        while let Some(effect) = self.hub.poll_effect() {
            match effect {
                Effect::Ready(_) => {}
                Effect::Close(id, reason) => self.closed.push((id, reason)),
                Effect::RequestKeyframe => self.keyframes.push(self.now),
            }
        }
        self.hub.check_invariants();
    }

    /// Lets time pass, handling every deadline on the way.
    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(deadline) = self.hub.next_deadline().filter(|deadline| *deadline <= until) {
            self.now = deadline.max(self.now);
            self.hub.handle_timeout(self.now);
            self.settle();
            assert!(
                self.hub.next_deadline().is_none_or(|next| next > self.now),
                "a deadline that stays due"
            );
        }
        self.now = until;
    }

    fn connect(&mut self) -> Option<ConnectionId> {
        let admission = self.hub.handle_connect(self.now);
        self.settle();
        match admission {
            Admission::Admitted(id) => Some(id),
            Admission::Full => None,
        }
    }

    fn upgraded(&mut self, origin: &str) -> ConnectionId {
        let id = self.connect().unwrap();
        self.hub.handle_upgrade(self.now, id, origin);
        self.settle();
        id
    }

    fn say(&mut self, id: ConnectionId, text: &str) {
        self.hub.handle_text(self.now, id, text.as_bytes());
        self.settle();
    }

    fn present(&mut self, id: ConnectionId, ticket: u32) {
        self.say(id, &format!(r#"{{"ticket":"{}"}}"#, token(ticket)));
    }

    /// A viewer of a view of its own; what it is given stays unfetched.
    fn viewer(&mut self) -> ConnectionId {
        self.tickets += 1;
        let ticket = self.tickets;
        self.hub.grant(self.now, grant_for(ticket, ticket, 1)).unwrap();
        let id = self.upgraded(ORIGIN);
        self.present(id, ticket);
        assert!(self.hub.viewers().any(|(viewer, _)| viewer == id));
        id
    }

    fn unit_of(&mut self, idr: bool, bytes: usize) {
        self.sequence += 1;
        let unit = TapUnit {
            data: Bytes::from_static(&ZEROS).slice(..bytes),
            idr,
            sequence: self.sequence,
            received: self.now,
        };
        self.hub.handle_unit(self.now, &unit, self.now);
        self.settle();
    }

    fn idr(&mut self) {
        self.unit_of(true, 1000);
    }

    fn delta(&mut self) {
        self.unit_of(false, 100);
    }

    fn picture(&mut self) {
        self.sequence += 1;
        let picture = Nv12Picture {
            size: PixelSize::new(4, 2),
            sequence: self.sequence,
            received: self.now,
            decoded: self.now,
            samples: Bytes::from_static(&[0; 12]),
        };
        self.hub.handle_picture(self.now, &picture);
        self.settle();
    }

    /// Fetches and writes everything that waits for a viewer; its sequences.
    fn receive(&mut self, id: ConnectionId) -> Vec<u32> {
        let mut sequences = Vec::new();
        while let Some(message) = self.hub.poll_message(id) {
            self.hub.handle_written(self.now, id);
            sequences.push(message.sequence);
        }
        sequences
    }

    fn ack(&mut self, id: ConnectionId, sequence: u32) {
        self.say(
            id,
            &format!(r#"{{"type":"ack","generation":{GENERATION},"sequence":{sequence}}}"#),
        );
    }

    /// Receives and acknowledges until nothing more comes.
    fn follow(&mut self, id: ConnectionId) -> Vec<u32> {
        let mut all = Vec::new();
        loop {
            let sequences = self.receive(id);
            if sequences.is_empty() {
                return all;
            }
            for sequence in &sequences {
                self.ack(id, *sequence);
            }
            all.extend(sequences);
        }
    }

    fn reason(&self, id: ConnectionId) -> Option<CloseReason> {
        self.closed
            .iter()
            .find(|(closed, _)| *closed == id)
            .map(|(_, reason)| *reason)
    }
}

#[test]
fn a_ticket_works_once() {
    let mut world = World::h264();
    world.hub.grant(world.now, grant_for(1, 1, 1)).unwrap();
    let first = world.upgraded(ORIGIN);
    world.present(first, 1);
    let second = world.upgraded(ORIGIN);
    world.present(second, 1);
    assert_eq!(world.reason(first), None);
    assert_eq!(world.reason(second), Some(CloseReason::TicketRefused));
    assert_eq!(world.hub.stats().viewers, 1);
    assert_eq!(
        world.hub.grant(world.now, grant_for(1, 2, 1)),
        Err(GrantRefusal::TicketReused)
    );
}

#[test]
fn a_ticket_expires_after_fifteen_seconds() {
    for (wait, accepted) in [
        (TICKET_LIFETIME - Duration::from_micros(1), true),
        (TICKET_LIFETIME, false),
    ] {
        let mut world = World::h264();
        world.hub.grant(world.now, grant_for(1, 1, 1)).unwrap();
        world.pass(wait);
        let id = world.upgraded(ORIGIN);
        world.present(id, 1);
        assert_eq!(
            world.reason(id),
            (!accepted).then_some(CloseReason::TicketRefused)
        );
    }
}

#[test]
fn a_ticket_is_bound_to_its_origin_and_worthless_once_seen_elsewhere() {
    let mut world = World::h264();
    let mut other = grant_for(2, 2, 1);
    other.origin.panel = PanelOrigin::parse(OTHER_ORIGIN).unwrap();
    assert!(!world.hub.knows_origin(ORIGIN));
    world.hub.grant(world.now, grant_for(1, 1, 1)).unwrap();
    assert!(
        world.hub.knows_origin(ORIGIN)
            && !world.hub.knows_origin(OTHER_ORIGIN)
            && !world.hub.knows_origin("null")
    );
    world.hub.grant(world.now, other).unwrap();
    for origin in [OTHER_ORIGIN, ORIGIN] {
        let id = world.upgraded(origin);
        world.present(id, 1);
        assert_eq!(world.reason(id), Some(CloseReason::TicketRefused), "{origin}");
    }
}

#[test]
fn only_a_ticket_may_come_first() {
    for text in ["", "{}", r#"{"type":"keyframe"}"#, r#"{"ticket":"short"}"#] {
        let mut world = World::h264();
        world.hub.grant(world.now, grant_for(1, 1, 1)).unwrap();
        let id = world.upgraded(ORIGIN);
        world.say(id, text);
        assert_eq!(world.reason(id), Some(CloseReason::TicketRefused), "{text}");
    }
}

#[test]
fn handshake_and_ticket_have_three_seconds_each() {
    let mut world = World::h264();
    let mute = world.connect().unwrap();
    let silent = world.upgraded(ORIGIN);
    world.pass(Duration::from_micros(2_999_999));
    assert!(world.closed.is_empty());
    world.pass(Duration::from_micros(1));
    assert_eq!(world.reason(mute), Some(CloseReason::HandshakeTimeout));
    assert_eq!(world.reason(silent), Some(CloseReason::TicketTimeout));
    assert_eq!(world.hub.stats(), HubStats::default());
}

#[test]
fn the_seventeenth_candidate_is_refused_unless_a_mute_one_can_go() {
    let mut world = World::h264();
    world.pass(Duration::from_secs(1));
    let upgraded: Vec<_> = (0..MAX_CANDIDATES).map(|_| world.upgraded(ORIGIN)).collect();
    assert_eq!(world.connect(), None);
    world.pass(Duration::from_millis(500));
    assert_eq!(world.connect(), None, "all of them speak HTTP");
    world.hub.handle_disconnect(upgraded[3]);
    let mute = world.connect().unwrap();
    assert_eq!(world.connect(), None, "it may be about to speak");
    world.pass(Duration::from_millis(250));
    assert!(world.connect().is_some());
    assert_eq!(world.reason(mute), Some(CloseReason::HandshakeTimeout));
}

#[test]
fn viewers_leave_their_candidate_place_and_the_ninth_is_told_to_come_back() {
    let mut world = World::h264();
    for _ in 0..MAX_VIEWERS {
        world.viewer();
    }
    world.hub.grant(world.now, grant_for(100, 100, 1)).unwrap();
    let ninth = world.upgraded(ORIGIN);
    world.present(ninth, 100);
    assert_eq!(world.reason(ninth), Some(CloseReason::TooManyViewers));
    let first = world.hub.viewers().next().unwrap().0;
    world.hub.handle_disconnect(first);
    let again = world.upgraded(ORIGIN);
    world.present(again, 100);
    assert_eq!(world.reason(again), None, "its ticket was not used up");
}

#[test]
fn tickets_waiting_are_bounded() {
    let mut world = World::h264();
    for n in 0..MAX_GRANTS as u32 {
        world.hub.grant(world.now, grant_for(n, n, 1)).unwrap();
    }
    assert_eq!(
        world.hub.grant(world.now, grant_for(900, 1, 1)),
        Err(GrantRefusal::TooManyTickets)
    );
    world.hub.revoke(Some(grant_for(0, 5, 1).view));
    assert_eq!(world.hub.grant(world.now, grant_for(900, 1, 1)), Ok(()));
    world.hub.check_invariants();
}

#[test]
fn grants_need_a_session_of_their_generation() {
    let mut world = World::h264();
    let stale = Grant {
        generation: GENERATION - 1,
        ..grant_for(1, 1, 1)
    };
    assert_eq!(
        world.hub.grant(world.now, stale),
        Err(GrantRefusal::OtherGeneration)
    );
    world.hub.end();
    assert_eq!(
        world.hub.grant(world.now, grant_for(1, 1, 1)),
        Err(GrantRefusal::NoSession)
    );
}

#[test]
fn a_view_mounted_again_replaces_its_older_tickets_and_sockets() {
    let mut world = World::h264();
    world.hub.grant(world.now, grant_for(1, 1, 5)).unwrap();
    world.hub.grant(world.now, grant_for(2, 1, 5)).unwrap();
    let socket = world.upgraded(ORIGIN);
    world.present(socket, 1);
    let bystander = world.viewer_of(50, 9);
    assert_eq!(
        world.hub.grant(world.now, grant_for(3, 1, 4)),
        Err(GrantRefusal::StaleView)
    );
    assert_eq!(world.reason(socket), None, "a refused grant changes nothing");
    world.hub.grant(world.now, grant_for(4, 1, 6)).unwrap();
    world.settle();
    assert_eq!(world.reason(socket), Some(CloseReason::Revoked));
    assert_eq!(world.reason(bystander), None);
    let late = world.upgraded(ORIGIN);
    world.present(late, 2);
    assert_eq!(world.reason(late), Some(CloseReason::TicketRefused));
}

#[test]
fn revocation_ends_tickets_and_sockets_of_one_view_or_all() {
    let mut world = World::h264();
    let one = world.viewer_of(10, 1);
    let two = world.viewer_of(11, 2);
    world.hub.grant(world.now, grant_for(12, 1, 1)).unwrap();
    world.hub.grant(world.now, grant_for(13, 2, 1)).unwrap();
    world.hub.revoke(Some(grant_for(0, 1, 1).view));
    world.settle();
    assert_eq!(
        (world.reason(one), world.reason(two)),
        (Some(CloseReason::Revoked), None)
    );
    let (late, fine) = (world.upgraded(ORIGIN), world.upgraded(ORIGIN));
    world.present(late, 12);
    world.present(fine, 13);
    assert_eq!(
        (world.reason(late), world.reason(fine)),
        (Some(CloseReason::TicketRefused), None)
    );
    world.hub.revoke(None);
    world.settle();
    assert_eq!(world.reason(fine), Some(CloseReason::Revoked));
    assert_eq!(world.hub.stats().viewers, 0);
}

#[test]
fn a_new_generation_ends_what_the_old_one_granted() {
    let mut world = World::h264();
    let viewer = world.viewer();
    world.hub.grant(world.now, grant_for(50, 50, 1)).unwrap();
    let candidate = world.upgraded(ORIGIN);
    let fresh = world.connect().unwrap();
    world.idr();
    world.hub.begin(GENERATION + 1, Protocol::H264AnnexB);
    world.settle();
    for id in [viewer, candidate] {
        assert_eq!(world.reason(id), Some(CloseReason::GenerationChanged));
    }
    assert!(world.hub.poll_message(viewer).is_none());
    world.hub.handle_upgrade(world.now, fresh, ORIGIN);
    world.present(fresh, 50);
    assert_eq!(world.reason(fresh), Some(CloseReason::TicketRefused));
    world.hub.end();
    assert_eq!(world.hub.stats().viewers, 0);
}

#[test]
fn messages_carry_generation_and_are_shared() {
    let mut world = World::h264();
    let (one, two) = (world.viewer(), world.viewer());
    world.idr();
    let first = world.hub.poll_message(one).unwrap();
    let second = world.hub.poll_message(two).unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(first.header()[4..8], GENERATION.to_be_bytes());
}

#[test]
fn eight_frames_may_be_unacknowledged_and_a_dropped_delta_needs_a_keyframe() {
    let mut world = World::h264();
    world.idr();
    let id = world.viewer();
    world.pass(Duration::from_secs(2));
    for _ in 0..7 {
        world.delta();
    }
    assert_eq!(world.receive(id), [1, 2, 3, 4, 5, 6, 7, 8]);
    let asked = world.keyframes.len();
    world.delta();
    assert_eq!(world.keyframes.len(), asked + 1, "the drop asks for a keyframe");
    world.ack(id, 1);
    world.delta();
    world.delta();
    assert_eq!(
        world.receive(id),
        NOTHING,
        "room again, but nothing it could decode"
    );
    assert_eq!(world.hub.stats().dropped, 3);
    world.idr();
    assert_eq!(world.receive(id), [12], "one place was free");
    world.ack(id, 2);
    world.delta();
    assert_eq!(world.receive(id), [13]);
    assert_eq!(world.hub.stats().dropped, 3);
}

#[test]
fn a_keyframe_is_never_dropped_for_congestion() {
    let mut world = World::h264();
    world.idr();
    let id = world.viewer();
    for _ in 0..7 {
        world.delta();
    }
    world.idr();
    world.delta();
    assert_eq!(world.receive(id), (1..=8).collect::<Vec<_>>());
    world.idr();
    for sequence in 1..=8 {
        world.ack(id, sequence);
    }
    assert_eq!(
        world.receive(id),
        [11],
        "the newest keyframe, not the one it replaced"
    );
    assert_eq!(world.hub.stats().dropped, 2);
}

#[test]
fn one_mib_may_be_unacknowledged_but_a_single_frame_may_exceed_it() {
    let mut world = World::h264();
    world.unit_of(true, 3 * MAX_UNACKED_BYTES);
    let id = world.viewer();
    assert_eq!(world.receive(id), [1]);
    world.delta();
    assert_eq!(world.receive(id), NOTHING);
    world.ack(id, 1);
    world.unit_of(true, MAX_UNACKED_BYTES / 2 - 24);
    world.unit_of(false, MAX_UNACKED_BYTES / 2 - 24);
    assert_eq!(world.receive(id), [3, 4], "exactly one MiB");
    assert_eq!(world.hub.stats().unacknowledged_bytes, MAX_UNACKED_BYTES);
    world.unit_of(true, 2 * MAX_UNACKED_BYTES);
    world.ack(id, 3);
    assert_eq!(world.receive(id), NOTHING, "the large keyframe goes alone");
    world.ack(id, 4);
    assert_eq!(world.receive(id), [5]);
}

#[test]
fn acknowledgements_name_the_oldest_frame_sent() {
    let ack = |sequence: u32| format!(r#"{{"type":"ack","generation":{GENERATION},"sequence":{sequence}}}"#);
    let old = format!(r#"{{"type":"ack","generation":{},"sequence":1}}"#, GENERATION - 1);
    for (fetched, text) in [(2, ack(2)), (2, ack(9)), (0, ack(1)), (1, old), (2, ack(0))] {
        let mut world = World::h264();
        let id = world.viewer();
        world.idr();
        world.delta();
        for _ in 0..fetched {
            world.hub.poll_message(id).unwrap();
            world.hub.handle_written(world.now, id);
        }
        world.say(id, &text);
        assert_eq!(world.reason(id), Some(CloseReason::BadAck), "{text}");
    }
    let mut world = World::h264();
    let id = world.viewer();
    world.idr();
    assert_eq!(world.follow(id), [1]);
    world.ack(id, 1);
    assert_eq!(
        world.reason(id),
        Some(CloseReason::BadAck),
        "nothing is outstanding"
    );
}

#[test]
fn a_frame_half_written_cannot_be_acknowledged() {
    let mut world = World::h264();
    let id = world.viewer();
    world.idr();
    world.hub.poll_message(id).unwrap();
    world.ack(id, 1);
    assert_eq!(world.reason(id), Some(CloseReason::BadAck));
}

#[test]
fn the_oldest_frame_has_ten_seconds() {
    let mut world = World::h264();
    let id = world.viewer();
    world.pass(Duration::from_secs(60));
    world.idr();
    world.receive(id);
    world.pass(ACK_DEADLINE - Duration::from_micros(1));
    world.ack(id, 1);
    world.delta();
    world.pass(ACK_DEADLINE - Duration::from_micros(1));
    assert_eq!(world.reason(id), None);
    world.pass(Duration::from_micros(1));
    assert_eq!(
        world.reason(id),
        Some(CloseReason::AckTimeout),
        "not even written counts, too"
    );
}

#[test]
fn a_late_joiner_starts_at_the_last_keyframe_and_catches_up_under_its_window() {
    let mut world = World::h264();
    world.idr();
    for _ in 0..20 {
        world.delta();
    }
    let id = world.viewer();
    assert_eq!(world.keyframes.len(), 1, "and a newer one is asked for");
    assert_eq!(world.receive(id), (1..=8).collect::<Vec<_>>());
    world.delta();
    world.delta();
    assert_eq!(world.hub.stats().dropped, 0);
    for sequence in 1..=8 {
        world.ack(id, sequence);
    }
    assert_eq!(world.follow(id), (9..=23).collect::<Vec<_>>());
    world.delta();
    assert_eq!(world.receive(id), [24], "live");
}

#[test]
fn a_newer_keyframe_lets_a_joiner_jump() {
    let mut world = World::h264();
    world.idr();
    for _ in 0..20 {
        world.delta();
    }
    let id = world.viewer();
    world.idr();
    world.delta();
    assert_eq!(world.follow(id), (1..=8).chain([22, 23]).collect::<Vec<_>>());
    assert_eq!(world.hub.stats().dropped, 13);
}

#[test]
fn a_joiner_waits_when_the_group_grew_too_long() {
    let mut world = World::h264();
    world.idr();
    for _ in 0..GROUP_UNITS {
        world.delta();
    }
    let id = world.viewer();
    assert_eq!(world.receive(id), NOTHING);
    assert_eq!(world.keyframes.len(), 1);
    world.delta();
    world.idr();
    let last = world.sequence;
    assert_eq!(world.receive(id), [last]);
    assert_eq!(world.hub.stats().dropped, 0, "it never had a picture to lose");
}

#[test]
fn a_live_viewer_is_served_beyond_the_kept_group() {
    let mut world = World::h264();
    let id = world.viewer();
    world.idr();
    for _ in 0..2 * GROUP_UNITS {
        world.delta();
        world.follow(id);
    }
    assert_eq!(world.hub.viewers().next().unwrap().1.last, Some(world.sequence));
    assert_eq!(world.hub.stats().dropped, 0);
}

#[test]
fn units_lost_on_the_way_stop_everybody_until_a_keyframe() {
    let mut world = World::h264();
    world.idr();
    let id = world.viewer();
    world.delta();
    assert_eq!(world.follow(id), [1, 2]);
    world.sequence += 1;
    world.delta();
    let joiner = world.viewer();
    assert_eq!(
        (world.receive(id), world.receive(joiner)),
        (NOTHING.to_vec(), NOTHING.to_vec())
    );
    world.delta();
    world.idr();
    assert_eq!((world.receive(id), world.receive(joiner)), (vec![6], vec![6]));
    world.sequence += 3;
    world.idr();
    assert_eq!(world.receive(id), [10], "a keyframe does not mind a gap");
}

#[test]
fn sequences_may_wrap() {
    let mut world = World::h264();
    world.sequence = u32::MAX - 2;
    let id = world.viewer();
    world.idr();
    world.delta();
    world.sequence = u32::MAX;
    let unit = TapUnit {
        data: Bytes::from_static(b"x"),
        idr: false,
        sequence: 0,
        received: world.now,
    };
    world.hub.handle_unit(world.now, &unit, world.now);
    assert_eq!(world.receive(id), [u32::MAX - 1, u32::MAX, 0]);
}

#[test]
fn keyframes_are_requested_once_a_second_at_most() {
    let mut world = World::h264();
    world.idr();
    let id = world.viewer();
    assert!(world.keyframes.is_empty(), "it started at the newest picture");
    for _ in 0..50 {
        world.say(id, r#"{"type":"keyframe"}"#);
    }
    assert_eq!(world.keyframes.len(), 1);
    world.pass(Duration::from_millis(999));
    assert_eq!(world.keyframes.len(), 1);
    world.pass(Duration::from_millis(1));
    assert_eq!(world.keyframes.len(), 2, "the wish was kept");
    world.pass(Duration::from_secs(5));
    assert_eq!(world.keyframes.len(), 2, "and is fulfilled now");
    world.say(id, r#"{"type":"keyframe"}"#);
    world.say(id, r#"{"type":"keyframe"}"#);
    world.idr();
    world.pass(Duration::from_secs(5));
    assert_eq!(
        world.keyframes.len(),
        3,
        "a keyframe came before the second request"
    );
}

#[test]
fn a_source_that_ignores_a_request_is_asked_again_while_somebody_waits() {
    let mut world = World::h264();
    world.viewer();
    world.pass(Duration::from_secs(3));
    assert_eq!(world.keyframes.len(), 4);
    world.idr();
    world.pass(Duration::from_secs(3));
    assert_eq!(world.keyframes.len(), 4);
}

#[test]
fn nv12_viewers_have_one_picture_and_always_get_the_newest() {
    let mut world = World::new(Protocol::Nv12);
    let (fast, slow) = (world.viewer(), world.viewer());
    assert!(world.hub.wants_picture());
    world.picture();
    assert_eq!((world.receive(fast), world.receive(slow)), (vec![1], vec![1]));
    assert!(!world.hub.wants_picture(), "nobody could take one");
    world.ack(fast, 1);
    assert!(world.hub.wants_picture());
    world.picture();
    assert_eq!((world.receive(fast), world.receive(slow)), (vec![2], vec![]));
    world.ack(fast, 2);
    world.picture();
    assert_eq!(world.receive(fast), [3]);
    assert_eq!(world.hub.stats().dropped, 1, "the slow one never saw the second");
    world.ack(slow, 1);
    world.hub.offer_latest(world.now);
    assert_eq!(world.receive(slow), [3]);
    world.ack(fast, 3);
    world.hub.offer_latest(world.now);
    assert_eq!(world.receive(fast), NOTHING, "nothing twice");
    assert!(world.keyframes.is_empty());
}

#[test]
fn an_nv12_joiner_of_a_still_picture_sees_it_at_once() {
    let mut world = World::new(Protocol::Nv12);
    let first = world.viewer();
    world.picture();
    world.follow(first);
    let second = world.viewer();
    world.hub.offer_latest(world.now);
    assert_eq!(world.receive(second), [1]);
    assert_eq!(world.hub.stats().dropped, 0);
}

#[test]
fn latencies_are_reported_per_viewer() {
    let mut world = World::h264();
    let id = world.viewer();
    world.idr();
    world.now = world.now + Duration::from_micros(300);
    world.receive(id);
    world.now = world.now + Duration::from_micros(200);
    world.ack(id, 1);
    let report = world.hub.reports()[0];
    assert_eq!(report.viewer, 1);
    assert_eq!(report.receive_to_send.unwrap().p50_us, 300);
    assert_eq!(report.send_to_ack.unwrap().p95_us, 200);
}

impl World {
    fn viewer_of(&mut self, ticket: u32, view: u32) -> ConnectionId {
        self.hub.grant(self.now, grant_for(ticket, view, 1)).unwrap();
        let id = self.upgraded(ORIGIN);
        self.present(id, ticket);
        id
    }
}

/// What one random step does; numbers choose a viewer.
#[derive(Clone, Debug)]
enum Step {
    Join,
    Leave(usize),
    Idr(usize),
    Delta(usize),
    Lose(u32),
    Receive(usize, usize),
    Ack(usize, usize),
    WrongAck(usize, u32),
    Wish(usize),
    Revoke(Option<u32>),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Join),
        1 => (0..8_usize).prop_map(Step::Leave),
        2 => (0..2_000_000_usize).prop_map(Step::Idr),
        12 => (0..400_000_usize).prop_map(Step::Delta),
        1 => (1..4_u32).prop_map(Step::Lose),
        8 => (0..8_usize, 1..10_usize).prop_map(|(viewer, count)| Step::Receive(viewer, count)),
        8 => (0..8_usize, 1..10_usize).prop_map(|(viewer, count)| Step::Ack(viewer, count)),
        1 => (0..8_usize, 0..100_u32).prop_map(|(viewer, sequence)| Step::WrongAck(viewer, sequence)),
        1 => (0..8_usize).prop_map(Step::Wish),
        1 => proptest::option::of(0..30_u32).prop_map(Step::Revoke),
        2 => (0..3_000_000_u64).prop_map(Step::Pass),
    ]
}

/// What a well-behaved client knows: what it got and has not acknowledged.
struct Client {
    id: ConnectionId,
    last: Option<u32>,
    unacked: VecDeque<u32>,
}

fn check_received(client: &mut Client, message: &Message) {
    match client.last {
        None => assert!(message.starts, "the first frame is a keyframe"),
        Some(last) if message.starts => assert!(message.sequence > last, "never backwards"),
        Some(last) => assert_eq!(message.sequence, last + 1, "a delta after a gap"),
    }
    client.last = Some(message.sequence);
    client.unacked.push_back(message.sequence);
    assert!(client.unacked.len() <= MAX_UNACKED_FRAMES);
}

fn run(world: &mut World, clients: &mut Vec<Client>, step: &Step) {
    let count = clients.len();
    let pick = |n: usize| n.checked_rem(count);
    match *step {
        Step::Join if count < MAX_VIEWERS => {
            let id = world.viewer();
            clients.push(Client {
                id,
                last: None,
                unacked: VecDeque::new(),
            });
        }
        Step::Leave(n) => {
            if let Some(n) = pick(n) {
                world.hub.handle_disconnect(clients.remove(n).id);
            }
        }
        Step::Idr(bytes) => world.unit_of(true, bytes),
        Step::Delta(bytes) => world.unit_of(false, bytes),
        Step::Lose(units) => world.sequence += units,
        Step::Receive(n, frames) => {
            if let Some(client) = pick(n).map(|n| &mut clients[n]) {
                let id = client.id;
                for message in std::iter::from_fn(|| world.hub.poll_message(id)).take(frames) {
                    check_received(client, &message);
                }
            }
        }
        Step::Ack(n, frames) => {
            if let Some(n) = pick(n) {
                for _ in 0..frames {
                    let Some(sequence) = clients[n].unacked.pop_front() else {
                        break;
                    };
                    world.hub.handle_written(world.now, clients[n].id);
                    world.ack(clients[n].id, sequence);
                    assert_eq!(
                        world.reason(clients[n].id),
                        None,
                        "a right acknowledgement is taken"
                    );
                }
            }
        }
        Step::WrongAck(n, sequence) => {
            if let Some(n) = pick(n).filter(|n| clients[*n].unacked.front() != Some(&sequence)) {
                world.ack(clients[n].id, sequence);
                assert_eq!(world.reason(clients[n].id), Some(CloseReason::BadAck));
            }
        }
        Step::Wish(n) => {
            if let Some(n) = pick(n) {
                world.say(clients[n].id, r#"{"type":"keyframe"}"#);
            }
        }
        Step::Revoke(view) => world.hub.revoke(view.map(|view| grant_for(0, view, 1).view)),
        Step::Pass(micros) => world.pass(Duration::from_micros(micros)),
        Step::Join => {}
    }
    world.settle();
    clients.retain(|client| world.reason(client.id).is_none());
    assert_eq!(world.hub.stats().viewers, clients.len());
    assert!(
        world
            .keyframes
            .windows(2)
            .all(|pair| pair[1].since(pair[0]) >= KEYFRAME_INTERVAL)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_viewers_never_break_the_rules(script in proptest::collection::vec(steps(), 1..150)) {
        let mut world = World::h264();
        let mut clients = Vec::new();
        for step in &script {
            run(&mut world, &mut clients, step);
        }
        // Whoever is left and acknowledges everything ends at the newest picture.
        world.idr();
        for client in &mut clients {
            loop {
                while let Some(message) = world.hub.poll_message(client.id) {
                    check_received(client, &message);
                }
                let Some(sequence) = client.unacked.pop_front() else { break };
                world.hub.handle_written(world.now, client.id);
                world.ack(client.id, sequence);
            }
            prop_assert_eq!(client.last, Some(world.sequence));
        }
    }
}
