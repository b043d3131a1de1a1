//! Documents that are generated from the program stay current.

use expect_test::expect_file;

/// Renew with `UPDATE_EXPECT=1 cargo test --test it docs::` or `make docs`.
#[test]
fn the_command_line_page_is_current() {
    expect_file!["../../docs/cli.md"].assert_eq(&crossdesk::cli::reference());
}
