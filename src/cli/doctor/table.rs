//! The report for people. States are words; colour only repeats them.

use crate::cli::table::{Cell, render, wrap};
use crate::cli::{Printer, Tone};

use super::report::{Bench, Candidate, Encoder, Report};

/// The whole report as text for standard output.
pub fn report(report: &Report, printer: &Printer) -> String {
    let mut page = heading(report, printer);
    page.push('\n');
    page.push_str(&candidates(&report.candidates, printer));
    page.push('\n');
    page.push_str(&surroundings(report, printer));
    if let Some(bench) = &report.bench {
        page.push('\n');
        page.push_str(&measurements(bench, printer));
    }
    page.push('\n');
    page.push_str(&conclusion(report, printer));
    page
}

fn heading(report: &Report, printer: &Printer) -> String {
    let gstreamer = report
        .gstreamer_version
        .as_deref()
        .map_or("no GStreamer".to_owned(), |version| {
            format!("GStreamer {version}")
        });
    let mut parts = vec![report.system.as_str(), gstreamer.as_str()];
    if !report.distribution.is_empty() {
        parts.insert(0, &report.distribution);
    }
    let title = printer.paint(Tone::Strong, &format!("CrossDesk {}", report.version));
    format!("{title} on {}\n", parts.join(", "))
}

fn candidates(candidates: &[Candidate], printer: &Printer) -> String {
    let head = [
        "decoder",
        "kind",
        "state",
        "held",
        "1080p",
        "4K",
        "memory",
        "first fix",
    ];
    let mut rows = vec![head.map(|text| Cell::toned(Tone::Strong, text))];
    rows.extend(candidates.iter().map(row));
    render(&rows, printer)
}

fn row(candidate: &Candidate) -> [Cell; 8] {
    let tone = match candidate.verdict {
        "proven" => Tone::Good,
        "too slow" => Tone::Care,
        "missing" => Tone::Quiet,
        _ => Tone::Bad,
    };
    let number = candidate
        .frames_held
        .map(|held| held.to_string())
        .unwrap_or_default();
    let note = match (&candidate.reason, &candidate.fix) {
        (Some(reason), Some(fix)) if candidate.installed => format!("{fix} ({reason})"),
        (_, Some(fix)) => fix.clone(),
        (Some(reason), None) if candidate.verdict != "proven" => reason.clone(),
        _ => String::new(),
    };
    [
        Cell::plain(candidate.name.as_str()),
        Cell::plain(if candidate.hardware {
            "hardware"
        } else {
            "software"
        }),
        Cell::toned(tone, candidate.verdict),
        Cell::plain(number),
        Cell::plain(milliseconds(candidate.ms_per_frame_1080p)),
        Cell::plain(milliseconds(candidate.ms_per_frame_4k)),
        Cell::plain(candidate.memory.as_deref().unwrap_or_default()),
        Cell::plain(note),
    ]
}

fn milliseconds(value: Option<f64>) -> String {
    value.map(|ms| format!("{ms:.1} ms")).unwrap_or_default()
}

fn surroundings(report: &Report, printer: &Printer) -> String {
    let loopback = match &report.loopback.reason {
        None => "listening on 127.0.0.1 works".to_owned(),
        Some(reason) => format!("listening on 127.0.0.1 fails: {reason}"),
    };
    let rows = [
        ["encoders".to_owned(), encoders(&report.encoders)],
        ["display server".to_owned(), report.display_server.to_string()],
        ["credential store".to_owned(), report.credential_store.to_string()],
        ["loopback".to_owned(), loopback],
    ];
    render(&rows.map(|row| row.map(Cell::plain)), printer)
}

fn encoders(encoders: &[Encoder]) -> String {
    let installed: Vec<&str> = encoders
        .iter()
        .filter(|encoder| encoder.installed)
        .map(|encoder| encoder.name.as_str())
        .collect();
    if installed.is_empty() {
        "none; needed only for the generated desktop (`test:`)".to_owned()
    } else {
        installed.join(", ")
    }
}

fn measurements(bench: &Bench, printer: &Printer) -> String {
    let head = ["decoder", "pictures", "per picture", bench.file.as_str()];
    let mut rows = vec![head.map(|text| Cell::toned(Tone::Strong, text))];
    rows.extend(bench.decoders.iter().map(|row| {
        [
            Cell::plain(row.name.as_str()),
            Cell::plain(row.pictures.to_string()),
            Cell::plain(
                row.ms_per_frame
                    .map(|ms| format!("{ms:.2} ms"))
                    .unwrap_or_default(),
            ),
            Cell::plain(row.reason.as_deref().unwrap_or_default()),
        ]
    }));
    render(&rows, printer)
}

fn conclusion(report: &Report, printer: &Printer) -> String {
    let (tone, verdict) = if report.remote_viewing {
        (Tone::Good, "Remote viewing works")
    } else {
        (Tone::Bad, "Remote viewing does not work")
    };
    let sentence = format!("{verdict}: {}", report.remote_viewing_reason);
    let lines = wrap(&sentence, printer.width());
    let text = lines.join("\n");
    format!("{}\n", text.replacen(verdict, &printer.paint(tone, verdict), 1))
}
