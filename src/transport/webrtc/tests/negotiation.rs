//! Connecting, refusing, restarting, ending.

use super::*;

#[test]
fn a_clean_link_connects_in_a_few_round_trips() {
    let mut pair = Pair::new(clean(20), 1);
    let began = pair.now;
    pair.connect();
    let host = pair.host.connected().unwrap().since(began);
    let guest = pair.guest.connected().unwrap().since(began);
    assert!(
        host.max(guest) <= Duration::from_millis(200),
        "{host:?} and {guest:?}"
    );
    let Some((_, Event::Connected(path))) = pair
        .guest
        .events
        .iter()
        .find(|(_, event)| matches!(event, Event::Connected(_)))
    else {
        panic!();
    };
    assert_eq!((path.local, path.remote), (pair.guest.address, pair.host.address));
    assert_eq!(
        (path.local_kind, path.remote_kind),
        (CandidateKind::Host, CandidateKind::Host)
    );
    assert!(pair.host.has(&Event::KeyframeRequested { track: 0 }));
}

#[test]
fn a_lossy_link_connects() {
    let mut took = Vec::new();
    for seed in 0..20 {
        let mut pair = Pair::new(lossy(100), seed);
        let began = pair.now;
        pair.connect();
        took.push(pair.host.connected().unwrap().since(began));
    }
    took.sort();
    assert!(took[10] < Duration::from_secs(1), "{took:?}");
    assert!(took[19] < Duration::from_secs(5), "{took:?}");
}

#[test]
fn another_certificate_than_announced_ends_the_connection() {
    let mut stranger = config(Direction::Receive, 2);
    stranger.certificate = Certificate::generate().unwrap();
    let mut pair = Pair::of(clean(5), 1, config(Direction::Send, 1), stranger);
    let now = pair.now;
    let offer = pair.host.peer.offer(now).unwrap();
    let answer = pair.guest.peer.handle_offer(now, &offer).unwrap();
    let announced = |sdp: &str| {
        sdp.lines()
            .find(|line| line.starts_with("a=fingerprint"))
            .unwrap()
            .to_owned()
    };
    let forged = answer.replace(&announced(&answer), &announced(&offer));
    pair.host.peer.handle_answer(now, &forged).unwrap();
    let line = pair.guest.peer.add_host_candidate(pair.guest.address).unwrap();
    pair.host.peer.add_host_candidate(pair.host.address).unwrap();
    pair.host.peer.add_remote_candidate(now, &line).unwrap();
    pair.run(Duration::from_secs(5), |pair| pair.host.peer.is_over());
    assert!(
        pair.host.has(&Event::Failed(Failure::WrongFingerprint)),
        "{:?}",
        pair.host.events
    );
    assert_eq!(pair.host.connected(), None);
    assert_eq!(pair.host.peer.next_deadline(), None);
}

#[test]
fn a_side_without_h264_is_refused() {
    let mut pair = Pair::new(clean(5), 1);
    let now = pair.now;
    let offer = pair.host.peer.offer(now).unwrap();
    let other = offer.replace("H264/90000", "VP8/90000");
    assert_eq!(
        pair.guest.peer.handle_offer(now, &other),
        Err(NegotiationError::NoH264)
    );
    let answer = pair.guest.peer.handle_offer(now, &offer).unwrap();
    let refused = answer.replace("m=video 9", "m=video 0");
    assert_eq!(
        pair.host.peer.handle_answer(now, &refused),
        Err(NegotiationError::NoH264)
    );
    let mode = answer.replace("packetization-mode=1", "packetization-mode=0");
    assert_eq!(
        pair.host.peer.handle_answer(now, &mode),
        Err(NegotiationError::NoH264)
    );
    pair.host.peer.handle_answer(now, &answer).unwrap();
}

#[test]
fn what_is_missing_in_a_description_is_told() {
    let mut pair = Pair::new(clean(5), 1);
    let now = pair.now;
    let offer = pair.host.peer.offer(now).unwrap();
    let without = |start: &str| -> String {
        offer
            .lines()
            .filter(|line| !line.starts_with(start))
            .map(|line| format!("{line}\r\n"))
            .collect()
    };
    let mut refusal = |sdp: &str| pair.guest.peer.handle_offer(now, sdp).unwrap_err();
    assert_eq!(refusal("nonsense"), NegotiationError::Sdp(SdpError::NotSdp));
    assert_eq!(refusal(&without("a=ice-pwd")), NegotiationError::NoIceCredentials);
    assert_eq!(
        refusal(&without("a=fingerprint")),
        NegotiationError::NoFingerprint
    );
    assert_eq!(refusal(&without("a=group")), NegotiationError::NotBundled);
    assert_eq!(refusal(&without("a=rtcp-mux")), NegotiationError::NoRtcpMux);
    assert_eq!(
        pair.host.peer.handle_offer(now, &offer),
        Err(NegotiationError::WrongState)
    );
    assert_eq!(
        pair.guest.peer.handle_answer(now, &offer),
        Err(NegotiationError::WrongState)
    );
}

#[test]
fn nobody_there_and_nobody_any_more_are_told() {
    let mut pair = Pair::new(lossy(1000), 1);
    pair.signal();
    pair.run(Duration::from_secs(60), |pair| pair.host.peer.is_over());
    assert!(
        pair.host
            .has(&Event::Failed(Failure::NoPath(Duration::from_secs(20))))
    );

    let mut pair = Pair::new(clean(5), 1);
    pair.connect();
    pair.set_links(lossy(1000));
    let cut = pair.now;
    pair.run(Duration::from_secs(60), |pair| pair.host.peer.is_over());
    assert!(pair.host.has(&Event::Interrupted));
    assert!(pair.host.has(&Event::Failed(Failure::ConnectionLost)));
    assert!(
        pair.now.since(cut) < Duration::from_secs(20),
        "{:?}",
        pair.now.since(cut)
    );
}

#[test]
fn a_short_interruption_ends_nothing() {
    let mut pair = Pair::new(clean(5), 1);
    pair.connect();
    pair.set_links(lossy(1000));
    pair.run(Duration::from_secs(60), |pair| pair.host.has(&Event::Interrupted));
    pair.set_links(clean(5));
    pair.run(Duration::from_secs(10), |pair| pair.host.has(&Event::Resumed));
    assert!(pair.host.has(&Event::Resumed), "{:?}", pair.host.events);
    pair.run(Duration::from_secs(30), |_| false);
    assert!(!pair.host.peer.is_over() && !pair.guest.peer.is_over());
}

#[test]
fn who_leaves_says_so() {
    let mut pair = Pair::new(clean(5), 1);
    pair.connect();
    pair.guest.peer.close(pair.now);
    pair.run(Duration::from_secs(1), |pair| pair.host.peer.is_over());
    assert!(pair.host.has(&Event::Closed));
    assert!(pair.guest.has(&Event::Closed));
}

#[test]
fn ice_restarts_onto_another_address() {
    let mut pair = Pair::new(clean(5), 1);
    pair.connect();
    let now = pair.now;
    let offer = pair.host.peer.restart_ice(now).unwrap();
    assert!(
        pair.guest.peer.restart_ice(now).is_err(),
        "only the side that offers can"
    );
    let answer = pair.guest.peer.handle_offer(now, &offer).unwrap();
    // The guest's old address is gone.
    let moved: SocketAddr = "192.0.2.3:6000".parse().unwrap();
    let answer: String = answer
        .lines()
        .filter(|line| !line.starts_with("a=candidate"))
        .map(|line| format!("{line}\r\n"))
        .collect();
    pair.guest.address = moved;
    let line = pair.guest.peer.add_host_candidate(moved).unwrap();
    pair.host.peer.handle_answer(now, &answer).unwrap();
    pair.host.peer.add_remote_candidate(now, &line).unwrap();
    let changed = |end: &End| {
        end.events
            .iter()
            .any(|(_, event)| matches!(event, Event::PathChanged(path) if path.remote == moved))
    };
    pair.run(Duration::from_secs(5), |pair| changed(&pair.host));
    assert!(changed(&pair.host), "{:?}", pair.host.events);
    let channel = pair.host.peer.open_channel(ChannelConfig::reliable("x")).unwrap();
    pair.run(Duration::from_secs(5), |pair| {
        pair.host
            .channel_events()
            .iter()
            .any(|event| matches!(event, ChannelEvent::Opened { id, .. } if *id == channel))
    });
    assert_eq!(pair.host.channel_events().len(), 1);
    assert!(!pair.host.peer.is_over() && !pair.guest.peer.is_over());
}

#[test]
fn candidates_may_come_before_the_description_and_in_it() {
    let mut pair = Pair::new(clean(5), 1);
    let now = pair.now;
    let early = pair.host.peer.add_host_candidate(pair.host.address).unwrap();
    pair.guest.peer.add_remote_candidate(now, &early).unwrap();
    let offer = pair.host.peer.offer(now).unwrap();
    assert!(offer.contains("a=candidate:"));
    pair.guest.peer.add_host_candidate(pair.guest.address).unwrap();
    let answer = pair.guest.peer.handle_offer(now, &offer).unwrap();
    pair.host.peer.handle_answer(now, &answer).unwrap();
    assert_eq!(pair.host.peer.candidate_mid(), Some("Display1"));
    pair.run(Duration::from_secs(2), |pair| pair.host.connected().is_some());
    assert!(pair.host.connected().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Damaged descriptions and candidates are refused or understood, never more.
    #[test]
    fn no_signaling_makes_a_peer_panic(cut in 0_usize..2500, length in 0_usize..60, with in ".{0,20}", candidate in ".{0,80}") {
        let now = Monotonic::from_micros(1);
        let mut host = Peer::new(now, config(Direction::Send, 1));
        let mut offer = host.offer(now).unwrap();
        let cut = cut.min(offer.len());
        offer.replace_range(cut..(cut + length).min(offer.len()), &with);
        let mut guest = Peer::new(now, config(Direction::Receive, 2));
        let _ = guest.add_remote_candidate(now, &candidate);
        if let Ok(answer) = guest.handle_offer(now, &offer) {
            let _ = host.handle_answer(now, &answer);
        }
        let _ = guest.add_remote_candidate(now, &candidate);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Forged datagrams, from strangers and from the other side's address, change nothing.
    #[test]
    fn no_datagrams_harm_a_connection(seed: u64) {
        let mut pair = Pair::new(clean(2), 1);
        pair.connect();
        let mut random = Seeded::new(seed);
        let addresses: [SocketAddr; 2] = [pair.host.address, "192.0.2.9:9".parse().unwrap()];
        for _ in 0..2000 {
            let mut data: Vec<u8> = (0..random.index(100)).map(|_| random.bits() as u8).collect();
            if let Some(first) = data.first_mut() {
                // The kinds that are told apart by the first byte.
                *first = [0, 1, 20, 21, 22, 23, 0x80, 0x90, *first][random.index(9)];
            }
            if random.flip() && data.len() > 12 {
                data[1] = [96, 200, 201, 205, 206, 111][random.index(6)];
            }
            let from = addresses[random.index(2)];
            pair.guest.peer.handle_datagram(pair.now, pair.guest.address, from, &data);
        }
        pair.run(Duration::from_secs(1), |_| false);
        prop_assert!(!pair.guest.peer.is_over(), "{:?}", pair.guest.events.last());
        prop_assert_eq!(pair.guest.units().len(), 0);
        prop_assert!(pair.guest.peer.stats().datagrams_ignored >= 1000);
    }
}

/// What hosts in the field offer: everything both ways, transport lines for the whole session, no candidates.
#[test]
fn an_offer_of_the_field_is_answered() {
    let digest = ["AB"; 32].join(":");
    let media = |kind: &str, mid: &str, map: &str, ssrc: u32| {
        format!(
            "m={kind}\r\nc=IN IP4 0.0.0.0\r\na=mid:{mid}\r\na=sendrecv\r\na=ssrc:{ssrc} cname:{mid}\r\n\
             a=msid:{mid} {mid}\r\na=rtcp-mux\r\n{map}a=ice-ufrag:fgh1\r\na=ice-pwd:0123456789012345678901\r\n"
        )
    };
    let h264 = "a=rtpmap:96 H264/90000\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 goog-remb\r\n\
        a=fmtp:96 profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1\r\n";
    let opus = "a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;stereo=1;useinbandfec=1\r\n";
    let offer = format!(
        "v=0\r\no=rtc 1 0 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE Display1 Display2 audio-stream 0\r\n\
         a=msid-semantic:WMS *\r\na=setup:actpass\r\na=ice-options:ice2,trickle\r\n\
         a=fingerprint:sha-256 {digest}\r\n{}{}{}m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n\
         c=IN IP4 0.0.0.0\r\na=mid:0\r\na=sctp-port:5000\r\na=max-message-size:262144\r\n\
         a=ice-ufrag:fgh1\r\na=ice-pwd:0123456789012345678901\r\n",
        media("video 9 UDP/TLS/RTP/SAVPF 96", "Display1", h264, 1001),
        media("video 9 UDP/TLS/RTP/SAVPF 96", "Display2", h264, 1002),
        media("audio 9 UDP/TLS/RTP/SAVPF 111", "audio-stream", opus, 1003),
    );
    let now = Monotonic::from_micros(1);
    let mut guest = Peer::new(now, config(Direction::Receive, 2));
    let answer = guest.handle_offer(now, &offer).unwrap();
    let lines =
        |start: &str| -> Vec<&str> { answer.lines().filter(|line| line.starts_with(start)).collect() };
    assert_eq!(
        lines("m="),
        [
            "m=video 9 UDP/TLS/RTP/SAVPF 96",
            "m=video 9 UDP/TLS/RTP/SAVPF 96",
            "m=audio 9 UDP/TLS/RTP/SAVPF 111",
            "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
        ]
    );
    assert_eq!(
        lines("a=mid:"),
        [
            "a=mid:Display1",
            "a=mid:Display2",
            "a=mid:audio-stream",
            "a=mid:0"
        ]
    );
    assert_eq!(
        lines("a=group"),
        ["a=group:BUNDLE Display1 Display2 audio-stream 0"]
    );
    assert_eq!(lines("a=recvonly").len(), 3);
    assert_eq!(lines("a=setup"), ["a=setup:active"; 4]);
    assert!(lines("a=ssrc").is_empty() && lines("a=rtcp-fb:96 goog-remb").is_empty());
    assert_eq!(guest.candidate_mid(), Some("Display1"));
}
