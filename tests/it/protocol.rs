//! `docs/protocol.md` says what the program does: its tables, its examples, its transcript.

use std::fmt::Write as _;

use crossdesk_core::automation::{Effect, Session, SessionConfig, parse_line};
use crossdesk_core::control::keys::KEYS;
use crossdesk_core::error::ErrorCode;
use crossdesk_core::time::Monotonic;
use expect_test::expect_file;

const PAGE: &str = include_str!("../../docs/protocol.md");

/// The page with its generated parts renewed. `UPDATE_EXPECT=1 cargo test --test it protocol::` writes them.
fn renewed() -> String {
    let page = replace_after(PAGE, "<!-- keys -->\n", &keys());
    replace_after(&page, "<!-- errors -->\n", &errors())
}

/// Replaces everything from `mark` to the next heading, or to the end.
fn replace_after(page: &str, mark: &str, text: &str) -> String {
    let at = page.find(mark).expect("the page has the mark") + mark.len();
    let rest = &page[at..];
    let end = rest.find("\n## ").map_or(rest.len(), |heading| heading + 1);
    let gap = if end == rest.len() { "" } else { "\n" };
    format!("{}\n{text}{gap}{}", &page[..at], &rest[end..])
}

fn keys() -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for (name, _) in KEYS {
        if line.len() + name.len() > 110 {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line.clear();
        }
        write!(line, "`{name}` ").expect("writing to a string");
    }
    lines.push_str(line.trim_end());
    lines.push('\n');
    lines
}

fn errors() -> String {
    let mut table = String::from(
        "| Code | Who acts | Cause | Retryable | Side effect possible |\n|---|---|---|---|---|\n",
    );
    let yes = |is: bool| if is { "yes" } else { "no" };
    for code in ErrorCode::ALL {
        writeln!(
            table,
            "| `{code}` | {} | {} | {} | {} |",
            code.actor().as_str(),
            code.cause(),
            yes(code.retryable()),
            yes(code.side_effect_possible())
        )
        .expect("writing to a string");
    }
    table
}

/// Lines of the fenced blocks whose opening is exactly `fence`.
fn blocks(fence: &str) -> Vec<Vec<&'static str>> {
    let mut blocks = Vec::new();
    let mut open: Option<(bool, Vec<&str>)> = None;
    for line in PAGE.lines() {
        match (&mut open, line.starts_with("```")) {
            (None, true) => open = Some((line == fence, Vec::new())),
            (Some(_), true) => {
                if let Some((true, lines)) = open.take() {
                    blocks.push(lines);
                }
            }
            (Some((_, lines)), false) => lines.push(line),
            (None, false) => {}
        }
    }
    assert!(!blocks.is_empty(), "no block {fence}");
    blocks
}

#[test]
fn the_page_is_current() {
    expect_file!["../../docs/protocol.md"].assert_eq(&renewed());
}

#[test]
fn every_example_request_is_accepted() {
    for line in blocks("```json").concat() {
        assert!(parse_line(line.as_bytes()).is_ok(), "{line}");
    }
}

#[test]
fn the_transcript_is_what_happens() {
    for block in blocks("```json replay") {
        let mut session = Session::new(SessionConfig {
            video_ws: false,
            direct_source: true,
        });
        let mut lines = block.iter();
        while let Some(request) = lines.next() {
            session.handle_line(Monotonic::ZERO, request.as_bytes());
            let replies: Vec<String> = std::iter::from_fn(|| session.poll_effect())
                .filter_map(|effect| match effect {
                    Effect::Reply(line) => Some(String::from_utf8(line.to_vec()).expect("UTF-8")),
                    _ => None,
                })
                .collect();
            let shown = lines.next().expect("a reply after each request");
            assert_eq!(replies, [format!("{shown}\n")]);
        }
    }
}
