//! What the machine asks of the device store, and what it is told.

use super::{DeviceId, Password};

/// A reconnect token that takes the place of an earlier one of its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// The token itself; only a digest of it is to be kept.
    pub token: Password,
    /// When it ends, in seconds since 1970.
    pub expires_at: u64,
}

/// One question to the store; the next comes after the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreRequest {
    /// Keep a new device, unless the id is taken.
    Create {
        /// The id wished for.
        id: DeviceId,
        /// Its password.
        password: Password,
        /// Kept as well when there is one.
        token: Option<NewToken>,
    },
    /// Is this the device's password? An unknown id must take as long as a wrong password.
    Check {
        /// The id claimed.
        id: DeviceId,
        /// The password presented.
        password: Password,
        /// Kept when the password is right.
        token: Option<NewToken>,
    },
    /// Is this the device's reconnect token?
    CheckToken {
        /// The id claimed.
        id: DeviceId,
        /// The token presented.
        token: Password,
        /// The time now, in seconds since 1970.
        unix: u64,
    },
    /// Replace the password; the reconnect token ends.
    SetPassword {
        /// Whose.
        id: DeviceId,
        /// The new one.
        password: Password,
    },
    /// End the reconnect token.
    RevokeToken {
        /// Whose.
        id: DeviceId,
    },
}

/// The answer to a [`StoreRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// Yes, or done.
    Accepted {
        /// When the presented token ends, in seconds since 1970; only for [`StoreRequest::CheckToken`].
        expires_at: Option<u64>,
    },
    /// The id is taken, unknown, or the secret is wrong.
    Refused,
    /// The store could not answer.
    Failed,
}

impl StoreOutcome {
    /// A plain yes.
    pub const DONE: Self = Self::Accepted { expires_at: None };
}
