//! That docs/compatibility.md, the bundled definitions and the examples name the same versions of the platforms.

use std::path::Path;

/// A line of the table.
struct Row<'p> {
    family: &'p str,
    version: &'p str,
    of: &'p str,
    read: &'p str,
    file: &'p str,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let lines = page.lines().filter(|line| line.starts_with('|') && line.contains(".yaml` |"));
    lines
        .map(|line| {
            let mut cells = line.split('|').skip(1).map(str::trim);
            let [family, version, of, read, file] = [(); 5].map(|()| cells.next().unwrap_or_default());
            Row { family, version, of, read, file: file.trim_matches('`') }
        })
        .collect()
}

/// The words with a digit: `v0.5.7`, `a29444a7`.
fn versions(cell: &str) -> impl Iterator<Item = &str> {
    cell.split([' ', ',', ';', '(', ')']).filter(|word| word.contains(|c: char| c.is_ascii_digit()))
}

/// The comment at the head of a file.
fn head(text: &str) -> String {
    text.lines().take_while(|line| line.starts_with('#')).collect()
}

#[test]
fn names_the_versions_that_the_definitions_and_examples_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let (page, examples) = (read("docs/compatibility.md"), read("examples/README.md"));
    let mut named: Vec<String> = Vec::new();
    for Row { family, version, of, read: month, file } in rows(&page) {
        let definitions = head(&read(&format!("deploy/crds/{file}")));
        let list = root.join("tests/shapes").join(file).with_extension("shape");
        let list = std::fs::read_to_string(list).map_or_else(|_| definitions.clone(), |list| head(&list));
        assert!(versions(version).next().is_some(), "{family} without a version");
        for version in versions(version) {
            assert!(definitions.contains(version), "{file}: its head does not name {version}");
            assert!(list.contains(version), "{file}: its list does not name {version}");
        }
        let is_date = |text: &str| text.len() >= 7 && text.chars().all(|c| c.is_ascii_digit() || c == '-');
        assert!(is_date(month), "{family}: {month} is not a month");
        assert!(of == "–" || is_date(of), "{family}: {of} is not a date");
        assert!(list.contains(&format!("read in {month}")), "{file}: its list was not read in {month}");
        assert!(of == "–" || list.contains(&format!("of {of}")), "{file}: its list is not of {of}");
        if memgate_platforms::ALL.iter().any(|known| known.name == family) {
            let version = versions(version).next().unwrap_or_default().trim_start_matches('v');
            assert!(examples.contains(version), "examples/README.md does not name {version} of {family}");
        }
        named.push(file.to_owned());
    }
    let files = std::fs::read_dir(root.join("deploy/crds")).expect("the definitions");
    let mut files: Vec<String> =
        files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect();
    // Policies are memgate's own.
    let is_yaml = |file: &str| Path::new(file).extension().is_some_and(|extension| extension == "yaml");
    files.retain(|file| file != "policy.yaml" && is_yaml(file));
    files.sort();
    named.sort();
    assert_eq!(named, files);
}
