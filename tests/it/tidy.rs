//! The tree stays a place worth living in: budgets, who may know whom, words, and examples that still parse.
//!
//! A finding is silenced by a row in [`EXCEPTIONS`] with a reason; a row that silences nothing is a finding too.

mod budgets;
mod examples;
mod rooms;
mod source;
mod words;

use source::Source;

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which check found it.
    pub check: &'static str,
    /// What it is about: a path, or a path and a function.
    pub subject: String,
    /// What is wrong, for people.
    pub message: String,
}

impl Finding {
    fn new(check: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            check,
            subject: subject.into(),
            message: message.into(),
        }
    }
}

/// A finding that is accepted: check, subject, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[(
    "parameters",
    "src/transport/signaling/trust.rs::verify_server_cert",
    "the signature is rustls's",
)];

fn all_findings() -> Vec<Finding> {
    let sources = source::workspace();
    let mut findings = Vec::new();
    for source in &sources {
        findings.extend(budgets::of_file(source));
        findings.extend(rooms::of_file(source));
    }
    findings.extend(budgets::of_tree(&sources));
    findings.extend(rooms::of_manifests());
    findings.extend(rooms::unexplained());
    findings.extend(words::of_tree());
    findings
}

#[test]
fn the_tree_is_tidy() {
    let findings = all_findings();
    let accepted =
        |finding: &Finding, row: &(&str, &str, &str)| finding.check == row.0 && finding.subject == row.1;
    let mut report: Vec<String> = findings
        .iter()
        .filter(|finding| !EXCEPTIONS.iter().any(|row| accepted(finding, row)))
        .map(|finding| format!("{}: {}: {}", finding.check, finding.subject, finding.message))
        .collect();
    report.extend(
        EXCEPTIONS
            .iter()
            .filter(|row| !findings.iter().any(|finding| accepted(finding, row)))
            .map(|row| {
                format!(
                    "exceptions: {}: {}: no longer needed, remove the row",
                    row.0, row.1
                )
            }),
    );
    assert!(
        report.is_empty(),
        "{} findings:\n{}",
        report.len(),
        report.join("\n")
    );
}

#[test]
fn examples_in_documents_and_help_still_parse() {
    let wrong = examples::wrong();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A source made of text, for tests of the checks themselves.
fn made_up(path: &str, text: &str) -> Source {
    Source::parse(path.to_owned(), text.to_owned(), false)
}

#[test]
fn the_checks_find_what_they_are_for() {
    let text = "//! A header.\n\
        use tokio::net::TcpStream;\n\
        fn f(a: u8, b: u8, c: u8, d: u8, e: u8, g: u8) { println!(\"x\"); Some(a).unwrap(); }\n\
        #[cfg(test)]\nmod tests {\n fn g() { Some(1).unwrap(); std::thread::sleep(x); }\n}\n";
    let source = made_up("src/core/src/x.rs", text);
    let mut found: Vec<&str> = budgets::of_file(&source)
        .iter()
        .map(|finding| finding.check)
        .collect();
    found.extend(rooms::of_file(&source).iter().map(|finding| finding.check));
    found.sort_unstable();
    assert_eq!(found, ["parameters", "print", "rooms", "sleep", "unwrap"]);
    let bare = made_up("src/x.rs", "fn f() {}\n");
    assert_eq!(budgets::of_file(&bare)[0].check, "header");
}

#[test]
fn tests_do_not_count_as_production_lines() {
    let text = "//! A header.\nfn f() {}\n#[cfg(test)]\nmod tests {\n fn g() {}\n}\n";
    assert_eq!(made_up("src/x.rs", text).production_lines(), 2);
}
