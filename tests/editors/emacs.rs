//! Emacs with the snippets of docs/editors.md, as they are written there: Eglot shows what both servers report.

use std::fs;
use std::process::Command;

use crate::page::blocks;
use crate::repository::{FILE, Repository};
use crate::{npm, pip};

#[test]
#[ignore = "needs Emacs with Eglot and yaml-mode, node, npm and python3"]
fn the_snippets_mark_findings_of_both_servers() {
    let repository = Repository::new();
    repository.add_program(&npm::installed("editors").join("yaml-language-server/bin/yaml-language-server"));
    repository.add_program(&pip::installed("rass").join("bin/rass"));
    let [init, locals] = blocks("Emacs", "elisp").try_into().expect("two blocks");
    let file = repository.home().join("init.el");
    fs::write(&file, init).expect("is written");
    fs::write(repository.folder().join(".dir-locals.el"), locals).expect("is written");

    let mut emacs = Command::new("emacs");
    emacs.args(["--batch", "--eval", "(package-initialize)", "--load"]).arg(&file);
    emacs.arg("--load").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/editors/emacs.el")).env("FILE", FILE);
    let printed = repository.run(&mut emacs);
    let marks: Vec<_> = printed.lines().collect();
    let [memgate, schema] = marks.as_slice() else { panic!("{printed}") };
    assert!(memgate.starts_with("6: memgate [arkonis/backend-unknown]: "), "{memgate}");
    assert!(memgate.ends_with("did you mean \"redis\"?"), "{memgate}");
    assert!(schema.starts_with("6: yaml-schema: "), "{schema}");
}
