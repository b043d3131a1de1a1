//! Examples people copy: command lines and protocol requests in documents and help texts.

use super::source::{files, read};

/// Every example that does not parse, with where it stands.
pub fn wrong() -> Vec<String> {
    let mut wrong = Vec::new();
    let mut texts: Vec<(String, String)> = files(&[".md"])
        .into_iter()
        .map(|path| (path.clone(), read(&path)))
        .collect();
    texts.push(("help".to_owned(), crossdesk::cli::reference()));
    for (place, text) in &texts {
        for line in text.lines().map(str::trim) {
            wrong.extend(command_line(line).map(|why| format!("{place}: {line}: {why}")));
            wrong.extend(request(line).map(|why| format!("{place}: {line}: {why}")));
        }
    }
    wrong
}

/// Why an example command line is wrong; `None` when it is right or no command line.
fn command_line(line: &str) -> Option<String> {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let line = line.strip_prefix("target/release/").unwrap_or(line);
    if !line.starts_with("crossdesk-cli ") {
        return None;
    }
    let words = words(line);
    // A usage line describes, it is no example.
    if words
        .iter()
        .any(|word| word.starts_with(['[', '<']) || word.contains('…') && !word.contains("//"))
    {
        return None;
    }
    if words.iter().any(|word| word == "COMMAND") {
        return None;
    }
    use clap::error::ErrorKind;
    match crossdesk::cli::command().try_get_matches_from(words) {
        Ok(_) => None,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// The words a shell would pass on: quotes are resolved, redirections, pipes and remarks end the command.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '|' | '>' | '<' | '#' | '&' | ';') => break,
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    // `3< file` and `2> file`: the number belongs to the redirection.
    let redirected = line.contains(['<', '>']);
    if redirected && words.last().is_some_and(|word| word.parse::<u8>().is_ok()) {
        words.pop();
    }
    // Columns of explanation beside a command are separated by several spaces.
    match line.split_once("   ") {
        Some((command, _)) if !command.contains('\'') => {
            command.split_whitespace().map(str::to_owned).collect()
        }
        _ => words,
    }
}

/// Why an example request is wrong; `None` when it is right or no request.
fn request(line: &str) -> Option<String> {
    let is_request = line.starts_with("{\"id\":") && line.contains("\"method\"");
    if !is_request {
        return None;
    }
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(line);
    parsed.err().map(|error| error.to_string())
}

#[test]
fn words_are_split_as_a_shell_would() {
    assert_eq!(words("a --b 'c d' \"e\" | f"), ["a", "--b", "c d", "e"]);
    assert_eq!(words("a 3< file"), ["a"]);
    assert_eq!(words("a   # what it does"), ["a"]);
}
