//! Pictures and sound from host to guest.

use super::*;

const FRAME: Duration = Duration::from_micros(16_667);
/// 10 Mbit/s at 60 pictures a second.
const PICTURE: usize = 20_800;
const KEYFRAME: usize = 54_000;

impl Pair {
    fn picture(&mut self, idr: bool) -> Bytes {
        let (kind, bytes) = if idr { (0x65, KEYFRAME) } else { (0x41, PICTURE) };
        let mut unit = Vec::new();
        if idr {
            unit.extend([0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 0, 1, 0x68, 4, 5]);
        }
        unit.extend([0, 0, 0, 1, kind]);
        unit.extend((0..bytes / 8).flat_map(|_| (self.random.bits() | 0x0101_0101_0101_0101).to_be_bytes()));
        unit.into()
    }

    fn send_picture(&mut self, idr: bool) -> Result<(), UnitRefused> {
        let data = self.picture(idr);
        let timestamp = self.frames.len() as u32;
        let unit = OutgoingUnit {
            data: data.clone(),
            timestamp,
        };
        self.host.peer.send_unit(self.now, 0, &unit)?;
        self.frames.push((self.now, data));
        Ok(())
    }

    /// A desktop that moves for `span`, encoded as it is asked for, and then stands still. Returns what the host counted
    /// while it moved.
    fn play(&mut self, span: Duration) -> PeerStats {
        let end = self.now + span;
        while self.now < end {
            let idr = self.host.wants_keyframe();
            self.send_picture(idr).unwrap();
            self.run(FRAME, |_| false);
        }
        let stats = self.host.peer.stats();
        self.run(Duration::from_millis(500), |_| false);
        stats
    }

    /// Every unit is what was sent, and depends on nothing that is missing.
    fn check(&self) -> Vec<Duration> {
        let mut next = 0;
        let mut delays = Vec::new();
        for (at, unit) in self.guest.units() {
            let index = unit.timestamp as usize;
            assert!(
                unit.data == self.frames[index].1,
                "unit {index} is not what was sent"
            );
            assert!(index == next || unit.idr, "unit {index} comes after {next}");
            next = index + 1;
            delays.push(at.since(self.frames[index].0));
        }
        delays.sort();
        delays
    }
}

#[test]
fn pictures_arrive_whole_and_at_once_on_a_clean_link() {
    let mut pair = Pair::new(clean(10), 3);
    pair.connect();
    let moving = pair.play(Duration::from_secs(2)).bitrate_out;
    assert!((9_000_000..12_000_000).contains(&moving), "{moving} bit/s");
    let delays = pair.check();
    assert_eq!(delays.len(), pair.frames.len());
    assert_eq!(
        delays.last(),
        Some(&Duration::from_millis(10)),
        "nothing is added to the way itself"
    );
    let stats = pair.host.peer.stats();
    let trip = stats.round_trip.unwrap();
    assert!((19..=22).contains(&trip.as_millis()), "{trip:?}");
    assert_eq!(stats.sent[0].loss, 0.0);
    assert_eq!(stats.sent[0].packets.repeated, 0);
    assert_eq!(stats.sent[1].packets.packets, 0, "the other display is silent");
}

#[test]
fn pictures_survive_loss() {
    for (permille, seed) in [(20, 4), (50, 5)] {
        let mut pair = Pair::new(lossy(permille), seed);
        pair.connect();
        pair.play(Duration::from_secs(4));
        let delays = pair.check();
        let usable = delays.len() as f64 / pair.frames.len() as f64;
        assert!(usable >= 0.99, "{usable} at {permille} permille");
        let stats = pair.host.peer.stats().sent[0];
        let repeated = stats.packets.repeated as f64 / stats.packets.packets as f64;
        let loss = f64::from(permille) / 1000.0;
        assert!((loss * 0.8..loss * 2.5).contains(&repeated), "{stats:?}");
    }
}

#[test]
fn a_key_frame_is_asked_for_and_comes() {
    let mut pair = Pair::new(clean(10), 6);
    pair.connect();
    pair.play(Duration::from_millis(200));
    assert!(!pair.host.wants_keyframe());
    pair.guest.peer.request_keyframe(0);
    pair.run(Duration::from_millis(100), |_| false);
    assert!(pair.host.wants_keyframe());

    // A blackout that retransmission cannot mend.
    pair.set_links(lossy(1000));
    for _ in 0..180 {
        pair.send_picture(false).unwrap();
        pair.run(FRAME, |_| false);
    }
    pair.set_links(clean(10));
    pair.play(Duration::from_secs(2));
    pair.check();
    let units = pair.guest.units();
    assert!(units.iter().any(|(_, unit)| unit.after_loss && unit.idr));
    assert_eq!(
        units.last().map(|(_, unit)| unit.timestamp as usize + 1),
        Some(pair.frames.len())
    );
}

#[test]
fn pictures_are_refused_until_they_can_be_shown() {
    let mut pair = Pair::new(clean(10), 7);
    assert_eq!(pair.send_picture(true), Err(UnitRefused::NotConnected));
    pair.connect();
    assert_eq!(pair.send_picture(false), Err(UnitRefused::NeedsKeyframe));
    pair.send_picture(true).unwrap();
    // The sockets take nothing for a while.
    let unit = OutgoingUnit {
        data: pair.picture(true),
        timestamp: 0,
    };
    let taken = (0..100)
        .take_while(|_| pair.host.peer.send_unit(pair.now, 0, &unit).is_ok())
        .count();
    assert!((10..30).contains(&taken), "{taken} key frames");
    assert_eq!(
        pair.host.peer.send_unit(pair.now, 0, &unit),
        Err(UnitRefused::Full)
    );
    while pair.host.peer.poll_transmit().is_some() {}
    assert_eq!(pair.send_picture(false), Err(UnitRefused::NeedsKeyframe));
    pair.send_picture(true).unwrap();
    let wrong = pair.guest.peer.send_unit(pair.now, 0, &unit);
    assert_eq!(wrong, Err(UnitRefused::NoTrack), "the guest receives");
}

#[test]
fn sound_passes_as_it_is() {
    let mut pair = Pair::new(clean(10), 8);
    pair.connect();
    for n in 0..50_u32 {
        let data = Bytes::from(vec![n as u8; 80]);
        pair.host.peer.send_audio(pair.now, data, n * 480).unwrap();
        pair.run(Duration::from_millis(10), |_| false);
    }
    pair.run(Duration::from_millis(50), |_| false);
    let heard: Vec<AudioPacket> = pair
        .guest
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Audio(packet) => Some(packet.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(heard.len(), 50);
    for (n, packet) in heard.iter().enumerate() {
        assert_eq!(
            (
                packet.timestamp as usize,
                packet.data[0] as usize,
                packet.data.len()
            ),
            (n * 480, n, 80)
        );
    }
    let nothing = pair.guest.peer.send_audio(pair.now, Bytes::new(), 0);
    assert_eq!(nothing, Err(UnitRefused::NoTrack));
}
