//! When a screen deserves a picture: at once when it changed, a little longer until it is sharp, seldom after that.

use std::collections::VecDeque;
use std::time::Duration;

use crossdesk_core::time::Monotonic;
use crossdesk_core::units::FrameRate;

use super::source::Bitrate;

/// Time after a change in which an encoder makes the picture sharp. Most need less, and say so with small units.
const REFINE: Duration = Duration::from_secs(1);

/// A still screen is sent this often, so that a guest sees that it is alive and whatever was lost comes back.
const STILL: Duration = Duration::from_secs(1);

/// A unit this many times smaller than what the bit rate leaves for one adds nothing visible.
const NOTHING_NEW: u64 = 16;

/// Pictures whose units are awaited; more than an encoder without delay ever holds.
const AWAITED: usize = 4;

/// Decides when pictures are taken; one owner, virtual time.
#[derive(Debug)]
pub struct StillGate {
    interval: Duration,
    enough: u64,
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
            enough: 0,
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
        self.enough = bitrate.bits() / 8 * micros / 1_000_000 / NOTHING_NEW;
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
        if self.awaited.pop_front() == Some(true) && bytes as u64 <= self.enough {
            self.sharp = true;
        }
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

    /// 50 pictures a second, 10 kB each, 625 bytes of which add nothing.
    fn gate() -> StillGate {
        StillGate::new(FrameRate { num: 50, den: 1 }, Bitrate::from_kbit(4000))
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
    fn a_still_screen_is_refined_until_units_are_small_and_then_sent_once_a_second() {
        let mut gate = gate();
        gate.take(at(0));
        gate.unit(9000);
        assert_eq!(gate.due(), at(20));
        gate.take(at(20));
        gate.unit(4000);
        assert_eq!(gate.due(), at(40));
        gate.take(at(40));
        gate.unit(625);
        assert_eq!(gate.due(), at(1040));
        gate.take(at(1040));
        gate.unit(90);
        assert_eq!(gate.due(), at(2040));
    }

    #[test]
    fn a_small_unit_of_a_changed_picture_does_not_prove_that_it_is_sharp() {
        let mut gate = gate();
        gate.take(at(0));
        gate.unit(100);
        assert_eq!(gate.due(), at(20));
        gate.take(at(20));
        gate.changed(at(25));
        gate.unit(100);
        assert_eq!(gate.due(), at(40), "the change came after that picture");
        gate.take(at(40));
        gate.unit(100);
        assert_eq!(gate.due(), at(60));
    }

    #[test]
    fn an_encoder_that_never_gets_quiet_stops_refining_after_a_second() {
        let mut gate = gate();
        let mut now = at(0);
        let mut taken = 0;
        while now < at(3000) {
            gate.take(now);
            gate.unit(10_000);
            taken += 1;
            now = gate.due();
        }
        // 0 to 1000 every 20 ms, then one a second.
        assert_eq!(taken, 52);
    }

    #[test]
    fn a_wish_is_met_on_a_still_screen() {
        let mut gate = gate();
        gate.take(at(0));
        gate.unit(9);
        gate.take(at(20));
        gate.unit(9);
        gate.ask();
        assert_eq!(gate.due(), at(40));
        gate.take(at(500));
        gate.unit(9000);
        assert_eq!(gate.due(), at(1500), "a keyframe of a sharp picture is no change");
    }
}
