//! Repositories and files that are not as usual.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use crate::moved;
use crate::repository::{Checked, Repository, denied, files};

#[test]
fn nothing_is_written_into_git() {
    let repository = moved();
    let git = repository.path.join(".git");
    let before = files(&git);
    fs::set_permissions(&git, fs::Permissions::from_mode(0o555)).expect("permissions");
    let checked = repository.check(&["--base", "main", "deploy"]);
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).expect("permissions");
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert!(files(&git) == before);
}

#[test]
fn two_runs_at_once_do_not_meet() {
    let repository = moved();
    let runs = [(); 2].map(|()| {
        let mut command = repository.command(env!("CARGO_BIN_EXE_memgate"));
        command.args(["check", "-o", "concise", "--base", "main", "deploy"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("memgate starts")
    });
    for run in runs {
        let checked = Checked::of(&run.wait_with_output().expect("it ends"));
        assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
        assert!(checked.tells("deploy/renamed.yaml", "already in main"), "{:?}", checked.findings);
    }
    repository.expect_nothing_left();
}

#[test]
fn a_bare_repository_has_no_work_tree() {
    let repository = Repository::beside("bare");
    repository.git(&["init", "--quiet", "--bare", "--initial-branch", "main"]);
    repository.check(&["--base", "main", "."]).expect_failure("this directory is in no git work tree");
}

/// Each repository is compared with its own base.
#[test]
fn a_repository_in_another_one_is_its_own() {
    let repository = moved();
    let inner = repository.path.join("inner");
    fs::create_dir(&inner).expect("a directory");
    let git = |arguments: &[&str]| repository.git(&[&["-C", "inner"], arguments].concat());
    git(&["init", "--quiet", "--initial-branch", "main"]);
    repository.write("inner/a.yaml", &denied("a"));
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "a"]);
    let checked = repository.check_in("inner", &["--base", "main", "."]);
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.tells("./a.yaml", "already in main"), "{:?}", checked.findings);
    // Of the outer one it is no part, so its findings are new.
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.tells("./inner/a.yaml", "deny"), "{:?}", checked.findings);
}

#[test]
fn names_of_files_may_have_any_characters() {
    let repository = Repository::new();
    for name in ["deploy/a\nb.yaml", "deploy/a b\t.yaml", "deploy/\"q\".yaml", "deploy/\u{e4}.yaml"] {
        repository.write(name, &denied("old"));
    }
    repository.write("deploy/.hidden\nfile.yaml", &denied("other"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    repository.write("deploy/.new\nfile.yaml", &denied("new"));
    repository.commit();
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.tells("", "ArkMemory \"new\" is not judged any more"), "{:?}", checked.findings);
}

/// A submodule and a pointer of LFS stay as git has them: nothing is fetched.
#[test]
fn submodules_and_pointers_stay_as_they_are() {
    let other = moved();
    let repository = Repository::new();
    repository.write("deploy/old.yaml", &denied("old"));
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0a\nsize 12\n";
    repository.write("deploy/large.yaml", pointer);
    repository.commit();
    let url = other.path.display().to_string();
    repository.git(&["submodule", "--quiet", "add", &url, "module"]);
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    let checked = repository.check(&["--base", "main", "deploy"]);
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(1), "a submodule is new: {:?} {}", checked.findings, checked.stderr);
    assert!(!checked.tells("", "memgate/not-judged"), "{:?}", checked.findings);
}
