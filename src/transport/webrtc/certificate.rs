//! The certificate a peer shows in the DTLS handshake, and its digest in session descriptions.

use std::fmt;

use dimpl::DtlsCertificate;
use rcgen::{CertificateParams, DnType, KeyPair};
use sha2::{Digest as _, Sha256};

/// A self-signed certificate with its key; whom it belongs to is proven by its digest in the signaling alone.
#[derive(Clone)]
pub struct Certificate {
    pub(super) dtls: DtlsCertificate,
    /// SHA-256 of the certificate.
    pub(super) fingerprint: [u8; 32],
}

impl Certificate {
    /// Makes one (ECDSA on P-256, which browsers take); it may serve every peer of a process.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn generate() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "crossdesk");
        let certificate = params.self_signed(&key)?.der().to_vec();
        Ok(Self {
            fingerprint: digest(&certificate),
            dtls: DtlsCertificate {
                certificate,
                private_key: key.serialize_der(),
            },
        })
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificate")
            .field(&colons(&self.fingerprint))
            .finish()
    }
}

/// SHA-256 of a certificate.
pub(super) fn digest(certificate: &[u8]) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// Pairs of hexadecimal digits with colons between them.
pub(super) fn colons(digest: &[u8; 32]) -> String {
    let pairs: Vec<String> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}
