//! When a screen deserves a picture: at once when it changed, a little longer until it is sharp, seldom after that.

use std::collections::VecDeque;
use std::time::Duration;

use crossdesk_core::time::Monotonic;
use crossdesk_core::units::FrameRate;

use super::source::Bitrate;

/// Most time after a change in which an encoder makes the picture sharp. A page of text over a whole 1080p screen takes
/// two seconds at 9 Mbit/s; all else takes less, and small units say so.
const REFINE: Duration = Duration::from_secs(3);

/// A still screen is sent this often, so that a guest sees that it is alive and whatever was lost comes back.
const STILL: Duration = Duration::from_secs(1);

/// A unit this many times smaller than what the bit rate leaves for one adds nothing visible.
const NOTHING_NEW: u64 = 32;

/// So many small units in a row are no accident.
const SETTLED: u32 = 4;

/// Pictures whose units are awaited; more than an encoder without delay ever holds.
const AWAITED: usize = 4;

/// Decides when pictures are taken; one owner, virtual time.
#[derive(Debug)]
pub struct StillGate {
    interval: Duration,
    /// Bytes that the bit rate leaves for a unit.
    budget: u64,
    /// Bytes that came out beyond the budget. An encoder that owes them makes small units, sharp or not.
    debt: u64,
    /// Small units in a row, made without debt.
    small: u32,
    /// When the screen changed last.
    changed: Option<Monotonic>,
    /// True when there is something to send: a change, or somebody asked.
    wanted: bool,
    /// When the newest picture was taken.
    taken: Option<Monotonic>,
    sharp: bool,
    /// For each picture whose unit is awaited: whether it only refines the one before.
    awaited: VecDeque<bool>,
}

impl StillGate {
    /// A gate that wants a first picture at once.
    pub fn new(rate: FrameRate, bitrate: Bitrate) -> Self {
        let mut gate = Self {
            interval: Duration::ZERO,
            budget: 0,
            debt: 0,
            small: 0,
            changed: None,
            wanted: true,
            taken: None,
            sharp: false,
            awaited: VecDeque::new(),
        };
        gate.set(rate, bitrate);
        gate
    }

    /// The rate pictures are taken at while the screen changes, and what their units may cost.
    pub fn set(&mut self, rate: FrameRate, bitrate: Bitrate) {
        let micros = u64::from(rate.den) * 1_000_000 / u64::from(rate.num.max(1));
        self.interval = Duration::from_micros(micros);
        self.budget = bitrate.bits() / 8 * micros / 1_000_000;
    }

    /// The screen changed.
    pub fn changed(&mut self, now: Monotonic) {
        self.changed = Some(now);
        self.wanted = true;
        self.sharp = false;
        // Pictures from before say nothing about this one.
        self.awaited.iter_mut().for_each(|refines| *refines = false);
    }

    /// A picture is wanted though nothing changed.
    pub fn ask(&mut self) {
        self.wanted = true;
    }

    /// A picture was taken.
    pub fn take(&mut self, now: Monotonic) {
        let refines = !std::mem::take(&mut self.wanted);
        self.changed.get_or_insert(now);
        self.taken = Some(now);
        if self.awaited.len() == AWAITED {
            self.awaited.pop_front();
        }
        self.awaited.push_back(refines);
    }

    /// The unit of the oldest picture that is awaited has come out.
    pub fn unit(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        self.debt = (self.debt + bytes).saturating_sub(self.budget);
        let small = self.debt == 0 && bytes <= self.budget / NOTHING_NEW;
        self.small = if small { self.small.saturating_add(1) } else { 0 };
        let refines = self.awaited.pop_front() == Some(true);
        self.sharp |= refines && self.small >= SETTLED;
    }

    /// When the next picture is to be taken.
    pub fn due(&self) -> Monotonic {
        let (Some(taken), Some(changed)) = (self.taken, self.changed) else {
            return Monotonic::ZERO;
        };
        let refining = !self.sharp && taken < changed + REFINE;
        if self.wanted || refining {
            taken + self.interval
        } else {
            taken + STILL
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Monotonic {
        Monotonic::from_micros(ms * 1000)
    }

    /// 50 pictures a second, 10 kB each, 312 bytes of which add nothing.
    fn gate() -> StillGate {
        StillGate::new(FrameRate { num: 50, den: 1 }, Bitrate::from_kbit(4000))
    }

    /// Takes the picture that is due and has its unit come out.
    fn step(gate: &mut StillGate, bytes: usize) -> Monotonic {
        let now = gate.due();
        gate.take(now);
        gate.unit(bytes);
        now
    }

    /// A gate whose screen is sharp since 60 ms.
    fn settled() -> StillGate {
        let mut gate = gate();
        for _ in 0..4 {
            step(&mut gate, 100);
        }
        assert_eq!(gate.due(), at(1060));
        gate
    }

    #[test]
    fn a_change_is_taken_at_once_and_no_faster_than_the_rate() {
        let mut gate = gate();
        assert_eq!(gate.due(), Monotonic::ZERO);
        gate.take(at(100));
        gate.unit(200);
        gate.changed(at(105));
        assert_eq!(gate.due(), at(120));
        gate.take(at(120));
        gate.unit(5000);
        gate.changed(at(900));
        assert!(gate.due() <= at(900));
    }

    #[test]
    fn a_still_screen_is_refined_until_units_stay_small_and_then_sent_once_a_second() {
        let mut gate = gate();
        for bytes in [9000, 4000, 312, 312, 312, 313, 312, 312, 312] {
            step(&mut gate, bytes);
        }
        assert_eq!(gate.due(), at(180));
        step(&mut gate, 312);
        assert_eq!(gate.due(), at(1180));
        step(&mut gate, 90);
        assert_eq!(gate.due(), at(2180));
    }

    #[test]
    fn small_units_of_an_encoder_in_debt_prove_nothing() {
        let mut gate = gate();
        step(&mut gate, 60_000);
        for picture in 1..=9 {
            assert_eq!(step(&mut gate, 50), at(picture * 20));
        }
        assert_eq!(gate.due(), at(1180), "five to pay, four to believe");
    }

    #[test]
    fn a_small_change_of_a_sharp_screen_costs_two_pictures() {
        let mut gate = settled();
        gate.changed(at(500));
        gate.take(at(500));
        gate.unit(200);
        assert_eq!(
            gate.due(),
            at(520),
            "the picture of the change itself proves nothing"
        );
        step(&mut gate, 50);
        assert_eq!(gate.due(), at(1520));
    }

    #[test]
    fn a_change_that_comes_while_a_picture_is_under_way_is_refined_too() {
        let mut gate = settled();
        gate.take(at(1060));
        gate.changed(at(1065));
        gate.unit(50);
        assert_eq!(gate.due(), at(1080));
        step(&mut gate, 50);
        assert_eq!(gate.due(), at(1100));
    }

    #[test]
    fn an_encoder_that_never_gets_quiet_stops_refining_after_three_seconds() {
        let mut gate = gate();
        let mut taken = 0;
        while gate.due() < at(6000) {
            step(&mut gate, 10_000);
            taken += 1;
        }
        // 0 to 3000 every 20 ms, then one a second.
        assert_eq!(taken, 153);
    }

    #[test]
    fn a_wish_is_met_on_a_still_screen() {
        let mut gate = settled();
        gate.ask();
        assert_eq!(gate.due(), at(80));
        gate.take(at(500));
        gate.unit(9000);
        assert_eq!(gate.due(), at(1500), "a keyframe of a sharp picture is no change");
    }
}
