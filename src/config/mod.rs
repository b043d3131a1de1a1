//! What the environment says, read once and in one place.

use std::ffi::OsString;
use std::path::PathBuf;

/// Every environment variable this program reads itself, with its meaning.
///
/// The manual page and `docs/cli.md` are generated from this list.
pub const VARIABLES: [(&str, &str); 4] = [
    (
        "CROSSDESK_LOG",
        "what is logged to standard error or the log directory, for example `info` or `crossdesk=debug`",
    ),
    ("NO_COLOR", "any value that is not empty turns colours off"),
    ("COLUMNS", "width of tables when standard output is no terminal"),
    (
        "XDG_STATE_HOME",
        "where `signal` keeps its data unless `--data` names a directory; `~/.local/state` when unset",
    ),
];

/// Values of the environment variables in [`VARIABLES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Filter for diagnostics, in the syntax of `tracing_subscriber::EnvFilter`.
    pub log_filter: Option<String>,
    /// True when `NO_COLOR` is set to anything.
    pub no_color: bool,
    /// Width in columns asked for by `COLUMNS`.
    pub columns: Option<u16>,
    /// Kind of terminal (`TERM`), which only a program drawing on it looks at.
    pub term: Option<String>,
    /// What the terminal says about true colour (`COLORTERM`).
    pub color_term: Option<String>,
    /// Directory for state of this user (`XDG_STATE_HOME`, else below `HOME`).
    pub state_home: Option<PathBuf>,
}

impl Environment {
    /// Reads the process environment.
    pub fn read() -> Self {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// Builds the values from any lookup, so that precedence can be tested without a process around it.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| {
            lookup(name)
                .and_then(|value| value.into_string().ok())
                .filter(|value| !value.is_empty())
        };
        // The XDG specification has relative paths ignored.
        let folder = |name: &str| lookup(name).map(PathBuf::from).filter(|path| path.is_absolute());
        Self {
            log_filter: text("CROSSDESK_LOG"),
            no_color: text("NO_COLOR").is_some(),
            columns: text("COLUMNS").and_then(|value| value.parse().ok()),
            term: text("TERM"),
            color_term: text("COLORTERM"),
            state_home: folder("XDG_STATE_HOME")
                .or_else(|| folder("HOME").map(|home| home.join(".local/state"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Environment {
        Environment::from_lookup(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn an_empty_no_color_does_not_count() {
        assert!(!with(&[("NO_COLOR", "")]).no_color);
        assert!(with(&[("NO_COLOR", "1")]).no_color);
    }

    #[test]
    fn a_width_that_is_no_number_is_ignored() {
        assert_eq!(with(&[("COLUMNS", "wide")]).columns, None);
        assert_eq!(with(&[("COLUMNS", "120")]).columns, Some(120));
    }

    #[test]
    fn state_is_kept_below_home_unless_a_directory_is_named() {
        let state = |pairs: &[(&str, &str)]| with(pairs).state_home;
        let home = ("HOME", "/h");
        assert_eq!(state(&[home]), Some(PathBuf::from("/h/.local/state")));
        assert_eq!(
            state(&[home, ("XDG_STATE_HOME", "/s")]),
            Some(PathBuf::from("/s"))
        );
        assert_eq!(
            state(&[home, ("XDG_STATE_HOME", "s")]),
            Some(PathBuf::from("/h/.local/state"))
        );
        assert_eq!(state(&[]), None);
    }
}
