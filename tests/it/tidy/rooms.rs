//! Who may know whom: `docs/architecture.md` as a table that fails.

use super::Finding;
use super::source::{Mention, Source, files, read};

/// Code under the first path must not name anything under the second, for the reason given.
const BANNED: &[(&str, &str, &str)] = &[
    ("src/core/", "tokio", "core has no runtime"),
    ("src/core/", "gst", "core has no GStreamer"),
    ("src/core/", "crossdesk_pipelines", "core knows nothing above it"),
    ("src/core/", "crossdesk_platform", "core knows nothing above it"),
    ("src/core/", "std::fs", "core has no I/O"),
    ("src/core/", "std::net::TcpStream", "core has no I/O"),
    ("src/core/", "std::net::TcpListener", "core has no I/O"),
    ("src/core/", "std::net::UdpSocket", "core has no I/O"),
    ("src/core/", "std::net::ToSocketAddrs", "core has no I/O"),
    ("src/core/", "std::thread", "core has no threads"),
    ("src/core/", "std::env", "core has no environment"),
    ("src/core/", "std::time::Instant", "time is a parameter in core"),
    (
        "src/core/",
        "std::time::SystemTime",
        "time is a parameter in core",
    ),
    ("pipelines/", "tokio", "streaming threads need no runtime"),
    (
        "pipelines/",
        "crossdesk_platform",
        "pipelines and platform never meet",
    ),
    ("platform/", "tokio", "tokio appears in the root package only"),
    (
        "platform/",
        "crossdesk_pipelines",
        "pipelines and platform never meet",
    ),
    (
        "src/config/",
        "crate::",
        "configuration is data for everybody else",
    ),
    (
        "src/terminal/",
        "crate::agent",
        "drawing knows pictures, not sessions",
    ),
    (
        "src/terminal/",
        "crate::cli",
        "drawing knows pictures, not sessions",
    ),
    (
        "src/terminal/",
        "crate::transport",
        "drawing knows pictures, not sessions",
    ),
    (
        "src/terminal/",
        "crate::video",
        "drawing knows pictures, not sessions",
    ),
    (
        "src/video/",
        "crate::agent",
        "the listener serves whoever starts it",
    ),
    (
        "src/video/",
        "crate::cli",
        "the listener serves whoever starts it",
    ),
    ("src/video/", "crate::transport", "viewers and sources never meet"),
    (
        "src/transport/",
        "crate::agent",
        "nothing below the seam knows what is above",
    ),
    (
        "src/transport/",
        "crate::cli",
        "nothing below the seam knows what is above",
    ),
    ("src/transport/", "crate::video", "viewers and sources never meet"),
    (
        "src/signal/",
        "crate::",
        "the signaling server needs nothing of its neighbours",
    ),
    (
        "src/agent/",
        "crate::cli",
        "the agent is started by the command line, not the reverse",
    ),
];

/// Crates whose types are GStreamer's.
const GSTREAMER: [&str; 5] = ["gst", "gst_app", "gst_video", "gst_base", "glib"];

/// The only folder that may use them outside tests.
const GSTREAMER_ROOM: &str = "pipelines/src/gst/";

/// The file that prints; macros are not even used there.
const PRINT_MACROS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];

/// Files that may hold the process's own output streams, with what for.
const STREAMS: &[(&str, &str)] = &[
    ("src/cli/printer.rs", "the Printer"),
    ("src/terminal/", "draws on the terminal"),
    (
        "platform/src/stdio.rs",
        "moves the protocol's output away from libraries",
    ),
    (
        "src/log.rs",
        "logs to standard error; an agent's protocol output was moved by platform::stdio",
    ),
];

/// The one file that reads the clock.
const CLOCK: &str = "pipelines/src/clock.rs";

/// Channels without a bound.
const UNBOUNDED: [&str; 3] = [
    "std::sync::mpsc::channel",
    "mpsc::channel",
    "mpsc::unbounded_channel",
];

/// Checks of one file.
pub fn of_file(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in source.paths.iter().filter(|path| !path.test && !source.test) {
        findings.extend(banned(source, path));
        findings.extend(gstreamer(source, path));
        findings.extend(streams(source, path));
        findings.extend(clock(source, path));
        findings.extend(unbounded(source, path));
    }
    let macros = source.macros.iter().filter(|mac| !mac.test && !source.test);
    findings.extend(
        macros
            .filter(|mac| PRINT_MACROS.contains(&mac.name.as_str()))
            .map(|mac| finding("print", source, mac, "print through cli::Printer")),
    );
    findings
}

fn finding(check: &'static str, source: &Source, at: &Mention, why: &str) -> Finding {
    let message = format!("line {} mentions {}: {why}", at.line, at.name);
    Finding::new(check, source.path.as_str(), message)
}

/// True when `name` is `prefix` or lies under it.
fn under(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix.trim_end_matches("::"))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn banned<'a>(source: &'a Source, path: &'a Mention) -> impl Iterator<Item = Finding> + 'a {
    BANNED
        .iter()
        .filter(|(room, name, _)| source.path.starts_with(room) && under(&path.name, name))
        .map(|(_, _, why)| finding("rooms", source, path, why))
}

fn gstreamer(source: &Source, path: &Mention) -> Option<Finding> {
    let first = path.name.split("::").next()?;
    // `crate::gst` is a folder of ours; only the crates themselves count.
    let theirs = GSTREAMER.contains(&first) && path.name.contains("::");
    (theirs && !source.path.starts_with(GSTREAMER_ROOM) && !source.path.starts_with("src/core/")).then(|| {
        finding(
            "gstreamer",
            source,
            path,
            "GStreamer types exist in pipelines/src/gst only",
        )
    })
}

fn streams(source: &Source, path: &Mention) -> Option<Finding> {
    let stream = ["io::stdout", "io::stderr"]
        .iter()
        .any(|name| path.name.ends_with(name));
    let allowed = STREAMS.iter().any(|(place, _)| source.path.starts_with(place));
    (stream && !allowed).then(|| finding("streams", source, path, "output goes through cli::Printer"))
}

fn clock(source: &Source, path: &Mention) -> Option<Finding> {
    // tokio's clock drives its own timers on the listener's thread; nothing else sees its instants.
    let tokio = source.path.starts_with("src/")
        && source
            .paths
            .iter()
            .any(|path| path.name == "tokio::time::Instant");
    if tokio && path.name == "Instant::now" {
        return None;
    }
    let reads = ["Instant::now", "SystemTime::now"]
        .iter()
        .any(|name| path.name.ends_with(name));
    (reads && source.path != CLOCK).then(|| finding("clock", source, path, "only pipelines::clock reads it"))
}

fn unbounded(source: &Source, path: &Mention) -> Option<Finding> {
    // tokio's channel of the same name has a bound.
    let tokio = source.paths.iter().any(|path| path.name == "tokio::sync::mpsc");
    let bounded = tokio && path.name == "mpsc::channel";
    (UNBOUNDED.contains(&path.name.as_str()) && !bounded).then(|| {
        let why = "every channel has a bound, see docs/invariants.md";
        finding("unbounded", source, path, why)
    })
}

/// Dependencies that a crate must not have, as its manifest says.
pub fn of_manifests() -> Vec<Finding> {
    const BANNED: &[(&str, &str)] = &[
        ("src/core/Cargo.toml", "tokio"),
        ("src/core/Cargo.toml", "gst"),
        ("src/core/Cargo.toml", "rustix"),
        ("pipelines/Cargo.toml", "tokio"),
        ("pipelines/Cargo.toml", "crossdesk-platform"),
        ("platform/Cargo.toml", "tokio"),
        ("platform/Cargo.toml", "gst"),
        ("platform/Cargo.toml", "crossdesk-pipelines"),
    ];
    let manifests = files(&["Cargo.toml"]);
    let mut findings = Vec::new();
    for manifest in manifests {
        let text = read(&manifest);
        let dependencies = tables(&text, &["[dependencies]"]);
        for (_, name) in BANNED.iter().filter(|(path, _)| *path == manifest) {
            if dependencies.contains(name) {
                findings.push(Finding::new(
                    "manifest",
                    manifest.as_str(),
                    format!("depends on {name}"),
                ));
            }
        }
    }
    findings
}

/// Crates that `docs/decisions/dependencies.md` does not give a reason for.
pub fn unexplained() -> Vec<Finding> {
    let page = read("docs/decisions/dependencies.md");
    let mut findings = Vec::new();
    for manifest in files(&["Cargo.toml"]) {
        let text = read(&manifest);
        for name in tables(&text, &["[dependencies]", "[dev-dependencies]"]) {
            if !name.starts_with("crossdesk") && !page.contains(&format!("`{name}`")) {
                let message = format!("{name} has no line in docs/decisions/dependencies.md");
                findings.push(Finding::new("dependency", manifest.as_str(), message));
            }
        }
    }
    findings
}

/// Names in the given tables of a manifest.
fn tables<'a>(text: &'a str, wanted: &[&str]) -> Vec<&'a str> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            inside = wanted.contains(&line);
        } else if inside && let Some(name) = line.split(['.', ' ', '=']).next() {
            names.extend((!name.is_empty() && !name.starts_with('#')).then_some(name));
        }
    }
    names
}
