//! ICE servers and short-lived TURN credentials in the form coturn's REST scheme expects.

use std::net::Ipv6Addr;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha1::Sha1;

use super::{Identity, Password};

/// How a TURN server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayTransport {
    /// Over UDP.
    Udp,
    /// Over TCP.
    Tcp,
}

impl RelayTransport {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

/// A STUN server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stun {
    /// Name or address, without brackets.
    pub host: String,
    /// UDP port.
    pub port: u16,
}

/// Why text names no ICE server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadIceUrl;

impl std::fmt::Display for BadIceUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "expected stun:HOST[:PORT] or turn:HOST[:PORT][?transport=udp|tcp], an IPv6 address in brackets",
        )
    }
}

impl std::error::Error for BadIceUrl {}

/// The port of STUN and TURN when a URL names none (RFC 7064, RFC 7065).
const DEFAULT_PORT: u16 = 3478;

impl FromStr for Stun {
    type Err = BadIceUrl;

    fn from_str(url: &str) -> Result<Self, BadIceUrl> {
        Self::parse_authority(url.strip_prefix("stun:").ok_or(BadIceUrl)?)
    }
}

impl FromStr for Relay {
    type Err = BadIceUrl;

    fn from_str(url: &str) -> Result<Self, BadIceUrl> {
        use RelayTransport::{Tcp, Udp};
        let rest = url.strip_prefix("turn:").ok_or(BadIceUrl)?;
        let (authority, transports) = match rest.split_once('?') {
            None => (rest, vec![Udp, Tcp]),
            Some((authority, "transport=udp")) => (authority, vec![Udp]),
            Some((authority, "transport=tcp")) => (authority, vec![Tcp]),
            Some(_) => return Err(BadIceUrl),
        };
        let at = Stun::parse_authority(authority)?;
        Ok(Self { at, transports })
    }
}

impl Stun {
    fn parse_authority(text: &str) -> Result<Self, BadIceUrl> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, port) = rest.split_once(']').ok_or(BadIceUrl)?;
            host.parse::<Ipv6Addr>().map_err(|_| BadIceUrl)?;
            (host, port)
        } else {
            let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            if host.is_empty() || !host.bytes().all(allowed) {
                return Err(BadIceUrl);
            }
            (host, port)
        };
        let port = match port.strip_prefix(':') {
            Some(number) => number.parse().ok().filter(|port| *port > 0).ok_or(BadIceUrl)?,
            None if port.is_empty() => DEFAULT_PORT,
            None => return Err(BadIceUrl),
        };
        let host = host.to_owned();
        Ok(Self { host, port })
    }

    fn authority(&self) -> String {
        let host = self.host.to_ascii_lowercase();
        if host.contains(':') {
            format!("[{host}]:{}", self.port)
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

/// A TURN server; it answers STUN as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relay {
    /// Where it is.
    pub at: Stun,
    /// How it is reached.
    pub transports: Vec<RelayTransport>,
}

/// What peers are told about reaching each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IceConfig {
    /// STUN servers beside the TURN servers.
    pub stun: Vec<Stun>,
    /// TURN servers; the first one is also told in the older form.
    pub relays: Vec<Relay>,
    /// The secret shared with the TURN servers.
    pub secret: Option<Password>,
    /// How long credentials are good, in seconds.
    pub lifetime: u64,
}

/// The two forms of one delivery.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The `ice` object.
    pub ice: Value,
    /// The `turn` object; `None` without a TURN server.
    pub turn: Option<Value>,
}

impl IceConfig {
    /// Credentials for `user` that end at `unix` plus the lifetime; `id` names this delivery.
    pub fn deliver(&self, unix: u64, user: &Identity, id: &str) -> Delivery {
        let expires_at = unix + self.lifetime;
        let username = format!("{expires_at}:{user}:{id}");
        let password = self
            .secret
            .as_ref()
            .map(|secret| credential(secret.expose(), &username));
        let relays = password.iter().flat_map(|_| &self.relays);
        let stun = self.stun.iter().chain(relays.clone().map(|relay| &relay.at));
        let stun = stun.map(|stun| json!({ "urls": [format!("stun:{}", stun.authority())] }));
        let turn = relays.map(|relay| {
            json!({
                "urls": relay.urls(), "username": username, "credential": password, "expires_at": expires_at,
            })
        });
        let servers: Vec<Value> = stun.chain(turn).collect();
        let first = self.relays.first().filter(|_| password.is_some());
        let turn = first.map(|Relay { at, .. }| {
            json!({
                "host": at.host, "port": at.port, "username": username, "password": password,
                "expires_at": expires_at,
            })
        });
        Delivery {
            ice: json!({ "version": 1, "id": id, "expires_at": expires_at, "servers": servers }),
            turn,
        }
    }
}

impl Relay {
    fn urls(&self) -> Vec<String> {
        let authority = self.at.authority();
        let url = |transport: &RelayTransport| format!("turn:{authority}?transport={}", transport.as_str());
        self.transports.iter().map(url).collect()
    }
}

/// Base64 of HMAC-SHA1 over the user name, as coturn's `use-auth-secret` computes it.
fn credential(secret: &str, username: &str) -> String {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(username.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> IceConfig {
        let relay = |host: &str, transports: &[RelayTransport]| Relay {
            at: Stun {
                host: host.into(),
                port: 3478,
            },
            transports: transports.to_vec(),
        };
        IceConfig {
            stun: vec![Stun {
                host: "2001:DB8::1".into(),
                port: 19302,
            }],
            relays: vec![
                relay("turn.example.net", &[RelayTransport::Udp, RelayTransport::Tcp]),
                relay("second.example.net", &[RelayTransport::Tcp]),
            ],
            secret: Some(Password::new("north")),
            lifetime: 3600,
        }
    }

    fn user() -> Identity {
        Identity::parse("web-730184526").expect("an identity")
    }

    #[test]
    fn the_credential_is_the_one_openssl_computes() {
        // printf %s 1790003600:web-730184526 | openssl dgst -sha1 -hmac north -binary | base64
        assert_eq!(
            credential("north", "1790003600:web-730184526"),
            "zKdzZ+NxQbDwMGENvijeariMjrU="
        );
    }

    #[test]
    fn urls_name_host_port_and_transport() {
        let relay: Relay = "turn:[2001:db8::1]?transport=tcp".parse().expect("a URL");
        assert_eq!(relay.urls(), ["turn:[2001:db8::1]:3478?transport=tcp"]);
        let relay: Relay = "turn:T.example.net:5349".parse().expect("a URL");
        let urls = [
            "turn:t.example.net:5349?transport=udp",
            "turn:t.example.net:5349?transport=tcp",
        ];
        assert_eq!(relay.urls(), urls);
        for bad in [
            "turns:x",
            "turn:",
            "turn:x:0",
            "turn:x:y",
            "turn:x?transport=sctp",
            "turn:[x]",
            "turn:[::1]x",
            "turn:a b",
        ] {
            assert_eq!(bad.parse::<Relay>(), Err(BadIceUrl), "{bad}");
        }
        assert_eq!("x:3478".parse::<Stun>(), Err(BadIceUrl));
        assert_eq!("stun:x".parse::<Stun>().map(|stun| stun.port), Ok(3478));
    }

    #[test]
    fn both_forms_carry_the_same_credentials() {
        let Delivery { ice, turn } = config().deliver(1_790_000_000, &user(), "9a");
        let turn = turn.expect("there is a TURN server");
        assert_eq!(turn["username"], "1790003600:web-730184526:9a");
        assert_eq!(
            (&turn["host"], &turn["port"]),
            (&json!("turn.example.net"), &json!(3478))
        );
        assert_eq!(turn["expires_at"], 1_790_003_600_u64);
        let servers = ice["servers"].as_array().expect("a list");
        assert_eq!(servers.len(), 5);
        assert_eq!(servers[0]["urls"], json!(["stun:[2001:db8::1]:19302"]));
        assert_eq!(servers[1]["urls"], json!(["stun:turn.example.net:3478"]));
        let urls = [
            "turn:turn.example.net:3478?transport=udp",
            "turn:turn.example.net:3478?transport=tcp",
        ];
        assert_eq!(servers[3]["urls"], json!(urls));
        assert_eq!(servers[3]["credential"], turn["password"]);
        assert_eq!(
            servers[4]["urls"],
            json!(["turn:second.example.net:3478?transport=tcp"])
        );
        assert_eq!((&ice["version"], &ice["id"]), (&json!(1), &json!("9a")));
    }

    #[test]
    fn without_a_secret_no_relay_is_offered() {
        let config = IceConfig {
            secret: None,
            ..config()
        };
        let Delivery { ice, turn } = config.deliver(0, &user(), "9a");
        assert_eq!(turn, None);
        assert_eq!(ice["servers"].as_array().map(Vec::len), Some(1));
    }
}
