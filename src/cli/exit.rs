//! Exit codes: one enum, sorted by who has to act.

use std::process::ExitCode;

/// How a subcommand ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It did what was asked.
    Success = 0,
    /// It could not be done, for a reason printed on standard error.
    Failed = 1,
    /// The arguments make no sense; clap uses the same number.
    Usage = 2,
    /// This machine lacks something, and `doctor` names it.
    Machine = 3,
}

impl Exit {
    /// Every code with its meaning, for help, manual page and `docs/cli.md`.
    pub const TABLE: [(Self, &'static str); 4] = [
        (Self::Success, "it did what was asked"),
        (
            Self::Failed,
            "it could not be done; the reason is on standard error",
        ),
        (Self::Usage, "the arguments make no sense"),
        (
            Self::Machine,
            "this machine lacks something remote viewing needs; `doctor` names it",
        ),
    ];

    /// The number the process ends with.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_each_code_once_in_order() {
        let codes: Vec<u8> = Exit::TABLE.iter().map(|(exit, _)| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3]);
    }
}
