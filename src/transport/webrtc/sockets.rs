//! The UDP sockets of a peer: one for each address of the machine, with segmentation done by the kernel.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};

use if_addrs::get_if_addrs;
use quinn_udp::{RecvMeta, UdpSocketState};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use socket2::SockRef;

use super::event::Transmit;

/// Addresses of the machine that are used.
const MAX_SOCKETS: usize = 16;
/// What a socket should hold in each direction: a key frame of 4K and what comes meanwhile. Without privileges the
/// system's own limit counts.
const SOCKET_BYTES: usize = 4 * 1024 * 1024;
/// Datagrams that one call takes from a socket, each buffer holding as many as the kernel joins.
const RECEIVE_BUFFERS: usize = 8;
const RECEIVE_BYTES: usize = 64 * 1024;
/// Calls in a row on one socket, so that a flood does not keep the thread from sending.
const RECEIVE_CALLS: usize = 8;
/// Bytes that are given to the kernel at once.
const MAX_BATCH_BYTES: usize = 60_000;

struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    address: SocketAddr,
}

/// Datagrams of equal length for one destination; the last may be shorter.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    segment: usize,
    socket: usize,
    destination: Option<SocketAddr>,
}

/// All sockets of one peer.
pub(super) struct Sockets {
    list: Vec<Socket>,
    buffers: Vec<Vec<u8>>,
    /// What a socket could not take yet.
    batch: Batch,
    /// Taken from the peer, but not part of the batch before it.
    next: Option<Transmit>,
}

impl Sockets {
    /// A socket for each address of an interface that is up; of loopback only when asked for.
    ///
    /// # Errors
    /// When the system does not tell, or there is no address.
    pub(super) fn open(loopback: bool) -> io::Result<Self> {
        let mut list = Vec::new();
        for interface in get_if_addrs()? {
            let ip = interface.ip();
            if list.len() < MAX_SOCKETS && interface.is_oper_up() && is_usable(ip, loopback) {
                match Socket::open(ip) {
                    Ok(socket) => list.push(socket),
                    // An address can vanish between the two calls.
                    Err(error) => tracing::debug!(%error, "no socket for an address"),
                }
            }
        }
        if list.is_empty() {
            let text = "no network interface with an address is up";
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, text));
        }
        Ok(Self {
            list,
            buffers: vec![vec![0; RECEIVE_BYTES]; RECEIVE_BUFFERS],
            batch: Batch::default(),
            next: None,
        })
    }

    /// Where the sockets are.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.list.iter().map(|socket| socket.address)
    }

    /// The sockets, for polling.
    pub(super) fn io(&self) -> impl Iterator<Item = &UdpSocket> {
        self.list.iter().map(|socket| &socket.io)
    }

    /// The socket that has to become writable before more is sent.
    pub(super) fn blocked(&self) -> Option<usize> {
        self.batch.destination.map(|_| self.batch.socket)
    }

    /// Takes what came to the socket `index` and gives it to `take` with both addresses.
    pub(super) fn receive(&mut self, index: usize, mut take: impl FnMut(SocketAddr, SocketAddr, &[u8])) {
        let socket = &self.list[index];
        for _ in 0..RECEIVE_CALLS {
            let mut metas = [RecvMeta::default(); RECEIVE_BUFFERS];
            let mut slices = self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer));
            let mut slices: [IoSliceMut<'_>; RECEIVE_BUFFERS] =
                std::array::from_fn(|_| slices.next().expect("as many buffers as slices"));
            let count = match socket.state.recv((&socket.io).into(), &mut slices, &mut metas) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Some earlier datagram found nobody or no way; ICE notices by itself.
                Err(error) => {
                    tracing::debug!(%error, "a socket reports an error");
                    continue;
                }
            };
            for (meta, buffer) in metas.iter().zip(&self.buffers).take(count) {
                let joined = buffer.get(..meta.len).unwrap_or_default();
                for datagram in joined.chunks(meta.stride.max(1)) {
                    take(socket.address, meta.addr, datagram);
                }
            }
        }
    }

    /// Sends what `take` gives until it gives nothing or a socket is full.
    pub(super) fn send(&mut self, mut take: impl FnMut() -> Option<Transmit>) {
        loop {
            if self.batch.destination.is_none() && !self.gather(&mut take) {
                return;
            }
            let Some(destination) = self.batch.destination else {
                // It was for an address that is not ours.
                continue;
            };
            let socket = &self.list[self.batch.socket];
            let transmit = quinn_udp::Transmit {
                destination,
                ecn: None,
                contents: &self.batch.bytes,
                segment_size: Some(self.batch.segment),
                src_ip: None,
            };
            match socket.state.try_send((&socket.io).into(), &transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(()) => {}
                // A packet that cannot leave is a packet lost.
                Err(error) => tracing::debug!(%error, %destination, "nothing could be sent"),
            }
            self.batch.destination = None;
        }
    }

    /// Fills the batch; false when there is nothing.
    fn gather(&mut self, take: &mut impl FnMut() -> Option<Transmit>) -> bool {
        let Some(first) = self.next.take().or_else(&mut *take) else {
            return false;
        };
        self.batch.bytes.clear();
        let Some(index) = self.list.iter().position(|socket| socket.address == first.local) else {
            return true;
        };
        let most = self.list[index].state.max_gso_segments();
        self.batch.bytes.extend_from_slice(&first.data);
        self.batch.segment = first.data.len();
        (self.batch.socket, self.batch.destination) = (index, Some(first.remote));
        for _ in 1..most {
            let Some(next) = take() else {
                break;
            };
            let same = next.local == first.local && next.remote == first.remote;
            let fits = next.data.len() <= self.batch.segment
                && self.batch.bytes.len() + next.data.len() <= MAX_BATCH_BYTES;
            if !(same && fits) {
                self.next = Some(next);
                break;
            }
            self.batch.bytes.extend_from_slice(&next.data);
            if next.data.len() < self.batch.segment {
                break;
            }
        }
        true
    }
}

impl Socket {
    fn open(ip: IpAddr) -> io::Result<Self> {
        let io = UdpSocket::bind(SocketAddr::new(ip, 0))?;
        let state = UdpSocketState::new((&io).into())?;
        let plain = SockRef::from(&io);
        // Beyond the system's limit only with privileges; less is better than nothing.
        if set_socket_recv_buffer_size_force(&io, SOCKET_BYTES).is_err() {
            let _ = plain.set_recv_buffer_size(SOCKET_BYTES);
        }
        if set_socket_send_buffer_size_force(&io, SOCKET_BYTES).is_err() {
            let _ = plain.set_send_buffer_size(SOCKET_BYTES);
        }
        let address = io.local_addr()?;
        Ok(Self { io, state, address })
    }
}

fn is_usable(ip: IpAddr, loopback: bool) -> bool {
    let local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        // Means nothing without its interface.
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !local && !ip.is_unspecified() && (loopback || !ip.is_loopback())
}
