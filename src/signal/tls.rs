//! The server's certificate: a given one, or a self-signed one that is made once and kept.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use rcgen::{CertificateParams, DnType, KeyPair};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate chain and its key, both PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl CertificateFiles {
    /// Where the self-signed one is kept.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
        }
    }
}

/// What is needed to accept TLS, and how clients recognise it.
pub(super) struct Identity {
    pub(super) acceptor: TlsAcceptor,
    /// SHA-256 of the certificate: pairs of hexadecimal digits with colons between them.
    pub(super) fingerprint: String,
}

/// Reads the files.
///
/// # Errors
/// When one cannot be read, holds nothing of its kind, or they do not belong together.
pub(super) fn load(files: &CertificateFiles) -> anyhow::Result<Identity> {
    let CertificateFiles { certificate, key } = files;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)
        .and_then(|certificates| certificates.collect())
        .map(|chain: Vec<CertificateDer<'static>>| chain);
    let chain = chain.with_context(|| format!("cannot read {}", certificate.display()))?;
    let first = chain.first();
    let first = first.with_context(|| format!("{} holds no certificate", certificate.display()))?;
    let fingerprint = fingerprint(first);
    let secret = PrivateKeyDer::from_pem_file(key);
    let secret = secret.with_context(|| format!("cannot read a private key from {}", key.display()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, secret);
    let config =
        config.with_context(|| format!("{} does not go with {}", key.display(), certificate.display()))?;
    Ok(Identity {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        fingerprint,
    })
}

/// Makes a self-signed certificate unless it is there already. `address` is named in it beside `localhost`.
///
/// # Errors
/// When only one of the two files is there, or they cannot be written.
pub(super) fn ensure_self_signed(files: &CertificateFiles, address: IpAddr) -> anyhow::Result<()> {
    let CertificateFiles { certificate, key } = files;
    let there = [certificate.exists(), key.exists()];
    if there == [true, true] {
        return Ok(());
    }
    ensure!(
        there == [false, false],
        "{} and {} belong together and one is missing; restore it, or delete both to get a new pair with another fingerprint",
        certificate.display(),
        key.display()
    );
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.is_unspecified() && !address.is_loopback() {
        names.push(address.to_string());
    }
    let mut params = CertificateParams::new(names).context("a certificate cannot be described")?;
    params
        .distinguished_name
        .push(DnType::CommonName, "CrossDesk signaling");
    let pair = KeyPair::generate().context("a key cannot be made")?;
    let made = params
        .self_signed(&pair)
        .context("a certificate cannot be signed")?;
    write_new(key, pair.serialize_pem().as_bytes(), 0o600)?;
    write_new(certificate, made.pem().as_bytes(), 0o644)
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let written = options.open(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = Sha256::digest(certificate.as_ref());
    let pairs: Vec<String> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("crossdesk-tls-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a writable folder");
            Self(path)
        }

        fn files(&self) -> CertificateFiles {
            let files = CertificateFiles::in_folder(&self.0);
            let address = "192.0.2.7".parse().expect("an address");
            ensure_self_signed(&files, address).expect("a certificate");
            files
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            // What is left behind costs disk space, not a test.
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_made_certificate_is_kept_and_its_key_is_private() {
        let folder = Folder::new("kept");
        let first = load(&folder.files()).expect("a pair").fingerprint;
        let again = load(&folder.files()).expect("a pair").fingerprint;
        assert_eq!(first, again);
        assert_eq!(first.len(), 32 * 3 - 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let key = fs::metadata(folder.files().key).expect("a key");
            assert_eq!(key.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn half_a_pair_and_a_foreign_key_are_refused() {
        let (one, two) = (Folder::new("one"), Folder::new("two"));
        let (mine, theirs) = (one.files(), two.files());
        let mixed = CertificateFiles {
            certificate: mine.certificate.clone(),
            key: theirs.key,
        };
        let error = load(&mixed).err().expect("a refusal").to_string();
        assert!(error.contains("does not go with"), "{error}");
        let swapped = CertificateFiles {
            certificate: mine.key.clone(),
            key: mine.certificate.clone(),
        };
        let error = load(&swapped).err().expect("a refusal").to_string();
        assert!(error.contains("holds no certificate"), "{error}");
        fs::remove_file(&mine.key).expect("a key");
        let address = "192.0.2.7".parse().expect("an address");
        let error = ensure_self_signed(&mine, address)
            .expect_err("a refusal")
            .to_string();
        assert!(error.contains("belong together"), "{error}");
    }
}
