//! One socket: handshake, then frames in both directions until either side ends it.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use crossdesk_core::time::Monotonic;
use crossdesk_core::video::websocket::{ClientEvent, ClientFrames, close_frame, pong_frame};
use crossdesk_core::video::{CloseReason, ConnectionId};
use crossdesk_pipelines::clock;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::handshake::{self, Head};
use super::outbound::{Outbound, Progress};
use super::worker::{Slot, World};

/// How long a peer may take to read the rest of a frame and the close frame, and to close its side.
const GOODBYE: Duration = Duration::from_secs(1);

/// Bytes read at a time: a whole client message with its header, so that an acknowledgement costs one call.
const READ_BYTES: usize = 2048;

/// Serves a connection until it is over; the socket is closed on return.
pub(super) async fn serve(world: Rc<World>, id: ConnectionId, slot: Rc<Slot>, mut stream: TcpStream) {
    let upgraded = tokio::select! {
        biased;
        () = must_close(&slot) => None,
        upgraded = upgrade(&world, id, &mut stream) => upgraded,
    };
    let Some(rest) = upgraded else { return };
    let link = Link {
        world,
        id,
        slot,
        stream,
        frames: ClientFrames::default(),
        outbound: Outbound::default(),
        pong: None,
        goodbye: None,
    };
    link.run(&rest).await;
}

async fn must_close(slot: &Slot) {
    while slot.take_close().is_none() {
        slot.changed.notified().await;
    }
}

/// Bytes that came after the request, once the connection is upgraded.
async fn upgrade(world: &World, id: ConnectionId, stream: &mut TcpStream) -> Option<Vec<u8>> {
    let head = handshake::read_head(stream).await.ok()?;
    let knows_origin = |origin: &str| world.ask(|hub| hub.knows_origin(origin));
    match handshake::check(&head, &world.host, knows_origin) {
        Ok(upgrade) => {
            handshake::answer(stream, &upgrade.response).await.ok()?;
            world.hub(|hub, now| hub.handle_upgrade(now, id, &upgrade.origin));
            let Head { rest, .. } = head;
            Some(rest)
        }
        Err(status) => {
            let _ = handshake::answer(stream, &handshake::refusal(status)).await;
            None
        }
    }
}

/// The end of a connection that is told why.
struct Goodbye {
    /// The close frame, until it is being written.
    frame: Option<Vec<u8>>,
    until: Monotonic,
}

struct Link {
    world: Rc<World>,
    id: ConnectionId,
    slot: Rc<Slot>,
    stream: TcpStream,
    frames: ClientFrames,
    outbound: Outbound,
    /// The answer to the latest ping; older ones need none (RFC 6455 section 5.5.3).
    pong: Option<Vec<u8>>,
    goodbye: Option<Goodbye>,
}

/// What one attempt to move bytes has done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Moved,
    Blocked,
}

impl Link {
    async fn run(mut self, rest: &[u8]) {
        self.take_input(rest);
        while let Ok(step) = self.step() {
            match step {
                // Lets the other sockets of this thread have their turn.
                Step::Moved => tokio::task::yield_now().await,
                Step::Blocked => {
                    if self.wait().await.is_err() {
                        break;
                    }
                }
            }
        }
        if self.goodbye.is_some() {
            self.world.stop_leaving();
        }
        if !self.outbound.is_idle() {
            // Half a frame is of no use to anybody: what the kernel still holds of it goes, too.
            let _ = self.stream.set_zero_linger();
        }
    }

    /// Writes and reads at most once each. An error means the connection is over.
    fn step(&mut self) -> io::Result<Step> {
        if let Some(reason) = self.slot.take_close() {
            self.obey(reason)?;
        }
        if self
            .goodbye
            .as_ref()
            .is_some_and(|goodbye| goodbye.until <= clock::now())
        {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.refill();
        let written = self.write()?;
        let read = self.read()?;
        Ok(if written == Step::Moved || read == Step::Moved {
            Step::Moved
        } else {
            Step::Blocked
        })
    }

    async fn wait(&self) -> io::Result<()> {
        let interest = match self.outbound.is_idle() {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        let overdue = async {
            match &self.goodbye {
                Some(goodbye) => tokio::time::sleep(goodbye.until.since(clock::now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ready = self.stream.ready(interest) => ready.map(|_| ()),
            () = self.slot.changed.notified() => Ok(()),
            () = overdue => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// The machine wants this connection closed.
    fn obey(&mut self, reason: CloseReason) -> io::Result<()> {
        let close = reason.close();
        if close.cancels && !self.outbound.cancel_unstarted() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.say_goodbye(close_frame(Some(close.code), close.text))
    }

    fn say_goodbye(&mut self, frame: Vec<u8>) -> io::Result<()> {
        if self.goodbye.is_some() {
            return Ok(());
        }
        if !self.world.start_leaving() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let until = clock::now() + GOODBYE;
        self.goodbye = Some(Goodbye {
            frame: Some(frame),
            until,
        });
        Ok(())
    }

    /// Chooses the next frame: the goodbye, a pong, a message. Never inside another frame.
    fn refill(&mut self) {
        if !self.outbound.is_idle() {
            return;
        }
        if let Some(goodbye) = &mut self.goodbye {
            if let Some(frame) = goodbye.frame.take() {
                self.outbound.start_control(frame);
            }
        } else if let Some(payload) = self.pong.take() {
            self.outbound.start_control(pong_frame(&payload));
        } else if let Some(message) = self.world.ask(|hub| hub.poll_message(self.id)) {
            self.outbound.start_message(message);
        }
    }

    fn write(&mut self) -> io::Result<Step> {
        if self.outbound.is_idle() {
            return Ok(Step::Blocked);
        }
        match self.outbound.write(|parts| self.stream.try_write_vectored(parts)) {
            Ok(Progress::Message) => self.world.hub(|hub, now| hub.handle_written(now, self.id)),
            Ok(Progress::Control)
                if self
                    .goodbye
                    .as_ref()
                    .is_some_and(|goodbye| goodbye.frame.is_none()) =>
            {
                socket2::SockRef::from(&self.stream).shutdown(std::net::Shutdown::Write)?;
            }
            Ok(Progress::Control | Progress::Partial) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Step::Blocked),
            Err(error) => return Err(error),
        }
        Ok(Step::Moved)
    }

    fn read(&mut self) -> io::Result<Step> {
        let mut buffer = [0; READ_BYTES];
        match self.stream.try_read(&mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.take_input(&buffer[..count]);
                Ok(Step::Moved)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Step::Blocked),
            Err(error) => Err(error),
        }
    }

    /// Hands on what the peer said, up to the first thing that ends the connection.
    fn take_input(&mut self, mut input: &[u8]) {
        while self.goodbye.is_none() && !self.slot.is_closing() {
            match self.frames.read(&mut input) {
                Ok(None) => return,
                Ok(Some(ClientEvent::Text(text))) => {
                    self.world
                        .hub(|hub, now| hub.handle_text(now, self.id, text.as_bytes()));
                }
                Ok(Some(ClientEvent::Ping(payload))) => self.pong = Some(payload),
                Ok(Some(ClientEvent::Pong)) => {}
                Ok(Some(ClientEvent::Close(code))) => {
                    self.world.hub(|hub, _| hub.handle_disconnect(self.id));
                    if self.say_goodbye(close_frame(code, "")).is_err() {
                        return;
                    }
                }
                Err(reason) => self.world.hub(|hub, _| hub.handle_violation(self.id, reason)),
            }
        }
    }
}
