//! What no file of this project may say.

use super::Finding;
use super::source::{files, read};

/// Kinds of files that are text written here.
const TEXT: [&str; 12] = [
    ".rs", ".md", ".toml", ".sh", ".js", ".mjs", ".html", ".json", ".tsv", "Makefile", "run", ".yml",
];

/// Folders at the root of somebody's own machine: a path into one works there only.
const PRIVATE_FOLDERS: [&str; 6] = ["work", "home", "root", "Users", "mnt", "workspace"];

/// Words that mean something only to whoever wrote the requirements, with what a reader outside understands.
const INSIDERS: [(&str, &str); 2] = [
    ("contract", "protocol"),
    ("supervisor", "the program that started it"),
];

/// Checks of every text file.
pub fn of_tree() -> Vec<Finding> {
    let paths = files(&TEXT)
        .into_iter()
        .filter(|path| !path.ends_with("package-lock.json"));
    paths.flat_map(|path| of_text(&path, &read(&path))).collect()
}

fn of_text(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (word, better) in INSIDERS {
            if path.ends_with(".md") && line.to_lowercase().contains(word) {
                let message = format!("line {} says {word}; say {better}", number + 1);
                findings.push(Finding::new("insider's word", path, message));
            }
        }
        for folder in PRIVATE_FOLDERS {
            if mentions(line, folder) {
                let message = format!("line {} has a path into /{folder}", number + 1);
                findings.push(Finding::new("private path", path, message));
            }
        }
    }
    findings
}

/// True when `line` has an absolute path into `folder`; `a/home/b` and `https://x/home/` are others.
fn mentions(line: &str, folder: &str) -> bool {
    let needle = format!("/{folder}/");
    line.match_indices(&needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"/._-~$}".contains(c))
    })
}

#[test]
fn documents_speak_to_readers_outside() {
    let found = |path, text| of_text(path, text).len();
    assert_eq!(found("docs/x.md", "as the Contract says"), 1);
    assert_eq!(found("src/x.rs", "the safety contract"), 0);
}

#[test]
fn only_absolute_paths_count() {
    assert!(mentions("see `/wrk/x`", "wrk"));
    assert!(mentions("/wrk/x", "wrk"));
    assert!(!mentions("src/wrk/x and https://host/wrk/x", "wrk"));
}
