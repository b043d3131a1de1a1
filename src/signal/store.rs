//! The device store: a narrow trait, and SQLite behind it.
//!
//! Another database goes here without the protocol noticing; it stores rows and knows nothing of passwords.

use std::path::Path;
use std::time::Duration;

use crossdesk_core::signaling::DeviceId;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};

/// A reconnect token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// SHA-256 of the token.
    pub digest: [u8; 32],
    /// When it ends, in seconds since 1970.
    pub expires_at: u64,
}

/// Why the store could not do it.
#[derive(Debug)]
pub struct StoreError(String);

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoreError {}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        // The library's text names tables and codes, never values.
        Self(error.to_string())
    }
}

/// Rows about devices. Called from one thread; each call is durable when it returns.
pub trait Store: Send {
    /// Adds a device; false when the id is taken.
    ///
    /// # Errors
    /// When the store fails.
    fn create(
        &mut self,
        id: DeviceId,
        password_hash: &str,
        token: Option<&Token>,
    ) -> Result<bool, StoreError>;

    /// The password hash of a device; `None` when there is no such device.
    ///
    /// # Errors
    /// When the store fails.
    fn password_hash(&mut self, id: DeviceId) -> Result<Option<String>, StoreError>;

    /// Replaces the password hash and forgets the token; false when there is no such device.
    ///
    /// # Errors
    /// When the store fails.
    fn set_password(&mut self, id: DeviceId, password_hash: &str) -> Result<bool, StoreError>;

    /// The token of a device.
    ///
    /// # Errors
    /// When the store fails.
    fn token(&mut self, id: DeviceId) -> Result<Option<Token>, StoreError>;

    /// Replaces the token; false when there is no such device.
    ///
    /// # Errors
    /// When the store fails.
    fn set_token(&mut self, id: DeviceId, token: Option<&Token>) -> Result<bool, StoreError>;
}

/// How long a start waits for the server before it to let go of the file.
const PATIENCE: Duration = Duration::from_secs(1);

/// Layout of the table; a file with a higher number was written by a newer program.
const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS device (
    id INTEGER PRIMARY KEY,
    password_hash TEXT NOT NULL,
    token_digest BLOB,
    token_expires_at INTEGER
) STRICT;
PRAGMA user_version = 1;
";

/// Devices in one SQLite file.
pub struct Sqlite(Connection);

impl Sqlite {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// When it cannot be opened, belongs to a running server, or was written by a newer program.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::prepare(Connection::open(path)?)
    }

    fn prepare(connection: Connection) -> Result<Self, StoreError> {
        connection.busy_timeout(PATIENCE)?;
        // One server owns the file; a commit is on disk before its reply leaves.
        let set_up = connection.execute_batch(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;",
        );
        set_up.map_err(explain)?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version > SCHEMA_VERSION {
            return Err(StoreError(
                "it was written by a newer version of this program".to_owned(),
            ));
        }
        connection.execute_batch(SCHEMA).map_err(explain)?;
        Ok(Self(connection))
    }
}

fn explain(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError("another server uses it".to_owned())
        }
        _ => error.into(),
    }
}

/// The two columns of a token.
fn columns(token: Option<&Token>) -> (Option<&[u8]>, Option<i64>) {
    let expires_at = |token: &Token| i64::try_from(token.expires_at).unwrap_or(i64::MAX);
    (token.map(|token| &token.digest[..]), token.map(expires_at))
}

impl Store for Sqlite {
    fn create(
        &mut self,
        id: DeviceId,
        password_hash: &str,
        token: Option<&Token>,
    ) -> Result<bool, StoreError> {
        let (digest, expires_at) = columns(token);
        let mut insert = self.0.prepare(
            "INSERT INTO device (id, password_hash, token_digest, token_expires_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO NOTHING",
        )?;
        Ok(insert.execute(params![id.number(), password_hash, digest, expires_at])? == 1)
    }

    fn password_hash(&mut self, id: DeviceId) -> Result<Option<String>, StoreError> {
        let mut select = self.0.prepare("SELECT password_hash FROM device WHERE id = ?1")?;
        Ok(select.query_row([id.number()], |row| row.get(0)).optional()?)
    }

    fn set_password(&mut self, id: DeviceId, password_hash: &str) -> Result<bool, StoreError> {
        let mut update = self.0.prepare(
            "UPDATE device SET password_hash = ?2, token_digest = NULL, token_expires_at = NULL WHERE id = ?1",
        )?;
        Ok(update.execute(params![id.number(), password_hash])? == 1)
    }

    fn token(&mut self, id: DeviceId) -> Result<Option<Token>, StoreError> {
        let mut select = self.0.prepare(
            "SELECT token_digest, token_expires_at FROM device WHERE id = ?1 AND token_digest IS NOT NULL",
        )?;
        let row = select
            .query_row([id.number()], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))
            .optional()?;
        Ok(row.map(|(digest, expires_at)| Token {
            digest,
            expires_at: expires_at.unsigned_abs(),
        }))
    }

    fn set_token(&mut self, id: DeviceId, token: Option<&Token>) -> Result<bool, StoreError> {
        let (digest, expires_at) = columns(token);
        let mut update = self
            .0
            .prepare("UPDATE device SET token_digest = ?2, token_expires_at = ?3 WHERE id = ?1")?;
        Ok(update.execute(params![id.number(), digest, expires_at])? == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Sqlite {
        Sqlite::prepare(Connection::open_in_memory().expect("memory")).expect("a schema")
    }

    fn id(number: u32) -> DeviceId {
        DeviceId::new(number).expect("nine digits")
    }

    #[test]
    fn rows_are_kept_and_ids_are_unique() {
        let mut store = store();
        let token = Token {
            digest: [7; 32],
            expires_at: 1_790_000_000,
        };
        assert!(store.create(id(482_915_307), "one", Some(&token)).expect("a row"));
        assert!(!store.create(id(482_915_307), "two", None).expect("an answer"));
        assert_eq!(
            store.password_hash(id(482_915_307)).expect("a row").as_deref(),
            Some("one")
        );
        assert_eq!(store.password_hash(id(482_915_308)).expect("an answer"), None);
        assert_eq!(store.token(id(482_915_307)).expect("a row"), Some(token));
    }

    #[test]
    fn a_new_password_ends_the_token() {
        let mut store = store();
        let token = Token {
            digest: [7; 32],
            expires_at: 5,
        };
        store.create(id(482_915_307), "one", None).expect("a row");
        assert!(store.set_token(id(482_915_307), Some(&token)).expect("a row"));
        assert!(store.set_password(id(482_915_307), "two").expect("a row"));
        assert_eq!(store.token(id(482_915_307)).expect("a row"), None);
        assert!(!store.set_password(id(482_915_308), "two").expect("an answer"));
        assert!(!store.set_token(id(482_915_308), None).expect("an answer"));
    }

    #[test]
    fn a_file_of_a_newer_program_is_left_alone() {
        let connection = Connection::open_in_memory().expect("memory");
        connection
            .execute_batch("PRAGMA user_version = 2")
            .expect("a number");
        let refused = Sqlite::prepare(connection).err().expect("a refusal");
        assert!(refused.to_string().contains("newer"), "{refused}");
    }
}
