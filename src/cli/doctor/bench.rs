//! `--bench FILE`: the person's own recording through every decoder that works here.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use crossdesk_core::media::AccessUnit;
use crossdesk_pipelines::gst::probe;
use crossdesk_pipelines::gst::source::{Source, SourceEvent, SourceOutput};
use crossdesk_pipelines::plan::decoders;
use crossdesk_pipelines::plan::source::SourceSpec;

use super::report::{Bench, BenchRow, Report};

/// Enough pictures for a steady figure, few enough to be over in seconds: five at 60 a second.
const MOST_UNITS: usize = 300;

/// A file that yields nothing for so long is no recording.
const PATIENCE: Duration = Duration::from_secs(15);

/// Measures `file` with the decoders that `report` found usable.
pub fn measure(file: &Path, report: &Report) -> anyhow::Result<Bench> {
    let stream = stream(file)?;
    let usable = report
        .candidates
        .iter()
        .filter(|candidate| matches!(candidate.verdict, "proven" | "too slow"));
    let decoders = usable
        .filter_map(|candidate| decoders::row(&candidate.name))
        .map(|row| {
            let measured = probe::measure(row, &stream);
            BenchRow {
                name: measured.name.to_owned(),
                pictures: measured.pictures,
                ms_per_frame: measured.ms_per_frame,
                reason: measured.reason,
            }
        })
        .collect();
    Ok(Bench {
        file: file.display().to_string(),
        decoders,
    })
}

/// The first access units of a recording, as one Annex B stream.
fn stream(file: &Path) -> anyhow::Result<Vec<u8>> {
    let name = file.display();
    let spec = SourceSpec::parse(&format!("file:{name}?once")).context("--bench")?;
    let collected = Arc::new(Collected::default());
    let source = Source::start(spec, None, Arc::clone(&collected) as _);
    let end = collected.wait();
    drop(source);
    end.map_err(|reason| anyhow::anyhow!("--bench {name}: {reason}"))?;
    let stream = std::mem::take(&mut collected.lock().stream);
    anyhow::ensure!(
        !stream.is_empty(),
        "--bench {name}: there is no H.264 video in it"
    );
    Ok(stream)
}

/// What came out of the recording so far.
#[derive(Default)]
struct Collected {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stream: Vec<u8>,
    units: usize,
    end: Option<Result<(), String>>,
}

impl Collected {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until the recording ended or enough of it is here.
    fn wait(&self) -> Result<(), String> {
        let waits = |state: &mut State| state.end.is_none() && state.units < MOST_UNITS;
        let (state, _) = self
            .changed
            .wait_timeout_while(self.lock(), PATIENCE, waits)
            .unwrap_or_else(PoisonError::into_inner);
        state.end.clone().unwrap_or(Ok(()))
    }
}

impl SourceOutput for Collected {
    fn unit(&self, unit: AccessUnit) {
        self.change(|state| {
            if state.units < MOST_UNITS {
                state.stream.extend_from_slice(&unit.data);
                state.units += 1;
            }
        });
    }

    fn event(&self, event: SourceEvent) {
        let end = match event {
            SourceEvent::Opened { .. } | SourceEvent::Waiting { .. } => return,
            SourceEvent::Ended => Ok(()),
            SourceEvent::Failed(failure) => Err(failure.reason),
        };
        self.change(|state| state.end = Some(end));
    }
}
