//! How a connection is made once GStreamer is loaded and the password is known.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use crossdesk_core::automation::{DecoderPreference, StartTransport};
use crossdesk_core::error::ErrorCode;
#[cfg(target_os = "linux")]
use crossdesk_core::signaling::{self, DeviceId};
use crossdesk_pipelines::plan::source::{Credentials, SourceSpec};
use crossdesk_pipelines::receive::{DecoderChoice, ReceiveConfig};
use crossdesk_platform::secret::{Secret, SecretError};

use super::event::AgentEvent;
use super::media::{LatestPicture, Media, MediaParts};
use crate::transport::Transport;
use crate::transport::direct::Direct;
#[cfg(target_os = "linux")]
use crate::transport::remote::{Remote, Target};
use crate::transport::signaling::ServerAddress;
use crate::video::Publisher;

/// What reading the password descriptor gave.
pub type Password = Result<Secret, SecretError>;

/// What stands in the way of a connection: a code of the error table and a sentence for people.
pub type Refusal = (ErrorCode, String);

/// Where a connection goes.
enum Destination {
    Source(SourceSpec, Option<Credentials>),
    #[cfg(target_os = "linux")]
    Device(Target),
}

/// What the command line says about connections.
pub struct StarterConfig {
    /// What `--source` named; `None` means a remote host.
    pub source: Option<SourceSpec>,
    /// What `--server` named.
    pub server: Option<ServerAddress>,
    /// What `--decoder` named.
    pub decoder: Option<DecoderChoice>,
    /// True when a password comes over a descriptor.
    pub password_expected: bool,
}

/// Everything a connection needs beside the `connect` request.
pub struct Starter {
    source: Option<SourceSpec>,
    server: Option<ServerAddress>,
    decoder: Option<DecoderChoice>,
    /// `None` until the descriptor is read; `Some(None)` when there is no descriptor.
    password: Option<Option<Password>>,
    /// `None` until GStreamer is loaded.
    media: Option<Result<(), String>>,
}

impl Starter {
    /// A starter that waits for GStreamer and, when one is expected, for the password.
    pub fn new(config: StarterConfig) -> Self {
        Self {
            source: config.source,
            server: config.server,
            decoder: config.decoder,
            password: (!config.password_expected).then_some(None),
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
        self.missing().is_none()
    }

    /// What is still waited for, in words.
    pub fn missing(&self) -> Option<&'static str> {
        if self.password.is_none() {
            return Some("the password descriptor gave no whole line and did not end");
        }
        self.media
            .is_none()
            .then_some("GStreamer is still reading its plug-ins")
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
        let destination = self.destination(start)?;
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
        let dial = move |output| match &destination {
            Destination::Source(source, credentials) => {
                Box::new(Direct::start(source.clone(), credentials.clone(), output)) as Box<dyn Transport>
            }
            #[cfg(target_os = "linux")]
            Destination::Device(target) => Box::new(Remote::start(target.clone(), output)),
        };
        Media::start(parts, &dial).map_err(|reason| (ErrorCode::PluginMissing, reason))
    }

    fn destination(&self, start: &StartTransport) -> Result<Destination, Refusal> {
        if let Some(source) = &self.source {
            return Ok(Destination::Source(source.clone(), self.credentials()?));
        }
        let unavailable = |reason: &str| (ErrorCode::TransportUnavailable, reason.to_owned());
        let Some(server) = &self.server else {
            let reason = "neither a signaling server (--server) nor a stream (--source) was named";
            return Err(unavailable(reason));
        };
        #[cfg(target_os = "linux")]
        {
            let device = DeviceId::parse(&start.connect.device)
                .ok_or_else(|| unavailable("the id of a device does not begin with 0"))?;
            Ok(Destination::Device(Target {
                server: server.clone(),
                device,
                password: self.device_password()?,
                display: start.connect.display,
            }))
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (server, start);
            Err(unavailable(
                "this system's sockets are not supported yet; name a stream with --source",
            ))
        }
    }

    #[cfg(target_os = "linux")]
    fn device_password(&self) -> Result<signaling::Password, Refusal> {
        let missing = |reason: String| (ErrorCode::CredentialsMissing, reason);
        match self.password.as_ref().and_then(Option::as_ref) {
            None => Err(missing(
                "the device's password is needed; hand it over with --password-fd".to_owned(),
            )),
            Some(Err(error)) => Err(missing(error.to_string())),
            Some(Ok(secret)) if secret.expose().is_empty() => {
                Err(missing("the password is empty".to_owned()))
            }
            Some(Ok(secret)) => Ok(signaling::Password::new(secret.expose())),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_until_it_is_there() {
        let mut starter = Starter::new(StarterConfig {
            source: None,
            server: None,
            decoder: None,
            password_expected: true,
        });
        assert!(starter.missing().is_some_and(|what| what.contains("password")));
        starter.set_password(Err(SecretError::Empty));
        assert!(starter.missing().is_some_and(|what| what.contains("GStreamer")));
        starter.set_media_ready(Ok(()));
        assert!(starter.is_ready());
    }
}
