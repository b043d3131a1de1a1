//! The vocabulary of authorisation: tickets, views, sessions, origins and the grant that ties them together.

use std::fmt;
use std::num::NonZeroU64;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::{Choice, ConstantTimeEq};

use crate::automation::VideoGrant;
use crate::error::ErrorCode;

/// Random bytes behind a ticket or an id (protocol: 24 bytes, 32 base64url characters).
const ID_BYTES: usize = 24;
const ID_CHARACTERS: usize = 32;

fn decode_id(text: &str) -> Option<[u8; ID_BYTES]> {
    if text.len() != ID_CHARACTERS {
        return None;
    }
    let mut bytes = [0; ID_BYTES];
    let written = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
    (written == ID_BYTES).then_some(bytes)
}

/// A one-time secret that lets one socket become a viewer.
///
/// Compared in constant time only, never printed.
#[derive(Clone)]
pub struct Ticket([u8; ID_BYTES]);

impl Ticket {
    /// Reads 32 base64url characters without padding; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        decode_id(text).map(Self)
    }
}

impl ConstantTimeEq for Ticket {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl PartialEq for Ticket {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for Ticket {}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(..)")
    }
}

macro_rules! public_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name([u8; ID_BYTES]);

        impl $name {
            /// Reads 32 base64url characters without padding; `None` for anything else.
            pub fn parse(text: &str) -> Option<Self> {
                decode_id(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

public_id! {
    /// The page element a viewer belongs to.
    ViewId
}

public_id! {
    /// The panel session a view belongs to.
    SessionId
}

/// A panel's origin, exactly `http://127.0.0.1:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PanelOrigin {
    port: u16,
}

impl PanelOrigin {
    /// Reads `http://127.0.0.1:PORT` with a decimal port from 1 to 65535 and nothing around it.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("http://127.0.0.1:")?;
        parse_port(digits).map(|port| Self { port })
    }
}

impl fmt::Display for PanelOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://127.0.0.1:{}", self.port)
    }
}

fn parse_port(digits: &str) -> Option<u16> {
    let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// Which `Origin` a socket may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OriginRule {
    /// The panel itself.
    pub panel: PanelOrigin,
    /// Also `null` and any HTTPS origin (MCP Apps).
    pub apps: bool,
}

impl OriginRule {
    /// True when `origin`, as the header carries it, may use the ticket.
    pub fn allows(&self, origin: &str) -> bool {
        PanelOrigin::parse(origin) == Some(self.panel) || (self.apps && is_apps_origin(origin))
    }
}

/// `null`, or an HTTPS origin the way browsers write one: lower case, no path, no user.
fn is_apps_origin(origin: &str) -> bool {
    if origin == "null" {
        return true;
    }
    let Some(authority) = origin.strip_prefix("https://") else {
        return false;
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    port.is_none_or(|port| parse_port(port).is_some()) && is_host(host)
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'_');
    !host.is_empty() && host.bytes().all(allowed)
}

/// What `video_open` asks for.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Presented once by the socket that becomes the viewer.
    pub ticket: Ticket,
    /// The view it is for.
    pub view: ViewId,
    /// Counts the mountings of that view; a higher one replaces what a lower one was granted.
    pub view_generation: NonZeroU64,
    /// The session the view belongs to.
    pub session: SessionId,
    /// Where the socket may come from.
    pub origin: OriginRule,
    /// The display generation it is bound to.
    pub generation: u32,
}

impl Grant {
    /// Reads what `video_open` asked for; `None` when a field has not the exact form the protocol gives it.
    pub fn from_request(request: &VideoGrant) -> Option<Self> {
        Some(Self {
            ticket: Ticket::parse(request.ticket.expose())?,
            view: ViewId::parse(request.view.expose())?,
            view_generation: NonZeroU64::new(request.view_generation)?,
            session: SessionId::parse(request.session.expose())?,
            origin: OriginRule {
                panel: PanelOrigin::parse(&request.origin)?,
                apps: request.apps,
            },
            generation: request.generation,
        })
    }

    /// True when this grant replaces what `other` granted: the same view, mounted again since.
    pub(super) fn outranks(&self, other: &Self) -> bool {
        (self.view, self.session) == (other.view, other.session)
            && self.view_generation > other.view_generation
    }
}

/// Why a grant is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantRefusal {
    /// No connected session: nothing to look at.
    NoSession,
    /// Bound to a display generation that is not the current one.
    OtherGeneration,
    /// This ticket was granted before.
    TicketReused,
    /// The same view of the same session already has a ticket or a viewer of a higher view generation.
    StaleView,
    /// As many tickets as allowed wait to be presented.
    TooManyTickets,
}

impl GrantRefusal {
    /// The code `video_open` answers with.
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::NoSession => ErrorCode::NotConnected,
            Self::OtherGeneration => ErrorCode::GenerationChanged,
            Self::TicketReused => ErrorCode::TicketConflict,
            Self::StaleView => ErrorCode::InvalidArgument,
            Self::TooManyTickets => ErrorCode::Busy,
        }
    }
}

impl fmt::Display for GrantRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSession => "no connected session to grant video of",
            Self::OtherGeneration => "the display generation is not the current one",
            Self::TicketReused => "the ticket was granted before",
            Self::StaleView => "the view was granted with a higher generation already",
            Self::TooManyTickets => "too many tickets wait to be used",
        })
    }
}

impl std::error::Error for GrantRefusal {}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "AbCdEfGhIjKlMnOpQrStUvWxYz0123-_";

    #[test]
    fn ids_are_exactly_32_base64url_characters() {
        assert_eq!(ViewId::parse(ID).unwrap().to_string(), ID);
        for bad in [
            "",
            "AbCdEfGhIjKlMnOpQrStUvWxYz0123-",
            "AbCdEfGhIjKlMnOpQrStUvWxYz0123-_A",
            "AbCdEfGhIjKlMnOpQrStUvWxYz0123+/",
            "AbCdEfGhIjKlMnOpQrStUvWxYz0123==",
            "AbCdEfGhIjKlMnOpQrStUvWxYz012 -_",
            "ÄbCdEfGhIjKlMnOpQrStUvWxYz0123-",
        ] {
            assert!(ViewId::parse(bad).is_none(), "{bad}");
            assert!(Ticket::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_ticket_never_shows_itself() {
        let ticket = Ticket::parse(ID).unwrap();
        assert_eq!(format!("{ticket:?}"), "Ticket(..)");
        let grant = Grant {
            ticket,
            view: ViewId::parse(ID).unwrap(),
            view_generation: NonZeroU64::MIN,
            session: SessionId::parse(ID).unwrap(),
            origin: OriginRule {
                panel: PanelOrigin::parse("http://127.0.0.1:1").unwrap(),
                apps: false,
            },
            generation: 1,
        };
        assert!(format!("{grant:?}").contains("ticket: Ticket(..)"));
    }

    #[test]
    fn only_the_literal_loopback_panel_origin_is_read() {
        assert_eq!(
            PanelOrigin::parse("http://127.0.0.1:8080").unwrap().to_string(),
            "http://127.0.0.1:8080"
        );
        for bad in [
            "http://127.0.0.1",
            "http://127.0.0.1:",
            "http://127.0.0.1:0",
            "http://127.0.0.1:080",
            "http://127.0.0.1:+80",
            "http://127.0.0.1:65536",
            "http://127.0.0.1:80/",
            "https://127.0.0.1:80",
            "HTTP://127.0.0.1:80",
            "http://localhost:80",
            "http://[::1]:80",
            "http://127.0.0.1.evil.test:80",
            "http://127.0.0.1:80.evil.test",
            "null",
            " http://127.0.0.1:80",
        ] {
            assert!(PanelOrigin::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn apps_grants_also_take_null_and_https() {
        let panel = PanelOrigin::parse("http://127.0.0.1:80").unwrap();
        let apps = OriginRule { panel, apps: true };
        let plain = OriginRule { panel, apps: false };
        for good in [
            "null",
            "https://a-b.example",
            "https://x.test:8443",
            "https://[2001:db8::1]",
            "https://[::1]:9",
        ] {
            assert!(apps.allows(good), "{good}");
            assert!(!plain.allows(good), "{good}");
        }
        for bad in [
            "",
            "NULL",
            "https://",
            "https://:1",
            "https://a:0",
            "https://a:",
            "https://a/",
            "https://u@a",
            "https://A",
            "http://a",
            "https://[::1",
            "https://[x]",
            "wss://a",
            "http://127.0.0.1:81",
            "https://a b",
        ] {
            assert!(!apps.allows(bad), "{bad}");
        }
        assert!(apps.allows("http://127.0.0.1:80") && plain.allows("http://127.0.0.1:80"));
    }
}
