//! What speed costs: every row is measured as interleaved pairs in one run, and told beside its bar.
//!
//! `cargo bench --bench bench -- [--json] [--only TEXT] [--quick]`, or `make bench`. `docs/performance.md` explains
//! the rows.

mod agent;
mod clips;
mod cpu;
mod paths;
mod report;
mod rows;
mod signal_client;
mod stats;
mod viewer;
mod worker;

use std::process::ExitCode;

use anyhow::{Context as _, bail};

use report::Outcome;

/// How the measurement was asked for.
pub struct Options {
    json: bool,
    only: Option<String>,
    /// Fewer and shorter rounds: shows that everything can be measured, not more.
    pub quick: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut options = Self {
            json: false,
            only: None,
            quick: false,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--json" => options.json = true,
                "--quick" => options.quick = true,
                "--only" => options.only = Some(rest.next().context("--only needs a text")?.clone()),
                // Cargo's own.
                "--bench" => {}
                other => bail!("unknown argument {other}; known are --json, --only TEXT, --quick"),
            }
        }
        Ok(options)
    }

    /// How often a pair is measured.
    pub fn rounds(&self) -> usize {
        if self.quick { 3 } else { 5 }
    }

    fn wants(&self, work: &rows::Work) -> bool {
        let named = |text: &String| work.specs.iter().any(|spec| spec.name.contains(text.as_str()));
        self.only.as_ref().is_none_or(named)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((first, rest)) if first == "--worker" => worker::run(rest).map(|()| ExitCode::SUCCESS),
        // Test runners start every target to ask what it holds; only `cargo bench` says `--bench`.
        _ if !arguments.iter().any(|argument| argument == "--bench") => return ExitCode::SUCCESS,
        _ => Options::parse(&arguments).and_then(|options| measure(&options)),
    };
    result.unwrap_or_else(|error| {
        report::progress(&format!("{error:#}"));
        ExitCode::FAILURE
    })
}

fn measure(options: &Options) -> anyhow::Result<ExitCode> {
    let mut outcomes = Vec::new();
    for work in rows::ALL.iter().filter(|work| options.wants(work)) {
        for spec in work.specs {
            report::progress(&format!("measuring {}", spec.name));
        }
        outcomes.extend(outcomes_of(work, options));
    }
    if outcomes.is_empty() {
        bail!("no row has that in its name");
    }
    if options.json {
        report::print_json(&outcomes)?;
    } else {
        report::print_table(&outcomes)?;
    }
    let all = outcomes.iter().all(|outcome| outcome.result.is_ok());
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One outcome per row: a work that fails, or forgets a row, shows in the table instead of vanishing from it.
fn outcomes_of(work: &'static rows::Work, options: &Options) -> Vec<Outcome> {
    let measured = (work.run)(options).map_err(|error| format!("{error:#}"));
    let outcome = |(index, spec)| Outcome {
        spec,
        result: match &measured {
            Ok(figures) => figures
                .get(index)
                .cloned()
                .ok_or_else(|| "not measured".to_owned()),
            Err(reason) => Err(reason.clone()),
        },
    };
    work.specs.iter().enumerate().map(outcome).collect()
}
