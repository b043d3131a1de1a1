//! Two WebRTC peers on threads of their own over UDP on loopback: pictures, connecting, data.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use crossdesk::transport::webrtc::{
    Certificate, ChannelConfig, ChannelEvent, ChannelId, Config, Connection, Direction, Event, Network,
    OutgoingUnit, PeerOutput, VideoConfig,
};
use crossdesk_core::time::Monotonic;
use crossdesk_pipelines::clock;

use super::Work;
use crate::Options;
use crate::cpu;
use crate::report::{Bar, Figure, Spec};
use crate::stats::median_of;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of one message on the data channel, as file transfer will have them.
const MESSAGE: usize = 64 * 1024;

pub const HD: Work = Work {
    specs: &[
        Spec {
            name: "webrtc: 1080p60 at 10 Mbit/s, unit sent to unit received, p50",
            unit: "ms",
            bar: Bar::AtMost(0.7),
        },
        Spec {
            name: "webrtc: the same, p99",
            unit: "ms",
            bar: Bar::AtMost(2.0),
        },
    ],
    run: |options| pictures(options, 10_000_000).map(|[p50, p99, _]| vec![p50, p99]),
};

pub const UHD: Work = Work {
    specs: &[
        Spec {
            name: "webrtc: 4K60 at 40 Mbit/s, unit sent to unit received, p50",
            unit: "ms",
            bar: Bar::AtMost(1.5),
        },
        Spec {
            name: "webrtc: the same at 4K, p99",
            unit: "ms",
            bar: Bar::AtMost(5.0),
        },
        Spec {
            name: "webrtc: processor time to receive 4K60 at 40 Mbit/s",
            unit: "cores",
            bar: Bar::AtMost(0.05),
        },
    ],
    run: |options| pictures(options, 40_000_000).map(Vec::from),
};

pub const CONNECT: Work = Work {
    specs: &[Spec {
        name: "webrtc: offer made to connected",
        unit: "ms",
        bar: Bar::AtMost(150.0),
    }],
    run: connect,
};

pub const DATA: Work = Work {
    specs: &[Spec {
        name: "webrtc: one ordered data channel",
        unit: "Mbit/s",
        bar: Bar::AtLeast(700.0),
    }],
    run: data,
};

/// Events with the time at which they came out.
struct Output(SyncSender<(Monotonic, Event)>);

impl PeerOutput for Output {
    fn event(&self, event: Event) {
        // A measurement that is over listens no more.
        let _ = self.0.send((clock::now(), event));
    }

    fn candidate(&self, _mid: &str, _candidate: &str) {}

    fn description(&self, _sdp: &str) {}
}

struct End {
    connection: Connection,
    events: Receiver<(Monotonic, Event)>,
    /// The thread that carries it.
    thread: u32,
}

impl End {
    fn wait<T>(&self, what: &str, mut wanted: impl FnMut(Event) -> Option<T>) -> anyhow::Result<T> {
        loop {
            let (_, event) = self
                .events
                .recv_timeout(PATIENCE)
                .with_context(|| format!("no {what}"))?;
            if let Some(found) = wanted(event) {
                return Ok(found);
            }
        }
    }

    fn connected(&self) -> anyhow::Result<()> {
        self.wait("connection", |event| {
            matches!(event, Event::Connected(_)).then_some(())
        })
    }
}

struct Pair {
    host: End,
    guest: End,
    connected: Duration,
}

impl Pair {
    fn new() -> anyhow::Result<Self> {
        let network = Network {
            loopback: true,
            ..Network::default()
        };
        let (sender, receiver) = (config(Direction::Send)?, config(Direction::Receive)?);
        let begin = Instant::now();
        let before = threads()?;
        let (tell, events) = sync_channel(10_000);
        let (connection, offer) = Connection::offer(sender, &network, Arc::new(Output(tell)))?;
        let host = End {
            connection,
            events,
            thread: new_thread(&before)?,
        };
        let before = threads()?;
        let (tell, events) = sync_channel(10_000);
        let (connection, answer) = Connection::answer(receiver, &offer, &network, Arc::new(Output(tell)))?;
        let guest = End {
            connection,
            events,
            thread: new_thread(&before)?,
        };
        host.connection.open_channel(ChannelConfig::reliable("data"));
        host.connection.handle_answer(&answer);
        host.connected()?;
        guest.connected()?;
        let connected = begin.elapsed();
        Ok(Self {
            host,
            guest,
            connected,
        })
    }
}

fn config(direction: Direction) -> anyhow::Result<Config> {
    let config = Config::new(Certificate::generate()?)?;
    Ok(Config {
        video: Some(VideoConfig {
            direction,
            tracks: vec!["Display1".to_owned()],
            profile_level_id: [0x42, 0xe0, 0x34],
        }),
        data: true,
        ..config
    })
}

/// Threads of this process that carry a peer.
fn threads() -> anyhow::Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc/self/task")? {
        let entry = entry?;
        // A thread that has ended meanwhile is none of these.
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if name.trim() == "webrtc"
            && let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok())
        {
            found.insert(id);
        }
    }
    Ok(found)
}

/// A thread names itself once it runs.
fn new_thread(before: &BTreeSet<u32>) -> anyhow::Result<u32> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(id) = threads()?.difference(before).next() {
            return Ok(*id);
        }
    }
    anyhow::bail!("a peer without a thread")
}

/// Processor time of a thread of this process, to the nanosecond.
fn spent(thread: u32) -> anyhow::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))?;
    let nanos = text.split_whitespace().next().context("an empty schedstat")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}

/// An access unit: an IDR of several times the size every two seconds.
fn unit(index: usize, bytes: usize) -> Bytes {
    let mut unit = Vec::with_capacity(bytes + 32);
    if index.is_multiple_of(120) {
        unit.extend([
            0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 0, 1, 0x68, 4, 5, 0, 0, 0, 1, 0x65,
        ]);
    } else {
        unit.extend([0, 0, 0, 1, 0x41]);
    }
    // No start code inside, and not all the same.
    let noise = (0_u32..).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8 | 1);
    unit.extend(noise.take(bytes));
    unit.into()
}

/// Middle and 99th percentile of the way of a picture, and what the receiving thread needs.
fn pictures(options: &Options, bits: usize) -> anyhow::Result<[Figure; 3]> {
    let seconds = if options.quick { 3 } else { 8 };
    let (mut p50, mut p99, mut cores) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds() {
        let pair = Pair::new()?;
        let round = stream(&pair, bits / 8 / 60, seconds * 60)?;
        p50.push(round.p50);
        p99.push(round.p99);
        cores.push(round.cores);
    }
    let way = "over loopback, SRTP and reordering included";
    Ok([
        Figure::new(&p50, way.to_owned()),
        Figure::new(&p99, String::new()),
        Figure::new(&cores, "the receiving thread, without decoding".to_owned()),
    ])
}

struct Round {
    p50: f64,
    p99: f64,
    cores: f64,
}

fn stream(pair: &Pair, bytes: usize, count: usize) -> anyhow::Result<Round> {
    let begin = Instant::now();
    let before = spent(pair.guest.thread)?;
    let mut sent = Vec::with_capacity(count);
    let mut ways = Vec::with_capacity(count);
    for index in 0..count {
        let data = unit(index, bytes);
        let due = begin + Duration::from_secs(1) * u32::try_from(index)? / 60;
        // Waits for the next picture's time with what arrives meanwhile.
        while let Some(left) = due.checked_duration_since(Instant::now()) {
            if let Ok(event) = pair.guest.events.recv_timeout(left) {
                take(&event, &sent, &mut ways)?;
            }
        }
        sent.push(clock::now());
        let timestamp = u32::try_from(index)? * 1500;
        pair.host
            .connection
            .send_unit(0, OutgoingUnit { data, timestamp })?;
    }
    while ways.len() < count {
        let event = pair
            .guest
            .events
            .recv_timeout(PATIENCE)
            .context("a picture is missing")?;
        take(&event, &sent, &mut ways)?;
    }
    let wall = begin.elapsed();
    let cores = spent(pair.guest.thread)?.saturating_sub(before).as_secs_f64() / wall.as_secs_f64();
    ways.sort_unstable_by(f64::total_cmp);
    Ok(Round {
        p50: ways[ways.len() / 2],
        p99: ways[ways.len() * 99 / 100],
        cores,
    })
}

fn take((at, event): &(Monotonic, Event), sent: &[Monotonic], ways: &mut Vec<f64>) -> anyhow::Result<()> {
    if let Event::Unit { unit, .. } = event {
        anyhow::ensure!(!unit.after_loss, "loopback has lost a picture");
        let left = sent.get(ways.len()).context("a picture too many")?;
        ways.push(cpu::ms(at.since(*left)));
    }
    Ok(())
}

fn connect(options: &Options) -> anyhow::Result<Vec<Figure>> {
    let count = if options.quick { 12 } else { 50 };
    let mut times = Vec::new();
    for _ in 0..count {
        times.push(cpu::ms(Pair::new()?.connected));
    }
    Ok(vec![Figure::new(&times, format!("{count} starts, none failed"))])
}

/// The data channel beside one TCP stream, taking turns.
fn data(options: &Options) -> anyhow::Result<Vec<Figure>> {
    let bytes = if options.quick { 30_000_000 } else { 100_000_000 };
    let (mut channel, mut tcp) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds() {
        channel.push(over_channel(bytes)?);
        tcp.push(over_tcp(bytes)?);
    }
    let note = format!(
        "{} MB in messages of 64 KiB; one TCP stream beside it {:.0} Mbit/s",
        bytes / 1_000_000,
        median_of(tcp)
    );
    Ok(vec![Figure::new(&channel, note)])
}

fn mbits(bytes: usize, time: Duration) -> f64 {
    bytes as f64 * 8.0 / 1e6 / time.as_secs_f64()
}

fn over_channel(bytes: usize) -> anyhow::Result<f64> {
    let pair = Pair::new()?;
    let opened = |event| match event {
        Event::Channel(ChannelEvent::Opened { id, .. }) => Some(id),
        _ => None,
    };
    let channel: ChannelId = pair.host.wait("data channel", opened)?;
    pair.guest.wait("data channel", opened)?;
    let message = Bytes::from(vec![7; MESSAGE]);
    let count = bytes / MESSAGE;
    let begin = Instant::now();
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            for _ in 0..count {
                while pair
                    .host
                    .connection
                    .send_message(channel, true, message.clone())
                    .is_err()
                {
                    // There is no event for room; the channel is slower than this.
                    thread::park_timeout(Duration::from_micros(200));
                }
            }
        });
        for _ in 0..count {
            pair.guest.wait("message", |event| {
                matches!(event, Event::Channel(ChannelEvent::Message { .. })).then_some(())
            })?;
        }
        sender.join().map_err(|_| anyhow::anyhow!("the sender panicked"))
    })?;
    Ok(mbits(count * MESSAGE, begin.elapsed()))
}

fn over_tcp(bytes: usize) -> anyhow::Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut out = TcpStream::connect(listener.local_addr()?)?;
    let (mut input, _) = listener.accept()?;
    let begin = Instant::now();
    thread::scope(|scope| {
        let sender = scope.spawn(move || -> std::io::Result<()> {
            let message = vec![7; MESSAGE];
            for _ in 0..bytes / MESSAGE {
                out.write_all(&message)?;
            }
            Ok(())
        });
        let mut buffer = vec![0; MESSAGE];
        while input.read(&mut buffer)? > 0 {}
        sender
            .join()
            .map_err(|_| anyhow::anyhow!("the sender panicked"))??;
        anyhow::Ok(())
    })?;
    Ok(mbits(bytes / MESSAGE * MESSAGE, begin.elapsed()))
}
