//! The command line; everything it does lives in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    crossdesk::cli::main()
}
