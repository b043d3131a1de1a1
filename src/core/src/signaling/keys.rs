//! What the server makes up and recognises again: ids, passwords, tokens, all drawn from one secret seed.
//!
//! The seed comes from the system's random source once, so the machine itself stays deterministic. Values are
//! HMAC-SHA-256 of a counter or of a name: without the seed nobody can tell them from random ones.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::identity::{DeviceId, Password};
use super::{Identity, PASSWORD_BYTES};

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A keyed digest of a secret; equal digests mean equal secrets, and only this process can make one.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Digest(…)")
    }
}

/// The seed and how much was drawn from it.
pub struct Keys {
    seed: [u8; 32],
    drawn: u64,
}

impl Keys {
    /// Starts with 32 bytes nobody else knows.
    pub const fn new(seed: [u8; 32]) -> Self {
        Self { seed, drawn: 0 }
    }

    fn mac(&self, label: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.seed).expect("HMAC takes a key of any length");
        for part in std::iter::once(label.as_bytes()).chain(parts.iter().copied()) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// 32 bytes that were never drawn before.
    fn draw(&mut self) -> [u8; 32] {
        self.drawn += 1;
        self.mac("draw", &[&self.drawn.to_be_bytes()])
    }

    /// Any of the nine-digit numbers, each as likely as the others to one part in 2^34.
    pub fn number(&mut self) -> DeviceId {
        let [a, b, c, d, e, f, g, h, ..] = self.draw();
        let bits = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let number = DeviceId::MIN + (bits % u64::from(DeviceId::COUNT)) as u32;
        DeviceId::new(number).expect("the sum lies in the range")
    }

    /// A password of letters and digits for a new device.
    pub fn password(&mut self) -> Password {
        let bytes = self.draw();
        letters(&bytes)
    }

    /// The password of a browser's identity, which is always the same one.
    pub fn web_password(&self, id: DeviceId) -> Password {
        letters(&self.mac("web", &[&id.number().to_be_bytes()]))
    }

    /// 64 lower-case hexadecimal digits.
    pub fn token(&mut self) -> Password {
        Password::new(hex(&self.draw()))
    }

    /// 32 lower-case hexadecimal digits that name one delivery of ICE servers.
    pub fn ice_id(&mut self) -> String {
        hex(&self.draw()[..16])
    }

    /// What is kept of `password` while its device is online, so that joining costs no slow hash.
    pub fn digest(&self, id: DeviceId, password: &Password) -> Digest {
        let identity = Identity::Device(id).to_string();
        Digest(self.mac("password", &[identity.as_bytes(), password.expose().as_bytes()]))
    }
}

/// Six letters or digits; the bias of the remainder is one part in 2^58.
fn letters(bytes: &[u8; 32]) -> Password {
    let [a, b, c, d, e, f, g, h, ..] = *bytes;
    let mut rest = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    let mut text = String::with_capacity(PASSWORD_BYTES);
    for _ in 0..PASSWORD_BYTES {
        text.push(char::from(LETTERS[(rest % 62) as usize]));
        rest /= 62;
    }
    Password::new(text)
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// True when two secrets are equal; takes as long for any two of one length.
pub fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_values_differ_and_have_their_shapes() {
        let mut keys = Keys::new([7; 32]);
        assert_ne!(keys.number(), keys.number());
        let (one, two) = (keys.password(), keys.password());
        assert_ne!(one, two);
        assert_eq!(one.expose().len(), 6);
        assert!(one.expose().bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let token = keys.token();
        assert_eq!(token.expose().len(), 64);
        assert!(
            token
                .expose()
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        );
        assert_eq!(keys.ice_id().len(), 32);
    }

    #[test]
    fn digests_depend_on_seed_id_and_password() {
        let (keys, other) = (Keys::new([1; 32]), Keys::new([2; 32]));
        let (a, b) = (DeviceId::new(100_000_000), DeviceId::new(100_000_001));
        let (a, b) = (a.expect("valid"), b.expect("valid"));
        let password = Password::new("abc123");
        let digest = keys.digest(a, &password);
        assert_eq!(digest, keys.digest(a, &password));
        assert_ne!(digest, keys.digest(b, &password));
        assert_ne!(digest, keys.digest(a, &Password::new("abc124")));
        assert_ne!(digest, other.digest(a, &password));
    }
}
