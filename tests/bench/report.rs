//! Rows and how they are told: a table for people, one JSON object for programs.

use std::io::{self, Write as _};

use serde_json::{Value, json};

use crate::stats::Spread;

/// What a row must keep.
#[derive(Clone, Copy, Debug)]
pub enum Bar {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
}

impl Bar {
    const fn limit(self) -> f64 {
        match self {
            Self::AtMost(limit) | Self::Below(limit) | Self::AtLeast(limit) => limit,
        }
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::AtMost(_) => "<=",
            Self::Below(_) => "<",
            Self::AtLeast(_) => ">=",
        }
    }

    fn holds(self, figure: f64) -> bool {
        match self {
            Self::AtMost(limit) => figure <= limit,
            Self::Below(limit) => figure < limit,
            Self::AtLeast(limit) => figure >= limit,
        }
    }
}

/// A row of the table before it is measured.
#[derive(Debug)]
pub struct Spec {
    pub name: &'static str,
    /// `x` for ratios, else what is counted: `ms`, `MB`, `pictures` and so on.
    pub unit: &'static str,
    pub bar: Bar,
}

/// A row measured.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its median is the figure.
    pub spread: Spread,
    /// The absolute numbers behind it.
    pub note: String,
}

impl Figure {
    pub fn new(samples: &[f64], note: impl Into<String>) -> Self {
        Self {
            spread: Spread::of(samples),
            note: note.into(),
        }
    }
}

/// A row, measured or not.
pub struct Outcome {
    pub spec: &'static Spec,
    pub result: Result<Figure, String>,
}

impl Outcome {
    fn pass(&self) -> bool {
        let holds = |figure: &Figure| self.spec.bar.holds(figure.spread.median);
        self.result.as_ref().is_ok_and(holds)
    }

    fn to_json(&self) -> Value {
        let Spec { name, unit, bar } = self.spec;
        let mut row = json!({
            "name": name, "figure": null, "unit": unit, "bar": bar.limit(), "compare": bar.sign(),
            "pass": self.pass(),
        });
        match &self.result {
            Ok(Figure { spread, note }) => {
                row["figure"] = json!(rounded(spread.median));
                row["min"] = json!(rounded(spread.min));
                row["median"] = json!(rounded(spread.median));
                row["max"] = json!(rounded(spread.max));
                row["rounds"] = json!(spread.rounds);
                row["note"] = json!(note);
            }
            Err(reason) => row["error"] = json!(reason),
        }
        row
    }

    fn cells(&self) -> [String; 7] {
        let Spec { name, unit, bar } = self.spec;
        let limit = format!("{} {} {unit}", bar.sign(), bar.limit());
        let verdict = if self.pass() { "pass" } else { "FAIL" }.to_owned();
        let number = |value: f64| format!("{value:.3}");
        match &self.result {
            Ok(Figure { spread, note }) => [
                (*name).to_owned(),
                number(spread.median),
                limit,
                verdict,
                number(spread.min),
                number(spread.max),
                note.clone(),
            ],
            Err(reason) => {
                let none = || "-".to_owned();
                [
                    (*name).to_owned(),
                    none(),
                    limit,
                    verdict,
                    none(),
                    none(),
                    reason.clone(),
                ]
            }
        }
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Standard output carries one object and nothing else.
pub fn print_json(outcomes: &[Outcome]) -> io::Result<()> {
    let rows: Vec<Value> = outcomes.iter().map(Outcome::to_json).collect();
    writeln!(io::stdout(), "{}", json!({ "rows": rows }))
}

const HEADER: [&str; 7] = ["row", "figure", "bar", "", "min", "max", "behind it"];

/// A table that is also Markdown.
pub fn print_table(outcomes: &[Outcome]) -> io::Result<()> {
    let mut lines = vec![HEADER.map(str::to_owned)];
    lines.extend(outcomes.iter().map(Outcome::cells));
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEADER.len()).map(width).collect();
    let mut out = io::stdout().lock();
    for (index, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
        if index == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            writeln!(out, "| {} |", rules.join(" | "))?;
        }
    }
    Ok(())
}

/// Says on standard error what is going on.
pub fn progress(text: &str) {
    // Nobody to tell when standard error is closed.
    let _ = writeln!(io::stderr(), "bench: {text}");
}
