//! Which distribution this is, from `os-release(5)`.

use crate::facts::Family;

use super::System;

/// The distribution's name for people, and the family its package names come from.
pub fn read(system: &System) -> (String, Family) {
    // os-release(5): /etc has precedence, /usr/lib is the vendor's copy.
    let text = ["/etc/os-release", "/usr/lib/os-release"]
        .into_iter()
        .find_map(|path| system.text(path))
        .unwrap_or_default();
    let name = value(&text, "PRETTY_NAME").or_else(|| value(&text, "NAME"));
    let ids = [value(&text, "ID"), value(&text, "ID_LIKE")];
    let family = ids
        .into_iter()
        .flatten()
        .flat_map(|list| list.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>())
        .find_map(|id| family(&id))
        .unwrap_or(Family::Other);
    (name.unwrap_or_default(), family)
}

fn family(id: &str) -> Option<Family> {
    Some(match id {
        "debian" | "ubuntu" => Family::Debian,
        "fedora" | "rhel" | "centos" => Family::Fedora,
        "arch" => Family::Arch,
        "suse" | "opensuse" => Family::Suse,
        "alpine" => Family::Alpine,
        _ if id.starts_with("opensuse") => Family::Suse,
        _ => return None,
    })
}

/// The value of one `KEY=value` line, without its quotes.
fn value(text: &str, key: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.trim().split_once('='))
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value.trim_matches(['"', '\'']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Tree;
    use super::*;

    fn of(text: &str) -> (String, Family) {
        read(&Tree::new().file("/etc/os-release", text).system())
    }

    #[test]
    fn debian_is_known_by_its_id() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n";
        let expected = ("Debian GNU/Linux 12 (bookworm)".to_owned(), Family::Debian);
        assert_eq!(of(text), expected);
    }

    #[test]
    fn a_derivative_is_known_by_what_it_is_like() {
        assert_eq!(of("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n").1, Family::Debian);
        assert_eq!(
            of("ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"").1,
            Family::Suse
        );
        assert_eq!(of("ID=rocky\nID_LIKE='rhel centos fedora'\n").1, Family::Fedora);
    }

    #[test]
    fn an_unknown_or_missing_file_is_some_other_system() {
        assert_eq!(of("ID=plan9\nNAME=Plan9").1, Family::Other);
        assert_eq!(read(&Tree::new().system()), (String::new(), Family::Other));
    }
}
