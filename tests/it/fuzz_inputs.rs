//! Inputs that once mattered, through the oracle they mattered to (`tests/golden/fuzz/<oracle>/<input>`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crossdesk_core::testing::oracles::ALL;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/fuzz")
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("entry").file_name().into_string().expect("name"))
        .collect()
}

#[test]
fn every_kept_input_keeps_its_promise() {
    for (name, oracle) in ALL {
        let inputs = names_in(&folder().join(name));
        assert!(!inputs.is_empty(), "{name} has no input");
        for input in inputs {
            oracle(&std::fs::read(folder().join(name).join(&input)).expect(&input));
        }
    }
}

#[test]
fn every_folder_and_every_fuzz_target_belongs_to_an_oracle() {
    let oracles: BTreeSet<_> = ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names_in(&folder()), oracles);
    let targets = folder().join("../../fuzz/targets");
    let expected: BTreeSet<_> = oracles.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names_in(&targets), expected);
}
