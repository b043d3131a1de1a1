//! One WebSocket to a signaling server.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use crossdesk_core::signaling::MAX_MESSAGE_BYTES;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::trust::{Trust, client_config};
use super::{ServerAddress, check_plain};

/// A server that does not take a message within this time is gone.
const SEND: Duration = Duration::from_secs(5);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// Why there is no socket.
pub(super) struct Trouble {
    /// For people.
    pub(super) reason: String,
    /// The server was reached and is not the one it should be.
    pub(super) untrusted: bool,
}

impl Trouble {
    fn passing(reason: String) -> Self {
        Self {
            reason,
            untrusted: false,
        }
    }
}

/// Opens sockets to one server.
#[derive(Clone)]
pub(super) struct Connector {
    address: ServerAddress,
    tls: Option<Arc<ClientConfig>>,
}

impl Connector {
    pub(super) fn new(address: ServerAddress) -> anyhow::Result<Self> {
        check_plain(&address)?;
        let tls = client_config(&address.trust)?;
        Ok(Self { address, tls })
    }

    pub(super) async fn connect(self) -> Result<Socket, Trouble> {
        let ServerAddress { host, port, trust } = &self.address;
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(|error| Trouble::passing(format!("{host} port {port}: {error}")))?;
        // Small messages must not wait for acknowledgements; signaling is correct either way.
        let _ = stream.set_nodelay(true);
        let Some(tls) = self.tls else {
            return upgrade(host, *port, Box::new(stream)).await;
        };
        let name = ServerName::try_from(host.clone())
            .map_err(|_| Trouble::passing(format!("{host} is no name of a server")))?;
        let stream = TlsConnector::from(tls).connect(name, stream).await;
        let stream = stream.map_err(|error| tls_trouble(host, trust, &error))?;
        upgrade(host, *port, Box::new(stream)).await
    }
}

fn tls_trouble(host: &str, trust: &Trust, error: &std::io::Error) -> Trouble {
    let certificate = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let untrusted = matches!(certificate, Some(rustls::Error::InvalidCertificate(_)));
    let reason = match trust {
        Trust::Pinned(_) if untrusted => {
            format!("{host} shows another certificate than the pinned one; somebody else may be answering")
        }
        _ if untrusted => format!(
            "the certificate of {host} is not trusted ({error}); for a server of your own, give its fingerprint with --pin"
        ),
        _ => format!("no TLS with {host}: {error}"),
    };
    Trouble { reason, untrusted }
}

async fn upgrade(host: &str, port: u16, stream: Box<dyn Stream>) -> Result<Socket, Trouble> {
    let authority = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let config = WebSocketConfig::default()
        .max_message_size(Some(2 * MAX_MESSAGE_BYTES))
        .max_frame_size(Some(2 * MAX_MESSAGE_BYTES));
    // The scheme says nothing about TLS here, which is below.
    let opened =
        tokio_tungstenite::client_async_with_config(format!("ws://{authority}/"), stream, Some(config)).await;
    match opened {
        Ok((socket, _)) => Ok(Socket(Box::new(socket))),
        Err(error) => {
            let cause = error
                .source()
                .map(|cause| format!(": {cause}"))
                .unwrap_or_default();
            Err(Trouble::passing(format!(
                "{host} port {port} speaks no signaling: {error}{cause}"
            )))
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(super) struct Socket(Box<WebSocketStream<Box<dyn Stream>>>);

impl Socket {
    /// The next text; `None` at the end. Waiting can be given up without losing anything.
    pub(super) async fn hear(&mut self) -> Option<String> {
        loop {
            match self.0.next().await? {
                Ok(Message::Text(text)) => return Some(text.as_str().to_owned()),
                Ok(Message::Close(frame)) => {
                    if let Some(frame) = frame {
                        tracing::info!(
                            code = u16::from(frame.code),
                            "the signaling server closes the socket"
                        );
                    }
                    return None;
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// False when the socket is gone.
    pub(super) async fn say(&mut self, text: &str) -> bool {
        let sent = timeout(SEND, self.0.send(Message::text(text))).await;
        matches!(sent, Ok(Ok(())))
    }

    pub(super) async fn close(mut self) {
        // A server that does not take the goodbye is left without one.
        let _ = timeout(GOODBYE, self.0.as_mut().close(None)).await;
    }
}
