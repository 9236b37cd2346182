//! Where reports are written: never through a link that a change brings and that leads out of the work tree or into `.git`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::repository::{Repository, files, text};

/// Runs a check that writes this file. Returns the exit code and what it says.
fn write(repository: &Repository, file: &str) -> (Option<i32>, String) {
    let mut command = repository.command(env!("CARGO_BIN_EXE_memgate"));
    command.args(["check", "-o", "text", "-o", &format!("sarif={file}"), "deploy"]);
    let output = command.output().expect("memgate runs");
    (output.status.code(), text(&output.stderr))
}

/// A repository with a manifest, and a folder with files beside it that a link may lead to.
fn repository() -> Repository {
    let repository = Repository::new();
    repository.write("deploy/old.yaml", &crate::denied("old"));
    repository.write("reports/kept", "");
    repository.commit();
    let outside = repository.beside_it("outside");
    fs::create_dir_all(outside.join("folder")).expect("a folder");
    fs::write(outside.join("file"), "mine").expect("a file");
    repository
}

#[test]
fn no_link_of_a_change_leads_an_output_away() {
    // Links, each with what it leads to, and the output; `{outside}` is a folder beside the repository.
    let ways: [(&[(&str, &str)], &str); 16] = [
        (&[("memgate.sarif", "{outside}/file")], "memgate.sarif"),
        (&[("memgate.sarif", "../outside/file")], "memgate.sarif"),
        (&[("memgate.sarif", "../outside/file")], "./memgate.sarif"),
        (&[("memgate.sarif", "../outside/file")], "reports/../memgate.sarif"),
        (&[("memgate.sarif", ".git/config")], "memgate.sarif"),
        (&[("memgate.sarif", ".git/HEAD")], "{here}/memgate.sarif"),
        (&[("out", "{outside}/folder")], "out/memgate.sarif"),
        (&[("out", "../outside/folder")], "out/memgate.sarif"),
        (&[("out", "{outside}")], "out/folder/new.sarif"),
        (&[("out", ".git")], "out/memgate.sarif"),
        (&[("out", ".git/hooks")], "out/pre-commit"),
        (&[("a", "b"), ("b", "../outside/file")], "a"),
        (&[("reports/a", "../b"), ("b", "../outside/folder")], "reports/a/memgate.sarif"),
        (&[("out", "/")], "out/tmp/memgate.sarif"),
        (&[("out", "../outside/folder")], "out/../memgate.sarif"),
        (
            &[("{outside}/alias", "{here}"), ("memgate.sarif", "../outside/file")],
            "{outside}/alias/memgate.sarif",
        ),
    ];
    for (links, file) in ways {
        let repository = repository();
        let outside = repository.beside_it("outside");
        let real = |text: &str| {
            let here = repository.path.display().to_string();
            text.replace("{outside}", &outside.display().to_string()).replace("{here}", &here)
        };
        for (name, target) in links {
            symlink(real(target), repository.path.join(real(name))).expect("a link");
        }
        let before = [files(&outside), files(&repository.path.join(".git"))];
        let (code, said) = write(&repository, &real(file));
        assert_eq!(code, Some(2), "{file} {links:?}: {said}");
        assert!(said.contains("leads out of the work tree, or into .git"), "{file}: {said}");
        assert!([files(&outside), files(&repository.path.join(".git"))] == before, "{file} {links:?}");
    }
}

#[test]
fn other_places_are_the_jobs_own() {
    let repository = repository();
    let outside = repository.beside_it("outside");
    // A link to nothing is replaced, and one inside of the repository followed.
    symlink("../outside/new", repository.path.join("nothing")).expect("a link");
    symlink("reports", repository.path.join("inside")).expect("a link");
    symlink(outside.join("folder"), outside.join("link")).expect("a link");
    let elsewhere = outside.join("link/memgate.sarif").display().to_string();
    for (file, written) in [
        ("memgate.sarif", repository.path.join("memgate.sarif")),
        ("nothing", repository.path.join("nothing")),
        ("inside/memgate.sarif", repository.path.join("reports/memgate.sarif")),
        ("../outside/memgate.sarif", outside.join("memgate.sarif")),
        (&elsewhere, outside.join("folder/memgate.sarif")),
        ("/dev/null", Path::new("/dev/null").to_owned()),
    ] {
        let (code, said) = write(&repository, file);
        assert_eq!(code, Some(1), "{file}: {said}");
        assert!(written.exists(), "{file}");
    }
    assert!(!outside.join("new").exists());
}
