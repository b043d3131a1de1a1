//! Where diagnostics go: a file the caller names, else standard error. Never stdout.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

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
            // A closed stderr leaves nobody to tell.
            let _ = io::stderr().write_all(text.as_bytes());
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
    OpenOptions::new().create(true).append(true).open(path)
}

enum Sink {
    Stderr,
    File(Mutex<File>),
}

/// One log line on its way; a full disk loses the line and nothing else.
enum Line<'a> {
    Stderr(io::Stderr),
    File(&'a Mutex<File>),
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A log that cannot be written must never become an error somebody reports by logging.
        let _ = match self {
            Self::Stderr(stderr) => stderr.write_all(bytes),
            Self::File(file) => file
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .write_all(bytes),
        };
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
