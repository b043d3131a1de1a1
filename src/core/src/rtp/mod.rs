//! H.264 over RTP (RFC 3550, RFC 6184) and its feedback (RFC 4585, RFC 5104): our own, because how pictures survive
//! loss is decided here.
//!
//! [`send::Sender`] turns access units into packets and answers retransmission requests; [`receive::Receiver`]
//! reorders, asks for what is missing, and lets an access unit out only when everything it depends on is out.
//! Neither encrypts: a packet here is what SRTP protects.

mod assemble;
mod missing;
pub mod packet;
mod packetize;
pub mod receive;
pub mod rtcp;
pub mod send;
mod sequence;
#[cfg(test)]
mod tests;

pub use assemble::Malformed;
pub use packetize::packetize;
