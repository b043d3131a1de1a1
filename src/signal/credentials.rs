//! Answers the machine's questions about passwords and tokens: Argon2id and the store, on a thread of their own.

use std::sync::mpsc::Receiver;

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use crossdesk_core::signaling::{DeviceId, NewToken, Password, StoreOutcome, StoreRequest};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::store::{Store, StoreError, Token};

/// 19 MiB, two passes, one lane: OWASP's first choice for Argon2id where one thread answers.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;

/// Length of a salt, in bytes.
const SALT_BYTES: usize = 16;

/// Why no hash could be made.
type Failure = Box<dyn std::error::Error>;

/// A store and the hash that stands between it and passwords.
pub(super) struct Credentials<S> {
    store: S,
    argon: Argon2<'static>,
    /// A hash nobody knows the password of: what an unknown id is checked against, so that it takes as long.
    nobody: String,
}

impl<S: Store> Credentials<S> {
    /// # Errors
    /// When the system gives no random bytes.
    pub(super) fn new(store: S) -> anyhow::Result<Self> {
        let params = Params::new(MEMORY_KIB, PASSES, 1, None);
        let params = params.map_err(|error| anyhow::anyhow!("Argon2id cannot be set up: {error}"))?;
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut credentials = Self {
            store,
            argon,
            nobody: String::new(),
        };
        let mut unknown = [0; 32];
        getrandom::fill(&mut unknown).map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
        let hash = credentials.hash(&unknown);
        credentials.nobody = hash.map_err(|error| anyhow::anyhow!("no password hash: {error}"))?;
        Ok(credentials)
    }

    /// Answers until nobody asks any more.
    pub(super) fn serve(mut self, questions: &Receiver<StoreRequest>, answers: &mpsc::Sender<StoreOutcome>) {
        while let Ok(question) = questions.recv() {
            if answers.blocking_send(self.answer(&question)).is_err() {
                return;
            }
        }
    }

    /// Answers one question.
    pub(super) fn answer(&mut self, question: &StoreRequest) -> StoreOutcome {
        self.try_answer(question).unwrap_or_else(|error| {
            tracing::error!(%error, "the device store failed");
            StoreOutcome::Failed
        })
    }

    fn try_answer(&mut self, question: &StoreRequest) -> Result<StoreOutcome, Failure> {
        let done = match question {
            StoreRequest::Create { id, password, token } => {
                let hash = self.hash(password.expose().as_bytes())?;
                let token = token.as_ref().map(kept);
                self.store.create(*id, &hash, token.as_ref())?
            }
            StoreRequest::Check { id, password, token } => self.check(*id, password, token.as_ref())?,
            StoreRequest::CheckToken { id, token, unix } => {
                return Ok(self.check_token(*id, token, *unix)?);
            }
            StoreRequest::SetPassword { id, password } => {
                let hash = self.hash(password.expose().as_bytes())?;
                self.store.set_password(*id, &hash)?
            }
            StoreRequest::RevokeToken { id } => self.store.set_token(*id, None)?,
        };
        Ok(if done {
            StoreOutcome::DONE
        } else {
            StoreOutcome::Refused
        })
    }

    fn check(
        &mut self,
        id: DeviceId,
        password: &Password,
        token: Option<&NewToken>,
    ) -> Result<bool, StoreError> {
        let hash = self.store.password_hash(id)?;
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.nobody.clone());
        let right = self
            .argon
            .verify_password(password.expose().as_bytes(), hash.as_str())
            .is_ok();
        if !(known && right) {
            return Ok(false);
        }
        match token {
            Some(token) => self.store.set_token(id, Some(&kept(token))),
            None => Ok(true),
        }
    }

    fn check_token(&mut self, id: DeviceId, token: &Password, unix: u64) -> Result<StoreOutcome, StoreError> {
        let known = self.store.token(id)?;
        // Digests of random tokens may be compared in any time.
        let right = known.filter(|known| known.digest == digest(token) && known.expires_at > unix);
        Ok(match right {
            Some(known) => StoreOutcome::Accepted {
                expires_at: Some(known.expires_at),
            },
            None => StoreOutcome::Refused,
        })
    }

    /// A hash with a salt of its own, in the form that names its parameters.
    fn hash(&self, password: &[u8]) -> Result<String, Failure> {
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt)?;
        Ok(self.argon.hash_password_with_salt(password, &salt)?.to_string())
    }
}

fn digest(token: &Password) -> [u8; 32] {
    Sha256::digest(token.expose().as_bytes()).into()
}

fn kept(token: &NewToken) -> Token {
    Token {
        digest: digest(&token.token),
        expires_at: token.expires_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct Rows(BTreeMap<DeviceId, (String, Option<Token>)>);

    impl Store for Rows {
        fn create(&mut self, id: DeviceId, hash: &str, token: Option<&Token>) -> Result<bool, StoreError> {
            let new = !self.0.contains_key(&id);
            let row = || (hash.to_owned(), token.cloned());
            self.0.entry(id).or_insert_with(row);
            Ok(new)
        }

        fn password_hash(&mut self, id: DeviceId) -> Result<Option<String>, StoreError> {
            Ok(self.0.get(&id).map(|(hash, _)| hash.clone()))
        }

        fn set_password(&mut self, id: DeviceId, hash: &str) -> Result<bool, StoreError> {
            Ok(self.0.insert(id, (hash.to_owned(), None)).is_some())
        }

        fn token(&mut self, id: DeviceId) -> Result<Option<Token>, StoreError> {
            Ok(self.0.get(&id).and_then(|(_, token)| token.clone()))
        }

        fn set_token(&mut self, id: DeviceId, token: Option<&Token>) -> Result<bool, StoreError> {
            Ok(self.0.get_mut(&id).map(|row| row.1 = token.cloned()).is_some())
        }
    }

    #[test]
    fn passwords_and_tokens_are_checked_against_what_is_kept() {
        let mut credentials = Credentials::new(Rows::default()).expect("random bytes");
        let id = DeviceId::new(482_915_307).expect("nine digits");
        let (right, wrong) = (Password::new("Qx7b2M"), Password::new("Qx7b2m"));
        let token = NewToken {
            token: Password::new("5b"),
            expires_at: 100,
        };
        let create = StoreRequest::Create {
            id,
            password: right.clone(),
            token: None,
        };
        assert_eq!(credentials.answer(&create), StoreOutcome::DONE);
        assert_eq!(credentials.answer(&create), StoreOutcome::Refused, "taken");
        let hash = credentials
            .store
            .password_hash(id)
            .expect("a row")
            .expect("a hash");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");

        let check = |id, password: &Password, token: Option<&NewToken>| StoreRequest::Check {
            id,
            password: password.clone(),
            token: token.cloned(),
        };
        assert_eq!(
            credentials.answer(&check(id, &wrong, Some(&token))),
            StoreOutcome::Refused
        );
        assert_eq!(credentials.store.token(id).expect("a row"), None);
        assert_eq!(
            credentials.answer(&check(id, &right, Some(&token))),
            StoreOutcome::DONE
        );
        let unknown = DeviceId::new(482_915_308).expect("nine digits");
        assert_eq!(
            credentials.answer(&check(unknown, &right, None)),
            StoreOutcome::Refused
        );

        let resume = |unix| StoreRequest::CheckToken {
            id,
            token: Password::new("5b"),
            unix,
        };
        let until = StoreOutcome::Accepted {
            expires_at: Some(100),
        };
        assert_eq!(credentials.answer(&resume(99)), until);
        assert_eq!(credentials.answer(&resume(100)), StoreOutcome::Refused);
        credentials.answer(&StoreRequest::RevokeToken { id });
        assert_eq!(credentials.answer(&resume(99)), StoreOutcome::Refused);
    }
}
