//! What one signaling server carries: idle browsers with their heartbeats over TLS, and joins on top of them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::Work;
use crate::Options;
use crate::cpu;
use crate::report::{Bar, Figure, Spec};
use crate::signal_client::{Client, Connector, Server, raise_descriptor_limit};

/// Idle browsers at a time.
const IDLE: usize = 10_000;

/// Sockets being opened at a time; the server allows 128.
const OPENING: usize = 64;

/// The web client's heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// Longer than a socket without a heartbeat lives.
const HOLD: Duration = Duration::from_secs(40);

/// Pairs of a host and a guest that join over and over.
const PAIRS: usize = 32;

/// 1 GiB in MB.
const GIB: f64 = 1073.7;

pub const WORK: Work = Work {
    specs: &[
        Spec {
            name: "signal: idle TLS connections kept for 40 s",
            unit: "connections",
            bar: Bar::AtLeast(IDLE as f64),
        },
        Spec {
            name: "signal: memory of the server with them",
            unit: "MB",
            bar: Bar::AtMost(GIB),
        },
        Spec {
            name: "signal: processor time of the server for their heartbeats",
            unit: "cores",
            bar: Bar::AtMost(1.0),
        },
        Spec {
            name: "signal: joins a second beside them",
            unit: "joins/s",
            bar: Bar::AtLeast(500.0),
        },
    ],
    run,
};

fn run(options: &Options) -> anyhow::Result<Vec<Figure>> {
    raise_descriptor_limit()?;
    let server = Server::start()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    LocalSet::new().block_on(&runtime, measure(options, &server))
}

async fn measure(options: &Options, server: &Server) -> anyhow::Result<Vec<Figure>> {
    let connector = Connector::new(server)?;
    let alone = cpu::resident_mb(server.pid())?;
    let begin = Instant::now();
    let crowd = Crowd::gather(&connector, IDLE).await?;
    let opened = begin.elapsed();

    let begin = (Instant::now(), cpu::of_process(server.pid())?);
    crowd.hold(HOLD).await;
    let wall = begin.0.elapsed();
    let spent = cpu::of_process(server.pid())?.saturating_sub(begin.1);
    let cores = spent.as_secs_f64() / wall.as_secs_f64();
    let memory = cpu::resident_mb(server.pid())?;
    let kept = crowd.alive() as f64;

    let joins = Joins::prepare(&connector).await?;
    let mut rates = Vec::new();
    let window = Duration::from_secs(if options.quick { 2 } else { 5 });
    for _ in 0..options.rounds() {
        rates.push(joins.rate(window).await?);
    }
    anyhow::ensure!(crowd.alive() as f64 == kept, "joins have cost idle connections");
    let each = (memory - alone) * 1e3 / kept;
    Ok(vec![
        Figure::new(
            &[kept],
            format!(
                "opened at {:.0}/s, a `ping` every 3 s each",
                IDLE as f64 / opened.as_secs_f64()
            ),
        ),
        Figure::new(
            &[memory],
            format!("{each:.1} kB a connection, {alone:.1} MB without"),
        ),
        Figure::new(
            &[cores],
            format!("of one core, {:.0} heartbeats/s", kept / HEARTBEAT.as_secs_f64()),
        ),
        Figure::new(&rates, joins.note()),
    ])
}

/// Idle clients; dropping them closes their sockets.
struct Crowd {
    alive: Rc<Cell<usize>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Crowd {
    async fn gather(connector: &Connector, count: usize) -> anyhow::Result<Self> {
        let alive = Rc::new(Cell::new(0));
        let left = Rc::new(Cell::new(count));
        let tasks = Rc::new(RefCell::new(Vec::new()));
        let openers: Vec<_> = (0..OPENING)
            .map(|_| {
                let (connector, alive) = (connector.clone(), Rc::clone(&alive));
                let (left, tasks) = (Rc::clone(&left), Rc::clone(&tasks));
                spawn_local(async move {
                    while left.get() > 0 {
                        left.set(left.get() - 1);
                        let mut client = connector.connect().await?;
                        client.log_in("web").await?;
                        alive.set(alive.get() + 1);
                        let alive = Rc::clone(&alive);
                        tasks.borrow_mut().push(spawn_local(async move {
                            // An error is a socket that is gone, which is what is counted.
                            let _ = idle(client).await;
                            alive.set(alive.get() - 1);
                        }));
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        for opener in openers {
            opener.await??;
        }
        let tasks = tasks.take();
        Ok(Self { alive, tasks })
    }

    fn alive(&self) -> usize {
        self.alive.get()
    }

    async fn hold(&self, span: Duration) {
        // Nothing comes: this only lets the others run.
        let _ = tokio::time::timeout(span, std::future::pending::<()>()).await;
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn idle(mut client: Client) -> anyhow::Result<()> {
    loop {
        match tokio::time::timeout(HEARTBEAT, client.listen()).await {
            Ok(message) => drop(message?),
            Err(_) => client.say(&json!({ "type": "ping", "ts": 0 })).await?,
        }
    }
}

/// Hosts and guests.
struct Joins {
    pairs: Vec<Rc<RefCell<Option<Pair>>>>,
    latencies: Rc<RefCell<Vec<f64>>>,
}

struct Pair {
    host: Client,
    claim: String,
    guest: Client,
    guest_id: String,
}

impl Joins {
    async fn prepare(connector: &Connector) -> anyhow::Result<Self> {
        let mut pairs = Vec::new();
        for _ in 0..PAIRS {
            let (mut host, mut guest) = (connector.connect().await?, connector.connect().await?);
            let pair = Pair {
                claim: host.log_in("").await?,
                guest_id: guest.log_in("web").await?,
                host,
                guest,
            };
            pairs.push(Rc::new(RefCell::new(Some(pair))));
        }
        let latencies = Rc::default();
        Ok(Self { pairs, latencies })
    }

    /// Whole sessions a second: join, offer, answer, two candidates, leave.
    async fn rate(&self, window: Duration) -> anyhow::Result<f64> {
        let begin = Instant::now();
        let runs: Vec<_> = self
            .pairs
            .iter()
            .map(|place| {
                let (place, latencies) = (Rc::clone(place), Rc::clone(&self.latencies));
                spawn_local(async move {
                    let mut pair = place.take().context("a pair at rest")?;
                    let mut count = 0_u32;
                    pair.stay_alive().await?;
                    while begin.elapsed() < window {
                        let start = Instant::now();
                        pair.session().await?;
                        latencies.borrow_mut().push(cpu::ms(start.elapsed()));
                        count += 1;
                    }
                    place.replace(Some(pair));
                    anyhow::Ok(count)
                })
            })
            .collect();
        let mut sessions = 0;
        for run in runs {
            sessions += run.await??;
        }
        Ok(f64::from(sessions) / begin.elapsed().as_secs_f64())
    }

    fn note(&self) -> String {
        let mut latencies = self.latencies.borrow().clone();
        latencies.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| latencies.get((latencies.len() as f64 * share) as usize).copied();
        let (half, most) = (at(0.5).unwrap_or(f64::NAN), at(0.99).unwrap_or(f64::NAN));
        format!(
            "whole sessions with {PAIRS} at a time: join, offer, answer, candidates, leave; p50 {half:.0} ms, p99 {most:.0} ms"
        )
    }
}

impl Pair {
    /// One heartbeat each, which is enough for a round.
    async fn stay_alive(&mut self) -> anyhow::Result<()> {
        for client in [&mut self.host, &mut self.guest] {
            client.say(&json!({ "type": "ping", "ts": 0 })).await?;
            expect(client, "pong").await?;
        }
        Ok(())
    }

    async fn session(&mut self) -> anyhow::Result<()> {
        let host_id = self.claim[..9].to_owned();
        let join = json!({
            "type": "join_transmission", "user_id": self.guest_id, "transmission_id": self.claim,
        });
        self.guest.say(&join).await?;
        expect(&mut self.host, "user_join_transmission").await?;
        let to_guest = |kind: &str| forward(kind, &host_id, &self.guest_id, &host_id);
        let to_host = |kind: &str| forward(kind, &self.guest_id, &host_id, &host_id);
        self.host.say(&to_guest("offer")).await?;
        expect(&mut self.guest, "offer").await?;
        self.guest.say(&to_host("answer")).await?;
        expect(&mut self.host, "answer").await?;
        self.host.say(&to_guest("new_candidate_mid")).await?;
        self.guest.say(&to_host("new_candidate_mid")).await?;
        expect(&mut self.guest, "new_candidate_mid").await?;
        expect(&mut self.host, "new_candidate_mid").await?;
        let leave = json!({
            "type": "user_leave_transmission", "user_id": self.guest_id, "transmission_id": host_id,
        });
        self.guest.say(&leave).await?;
        expect(&mut self.host, "user_leave_transmission").await
    }
}

async fn expect(client: &mut Client, kind: &str) -> anyhow::Result<()> {
    let message = client.hear().await?;
    anyhow::ensure!(
        message["type"] == kind,
        "{kind} was expected, this came: {message}"
    );
    Ok(())
}

/// A message for the other side; descriptions have the size of real ones.
fn forward(kind: &str, from: &str, to: &str, host: &str) -> Value {
    let mut message = json!({
        "type": kind, "user_id": from, "remote_user_id": to, "transmission_id": host,
    });
    if kind == "new_candidate_mid" {
        message["candidate"] = json!("candidate:1 1 UDP 2122317823 192.0.2.7 50412 typ host");
        message["mid"] = json!("Display1");
    } else {
        message["sdp"] = json!("a=ice-options:ice2,trickle\r\n".repeat(110));
    }
    message
}
