//! `-o markdown` with `--base`: what is new comes first.

use crate::repository::{Repository, text};

#[test]
fn a_comment_begins_with_what_is_new() {
    let repository = Repository::new();
    repository.write("deploy/old.yaml", &crate::denied("old"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.write("deploy/zz.yaml", &crate::denied("new"));
    repository.commit();
    let mut command = repository.command(env!("CARGO_BIN_EXE_memgate"));
    let arguments = ["check", "-o", "markdown", "--base", "main"];
    let new = text(&command.args(arguments).output().expect("memgate runs").stdout);
    assert!(new.starts_with("### memgate: 1 denial, "), "{new}");
    let [new_at, known_at] = ["deploy/zz.yaml:4", "deploy/old.yaml:4"].map(|it| new.find(it).expect("a row"));
    assert!(new_at < known_at && new.contains("(already in main"), "{new}");
}
