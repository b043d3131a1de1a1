//! Sizes: files, functions, parameters; and what must not happen in production or in tests.

use super::Finding;
use super::source::Source;

/// Production lines in a file: nine of ten files stay under the first, all under the second.
const FILE_LINES: (usize, usize) = (400, 700);

/// Lines of a function, in the same sense.
const FUNCTION_LINES: (usize, usize) = (30, 70);

/// Above this, arguments belong into a struct.
const PARAMETERS: usize = 5;

/// The share of files and functions that has to meet the aim, in percent.
const SHARE: usize = 90;

/// Checks of one file.
pub fn of_file(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let path = source.path.as_str();
    if !source.text.trim_start().starts_with("//!") {
        findings.push(Finding::new("header", path, "begins without a `//!` sentence"));
    }
    let lines = source.production_lines();
    if lines > FILE_LINES.1 {
        let message = format!(
            "{lines} production lines, at most {}; split it by topic",
            FILE_LINES.1
        );
        findings.push(Finding::new("file lines", path, message));
    }
    for function in source.functions.iter().filter(|function| !function.test) {
        let subject = format!("{path}::{}", function.name);
        if function.lines > FUNCTION_LINES.1 {
            let message = format!("{} lines, at most {}", function.lines, FUNCTION_LINES.1);
            findings.push(Finding::new("function lines", subject.as_str(), message));
        }
        if function.parameters > PARAMETERS {
            let message = format!("{} parameters, at most {PARAMETERS}", function.parameters);
            findings.push(Finding::new("parameters", subject, message));
        }
    }
    findings.extend(unwraps(source));
    findings.extend(sleeps(source));
    findings
}

fn unwraps(source: &Source) -> impl Iterator<Item = Finding> {
    let calls = source.methods.iter();
    calls
        .filter(|call| !call.test && !source.test && call.name == "unwrap")
        .map(|call| {
            let message = format!("line {}: say with `expect` why it cannot fail", call.line);
            Finding::new("unwrap", source.path.as_str(), message)
        })
}

fn sleeps(source: &Source) -> impl Iterator<Item = Finding> {
    let paths = source.paths.iter();
    paths
        .filter(|path| path.test || source.test)
        .filter(|path| path.name.ends_with("::sleep") || path.name.ends_with("::sleep_ms"))
        .map(|path| {
            let message = format!("line {}: wait for an event instead", path.line);
            Finding::new("sleep", source.path.as_str(), message)
        })
}

/// Checks that only make sense for all files together.
pub fn of_tree(sources: &[Source]) -> Vec<Finding> {
    let files = sources.iter().filter(|source| !source.test);
    let files: Vec<usize> = files.map(Source::production_lines).collect();
    let functions: Vec<usize> = sources
        .iter()
        .flat_map(|source| &source.functions)
        .filter(|function| !function.test)
        .map(|function| function.lines)
        .collect();
    [
        share("files", &files, FILE_LINES.0),
        share("functions", &functions, FUNCTION_LINES.0),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn share(what: &str, sizes: &[usize], aim: usize) -> Option<Finding> {
    let good = sizes.iter().filter(|size| **size <= aim).count();
    let percent = good * 100 / sizes.len().max(1);
    (percent < SHARE).then(|| {
        let message = format!("{percent} % have at most {aim} lines, {SHARE} % have to");
        Finding::new("share", what, message)
    })
}
