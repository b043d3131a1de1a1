//! Who a socket can be: a registered device, a browser for a while, or a native client's extra socket.

use std::fmt;
use std::sync::Arc;

use super::{MAX_ID_BYTES, MAX_PASSWORD_BYTES};

/// A registered device: nine decimal digits, the first of which is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(u32);

impl DeviceId {
    /// The smallest.
    pub const MIN: u32 = 100_000_000;
    /// How many there are.
    pub const COUNT: u32 = 900_000_000;

    /// The device with this number; `None` when it has not nine digits.
    pub const fn new(number: u32) -> Option<Self> {
        if number >= Self::MIN && number - Self::MIN < Self::COUNT {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Reads nine digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 9 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits).and_then(Self::new)
    }

    /// The number itself.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who is logged in on a socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// A registered device.
    Device(DeviceId),
    /// A browser, `web-` and nine digits.
    Web(DeviceId),
    /// An extra socket of a native client; the whole text, which begins with `C-`.
    Controller(Arc<str>),
}

impl Identity {
    /// Reads an id without password.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(number) = text.strip_prefix("web-") {
            return DeviceId::parse(number).map(Self::Web);
        }
        let controller = text.starts_with("C-") && text.len() > 2 && text.len() <= MAX_ID_BYTES;
        if controller && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Some(Self::Controller(text.into()));
        }
        DeviceId::parse(text).map(Self::Device)
    }

    /// The device, when it is one.
    pub const fn device(&self) -> Option<DeviceId> {
        match self {
            Self::Device(id) => Some(*id),
            _ => None,
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(id) => id.fmt(f),
            Self::Web(id) => write!(f, "web-{id}"),
            Self::Controller(text) => f.write_str(text),
        }
    }
}

/// A password or another secret text; never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Takes any text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the moment it is checked, stored or handed to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// What `id@password` claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The part before the first `@`, without the white space people type into it.
    pub id: String,
    /// The part behind it.
    pub password: Option<Password>,
}

impl Claim {
    /// Splits `text`; `None` when a part is too long or holds a NUL.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, password) = match text.split_once('@') {
            Some((id, password)) => (id, Some(password)),
            None => (text, None),
        };
        let id = bare(id);
        let fits = id.len() <= MAX_ID_BYTES && password.is_none_or(|text| text.len() <= MAX_PASSWORD_BYTES);
        let claim = Self {
            id,
            password: password.map(Password::new),
        };
        (fits && !text.contains('\0')).then_some(claim)
    }
}

/// The id in `text`: without white space, and without a password that some clients leave behind it.
pub fn bare(text: &str) -> String {
    let id = text.split('@').next().unwrap_or_default();
    id.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_written_as_it_was_read() {
        for text in ["482915307", "web-730184526", "C-482915307", "C-x"] {
            let identity = Identity::parse(text).expect(text);
            assert_eq!(identity.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_identity_is_refused() {
        for text in [
            "",
            "web",
            "web-",
            "web-12",
            "web-012345678",
            "C-",
            "C-a b",
            "C-\u{e9}",
            "12345678",
            "012345678",
            "1234567890",
            "+23456789",
            "root",
        ] {
            assert_eq!(Identity::parse(text), None, "{text}");
        }
        assert_eq!(Identity::parse(&format!("C-{}", "x".repeat(127))), None);
    }

    #[test]
    fn a_claim_splits_at_the_first_at_sign_and_ignores_spaces_in_the_id() {
        let claim = Claim::parse(" 482 915\u{a0}307@a@ b").expect("a claim");
        assert_eq!(claim.id, "482915307");
        assert_eq!(claim.password, Some(Password::new("a@ b")));
        assert_eq!(Claim::parse("482915307").expect("a claim").password, None);
    }

    #[test]
    fn claims_have_limits() {
        assert!(Claim::parse(&format!("{}@{}", "x".repeat(128), "y".repeat(256))).is_some());
        assert_eq!(Claim::parse(&"x".repeat(129)), None);
        assert_eq!(Claim::parse(&format!("x@{}", "y".repeat(257))), None);
        assert_eq!(Claim::parse("x@\0"), None);
    }

    #[test]
    fn debug_output_hides_the_password() {
        let claim = Claim::parse("482915307@Qx7b2M").expect("a claim");
        assert!(!format!("{claim:?}").contains("Qx7b2M"));
    }
}
