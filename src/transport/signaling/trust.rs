//! Which signaling server is believed to be the right one.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// SHA-256 of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

/// Why text is no fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFingerprint;

impl std::fmt::Display for BadFingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("expected the SHA-256 fingerprint that `signal` prints: 32 pairs of hexadecimal digits, with or without colons")
    }
}

impl std::error::Error for BadFingerprint {}

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
        let mut out = [0; 32];
        if digits.len() != 2 * out.len() {
            return Err(BadFingerprint);
        }
        for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(BadFingerprint);
            *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).map_err(|_| BadFingerprint)?;
        }
        Ok(Self(out))
    }
}

/// How a server is recognised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// No TLS; only on this machine.
    Plain,
    /// By the system's certificate authorities.
    #[default]
    System,
    /// By this certificate authority, a PEM file.
    Authority(PathBuf),
    /// By its certificate's fingerprint, whatever names and dates are in it.
    Pinned(Fingerprint),
}

/// The TLS configuration of clients that trust so; `None` without TLS.
///
/// # Errors
/// When no certificate authority can be read.
pub fn client_config(trust: &Trust) -> anyhow::Result<Option<Arc<ClientConfig>>> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Plain => return Ok(None),
        Trust::System => by_authority(system_roots()?, &provider)?,
        Trust::Authority(file) => {
            let mut roots = RootCertStore::empty();
            let certificates = CertificateDer::pem_file_iter(file)
                .and_then(|found| found.collect::<Result<Vec<_>, _>>())
                .with_context(|| format!("cannot read certificates from {}", file.display()))?;
            roots.add_parsable_certificates(certificates);
            ensure!(
                !roots.is_empty(),
                "{} holds no usable certificate",
                file.display()
            );
            by_authority(roots, &provider)?
        }
        Trust::Pinned(fingerprint) => Arc::new(Pinned {
            fingerprint: *fingerprint,
            provider: Arc::clone(&provider),
        }),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Some(Arc::new(config)))
}

fn system_roots() -> anyhow::Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    ensure!(
        !roots.is_empty(),
        "this system has no certificate authorities (Debian: ca-certificates); name one with --ca, or pin the server's \
         certificate with --pin"
    );
    Ok(roots)
}

fn by_authority(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> anyhow::Result<Arc<dyn ServerCertVerifier>> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    Ok(verifier.context("the certificate authorities cannot be used")?)
}

/// Trusts one certificate.
#[derive(Debug)]
struct Pinned {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found: [u8; 32] = Sha256::digest(certificate.as_ref()).into();
        if found == self.fingerprint.0 {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_with_and_without_colons_and_nothing_else_is() {
        let plain = "0a".repeat(32);
        let colons = vec!["0A"; 32].join(":");
        assert_eq!(plain.parse::<Fingerprint>(), colons.parse::<Fingerprint>());
        assert_eq!(plain.parse(), Ok(Fingerprint([10; 32])));
        for text in ["", "0a", &"0a".repeat(33), &"zz".repeat(32), &"+1".repeat(32)] {
            assert_eq!(text.parse::<Fingerprint>(), Err(BadFingerprint), "{text}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_no_authority() {
        let file = Trust::Authority("/dev/null".into());
        let error = client_config(&file).expect_err("no certificate").to_string();
        assert!(error.contains("/dev/null"), "{error}");
    }
}
