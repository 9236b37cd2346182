//! That the examples can be copied: they have no finding, and a pod among them gets its memory.

use std::path::Path;

use super::{memgate, text};

#[test]
fn every_family_has_examples_without_a_finding() {
    for family in memgate_platforms::ALL {
        let folder = format!("examples/{}", family.name);
        let output = memgate(&["check", "--fail-on", "warn", &folder], "");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{folder}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        assert!(output.stdout.is_empty(), "{folder}: {}", text(&output.stdout));
    }
}

#[test]
fn every_family_with_pods_has_an_example_of_one_that_gets_its_memory() {
    for family in memgate_platforms::ALL.into_iter().filter(|family| !family.pods.selectors.is_empty()) {
        let folder = format!("examples/{}", family.name);
        let output = memgate(&["mutate", "--diff", &folder], "");
        let diff = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{folder}: {}", text(&output.stderr));
        assert!(diff.contains("memgate.dev/injected"), "{folder}: {diff}");
        let marked = format!("\"family\":\"{}\"", family.name);
        assert!(diff.contains(&marked), "{folder}: {diff}");
        assert!(!text(&output.stderr).contains("written anew"), "{folder}: comments are lost");
    }
}

#[test]
fn what_mutate_writes_is_mutated_no_further() {
    for family in memgate_platforms::ALL {
        let folder = format!("examples/{}", family.name);
        let once = memgate(&["mutate", &folder], "");
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("once.yaml");
        std::fs::write(&file, &once.stdout).expect("written");
        let again = memgate(&["mutate", "--diff", &file.display().to_string()], "");
        assert_eq!(again.status.code(), Some(0), "{folder}: {}", text(&again.stderr));
        assert!(again.stdout.is_empty(), "{folder}: {}", text(&again.stdout));
    }
}

#[test]
fn every_example_is_named_in_their_readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
    for family in memgate_platforms::ALL {
        for example in std::fs::read_dir(root.join(family.name)).expect("a folder") {
            let name = example.expect("an entry").file_name();
            assert!(readme.contains(&format!("`{}`", name.to_string_lossy())), "{}", name.display());
        }
    }
}

/// `.memgate.yaml` at the root: a check of this repository reads the examples, and they are good.
#[test]
fn a_check_of_this_repository_passes() {
    let output = memgate(&["check"], "");
    let notes = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{notes}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    let objects: usize =
        notes.lines().last().and_then(|line| line.split(' ').next()?.parse().ok()).unwrap_or(0);
    assert!(objects >= 40, "{notes}");
}
