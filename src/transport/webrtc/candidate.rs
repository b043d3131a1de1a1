//! Addresses at which peers may reach each other (RFC 8839), read with patience.

use std::fmt;
use std::net::IpAddr;

use is::{Candidate, Protocol};

/// Longest candidate line read, in bytes.
const MAX_BYTES: usize = 4096;

/// Why a remote candidate is not used. Nothing is wrong with the connection then: others may come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CandidateIgnored {
    /// It says that no more candidates follow.
    EndOfCandidates,
    /// A name of the local network (`….local`) that only multicast DNS could resolve.
    Mdns,
    /// It is about TCP; media travel over UDP here.
    NotUdp,
    /// It is about a second component; RTCP shares the first one here.
    NotFirstComponent,
    /// No socket here can reach an address of that kind.
    Unusable,
    /// As many as are kept came already.
    TooMany,
    /// It cannot be read.
    Malformed,
}

impl fmt::Display for CandidateIgnored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EndOfCandidates => "no more candidates follow",
            Self::Mdns => "its address is a name of multicast DNS",
            Self::NotUdp => "it is not UDP",
            Self::NotFirstComponent => "it is not for the first component",
            Self::Unusable => "nothing can be sent to its address",
            Self::TooMany => "too many candidates",
            Self::Malformed => "it cannot be read",
        })
    }
}

impl std::error::Error for CandidateIgnored {}

/// Reads a candidate as signaling carries it: with or without `a=` and `candidate:`.
pub(super) fn parse(text: &str) -> Result<Candidate, CandidateIgnored> {
    let text = text.trim();
    let text = text.strip_prefix("a=").unwrap_or(text);
    let text = text.strip_prefix("candidate:").unwrap_or(text);
    if text.is_empty() || text == "end-of-candidates" {
        return Err(CandidateIgnored::EndOfCandidates);
    }
    if text.len() > MAX_BYTES {
        return Err(CandidateIgnored::Malformed);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, component, protocol, _, address, ..] = words[..] else {
        return Err(CandidateIgnored::Malformed);
    };
    if !protocol.eq_ignore_ascii_case("udp") {
        return Err(CandidateIgnored::NotUdp);
    }
    if component != "1" {
        return Err(CandidateIgnored::NotFirstComponent);
    }
    if address.to_ascii_lowercase().ends_with(".local") {
        return Err(CandidateIgnored::Mdns);
    }
    let candidate = Candidate::from_sdp_string(&format!("candidate:{text}"));
    let candidate = candidate.map_err(|_| CandidateIgnored::Malformed)?;
    let address = candidate.addr();
    let usable = address.port() != 0
        && match address.ip() {
            IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast(),
            // A link-local address means nothing without its interface.
            IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_unicast_link_local(),
        };
    if candidate.proto() == Protocol::Udp && usable {
        Ok(candidate)
    } else {
        Err(CandidateIgnored::Unusable)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOST: &str = "candidate:1 1 UDP 2122317823 192.0.2.7 50412 typ host generation 0 ufrag abcd";

    #[test]
    fn candidates_are_read_or_ignored_with_a_reason() {
        for text in [HOST, &format!("a={HOST}\r\n"), &HOST["candidate:".len()..]] {
            assert_eq!(parse(text).unwrap().addr(), "192.0.2.7:50412".parse().unwrap());
        }
        let reason = |text: &str| parse(text).unwrap_err();
        assert_eq!(reason(""), CandidateIgnored::EndOfCandidates);
        assert_eq!(reason("a=end-of-candidates"), CandidateIgnored::EndOfCandidates);
        assert_eq!(
            reason("candidate:1 1 udp 1 4a-b.local 9 typ host"),
            CandidateIgnored::Mdns
        );
        let tcp = "candidate:1 1 tcp 1 192.0.2.7 9 typ host tcptype active";
        assert_eq!(reason(tcp), CandidateIgnored::NotUdp);
        assert_eq!(
            reason("candidate:1 2 udp 1 192.0.2.7 9 typ host"),
            CandidateIgnored::NotFirstComponent
        );
        assert_eq!(
            reason("candidate:1 1 udp 1 192.0.2.7 0 typ host"),
            CandidateIgnored::Unusable
        );
        assert_eq!(
            reason("candidate:1 1 udp 1 fe80::1 7 typ host"),
            CandidateIgnored::Unusable
        );
        assert_eq!(
            reason("candidate:1 1 udp 1 192.0.2.7 9"),
            CandidateIgnored::Malformed
        );
        assert_eq!(reason(&"x".repeat(9999)), CandidateIgnored::Malformed);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}", number: u32, address in "[0-9a-f.:]{0,20}") {
            let _ = parse(&text);
            let _ = parse(&format!("candidate:1 1 udp {number} {address} 9 typ {text}"));
        }
    }
}
