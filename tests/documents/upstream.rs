//! That docs/upstream.md, the bundled definitions and the examples name the same versions of the platforms.

use std::path::Path;

use memgate_core::family;

/// A line of the table: the text of its first cells.
fn rows(page: &str) -> Vec<[&str; 3]> {
    let lines = page.lines().filter(|line| line.starts_with('|') && line.contains(".yaml` |"));
    lines
        .map(|line| {
            let mut cells = line.split('|').skip(1).map(str::trim);
            [(); 3].map(|()| cells.next().unwrap_or_default())
        })
        .collect()
}

/// The first word with a digit: `v0.5.7`, `a29444a7`.
fn version(cell: &str) -> &str {
    let mut words = cell.split([' ', ',', ';', '(', ')']);
    words.find(|word| word.contains(|c: char| c.is_ascii_digit())).expect("a version")
}

#[test]
fn names_the_versions_that_the_definitions_and_examples_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let (page, examples) = (read("docs/upstream.md"), read("examples/README.md"));
    let mut named: Vec<String> = Vec::new();
    for [family, read_from, file] in rows(&page) {
        let file = file.trim_matches('`');
        let definitions = read(&format!("deploy/crds/{file}"));
        let head: String = definitions.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(head.contains(version(read_from)), "{file}: its head does not name {}", version(read_from));
        let list = root.join("tests/shapes").join(file).with_extension("shape");
        let list = std::fs::read_to_string(list).unwrap_or_else(|_| head.clone());
        let head: String = list.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(head.contains(version(read_from)), "{file}: its list does not name {}", version(read_from));
        if family::ALL.iter().any(|known| known.name == family) {
            let version = version(read_from).trim_start_matches('v');
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
    for family in family::ALL {
        assert!(page.contains(&format!("\n## {}\n", family.name)), "no section about {}", family.name);
    }
}
