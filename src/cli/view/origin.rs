//! What is watched: a stream, or a host that a signaling server knows.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use crossdesk_core::signaling::{DeviceId, Password};
use crossdesk_pipelines::plan::source::{Credentials, SourceSpec};
use crossdesk_platform::secret::Inherited;

use crate::cli::Printer;
use crate::cli::server::ServerArgs;
use crate::terminal;
use crate::transport::direct::Direct;
#[cfg(target_os = "linux")]
use crate::transport::remote::{Remote, Target};
use crate::transport::{Transport, TransportOutput};

/// Where pictures come from.
pub enum Origin {
    /// A stream, with user and password for one that asks for them.
    Source(SourceSpec, Option<Credentials>),
    /// A remote host.
    #[cfg(target_os = "linux")]
    Device(Target),
}

/// Which pictures are written as text.
pub struct Pace {
    /// Pictures passed over between two that are written, so that the second differs to the eye.
    pub apart: u32,
    /// How long the next picture may take: by then, whatever needs a reconnect has long said so.
    pub patience: Duration,
}

impl Origin {
    /// A stream that was named on the command line.
    pub fn source(text: &str, password: Option<Inherited>) -> anyhow::Result<Self> {
        let spec = SourceSpec::parse(text).context("--source")?;
        let credentials = match password {
            Some(password) => Credentials::from_descriptor(password.read()?.expose().as_bytes())?,
            None => None,
        };
        Ok(Self::Source(spec, credentials))
    }

    /// A device that was named on the command line; without a descriptor its password is typed. `None` when the person
    /// gave up typing.
    #[cfg(target_os = "linux")]
    pub fn device(
        device: DeviceId,
        display: u8,
        server: &ServerArgs,
        password: Option<Inherited>,
        printer: &Printer,
    ) -> anyhow::Result<Option<Self>> {
        let server = server
            .address()?
            .context("a device is found through a signaling server; name it with --server")?;
        let Some(password) = device_password(device, password, printer)? else {
            return Ok(None);
        };
        anyhow::ensure!(!password.expose().is_empty(), "the password is empty");
        Ok(Some(Self::Device(Target {
            server,
            device,
            password,
            display,
        })))
    }

    /// Hosts are reached on Linux only.
    #[cfg(not(target_os = "linux"))]
    pub fn device(
        _device: DeviceId,
        _display: u8,
        _server: &ServerArgs,
        _password: Option<Inherited>,
        _printer: &Printer,
    ) -> anyhow::Result<Option<Self>> {
        anyhow::bail!("this system's sockets are not supported yet; name a stream with --source")
    }

    /// What is watched, for a person.
    pub fn title(&self) -> String {
        match self {
            // The size of the pictures stands beside it anyway.
            Self::Source(SourceSpec::Test(_), _) => "generated desktop".to_owned(),
            Self::Source(spec, _) => spec.to_string(),
            #[cfg(target_os = "linux")]
            Self::Device(target) => grouped(target.device),
        }
    }

    /// What is being waited for before anything is connected; empty for a stream, which is there or says why not.
    pub fn waiting(&self) -> String {
        match self {
            Self::Source(..) => String::new(),
            #[cfg(target_os = "linux")]
            Self::Device(target) => format!("connecting through {}", target.server.host),
        }
    }

    /// True when the end of it leaves nothing to show: no picture is held back for its order.
    pub fn is_live(&self) -> bool {
        !matches!(self, Self::Source(..))
    }

    /// How its pictures are written as text.
    pub fn pace(&self) -> Pace {
        match self {
            Self::Source(..) => Pace {
                apart: 15,
                patience: Duration::from_secs(20),
            },
            // A desktop on which nothing happens sends one picture a second; a server or a host that does not answer
            // is reported within 45 s.
            #[cfg(target_os = "linux")]
            Self::Device(_) => Pace {
                apart: 2,
                patience: Duration::from_secs(50),
            },
        }
    }

    /// Starts it; everything is delivered to `output`.
    pub fn dial(self, output: Arc<dyn TransportOutput>) -> Arc<dyn Transport> {
        match self {
            Self::Source(spec, credentials) => Arc::new(Direct::start(spec, credentials, output)),
            #[cfg(target_os = "linux")]
            Self::Device(target) => Arc::new(Remote::start(target, output)),
        }
    }
}

#[cfg(target_os = "linux")]
fn device_password(
    device: DeviceId,
    password: Option<Inherited>,
    printer: &Printer,
) -> anyhow::Result<Option<Password>> {
    if let Some(password) = password {
        return Ok(Some(Password::new(password.read()?.expose())));
    }
    let id = grouped(device);
    // Raw mode: the end of a line has to be told in full.
    terminal::read_password(|| printer.note(&format!("password of {id} (not shown):\r")))
        .context("the device's password is needed; hand it over with --password-fd")
}

/// Reads an id as people write it: `123 456 789`. What was written is not repeated: people add the password.
pub fn parse_device(text: &str) -> anyhow::Result<DeviceId> {
    anyhow::ensure!(
        !text.contains('@'),
        "the password is no part of an id; it is typed, or handed over with --password-fd"
    );
    let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    DeviceId::parse(&digits).context("that is no id: it has nine digits, the first of which is not 0")
}

/// An id as people read it.
fn grouped(device: DeviceId) -> String {
    let digits = device.to_string();
    let (first, rest) = digits.split_at(digits.len().min(3));
    let (second, third) = rest.split_at(rest.len().min(3));
    format!("{first} {second} {third}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_generated_desktop_is_not_in_its_title() {
        let title = |text| Origin::source(text, None).expect("a source").title();
        assert_eq!(title("test:?size=640x360"), "generated desktop");
        assert_eq!(title("rtsp://cam/live?key=x"), "rtsp://cam/live");
    }

    #[test]
    fn ids_are_read_and_written_in_groups() {
        let device = parse_device("482 915 307").expect("an id");
        assert_eq!(device.number(), 482_915_307);
        assert_eq!(grouped(device), "482 915 307");
        assert_eq!(parse_device("482915307").ok(), Some(device));
        for text in ["", "48291530", "048291530", "web-482915307", "4829153070"] {
            assert!(parse_device(text).is_err(), "{text}");
        }
        let refused = parse_device("482915307@secret")
            .expect_err("no password")
            .to_string();
        assert!(refused.contains("--password-fd") && !refused.contains("secret"));
    }
}
