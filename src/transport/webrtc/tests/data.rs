//! Data channels.

use super::*;

fn opened(end: &End, label: &str) -> Option<ChannelId> {
    end.channel_events().iter().find_map(|event| match event {
        ChannelEvent::Opened { id, config, .. } if config.label == label => Some(*id),
        _ => None,
    })
}

fn messages(end: &End) -> Vec<(bool, Bytes)> {
    let messages = end.channel_events().into_iter().filter_map(|event| match event {
        ChannelEvent::Message { binary, data, .. } => Some((binary, data)),
        _ => None,
    });
    messages.collect()
}

/// A connection with one channel of the host.
fn with_channel(kind: LinkKind, config: ChannelConfig) -> (Pair, ChannelId, ChannelId) {
    let mut pair = Pair::new(kind, 11);
    let label = config.label.clone();
    pair.host.peer.open_channel(config).unwrap();
    pair.connect();
    pair.run(Duration::from_secs(5), |pair| {
        opened(&pair.host, &label).is_some() && opened(&pair.guest, &label).is_some()
    });
    let (host, guest) = (opened(&pair.host, &label), opened(&pair.guest, &label));
    let (host, guest) = (host.expect("open at the host"), guest.expect("open at the guest"));
    (pair, host, guest)
}

#[test]
fn both_sides_open_channels_and_talk() {
    for kind in [clean(10), lossy(50)] {
        let (mut pair, host, guest) = with_channel(kind, ChannelConfig::reliable("ping-pong"));
        let unordered = ChannelConfig {
            ordered: false,
            reliability: Reliability::Retransmits(2),
            label: "mouse".to_owned(),
        };
        pair.guest.peer.open_channel(unordered.clone()).unwrap();
        pair.run(Duration::from_secs(5), |pair| {
            opened(&pair.host, "mouse").is_some()
        });
        let [
            ..,
            ChannelEvent::Opened {
                config,
                stream,
                remote: true,
                ..
            },
        ] = &pair.host.channel_events()[..]
        else {
            panic!("{:?}", pair.host.channel_events());
        };
        assert_eq!(config, &unordered);
        assert_eq!(stream % 2, 0, "the guest is the DTLS client");

        let large = vec![7; 200_000];
        pair.host
            .peer
            .send_message(host, false, "grüße".as_bytes())
            .unwrap();
        pair.host.peer.send_message(host, true, &[]).unwrap();
        pair.host.peer.send_message(host, true, &large).unwrap();
        pair.guest
            .peer
            .send_message(guest, false, b"{\"type\":0}")
            .unwrap();
        pair.run(Duration::from_secs(20), |pair| {
            messages(&pair.guest).len() == 3 && messages(&pair.host).len() == 1
        });
        let expected = [
            (false, "grüße".into()),
            (true, Bytes::new()),
            (true, large.into()),
        ];
        assert_eq!(messages(&pair.guest), expected);
        assert_eq!(messages(&pair.host), [(false, "{\"type\":0}".into())]);
    }
}

#[test]
fn a_closed_channel_is_closed_on_both_sides() {
    let (mut pair, host, guest) = with_channel(clean(10), ChannelConfig::reliable("x"));
    pair.guest.peer.close_channel(guest);
    pair.run(Duration::from_secs(2), |_| false);
    assert_eq!(
        pair.host.channel_events().last(),
        Some(&ChannelEvent::Closed { id: host })
    );
    assert_eq!(
        pair.guest.channel_events().last(),
        Some(&ChannelEvent::Closed { id: guest })
    );
    assert_eq!(
        pair.host.peer.send_message(host, true, b"x"),
        Err(SendRefused::NotOpen)
    );
    // Its stream serves again.
    pair.host.peer.open_channel(ChannelConfig::reliable("y")).unwrap();
    pair.run(Duration::from_secs(2), |pair| opened(&pair.host, "y").is_some());
    assert!(opened(&pair.host, "y").is_some());
}

#[test]
fn what_waits_is_bounded_and_goes_out_in_the_end() {
    let (mut pair, host, _) = with_channel(clean(10), ChannelConfig::reliable("x"));
    assert_eq!(
        pair.host.peer.send_message(host, true, &vec![0; 300_000]),
        Err(SendRefused::TooLong { limit: 262_144 })
    );
    let message = vec![1; 64 * 1024];
    let taken = (0..100)
        .take_while(|_| pair.host.peer.send_message(host, true, &message).is_ok())
        .count();
    // The opening of the channel may still count.
    assert!((7..=8).contains(&taken), "{taken}");
    assert_eq!(
        pair.host.peer.send_message(host, true, &message),
        Err(SendRefused::Full)
    );
    pair.run(Duration::from_secs(10), |pair| {
        messages(&pair.guest).len() == taken
    });
    assert_eq!(messages(&pair.guest).len(), taken);
    pair.run(Duration::from_secs(1), |_| false);
    assert_eq!(pair.host.peer.buffered_bytes(), 0);
}

/// The guest sends as fast as it can and the host does not listen.
#[test]
fn a_flood_waits_at_the_sender() {
    let (mut pair, _, guest) = with_channel(clean(2), ChannelConfig::reliable("x"));
    pair.host.polls = false;
    let message = vec![1; 16 * 1024];
    let mut sent = 0_usize;
    let end = pair.now + Duration::from_secs(20);
    while pair.now < end {
        while pair.guest.peer.send_message(guest, true, &message).is_ok() {
            sent += message.len();
        }
        pair.run(Duration::from_millis(50), |_| false);
    }
    // What may be read ahead, what the association holds, and what waits at the sender.
    assert!(sent <= (1024 + 1024 + 512 + 64) * 1024, "{sent} bytes were taken");
    assert!(sent >= 1024 * 1024, "{sent} bytes were taken");
    // Then it listens again, and nothing is lost.
    pair.host.polls = true;
    pair.run(Duration::from_secs(60), |pair| {
        messages(&pair.host).len() * 16 * 1024 == sent
    });
    assert_eq!(messages(&pair.host).len() * 16 * 1024, sent);
}

#[test]
fn channels_are_counted() {
    let (mut pair, ..) = with_channel(clean(2), ChannelConfig::reliable("x"));
    let more = (0..100)
        .filter_map(|_| pair.host.peer.open_channel(ChannelConfig::reliable("y")))
        .count();
    assert_eq!(more, 63);
    pair.run(Duration::from_secs(5), |_| false);
    let count = |end: &End| {
        end.channel_events()
            .iter()
            .filter(|event| matches!(event, ChannelEvent::Opened { .. }))
            .count()
    };
    assert_eq!((count(&pair.host), count(&pair.guest)), (64, 64));
}
