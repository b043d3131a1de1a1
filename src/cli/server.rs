//! How a signaling server is named, the same for every command that needs one.

use std::path::PathBuf;

use anyhow::bail;

use crate::transport::signaling::{Fingerprint, ServerAddress, Trust, check_plain};

/// The port of the public service, and of `signal`.
pub const PORT: u16 = 9099;

/// The signaling server.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Signaling server")]
pub struct ServerArgs {
    /// Find the device through this signaling server
    #[arg(long, value_name = "HOST")]
    server: Option<String>,

    /// Its port [default: 9099]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), requires = "server")]
    port: Option<u16>,

    /// Speak ws:// instead of wss://; only to a server on this machine
    #[arg(long, requires = "server", conflicts_with_all = ["pin", "ca"])]
    plain: bool,

    /// Trust the one certificate with this SHA-256 fingerprint, which `signal` prints, instead of the system's
    /// authorities
    #[arg(long, value_name = "SHA256", requires = "server", conflicts_with = "ca")]
    pin: Option<Fingerprint>,

    /// Trust this certificate authority, a PEM file, instead of the system's
    #[arg(long, value_name = "FILE", requires = "server", value_hint = clap::ValueHint::FilePath)]
    ca: Option<PathBuf>,
}

impl ServerArgs {
    /// The server, when one is named.
    ///
    /// # Errors
    /// When plain text would leave this machine, or the name is empty.
    pub fn address(&self) -> anyhow::Result<Option<ServerAddress>> {
        let Some(host) = &self.server else { return Ok(None) };
        // People paste addresses in brackets and whole URLs.
        let host = host
            .trim()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() || host.contains('/') {
            bail!("--server takes a name or an address, such as signal.example.net; the port goes to --port");
        }
        let trust = match (&self.pin, &self.ca) {
            _ if self.plain => Trust::Plain,
            (Some(pin), _) => Trust::Pinned(*pin),
            (None, Some(file)) => Trust::Authority(file.clone()),
            (None, None) => Trust::System,
        };
        let port = self.port.unwrap_or(PORT);
        let address = ServerAddress { host, port, trust };
        check_plain(&address)?;
        Ok(Some(address))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        server: ServerArgs,
    }

    fn parse(words: &[&str]) -> anyhow::Result<Option<ServerAddress>> {
        Line::try_parse_from(["x"].iter().chain(words))?.server.address()
    }

    #[test]
    fn a_server_is_trusted_by_authority_unless_told_otherwise() {
        assert_eq!(parse(&[]).expect("nothing"), None);
        let named = parse(&["--server", "[::1]", "--port", "9000"])
            .expect("a server")
            .expect("a server");
        assert_eq!(
            (named.host.as_str(), named.port, &named.trust),
            ("::1", 9000, &Trust::System)
        );
        let plain = parse(&["--server", "127.0.0.1", "--plain"])
            .expect("a server")
            .expect("a server");
        assert_eq!((plain.port, &plain.trust), (PORT, &Trust::Plain));
        let pin = "0a".repeat(32);
        let pinned = parse(&["--server", "a.example", "--pin", &pin])
            .expect("a server")
            .expect("a server");
        assert!(matches!(pinned.trust, Trust::Pinned(_)));
    }

    #[test]
    fn mistakes_are_refused() {
        for words in [
            &["--plain"][..],
            &["--server", "192.0.2.1", "--plain"],
            &["--server", "wss://a.example"],
            &["--server", ""],
            &["--server", "a", "--pin", "12"],
            &["--server", "a", "--port", "0"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
