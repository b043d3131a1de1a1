//! How a connection is made once GStreamer is loaded and the password is known.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use crossdesk_core::automation::{DecoderPreference, StartTransport};
use crossdesk_core::error::ErrorCode;
use crossdesk_pipelines::plan::source::{Credentials, SourceSpec};
use crossdesk_pipelines::receive::{DecoderChoice, ReceiveConfig};
use crossdesk_platform::secret::{Secret, SecretError};

use super::event::AgentEvent;
use super::media::{LatestPicture, Media, MediaParts};
use crate::transport::direct::Direct;
use crate::video::Publisher;

/// What reading the password descriptor gave.
pub type Password = Result<Secret, SecretError>;

/// What stands in the way of a connection: a code of the error table and a sentence for people.
pub type Refusal = (ErrorCode, String);

/// Everything a connection needs beside the `connect` request.
pub struct Starter {
    /// What `--source` named; `None` means a remote host.
    source: Option<SourceSpec>,
    /// What `--decoder` named.
    decoder: Option<DecoderChoice>,
    /// `None` until the descriptor is read; `Some(None)` when there is no descriptor.
    password: Option<Option<Password>>,
    /// `None` until GStreamer is loaded.
    media: Option<Result<(), String>>,
}

impl Starter {
    /// A starter that waits for GStreamer and, with `password_expected`, for the password.
    pub fn new(source: Option<SourceSpec>, decoder: Option<DecoderChoice>, password_expected: bool) -> Self {
        Self {
            source,
            decoder,
            password: (!password_expected).then_some(None),
            media: None,
        }
    }

    /// The password arrived, or will not.
    pub fn set_password(&mut self, password: Password) {
        self.password = Some(Some(password));
    }

    /// GStreamer is loaded, or cannot be.
    pub fn set_media_ready(&mut self, ready: Result<(), String>) {
        self.media = Some(ready);
    }

    /// True when nothing is left to wait for.
    pub fn is_ready(&self) -> bool {
        self.password.is_some() && self.media.is_some()
    }

    /// Makes the connection; call it when [`Self::is_ready`].
    ///
    /// # Errors
    /// What the caller is told, without secrets.
    pub fn start(
        &self,
        start: &StartTransport,
        latest: Arc<LatestPicture>,
        publisher: Option<Publisher>,
        events: SyncSender<AgentEvent>,
    ) -> Result<Media, Refusal> {
        if let Some(Err(reason)) = &self.media {
            return Err((ErrorCode::PluginMissing, reason.clone()));
        }
        let credentials = self.credentials()?;
        let source = self.source.clone().ok_or_else(|| {
            let reason = "this program reaches no remote host yet; name a stream with --source".to_owned();
            (ErrorCode::TransportUnavailable, reason)
        })?;
        let receive = ReceiveConfig {
            decoder: self.decoder_choice(start),
            ..ReceiveConfig::default()
        };
        let parts = MediaParts {
            receive,
            latest,
            publisher,
            events,
        };
        let dial = move |output| -> Box<dyn crate::transport::Transport> {
            Box::new(Direct::start(source.clone(), credentials.clone(), output))
        };
        Media::start(parts, &dial).map_err(|reason| (ErrorCode::PluginMissing, reason))
    }

    fn decoder_choice(&self, start: &StartTransport) -> DecoderChoice {
        match (&self.decoder, start.connect.decoder) {
            (Some(choice), _) => choice.clone(),
            (None, DecoderPreference::Auto) => DecoderChoice::Auto,
            (None, DecoderPreference::Software) => DecoderChoice::Software,
        }
    }

    /// A parent that announced a password and did not hand one over gets told, whatever the source needs.
    fn credentials(&self) -> Result<Option<Credentials>, Refusal> {
        match self.password.as_ref().and_then(Option::as_ref) {
            None => Ok(None),
            Some(Err(error)) => Err((ErrorCode::CredentialsMissing, error.to_string())),
            Some(Ok(secret)) => Credentials::from_descriptor(secret.expose().as_bytes())
                .map_err(|error| (ErrorCode::CredentialsMissing, error.to_string())),
        }
    }
}
