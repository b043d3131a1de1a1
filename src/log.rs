//! Where diagnostics go: a file the caller names, else standard error. Never stdout.
//!
//! Nobody waits for them: a line that its reader has no room for is lost.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crossdesk_platform::stdio::write_within;
use rustix::fs::OFlags;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Libraries of which no filter shows more than information.
const QUIET: [&str; 5] = [
    "is",
    "stun_proto",
    "stun_types",
    "turn_client_proto",
    "turn_types",
];

/// Starts logging. A log file that cannot be written costs the log, not the session: that is said once on standard
/// error.
pub fn start(file: Option<&Path>, filter: Option<&str>) {
    let filter = EnvFilter::try_new(filter.unwrap_or("info")).unwrap_or_else(|_| EnvFilter::new("info"));
    // They trace credentials; nobody may switch that on.
    let quiet = QUIET
        .iter()
        .map(|name| format!("{name}=info").parse().expect("a directive of our own"));
    let filter = quiet.fold(filter, EnvFilter::add_directive);
    let sink = match file.map(|path| (path, open(path))) {
        None => Sink::Stderr,
        Some((_, Ok(file))) => Sink::File(Mutex::new(file)),
        Some((path, Err(error))) => {
            let text = format!("crossdesk-cli: no log is written: {}: {error}\n", path.display());
            write(io::stderr().lock(), text.as_bytes());
            Sink::Stderr
        }
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .log_internal_errors(false);
    // A second start in one process (tests) keeps the first.
    let _ = builder.with_writer(sink).try_init();
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    // A pipe of that name must not hold up the start until somebody reads it.
    #[expect(clippy::cast_possible_wrap, reason = "flags are bits")]
    options.custom_flags(OFlags::NONBLOCK.bits() as i32);
    options.open(path)
}

/// Writes what there is room for. A log that cannot be written must neither hold anybody up nor become an error that
/// somebody reports by logging.
fn write(to: impl AsFd, bytes: &[u8]) {
    let _ = write_within(to, bytes, Duration::ZERO);
}

enum Sink {
    Stderr,
    File(Mutex<File>),
}

/// One log line on its way; a full disk or pipe loses the line and nothing else.
enum Line<'a> {
    Stderr(io::Stderr),
    File(&'a Mutex<File>),
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stderr(stderr) => write(stderr.lock(), bytes),
            Self::File(file) => write(&*file.lock().unwrap_or_else(PoisonError::into_inner), bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        match self {
            Self::Stderr => Line::Stderr(io::stderr()),
            Self::File(file) => Line::File(file),
        }
    }
}
