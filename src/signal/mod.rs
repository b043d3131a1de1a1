//! The signaling server: sockets, certificate and device store around the machine in [`crossdesk_core::signaling`].
//!
//! One thread carries every socket, a second one the device store with its slow password hash.

mod connection;
mod credentials;
mod http;
mod metrics;
mod store;
mod tls;
mod world;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use anyhow::Context as _;
use crossdesk_core::signaling::{Config, IceConfig, Server};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;

use self::credentials::Credentials;
use self::store::Sqlite;
use self::world::World;

pub use self::tls::CertificateFiles;

/// Handshakes under way at a time; more wait in the kernel.
const MAX_HALF_OPEN: usize = 128;

/// Connections the kernel completes before they are accepted.
const BACKLOG: u32 = 1024;

/// Out of descriptors, most likely: try again when one may be free.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// How long the end of the process waits for goodbyes.
const FAREWELL: Duration = Duration::from_secs(1);

/// Name of the device store in the data directory.
const STORE_FILE: &str = "devices.sqlite3";

/// How the server is run.
#[derive(Clone, Debug)]
pub struct SignalOptions {
    /// Where to listen; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Speak plain WebSocket; the caller has made sure that `listen` is loopback.
    pub plain: bool,
    /// A certificate of the operator's; `None` makes one.
    pub certificate: Option<CertificateFiles>,
    /// Where devices and a made certificate are kept.
    pub data: PathBuf,
    /// What peers are told about reaching each other.
    pub ice: IceConfig,
    /// Connections at a time.
    pub max_connections: usize,
    /// Registrations, logins and password checks one source may cause a minute.
    pub credential_quota: u32,
}

/// Told once the server can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Where it listens.
    pub address: SocketAddr,
    /// SHA-256 of its certificate; `None` for a plain one.
    pub fingerprint: Option<String>,
}

/// Serves until SIGTERM or SIGINT; `ready` is called once.
///
/// # Errors
/// When the server cannot start; the text says what to do about it.
pub fn run(
    options: &SignalOptions,
    ready: impl FnOnce(&Listening) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let data = &options.data;
    make_folder(data).with_context(|| format!("cannot make {}", data.display()))?;
    let tls = (!options.plain).then(|| identity(options)).transpose()?;
    let (fingerprint, tls) = match tls {
        Some(identity) => (Some(identity.fingerprint), Some(identity.acceptor)),
        None => (None, None),
    };
    let file = data.join(STORE_FILE);
    let store = Sqlite::open(&file).with_context(|| format!("cannot use {}", file.display()))?;
    let credentials = Credentials::new(store)?;
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .context("the event loop cannot start")?;
    let server = server(options)?;
    LocalSet::new().block_on(&runtime, async move {
        let listener =
            listen(options.listen).with_context(|| format!("cannot listen on {}", options.listen))?;
        let address = listener.local_addr()?;
        let told = Listening { address, fingerprint };
        let serving = Serving {
            listener,
            tls,
            server,
            credentials,
        };
        let stopped = watch_signals()?;
        ready(&told)?;
        tracing::info!(%address, tls = told.fingerprint.is_some(), "serving");
        serving.until(stopped).await
    })
}

/// Makes the data directory, closed to other users: it holds a private key and password hashes.
fn make_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn identity(options: &SignalOptions) -> anyhow::Result<tls::Identity> {
    let made = CertificateFiles::in_folder(&options.data);
    if options.certificate.is_none() {
        tls::ensure_self_signed(&made, options.listen.ip())?;
    }
    tls::load(options.certificate.as_ref().unwrap_or(&made))
}

fn server(options: &SignalOptions) -> anyhow::Result<Server> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
    Ok(Server::new(Config {
        seed,
        max_connections: options.max_connections,
        credential_quota: options.credential_quota,
        ice: options.ice.clone(),
    }))
}

/// Each connection takes a descriptor; what the system allows at most is asked for.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if setrlimit(Resource::Nofile, limit).is_err() {
        tracing::warn!("the limit on open files stays where it is");
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart must not wait for sockets of the process before it.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn watch_signals() -> anyhow::Result<mpsc::Receiver<()>> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("signals cannot be watched")?;
    let (sender, receiver) = mpsc::channel(1);
    let watch = move || {
        for _ in &mut signals {
            // Full means that the server is stopping already.
            let _ = sender.try_send(());
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(watch).context("the signals thread cannot start")?;
    Ok(receiver)
}

/// Everything a server is made of once it has started.
struct Serving {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    server: Server,
    credentials: Credentials<Sqlite>,
}

impl Serving {
    async fn until(self, mut stopped: mpsc::Receiver<()>) -> anyhow::Result<()> {
        let Self {
            listener,
            tls,
            server,
            credentials,
        } = self;
        // One question is out at a time.
        let (questions, asked) = sync_channel(1);
        let (answers, mut answered) = mpsc::channel(1);
        let thread = std::thread::Builder::new().name("device-store".to_owned());
        let thread = thread
            .spawn(move || credentials.serve(&asked, &answers))
            .context("the device store's thread cannot start")?;
        let world = Rc::new(World::new(server, questions));
        let accepting = spawn_local(accept(Rc::clone(&world), listener, tls));
        let answering = async {
            while let Some(outcome) = answered.recv().await {
                world.server(|server, now| server.handle_store(now, outcome));
            }
        };
        tokio::select! {
            biased;
            _ = stopped.recv() => {}
            () = answering => anyhow::bail!("the device store's thread has ended"),
            () = world.keep_time() => {}
        }
        tracing::info!("stopping");
        accepting.abort();
        // Whoever is still here after that is cut off with the runtime.
        let _ = tokio::time::timeout(FAREWELL, world.farewell()).await;
        world.release_store();
        drop(answered);
        // The store closes its file before the process ends; a password hash under way takes a moment.
        let ended = thread.join();
        ended.map_err(|_| anyhow::anyhow!("the device store's thread has failed"))
    }
}

async fn accept(world: Rc<World>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    let places = Arc::new(Semaphore::new(MAX_HALF_OPEN));
    loop {
        let Ok(permit) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let (served, tls) = (Rc::clone(&world), tls.clone());
                spawn_local(async move {
                    connection::serve(Rc::clone(&served), stream, peer.ip(), tls, permit).await;
                    served.task_ends();
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}
