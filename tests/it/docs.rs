//! Documents that are generated from the program stay current.

use expect_test::expect_file;

/// Renew with `UPDATE_EXPECT=1 cargo test --test it docs::` or `make docs`.
#[test]
fn the_command_line_page_is_current() {
    expect_file!["../../docs/cli.md"].assert_eq(&crossdesk::cli::reference());
}

/// Links between documents lead somewhere; web addresses are not followed.
#[test]
fn links_lead_to_files_that_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["", "docs", "docs/decisions"];
    let pages = folders.iter().flat_map(|folder| {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder of this project");
        entries.map(|entry| entry.expect("a readable folder").path())
    });
    for page in pages.filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let text = std::fs::read_to_string(&page).expect("a document");
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#']).next());
        for target in targets.filter(|target| !target.is_empty() && !target.contains("://")) {
            let file = page.with_file_name(target);
            assert!(file.exists(), "{}: no file {target}", page.display());
        }
    }
}

/// A decision nobody can find is made again.
#[test]
fn every_decision_is_listed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/decisions");
    let index = std::fs::read_to_string(folder.join("README.md")).expect("the index");
    for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
        let name = entry.file_name().into_string().expect("UTF-8 file names");
        assert!(
            name == "README.md" || index.contains(&format!("]({name})")),
            "{name} is not in README.md"
        );
    }
}
