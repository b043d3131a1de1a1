//! User name and password of a source; they are never printed.

use std::fmt;

/// Longest accepted line on the password descriptor, in bytes: far above any real password, far below harm.
const MAX_LINE_BYTES: usize = 4096;

/// Credentials for a source that asks for them.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: String,
}

/// Why the password descriptor's content cannot be used; it never repeats that content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialsError(&'static str);

impl fmt::Display for CredentialsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for CredentialsError {}

impl Credentials {
    /// A user name and a password.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            password: password.into(),
        }
    }

    /// Reads the first line of the password descriptor: `user:password`, or a password alone.
    ///
    /// The first colon separates; a password that itself holds a colon is written `:pass:word` with an
    /// empty user name. An empty line means no credentials.
    ///
    /// # Errors
    /// When the line is too long, is not UTF-8 or holds a NUL.
    pub fn from_descriptor(bytes: &[u8]) -> Result<Option<Self>, CredentialsError> {
        let line = bytes.split(|&b| b == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > MAX_LINE_BYTES {
            return Err(CredentialsError("the password line is longer than 4096 bytes"));
        }
        let line = std::str::from_utf8(line).map_err(|_| CredentialsError("the password is not UTF-8"))?;
        if line.contains('\0') {
            return Err(CredentialsError("the password holds a NUL character"));
        }
        if line.is_empty() {
            return Ok(None);
        }
        let (user, password) = line.split_once(':').unwrap_or(("", line));
        Ok(Some(Self::new(user, password)))
    }

    /// The user name; may be empty.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The password.
    pub fn password(&self) -> &str {
        &self.password
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_gives_user_and_password() {
        let read = |bytes: &[u8]| Credentials::from_descriptor(bytes).unwrap();
        assert_eq!(
            read(b"ann:s3:cret\nrest"),
            Some(Credentials::new("ann", "s3:cret"))
        );
        assert_eq!(read(b"secret\r\n"), Some(Credentials::new("", "secret")));
        assert_eq!(read(b":a:b"), Some(Credentials::new("", "a:b")));
        assert_eq!(read(b"\n"), None);
        assert_eq!(read(b""), None);
    }

    #[test]
    fn unusable_lines_are_refused_without_being_repeated() {
        for bad in [b"hush\xff".as_slice(), b"hush\0", &[b'h'; 4097]] {
            let error = Credentials::from_descriptor(bad).unwrap_err();
            assert!(!error.to_string().contains("hush"));
        }
    }

    #[test]
    fn debug_output_hides_both_parts() {
        assert_eq!(
            format!("{:?}", Credentials::new("ann", "hush")),
            "Credentials(..)"
        );
    }
}
