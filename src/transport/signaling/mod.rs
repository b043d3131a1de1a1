//! The socket of a signaling client: one thread that keeps [`Client`] company.

mod socket;
mod trust;

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use crossdesk_core::signaling::{Client, ClientEffect, ClientEvent, Password, Role};
use crossdesk_core::time::Monotonic;
use crossdesk_pipelines::clock;
use tokio::sync::mpsc;

pub use self::trust::{BadFingerprint, Fingerprint, Trust, client_config};

use self::socket::{Connector, Socket, Trouble};

/// Orders waiting for the thread: a burst of candidates is a dozen. With a full queue the order is lost, as it would be
/// without a socket; candidates and reports are all that can be lost by it.
const WAITING_ORDERS: usize = 256;
/// Without a deadline the thread sleeps this long between looks at nothing.
const IDLE: Duration = Duration::from_secs(3600);

/// How long the end of a client waits for its goodbye to be sent.
const FAREWELL: Duration = Duration::from_millis(500);

/// Where a server is and how it is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// Name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// How it is recognised.
    pub trust: Trust,
}

impl ServerAddress {
    /// True when it is on this machine: then the other end may be here as well.
    pub fn is_local(&self) -> bool {
        self.host == "localhost"
            || self
                .host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }
}

/// What a session asks of its signaling.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Sends a host's description to a guest.
    Offer {
        /// The guest.
        guest: String,
        /// SDP.
        sdp: String,
    },
    /// Sends a guest's description to its host.
    Answer {
        /// SDP.
        sdp: String,
    },
    /// Sends a candidate.
    Candidate {
        /// To whom.
        remote: String,
        /// The candidate attribute without `a=`.
        candidate: String,
        /// The media section it is for.
        mid: String,
    },
    /// Media flows.
    MediaUp {
        /// Between this end and that one.
        remote: String,
    },
    /// A session is over.
    EndSession {
        /// Whose.
        remote: String,
    },
    /// Gives a host another password.
    ChangePassword(Password),
}

/// A running signaling client; dropping it says goodbye and closes the socket.
#[derive(Debug)]
pub struct Signaling {
    /// `None` once it is being dropped.
    orders: Option<mpsc::Sender<Order>>,
    /// Ends when the thread does.
    ended: Receiver<()>,
}

impl Signaling {
    /// Starts a client; `tell` gets its events on the client's thread and must not block. `trouble` gets what stands in
    /// the way of a socket, for people.
    ///
    /// # Errors
    /// When the address can never work: plain text to another machine, or no certificate authority.
    pub fn start(
        address: ServerAddress,
        role: Role,
        tell: impl FnMut(ClientEvent) + Send + 'static,
        trouble: impl FnMut(&str) + Send + 'static,
    ) -> anyhow::Result<Self> {
        let connector = Connector::new(address)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .context("the signaling thread cannot start")?;
        let (orders, inbox) = mpsc::channel(WAITING_ORDERS);
        let worker = Worker {
            client: Client::new(clock::now(), role),
            connector,
            tell,
            trouble,
            socket: None,
            changes: 0,
        };
        let thread = thread::Builder::new().name("signaling".to_owned());
        let (end, ended) = sync_channel(0);
        let started = thread.spawn(move || {
            runtime.block_on(worker.run(inbox));
            drop(end);
        });
        started.context("the signaling thread cannot start")?;
        Ok(Self {
            orders: Some(orders),
            ended,
        })
    }

    /// Asks for something; never blocks.
    pub fn order(&self, order: Order) {
        if self
            .orders
            .as_ref()
            .is_some_and(|orders| orders.try_send(order).is_err())
        {
            tracing::warn!("an order to the signaling thread was lost");
        }
    }
}

impl Drop for Signaling {
    fn drop(&mut self) {
        self.orders = None;
        // Either way there is nothing more to do: the goodbye was said, or takes too long.
        let _ = self.ended.recv_timeout(FAREWELL);
    }
}

/// Refuses to send passwords in plain text to another machine.
///
/// # Errors
/// When `address` would.
pub fn check_plain(address: &ServerAddress) -> anyhow::Result<()> {
    if address.trust == Trust::Plain && !address.is_local() {
        bail!(
            "--plain speaks to a server on this machine only, 127.0.0.1 or ::1; {} is not",
            address.host
        );
    }
    Ok(())
}

struct Worker<T, R> {
    client: Client,
    connector: Connector,
    tell: T,
    trouble: R,
    socket: Option<Socket>,
    /// Numbers password changes, so that none is taken for another.
    changes: u32,
}

/// What woke the worker.
enum Woken {
    Order(Option<Order>),
    Opened(Result<Socket, Trouble>),
    Heard(Option<String>),
    Time,
}

impl<T: FnMut(ClientEvent), R: FnMut(&str)> Worker<T, R> {
    async fn run(mut self, mut inbox: mpsc::Receiver<Order>) {
        let mut opening = None;
        loop {
            if self.carry_out().await {
                opening = Some(Box::pin(self.connector.clone().connect()));
            }
            let wait = self
                .client
                .next_deadline()
                .map_or(IDLE, |due: Monotonic| due.since(clock::now()));
            let woken = tokio::select! {
                order = inbox.recv() => Woken::Order(order),
                opened = async { opening.as_mut().expect("checked below").await }, if opening.is_some() => Woken::Opened(opened),
                text = async { self.socket.as_mut().expect("checked below").hear().await }, if self.socket.is_some() => Woken::Heard(text),
                () = tokio::time::sleep(wait) => Woken::Time,
            };
            match woken {
                Woken::Order(None) => break,
                Woken::Order(Some(order)) => self.obey(order),
                Woken::Opened(opened) => {
                    opening = None;
                    self.opened(opened);
                }
                Woken::Heard(Some(text)) => self.client.handle_text(clock::now(), &text),
                Woken::Heard(None) => {
                    self.socket = None;
                    self.client.handle_closed(clock::now());
                }
                Woken::Time => {
                    let now = clock::now();
                    self.client.handle_timeout(now);
                    // An attempt the machine has given up must not come back as a socket.
                    if !self.client.is_opening() {
                        opening = None;
                    }
                }
            }
        }
        self.client.shut_down();
        self.carry_out().await;
    }

    /// True when a socket is to be opened.
    async fn carry_out(&mut self) -> bool {
        let mut open = false;
        while let Some(effect) = self.client.poll_effect() {
            match effect {
                ClientEffect::Open => open = true,
                ClientEffect::Close => {
                    if let Some(socket) = self.socket.take() {
                        socket.close().await;
                    }
                }
                ClientEffect::Send(text) => {
                    if let Some(socket) = &mut self.socket
                        && !socket.say(text.expose()).await
                    {
                        self.socket = None;
                        self.client.handle_closed(clock::now());
                    }
                }
                ClientEffect::Tell(event) => (self.tell)(event),
            }
        }
        open
    }

    fn opened(&mut self, opened: Result<Socket, Trouble>) {
        match opened {
            Ok(socket) => {
                self.socket = Some(socket);
                self.client.handle_open(clock::now());
            }
            Err(Trouble { reason, untrusted }) => {
                (self.trouble)(&reason);
                if untrusted {
                    self.client.handle_untrusted();
                } else {
                    self.client.handle_closed(clock::now());
                }
            }
        }
    }

    fn obey(&mut self, order: Order) {
        let client = &mut self.client;
        match order {
            Order::Offer { guest, sdp } => client.send_offer(&guest, &sdp),
            Order::Answer { sdp } => client.send_answer(&sdp),
            Order::Candidate {
                remote,
                candidate,
                mid,
            } => client.send_candidate(&remote, &candidate, &mid),
            Order::MediaUp { remote } => client.media_up(&remote),
            Order::EndSession { remote } => client.end_session(&remote),
            Order::ChangePassword(password) => {
                self.changes += 1;
                client.change_password(&format!("change-{}", self.changes), password);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_on_this_machine() {
        let check = |host: &str, trust: Trust| {
            check_plain(&ServerAddress {
                host: host.to_owned(),
                port: 1,
                trust,
            })
        };
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "::1"] {
            assert!(check(host, Trust::Plain).is_ok(), "{host}");
        }
        for host in ["192.0.2.1", "example.net", "localhost.example.net", "::"] {
            assert!(check(host, Trust::Plain).is_err(), "{host}");
            assert!(check(host, Trust::System).is_ok(), "{host}");
        }
    }
}
