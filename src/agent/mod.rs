//! The automation protocol over standard input and output.

use std::path::PathBuf;

/// Everything the command line and the environment say about one agent process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOptions {
    /// Inherited descriptor the password is read from, ended by a newline or end of file.
    pub password_fd: Option<i32>,
    /// True when the loopback WebSocket listener is to be started.
    pub video_ws: bool,
    /// Where pictures come from, as typed after `--source`; `None` means the remote transport.
    pub source: Option<String>,
    /// Signaling server host name or address.
    pub server: Option<String>,
    /// Signaling server port.
    pub port: Option<u16>,
    /// Name of the stream quality preset.
    pub quality: Option<String>,
    /// Directory for diagnostic logs; it must exist.
    pub log_dir: Option<PathBuf>,
    /// Name of the one decoder to use, for diagnosis.
    pub decoder: Option<String>,
}

/// Speaks the automation protocol until the parent hangs up, a signal arrives or `exit` is asked for.
///
/// # Errors
/// When the agent cannot start; the text says what to do about it.
pub fn run(options: &AgentOptions) -> anyhow::Result<()> {
    let _ = options;
    anyhow::bail!("this build has no agent yet; run `crossdesk-cli doctor` to check the machine meanwhile")
}
