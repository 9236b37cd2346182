//! That tools/RELEASE.md lists every file which says the version, and that they say the same one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Where the version is something else's, or what the list's own commands write.
const PASSED_OVER: [&str; 5] =
    ["docs/codes", "docs/pictures", "tools/RELEASE.md", "deploy/crds", "CHANGELOG.md"];

/// The files of a directory, and of those below it where `deep` is, that say the version.
fn that_say_it(directory: &str, deep: bool, found: &mut BTreeSet<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in fs::read_dir(root.join(directory)).expect(directory) {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
        if PASSED_OVER.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() && deep {
            that_say_it(&name, deep, found);
        } else if path.is_file()
            && super::text(&fs::read(&path).expect("a file")).contains(env!("CARGO_PKG_VERSION"))
        {
            found.insert(name);
        }
    }
}

#[test]
fn names_every_file_that_says_the_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("tools/RELEASE.md")).expect("the page");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let listed: BTreeSet<_> = rows.map(|(file, _)| file.to_owned()).collect();
    let mut found = BTreeSet::new();
    that_say_it("", false, &mut found);
    that_say_it("ci", true, &mut found);
    that_say_it("deploy", true, &mut found);
    that_say_it("docs", true, &mut found);
    that_say_it("editors", true, &mut found);
    that_say_it("tools", false, &mut found);
    assert_eq!(listed, found);
}
