//! The handle the rest of the program holds: it starts the video thread, asks it things and feeds it.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossdesk_core::automation::VideoOutputStats;
use crossdesk_core::error::ErrorCode;
use crossdesk_core::video::{Grant, GrantRefusal, Protocol, ViewId, ViewerReport};
use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::LocalSet;

use super::worker::{self, Command, World};
use super::{Publisher, handshake};

/// Send buffer of each socket. Measured on loopback with 4K pictures: 1.4 times the messages of an autotuned buffer
/// at three quarters of the CPU; it also bounds how much of a revoked picture the kernel still holds.
const SEND_BUFFER_BYTES: usize = 256 * 1024;

/// Connections the kernel completes before they are accepted.
const BACKLOG: i32 = 64;

/// Requests on their way to the video thread. Each waits for its answer, so there are as many as callers.
const COMMANDS: usize = 16;

/// The video thread answers within a millisecond or two, unless a driver hangs while a picture is read.
const ANSWER: Duration = Duration::from_secs(2);

/// What the service needs from its surroundings.
pub struct VideoConfig {
    /// Called on the video thread, at most once a second, when a viewer needs a keyframe; must not block.
    pub keyframe_wanted: Box<dyn Fn() + Send>,
}

/// Why the service did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoServiceError {
    /// The grant was refused.
    Grant(GrantRefusal),
    /// The video thread has ended or did not answer within 2 s; what was granted must be considered open.
    NotAnswering,
}

impl VideoServiceError {
    /// The code a reply carries.
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Grant(refusal) => refusal.code(),
            Self::NotAnswering => ErrorCode::VideoUnavailable,
        }
    }
}

impl fmt::Display for VideoServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grant(refusal) => refusal.fmt(f),
            Self::NotAnswering => f.write_str("the video service does not answer"),
        }
    }
}

impl std::error::Error for VideoServiceError {}

/// What `status` reports about live video.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VideoStats {
    /// The counters of `video_output`.
    pub output: VideoOutputStats,
    /// How each viewer is served, in the order they came.
    pub viewers: Vec<ViewerReport>,
    /// Sockets that are not viewers yet.
    pub candidates: usize,
    /// Pictures and access units over the protocol's size limits, skipped.
    pub oversized: u64,
    /// Pictures whose decoder memory could not be read, skipped.
    pub unreadable: u64,
}

/// The loopback listener and its thread; dropping it closes every socket and joins the thread.
pub struct VideoService {
    port: u16,
    publisher: Publisher,
    commands: Sender<Command>,
    thread: Option<JoinHandle<()>>,
}

impl VideoService {
    /// Listens on an ephemeral port of 127.0.0.1 and starts the video thread.
    ///
    /// # Errors
    /// When no loopback port or thread can be had.
    pub fn start(config: VideoConfig) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = listen()?;
        let port = listener.local_addr()?.port();
        let publisher = Publisher::default();
        let (commands, requests) = channel(COMMANDS);
        let served = publisher.clone();
        let body = move || {
            let world = World::new(config, served, port);
            serve(&runtime, world, listener, requests);
        };
        let thread = thread::Builder::new().name("video-io".into()).spawn(body)?;
        Ok(Self {
            port,
            publisher,
            commands,
            thread: Some(thread),
        })
    }

    /// The port of the listener.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address for the reply to `video_open`.
    pub fn url(&self) -> String {
        format!("ws://127.0.0.1:{}{}", self.port, handshake::PATH)
    }

    /// Where streaming threads deliver.
    pub fn publisher(&self) -> Publisher {
        self.publisher.clone()
    }

    /// Starts a display generation: earlier tickets and sockets end, and publishing starts from nothing.
    ///
    /// # Errors
    /// [`VideoServiceError::NotAnswering`].
    pub fn begin(&self, generation: u32, protocol: Protocol) -> Result<(), VideoServiceError> {
        self.request(|reply| Command::Begin(generation, protocol, reply))
    }

    /// Ends the session: tickets and sockets end, publishing is ignored.
    ///
    /// # Errors
    /// [`VideoServiceError::NotAnswering`].
    pub fn end(&self) -> Result<(), VideoServiceError> {
        self.request(Command::End)
    }

    /// Lets one socket become a viewer.
    ///
    /// # Errors
    /// The refusal, or [`VideoServiceError::NotAnswering`].
    pub fn grant(&self, grant: Grant) -> Result<(), VideoServiceError> {
        self.request(|reply| Command::Grant(grant, reply))?
            .map_err(VideoServiceError::Grant)
    }

    /// Revokes tickets and sockets of `view`, or all; once it returns, no further byte of video is written to them.
    ///
    /// # Errors
    /// [`VideoServiceError::NotAnswering`]: then revocation is not confirmed.
    pub fn revoke(&self, view: Option<ViewId>) -> Result<(), VideoServiceError> {
        self.request(|reply| Command::Revoke(view, reply))
    }

    /// Counters and latencies.
    ///
    /// # Errors
    /// [`VideoServiceError::NotAnswering`].
    pub fn stats(&self) -> Result<VideoStats, VideoServiceError> {
        self.request(Command::Stats)
    }

    fn request<T>(&self, command: impl FnOnce(SyncSender<T>) -> Command) -> Result<T, VideoServiceError> {
        let (reply, answer) = sync_channel(1);
        self.commands
            .try_send(command(reply))
            .map_err(|_| VideoServiceError::NotAnswering)?;
        answer
            .recv_timeout(ANSWER)
            .map_err(|_| VideoServiceError::NotAnswering)
    }
}

impl Drop for VideoService {
    fn drop(&mut self) {
        // When the queue is full the thread does not answer, and waiting for it would hang the caller as well.
        let told = self.commands.try_send(Command::Stop).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| told) {
            // A panic over there was reported by the panic hook; nothing is left to do about it here.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for VideoService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VideoService")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

fn listen() -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    // Accepted sockets inherit it.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn serve(runtime: &Runtime, world: World, listener: std::net::TcpListener, requests: Receiver<Command>) {
    LocalSet::new().block_on(runtime, async move {
        // Only a full epoll table could make this fail; callers then see that nobody answers.
        if let Ok(listener) = TcpListener::from_std(listener) {
            worker::run(Rc::new(world), listener, requests).await;
        }
    });
}
