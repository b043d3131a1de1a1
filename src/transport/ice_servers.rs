//! Names of STUN and TURN servers, as signaling tells them, turned into addresses.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use crossdesk_core::signaling::{IceServer, IceServerKind, RelayTransport};

use super::webrtc::{IceServers, TurnServer};

/// A name server that takes longer costs the servers it was asked about; a session can do without them.
const PATIENCE: Duration = Duration::from_secs(2);

/// The servers that are spoken to over UDP, with the first address of each name. Waits for at most two seconds.
pub(crate) fn resolve(servers: &[IceServer]) -> IceServers {
    let mut found = IceServers::default();
    let (tell, told) = sync_channel(servers.len());
    let mut asked = 0;
    for server in servers {
        if let IceServerKind::Turn { transport, .. } = &server.kind
            && *transport == RelayTransport::Tcp
        {
            continue;
        }
        asked += 1;
        let (server, tell) = (server.clone(), tell.clone());
        let look = move || {
            let address = (server.at.host.as_str(), server.at.port).to_socket_addrs();
            let address = address.ok().and_then(|mut addresses| addresses.next());
            // Nobody listens any more when it took too long; there is room for every answer.
            let _ = tell.try_send((server, address));
        };
        if thread::Builder::new()
            .name("resolve".to_owned())
            .spawn(look)
            .is_err()
        {
            asked -= 1;
        }
    }
    for _ in 0..asked {
        let Ok((server, address)) = told.recv_timeout(PATIENCE) else {
            break;
        };
        match address {
            Some(address) => add(&mut found, server, address),
            None => tracing::info!(host = server.at.host, "an ICE server has no address"),
        }
    }
    found
}

fn add(found: &mut IceServers, server: IceServer, address: SocketAddr) {
    match server.kind {
        IceServerKind::Stun => found.stun.push(address),
        IceServerKind::Turn {
            username, credential, ..
        } => found.turn.push(TurnServer {
            address,
            username,
            password: credential.expose().to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossdesk_core::signaling::{Password, Stun};

    fn at(host: &str) -> Stun {
        Stun {
            host: host.to_owned(),
            port: 3478,
        }
    }

    #[test]
    fn addresses_are_taken_and_tcp_is_left_out() {
        let turn = |transport| IceServer {
            at: at("127.0.0.1"),
            kind: IceServerKind::Turn {
                transport,
                username: "u".into(),
                credential: Password::new("p"),
            },
        };
        let stun = IceServer {
            at: at("::1"),
            kind: IceServerKind::Stun,
        };
        let found = resolve(&[stun, turn(RelayTransport::Tcp), turn(RelayTransport::Udp)]);
        assert_eq!(found.stun, ["[::1]:3478".parse().expect("an address")]);
        assert_eq!(found.turn.len(), 1);
        assert_eq!(resolve(&[]), IceServers::default());
    }
}
