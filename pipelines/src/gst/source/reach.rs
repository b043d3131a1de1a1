//! Why another machine, or a local port, cannot be had: asked of the operating system, because GStreamer reports
//! every one of these as a resource that could not be opened.

use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use crossdesk_core::error::ErrorCode;

use crate::plan::source::SourceFailure;

/// Where a network source is, in words that hold no credentials and no query.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Name or address, without brackets.
    pub(super) host: String,
    /// TCP port of a server, or the UDP port to listen on.
    pub(super) port: u16,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} port {}", self.host, self.port)
    }
}

/// What stands in the way of a TCP connection to `place`; `None` when there is none.
pub(super) fn server_trouble(place: &Place, limit: Duration) -> Option<String> {
    let addresses = match (place.host.as_str(), place.port).to_socket_addrs() {
        Ok(addresses) => addresses,
        Err(error) => return Some(unresolved(place, &error)),
    };
    let mut trouble = format!("the host {} has no address", place.host);
    for address in addresses {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(_) => return None,
            Err(error) => trouble = refused(place, &error),
        }
    }
    Some(trouble)
}

fn unresolved(place: &Place, error: &io::Error) -> String {
    format!("the host {} cannot be resolved: {error}", place.host)
}

fn refused(place: &Place, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            format!("{place} refused the connection: nothing listens there")
        }
        ErrorKind::TimedOut => format!("{place} does not answer"),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            format!("{place} cannot be reached from here: {error}")
        }
        _ => format!("no connection to {place}: {error}"),
    }
}

/// What stands in the way of listening on `place`; `None` when nothing does.
pub(super) fn listen_trouble(place: &Place) -> Option<SourceFailure> {
    let mut addresses = match (place.host.as_str(), place.port).to_socket_addrs() {
        Ok(addresses) => addresses,
        Err(error) => {
            return Some(SourceFailure::passing(
                ErrorCode::SourceUnreachable,
                unresolved(place, &error),
            ));
        }
    };
    let address = addresses.next()?;
    UdpSocket::bind(address)
        .err()
        .map(|error| not_ours(place, &error))
}

fn not_ours(place: &Place, error: &io::Error) -> SourceFailure {
    let Place { host, port } = place;
    match error.kind() {
        // Whoever has it may let go.
        ErrorKind::AddrInUse => SourceFailure::passing(
            ErrorCode::SourceUnreachable,
            format!("UDP port {port} on {host} is in use by another program"),
        ),
        ErrorKind::AddrNotAvailable => SourceFailure::lasting(
            ErrorCode::SourceInvalid,
            format!("{host} is no address of this machine; to receive on every one, write 0.0.0.0"),
        ),
        ErrorKind::PermissionDenied => SourceFailure::lasting(
            ErrorCode::SourceUnreachable,
            format!("UDP port {port} on {host} may not be opened by this user; choose one above 1023"),
        ),
        _ => SourceFailure::passing(
            ErrorCode::SourceUnreachable,
            format!("cannot listen on {place} (UDP): {error}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Longer than a connection on this machine takes.
    const LIMIT: Duration = Duration::from_secs(10);

    fn local(port: u16) -> Place {
        Place {
            host: "127.0.0.1".to_owned(),
            port,
        }
    }

    #[test]
    fn a_port_that_is_listened_on_is_no_trouble_and_a_closed_one_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = local(listener.local_addr().unwrap().port());
        assert_eq!(server_trouble(&place, LIMIT), None);
        drop(listener);
        let trouble = server_trouble(&place, LIMIT).unwrap();
        assert_eq!(
            trouble,
            format!(
                "127.0.0.1 port {} refused the connection: nothing listens there",
                place.port
            )
        );
    }

    #[test]
    fn a_name_without_an_address_is_named() {
        // No label may be longer than 63 letters, so nobody is asked.
        let place = Place {
            host: "n".repeat(64),
            port: 554,
        };
        let trouble = server_trouble(&place, LIMIT).unwrap();
        assert!(
            trouble.starts_with(&format!("the host {} cannot be resolved", place.host)),
            "{trouble}"
        );
    }

    #[test]
    fn each_kind_of_trouble_has_its_own_words() {
        let place = local(554);
        let said = |kind: ErrorKind| refused(&place, &kind.into());
        let all = [
            said(ErrorKind::ConnectionRefused),
            said(ErrorKind::TimedOut),
            said(ErrorKind::HostUnreachable),
            said(ErrorKind::InvalidInput),
        ];
        let starts = [
            "127.0.0.1 port 554 refused",
            "127.0.0.1 port 554 does not answer",
            "127.0.0.1 port 554 cannot be reached",
            "no connection to 127.0.0.1 port 554",
        ];
        for (text, start) in all.iter().zip(starts) {
            assert!(text.starts_with(start), "{text}");
        }
    }

    #[test]
    fn a_port_in_use_passes_and_a_foreign_address_does_not() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let taken = listen_trouble(&local(port)).unwrap();
        assert!(
            taken.retryable && taken.reason.contains("in use") && taken.reason.contains(&port.to_string()),
            "{taken:?}"
        );
        drop(socket);
        assert_eq!(listen_trouble(&local(port)), None);
        // TEST-NET-1 belongs to nobody.
        let foreign = Place {
            host: "192.0.2.1".to_owned(),
            port,
        };
        let foreign = listen_trouble(&foreign).unwrap();
        assert!(
            !foreign.retryable && foreign.reason.contains("192.0.2.1"),
            "{foreign:?}"
        );
    }
}
