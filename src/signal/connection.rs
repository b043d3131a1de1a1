//! One socket: TLS, one HTTP request, then frames in both directions until either side ends it.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crossdesk_core::signaling::{CloseReason, MAX_MESSAGE_BYTES, SocketId};
use crossdesk_core::video::CloseReason as FrameError;
use crossdesk_core::video::websocket::{
    ClientEvent, ClientFrames, Opcode, ServerHeader, close_frame, pong_frame,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::TlsAcceptor;
use tungstenite::http::StatusCode;

use super::http::{self, Wish};
use super::metrics;
use super::world::{Slot, World};

/// How long TLS and the request may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a peer may take to read what is left and to close its side.
const GOODBYE: Duration = Duration::from_secs(3);

/// A buffer that has carried a large message is not kept for the small ones.
const KEPT_BYTES: usize = 4096;

/// Serves a connection until it is over; `permit` is one of the few places for unfinished handshakes.
pub(super) async fn serve(
    world: Rc<World>,
    stream: TcpStream,
    address: IpAddr,
    tls: Option<TlsAcceptor>,
    permit: OwnedSemaphorePermit,
) {
    // Small messages must not wait for acknowledgements; signaling is correct either way.
    let _ = stream.set_nodelay(true);
    match tls {
        None => serve_stream(world, stream, address, permit).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
                serve_stream(world, stream, address, permit).await;
            }
        }
    }
}

async fn serve_stream<S: AsyncRead + AsyncWrite + Unpin>(
    world: Rc<World>,
    mut stream: S,
    address: IpAddr,
    permit: OwnedSemaphorePermit,
) {
    let request = request(&world, &mut stream, address);
    let Ok(Ok(Some(Upgraded {
        id,
        slot,
        response,
        rest,
    }))) = tokio::time::timeout(HANDSHAKE, request).await
    else {
        return;
    };
    drop(permit);
    let mut link = Link {
        world: Rc::clone(&world),
        id,
        slot,
        stream,
        frames: ClientFrames::with_limit(MAX_MESSAGE_BYTES),
        out: response,
        written: 0,
        unflushed: false,
        pong: None,
        events: Vec::new(),
    };
    link.run(&rest).await;
    world.close(id);
}

/// A socket the machine knows.
struct Upgraded {
    id: SocketId,
    slot: Rc<Slot>,
    /// To be written before the first frame.
    response: Vec<u8>,
    /// What the peer has sent already.
    rest: Vec<u8>,
}

/// Answers the request. `Some` is a socket to be upgraded.
async fn request<S: AsyncRead + AsyncWrite + Unpin>(
    world: &World,
    stream: &mut S,
    address: IpAddr,
) -> io::Result<Option<Upgraded>> {
    let head = http::read_head(stream).await?;
    let answer = match http::wish(&head) {
        Wish::Upgrade(response) => match world.open(address) {
            Some((id, slot)) => {
                let rest = head.rest;
                return Ok(Some(Upgraded {
                    id,
                    slot,
                    response,
                    rest,
                }));
            }
            None => http::refusal(StatusCode::SERVICE_UNAVAILABLE),
        },
        Wish::Health => http::page(StatusCode::OK, "text/plain", "ok\n"),
        Wish::Metrics => {
            let stats = world.ask(|server| server.stats());
            http::page(
                StatusCode::OK,
                "text/plain; version=0.0.4",
                &metrics::render(&stats),
            )
        }
        Wish::Refused(status) => http::refusal(status),
    };
    http::answer(stream, &answer).await?;
    Ok(None)
}

/// How a connection ends.
enum End {
    /// The machine or the peer's bytes ask for a close frame.
    Closed(CloseReason),
    /// The peer has sent a close frame with this code.
    ByPeer(Option<u16>),
    /// The socket is gone.
    Gone,
}

struct Link<S> {
    world: Rc<World>,
    id: SocketId,
    slot: Rc<Slot>,
    stream: S,
    frames: ClientFrames,
    /// Bytes on their way, the first `written` of which are gone.
    out: Vec<u8>,
    written: usize,
    unflushed: bool,
    /// The answer to the latest ping; older ones need none (RFC 6455 section 5.5.3).
    pong: Option<Vec<u8>>,
    events: Vec<ClientEvent>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Link<S> {
    async fn run(&mut self, rest: &[u8]) {
        let taken = self.take_input(rest);
        let end = match taken.and_then(|()| self.handle_events()) {
            Ok(()) => self.serve().await,
            Err(end) => end,
        };
        let frame = match end {
            End::Gone => return,
            End::Closed(reason) => {
                let close = reason.close();
                close_frame(Some(close.code), close.text)
            }
            End::ByPeer(code) => close_frame(code, ""),
        };
        // A peer that does not take its goodbye is cut off.
        let _ = tokio::time::timeout(GOODBYE, self.say_goodbye(&frame)).await;
    }

    async fn serve(&mut self) -> End {
        loop {
            if let Some(reason) = self.slot.close_reason() {
                return End::Closed(reason);
            }
            if let Err(end) = self.step().await.and_then(|()| self.handle_events()) {
                return end;
            }
            // Lets the other sockets of this thread have their turn.
            tokio::task::yield_now().await;
        }
    }

    /// Waits until something was moved or the machine wants something.
    async fn step(&mut self) -> Result<(), End> {
        let slot = Rc::clone(&self.slot);
        let mut changed = pin!(slot.changed.notified());
        poll_fn(|cx| {
            let woken = changed.as_mut().poll(cx).is_ready();
            let wrote = self.poll_write(cx);
            if let Poll::Ready(Err(_)) = wrote {
                return Poll::Ready(Err(End::Gone));
            }
            match self.poll_read(cx) {
                Poll::Ready(read) => Poll::Ready(read),
                Poll::Pending if woken || wrote.is_ready() => Poll::Ready(Ok(())),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Ready when something was written; pending also when there is nothing to write.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.fill() {
            if self.unflushed {
                ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
                self.unflushed = false;
            }
            return Poll::Pending;
        }
        let bytes = &self.out[self.written..];
        let count = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.written += count;
        self.unflushed = true;
        Poll::Ready(Ok(()))
    }

    /// Puts the next frame into an empty buffer; false when there is nothing to write.
    fn fill(&mut self) -> bool {
        if self.written < self.out.len() {
            return true;
        }
        self.written = 0;
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        if let Some(pong) = self.pong.take() {
            self.out = pong;
            return true;
        }
        let Some(text) = self.slot.take_text() else {
            return false;
        };
        let header = ServerHeader::new(Opcode::Text, text.len());
        self.out.extend_from_slice(header.as_bytes());
        self.out.extend_from_slice(text.as_bytes());
        true
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let world = Rc::clone(&self.world);
        world.with_scratch(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => Poll::Ready(self.take_input(buffer.filled())),
                _ => Poll::Ready(Err(End::Gone)),
            }
        })
    }

    fn take_input(&mut self, mut input: &[u8]) -> Result<(), End> {
        loop {
            match self.frames.read(&mut input) {
                Ok(Some(event)) => self.events.push(event),
                Ok(None) => return Ok(()),
                Err(error) => {
                    let reason = reason_of(error);
                    self.world
                        .server(|server, now| server.handle_violation(now, self.id, reason));
                    return Err(End::Closed(reason));
                }
            }
        }
    }

    fn handle_events(&mut self) -> Result<(), End> {
        for event in std::mem::take(&mut self.events) {
            match event {
                ClientEvent::Text(text) => self
                    .world
                    .server(|server, now| server.handle_text(now, self.id, &text)),
                ClientEvent::Ping(payload) => {
                    self.pong = Some(pong_frame(&payload));
                    self.world
                        .server(|server, now| server.handle_heartbeat(now, self.id));
                }
                ClientEvent::Pong => self
                    .world
                    .server(|server, now| server.handle_heartbeat(now, self.id)),
                ClientEvent::Close(code) => return Err(End::ByPeer(code)),
            }
        }
        Ok(())
    }

    /// Writes what is left, then the close frame, and waits for the peer's end, so that nothing sent is lost.
    async fn say_goodbye(&mut self, frame: &[u8]) -> io::Result<()> {
        while self.fill() {
            self.stream.write_all(&self.out[self.written..]).await?;
            self.written = self.out.len();
        }
        self.stream.write_all(frame).await?;
        self.stream.shutdown().await?;
        let mut unread = [0; 256];
        while self.stream.read(&mut unread).await? > 0 {}
        Ok(())
    }
}

/// The frame reader speaks of viewers; signaling has its own words.
const fn reason_of(error: FrameError) -> CloseReason {
    match error {
        FrameError::NotText => CloseReason::NotText,
        FrameError::NotUtf8 => CloseReason::NotUtf8,
        FrameError::TooLarge => CloseReason::TooLarge,
        _ => CloseReason::ProtocolError,
    }
}
