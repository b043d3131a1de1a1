//! Scenarios and a random walk for the failover machine.

use crossdesk_core::h264::{NotDisplayable, Reorder};
use proptest::prelude::*;

use super::*;
use crate::plan::decoders::row;
use crate::plan::shape::tests::shape;

const VA: usize = 0;
const NV: usize = 1;
const AV: usize = 2;
const OPEN: usize = 3;

fn candidates(names: &[&str]) -> Vec<Candidate> {
    names
        .iter()
        .map(|name| {
            let row = row(name).unwrap();
            Candidate {
                name: row.factory,
                hardware: row.hardware,
                chroma: row.chroma,
                holds: row.holds,
            }
        })
        .collect()
}

fn machine() -> Failover {
    Failover::new(candidates(&[
        "vah264dec",
        "nvh264dec",
        "avdec_h264",
        "openh264dec",
    ]))
}

fn ms(millis: u64) -> Monotonic {
    Monotonic::from_micros(millis * 1000)
}

fn drain(machine: &mut Failover) -> Vec<Effect> {
    std::iter::from_fn(|| machine.poll_effect()).collect()
}

fn started(effects: &[Effect]) -> Option<(u32, usize)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Start {
            attempt, candidate, ..
        } => Some((*attempt, *candidate)),
        _ => None,
    })
}

fn failure(effects: &[Effect]) -> Option<&DecoderFailure> {
    effects.iter().find_map(|effect| match effect {
        Effect::Report(ReceiveEvent::DecoderFailed(failure)) => Some(failure),
        _ => None,
    })
}

fn wishes(effects: &[Effect]) -> usize {
    let wish = Effect::Report(ReceiveEvent::KeyframeWanted);
    effects.iter().filter(|effect| **effect == wish).count()
}

fn failed(effects: &[Effect]) -> Option<ReceiveFailure> {
    effects.iter().find_map(|effect| match effect {
        Effect::Report(ReceiveEvent::Failed { code, .. }) => Some(*code),
        _ => None,
    })
}

/// Brings the candidate that is being opened to trust, with access unit `sequence`.
fn trust(machine: &mut Failover, now: Monotonic, attempt: u32, sequence: u32) {
    machine.handle_opened(now, attempt, Ok(()));
    machine.handle_fed(now, attempt, sequence);
    machine.handle_picture(now, attempt, sequence);
    machine.handle_verdict(now, attempt, Ok(()));
    assert!(machine.trusts(attempt));
}

#[test]
fn the_first_idr_opens_the_first_candidate_and_a_right_picture_selects_it() {
    let mut m = machine();
    assert!(!m.admit(ms(0), false, false), "nothing to decode before an IDR");
    assert_eq!(wishes(&drain(&mut m)), 1);
    m.handle_idr(ms(1), &shape(1920, 1080));
    assert!(m.admit(ms(1), true, false));
    assert_eq!(started(&drain(&mut m)), Some((1, VA)));
    assert_eq!(m.feeding(), None, "not before it is open");
    trust(&mut m, ms(2), 1, 1);
    assert_eq!(drain(&mut m), [Effect::Selected { candidate: VA }]);
    assert_eq!(m.next_deadline(), None);
}

#[test]
fn every_way_to_fail_leads_to_the_next_candidate() {
    let mut m = machine();
    m.handle_idr(ms(0), &shape(1920, 1080));
    m.handle_opened(ms(0), 1, Err("no device".to_owned()));
    let effects = drain(&mut m);
    assert_eq!(started(&effects[1..]), Some((2, NV)));
    assert_eq!(failure(&effects).unwrap().stage, FailureStage::Open);
    m.handle_opened(ms(0), 2, Ok(()));
    m.handle_fed(ms(0), 2, 1);
    m.handle_picture(ms(5), 2, 1);
    m.handle_verdict(ms(6), 2, Err("wrong pixels".to_owned()));
    let effects = drain(&mut m);
    assert_eq!(started(&effects), Some((3, AV)));
    assert_eq!(failure(&effects).unwrap().stage, FailureStage::Proof);
    assert!(effects.contains(&Effect::Stop {
        attempt: 2,
        drain: false
    }));
    trust(&mut m, ms(7), 3, 1);
    assert_eq!(drain(&mut m), [Effect::Selected { candidate: AV }]);
}

#[test]
fn hanging_while_opening_or_proving_takes_two_seconds() {
    let mut m = machine();
    m.handle_idr(ms(0), &shape(1920, 1080));
    drain(&mut m);
    assert_eq!(m.next_deadline(), Some(ms(2000)));
    m.handle_timeout(ms(1999));
    assert!(drain(&mut m).is_empty());
    m.handle_timeout(ms(2000));
    assert_eq!(started(&drain(&mut m)), Some((2, NV)));
    m.handle_opened(ms(2000), 2, Ok(()));
    assert_eq!(m.next_deadline(), None, "nothing was asked of it yet");
    m.handle_fed(ms(2010), 2, 1);
    m.handle_timeout(ms(4010));
    let effects = drain(&mut m);
    assert_eq!(started(&effects), Some((3, AV)));
    assert!(failure(&effects).unwrap().reason.contains("no first picture"));
}

#[test]
fn a_first_picture_that_can_never_be_read_is_a_hang_too() {
    let mut m = machine();
    m.handle_idr(ms(0), &shape(64, 64));
    m.handle_opened(ms(0), 1, Ok(()));
    m.handle_fed(ms(0), 1, 1);
    m.handle_picture(ms(10), 1, 1);
    m.handle_picture(ms(900), 1, 2);
    m.handle_timeout(ms(2010));
    assert_eq!(started(&drain(&mut m)[1..]), Some((2, NV)));
}

#[test]
fn a_trusted_decoder_may_be_silent_for_half_a_second_and_only_while_units_arrive() {
    let mut m = machine();
    m.handle_idr(ms(0), &shape(64, 64));
    trust(&mut m, ms(0), 1, 1);
    drain(&mut m);
    m.handle_fed(ms(10), 1, 2);
    assert_eq!(m.next_deadline(), None, "one damaged unit is no stall");
    m.handle_fed(ms(20), 1, 3);
    m.handle_fed(ms(30), 1, 4);
    assert_eq!(m.next_deadline(), Some(ms(520)));
    m.handle_picture(ms(500), 1, 2);
    assert_eq!(m.next_deadline(), Some(ms(1000)), "it lives");
    m.handle_timeout(ms(1000));
    let effects = drain(&mut m);
    assert_eq!(started(&effects), Some((2, NV)));
    assert_eq!(failure(&effects).unwrap().stage, FailureStage::Running);
    assert_eq!(wishes(&effects), 1);
}

#[test]
fn reordering_streams_may_hold_what_they_promise() {
    let mut m = machine();
    let held = StreamShape {
        reorder: Reorder::Frames(2),
        ..shape(64, 64)
    };
    m.handle_idr(ms(0), &held);
    m.handle_opened(ms(0), 1, Ok(()));
    for n in 1..=2 {
        m.handle_fed(ms(0), 1, n);
    }
    assert_eq!(m.next_deadline(), None);
    m.handle_fed(ms(7), 1, 3);
    assert_eq!(m.next_deadline(), Some(ms(2007)));
}

#[test]
fn proven_software_starts_again_at_the_next_idr_and_is_never_out() {
    let mut m = Failover::new(candidates(&["avdec_h264", "openh264dec"]));
    m.handle_idr(ms(0), &shape(64, 64));
    trust(&mut m, ms(0), 1, 1);
    drain(&mut m);
    for round in 1..10_u32 {
        m.handle_failure(ms(1), round, "corrupt");
        assert_eq!(started(&drain(&mut m)), None, "its replay would fail again");
        assert!(!m.admit(ms(2), false, false));
        m.handle_idr(ms(3), &shape(64, 64));
        assert!(m.admit(ms(3), true, false));
        assert_eq!(started(&drain(&mut m)), Some((round + 1, 0)));
        trust(&mut m, ms(4), round + 1, round);
        assert_eq!(failed(&drain(&mut m)), None);
    }
}

#[test]
fn unproven_software_gives_way_and_every_group_gives_all_of_it_another_chance() {
    let mut m = Failover::new(candidates(&["avdec_h264", "openh264dec"]));
    for group in 0..4 {
        m.handle_idr(ms(3), &shape(64, 64));
        let first = 2 * group + 1;
        assert_eq!(started(&drain(&mut m)), Some((first, 0)), "the best one first");
        m.handle_failure(ms(3), first, "error");
        assert_eq!(started(&drain(&mut m)[1..]), Some((first + 1, 1)));
        m.handle_opened(ms(4), first + 1, Ok(()));
        m.handle_failure(ms(4), first + 1, "error");
        let complaint = (group == 2).then_some(ReceiveFailure::DecoderFailed);
        assert_eq!(failed(&drain(&mut m)), complaint, "said once, after three groups");
    }
}

#[test]
fn a_forced_hardware_decoder_that_fails_ends_in_a_reason() {
    let mut m = Failover::new(candidates(&["vah264dec"]));
    m.handle_idr(ms(0), &shape(64, 64));
    trust(&mut m, ms(0), 1, 1);
    drain(&mut m);
    m.handle_failure(ms(1), 1, "died");
    assert_eq!(failed(&drain(&mut m)), Some(ReceiveFailure::DecoderFailed));
    m.handle_idr(ms(2), &shape(64, 64));
    assert_eq!(failed(&drain(&mut m)), None, "said once");
}

#[test]
fn without_candidates_the_failure_is_immediate() {
    let mut m = Failover::without_candidates("vah264dec is not installed".to_owned());
    assert_eq!(failed(&drain(&mut m)), Some(ReceiveFailure::DecoderUnavailable));
    m.handle_idr(ms(0), &shape(64, 64));
    assert!(drain(&mut m).is_empty());
}

#[test]
fn a_stream_that_cannot_be_shown_fails_until_it_changes() {
    let mut m = machine();
    let deep = StreamShape {
        refused: Some(NotDisplayable::BitDepth(10)),
        ..shape(64, 64)
    };
    m.handle_idr(ms(0), &deep);
    assert_eq!(failed(&drain(&mut m)), Some(ReceiveFailure::StreamUnsupported));
    m.handle_idr(ms(1), &deep);
    assert!(drain(&mut m).is_empty(), "said once");
    m.handle_idr(ms(2), &shape(64, 64));
    assert_eq!(started(&drain(&mut m)), Some((1, VA)));
}

#[test]
fn chroma_formats_choose_the_candidate() {
    let mut m = machine();
    let full = StreamShape {
        chroma: ChromaFormat::Yuv444,
        ..shape(64, 64)
    };
    m.handle_idr(ms(0), &full);
    assert_eq!(started(&drain(&mut m)), Some((1, AV)));
    let mut only_420 = Failover::new(candidates(&["openh264dec"]));
    only_420.handle_idr(ms(0), &full);
    assert_eq!(
        failed(&drain(&mut only_420)),
        Some(ReceiveFailure::StreamUnsupported)
    );
}

#[test]
fn a_change_mid_stream_is_proven_again_on_hardware_and_rebuilt_when_settings_depend_on_it() {
    let mut m = machine();
    m.handle_idr(ms(0), &shape(64, 64));
    trust(&mut m, ms(0), 1, 1);
    drain(&mut m);
    m.handle_idr(ms(1), &shape(128, 64));
    assert_eq!(drain(&mut m), [Effect::Prove { attempt: 1 }]);
    assert!(!m.trusts(1));
    m.handle_verdict(ms(2), 1, Ok(()));
    assert!(m.trusts(1));
    assert!(drain(&mut m).is_empty(), "selected already");
    let careful = StreamShape {
        reorder: Reorder::Unknown,
        ..shape(128, 64)
    };
    m.handle_idr(ms(3), &careful);
    assert_eq!(started(&drain(&mut m)), Some((2, VA)));
}

#[test]
fn overload_skips_to_an_idr_that_finds_room() {
    let mut m = machine();
    m.handle_idr(ms(0), &shape(64, 64));
    assert!(m.admit(ms(0), true, false));
    trust(&mut m, ms(0), 1, 1);
    drain(&mut m);
    assert!(m.admit(ms(10), false, false));
    assert!(!m.admit(ms(20), false, true));
    let effects = drain(&mut m);
    assert_eq!(wishes(&effects), 1);
    assert!(effects.contains(&Effect::Report(ReceiveEvent::Overloaded)));
    assert!(!m.admit(ms(30), false, false), "the group is broken");
    assert!(!m.admit(ms(40), true, true));
    assert!(m.admit(ms(50), true, false));
    assert_eq!(wishes(&drain(&mut m)), 0, "one a second");
}

#[test]
fn late_news_of_an_abandoned_try_is_ignored() {
    let mut m = machine();
    m.handle_idr(ms(0), &shape(64, 64));
    m.handle_timeout(ms(2000));
    drain(&mut m);
    m.handle_opened(ms(2100), 1, Ok(()));
    m.handle_verdict(ms(2100), 1, Ok(()));
    m.handle_failure(ms(2100), 1, "late");
    assert!(drain(&mut m).is_empty());
    assert_eq!(m.feeding(), None);
}

#[derive(Clone, Debug)]
enum Step {
    Unit {
        idr: bool,
        congested: bool,
        deep: bool,
        chroma444: bool,
    },
    Opened(bool),
    Picture,
    Verdict(bool),
    Failure,
    Drained,
    Lost,
    Time(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<bool>(), prop::bool::weighted(0.1), prop::bool::weighted(0.05), prop::bool::weighted(0.1))
            .prop_map(|(idr, congested, deep, chroma444)| Step::Unit { idr, congested, deep, chroma444 }),
        2 => any::<bool>().prop_map(Step::Opened),
        4 => Just(Step::Picture),
        2 => any::<bool>().prop_map(Step::Verdict),
        1 => Just(Step::Failure),
        1 => Just(Step::Drained),
        1 => Just(Step::Lost),
        3 => (0..3000_u64).prop_map(Step::Time),
    ]
}

/// Holds of every machine at every moment: at most one try is alive, tries count up, and a hardware
/// candidate that failed never comes back.
#[derive(Default)]
struct Witness {
    alive: Option<u32>,
    newest: u32,
    running: Option<usize>,
    failed: Vec<&'static str>,
}

impl Witness {
    fn check(&mut self, machine: &mut Failover) {
        for effect in drain(machine) {
            match effect {
                Effect::Start {
                    attempt, candidate, ..
                } => {
                    assert_eq!(self.alive, None);
                    assert!(attempt > self.newest);
                    assert!(!self.failed.contains(&machine.candidates()[candidate].name));
                    (self.alive, self.newest, self.running) = (Some(attempt), attempt, Some(candidate));
                }
                Effect::Stop { attempt, .. } => {
                    assert_eq!(self.alive.take(), Some(attempt));
                }
                Effect::Report(ReceiveEvent::DecoderFailed(_)) => {
                    let candidate = &machine.candidates()[self.running.unwrap()];
                    if candidate.hardware {
                        self.failed.push(candidate.name);
                    }
                }
                Effect::Prove { attempt } => assert_eq!(self.alive, Some(attempt)),
                Effect::Selected { candidate } => assert_eq!(self.running, Some(candidate)),
                Effect::Report(_) => {}
            }
        }
    }
}

proptest! {
    #[test]
    fn random_walks_keep_the_promises(steps in prop::collection::vec(step(), 1..200)) {
        let mut m = machine();
        let mut witness = Witness::default();
        let (mut now, mut sequence) = (0, 0);
        for step in steps {
            match step {
                Step::Unit { idr, congested, deep, chroma444 } => {
                    sequence += 1;
                    let shape = StreamShape {
                        refused: deep.then_some(NotDisplayable::BitDepth(10)),
                        chroma: if chroma444 { ChromaFormat::Yuv444 } else { ChromaFormat::Yuv420 },
                        ..shape(64, 64)
                    };
                    if idr { m.handle_idr(ms(now), &shape); }
                    let decode = m.admit(ms(now), idr, congested);
                    if let (Some(attempt), true) = (m.feeding(), decode) {
                        m.handle_fed(ms(now), attempt, sequence);
                    }
                }
                Step::Opened(good) => {
                    m.handle_opened(ms(now), witness.newest, if good { Ok(()) } else { Err("no".to_owned()) });
                }
                Step::Picture => m.handle_picture(ms(now), witness.newest, sequence),
                Step::Verdict(good) => {
                    m.handle_verdict(ms(now), witness.newest, if good { Ok(()) } else { Err("no".to_owned()) });
                }
                Step::Failure => m.handle_failure(ms(now), witness.newest, "no"),
                Step::Drained => m.handle_drained(witness.newest),
                Step::Lost => m.handle_lost(ms(now)),
                Step::Time(passed) => {
                    now += passed;
                    m.handle_timeout(ms(now));
                    prop_assert!(m.next_deadline().is_none_or(|deadline| deadline > ms(now)));
                }
            }
            witness.check(&mut m);
        }
        // Whatever happened, an IDR of a plain stream gets a decoder: software is never out.
        m.handle_idr(ms(now), &shape(64, 64));
        witness.check(&mut m);
        prop_assert!(witness.alive.is_some());
    }
}

#[test]
fn the_fourth_candidate_is_reached() {
    let mut m = machine();
    m.handle_idr(ms(0), &shape(64, 64));
    for attempt in 1..=3 {
        m.handle_opened(ms(0), attempt, Err("no".to_owned()));
    }
    assert_eq!(m.run.as_ref().map(|run| run.candidate), Some(OPEN));
}
