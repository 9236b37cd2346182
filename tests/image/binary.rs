//! The static binary by itself.

use std::fs;
use std::process::Command;

use crate::serve::answers_a_review;
use crate::serving::{OPTIONS, Serving};
use crate::{built, root};

/// What `memgate --version` prints in the image.
pub(crate) const VERSION: &str = concat!(
    "memgate ",
    env!("CARGO_PKG_VERSION"),
    "\nwithout completions, lsp, man, map, schema, --render, -o html: the archives of a release have these"
);

#[test]
#[ignore = "needs the results of tools/build-static.sh --image"]
fn the_binary_is_static() {
    let binary = built("memgate");
    let ldd = Command::new("ldd").arg(&binary).output().unwrap();
    let output = String::from_utf8_lossy(&[ldd.stdout, ldd.stderr].concat()).into_owned();
    assert!(output.contains("statically linked") || output.contains("not a dynamic executable"), "{output}");
    let version = Command::new(&binary).arg("--version").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), VERSION);
}

/// The commands and flags of the feature `workstation` are not in the help, and an error names them.
#[test]
#[ignore = "needs the results of tools/build-static.sh --image"]
fn what_is_left_out_is_an_error_that_says_so() {
    let run =
        |words: &[&str]| Command::new(built("memgate")).args(words).current_dir(root()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let help = [text(&run(&["--help"]).stdout), text(&run(&["check", "--help"]).stdout)];
    let check = ["check", "examples/arkonis"];
    for (words, name) in [
        (vec!["completions", "bash"], "command \"completions\""),
        (vec!["man", "--dir", "man"], "command \"man\""),
        (vec!["schema", "output"], "command \"schema\""),
        (vec!["help", "schema"], "command \"schema\""),
        ([&check[..], &["--render"]].concat(), "--render"),
        ([&check[..], &["--render", "--values", "v.yaml"]].concat(), "--render"),
    ] {
        let done = run(&words);
        let error = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(&format!("error: this memgate has no {name}: ")), "{words:?}: {error}");
        assert!(error.contains("the archives of a release have it") && done.stdout.is_empty(), "{error}");
    }
    assert!(help.iter().all(|help| !help.contains("  --render\n") && !help.contains("  man ")), "{help:?}");
    assert_eq!(run(&["no-such"]).status.code(), Some(2));
    assert!(text(&run(&["no-such"]).stderr).contains("unrecognized subcommand"));
}

/// Paths of the machine that built it would differ on the next one.
#[test]
#[ignore = "needs the results of tools/build-static.sh --image"]
fn nothing_says_where_it_was_built() {
    let home = std::env::var("HOME").unwrap();
    for file in ["memgate", "memgate.cdx.json"] {
        let bytes = fs::read(built(file)).unwrap();
        for path in [env!("CARGO_MANIFEST_DIR"), &format!("{home}/.cargo"), &format!("{home}/.rustup")] {
            assert!(!bytes.windows(path.len()).any(|window| window == path.as_bytes()), "{path} in {file}");
        }
    }
}

#[tokio::test]
#[ignore = "needs the results of tools/build-static.sh --image"]
async fn the_binary_answers_a_review() {
    let directory = tempfile::tempdir().unwrap();
    let ca = directory.path().join("ca.crt");
    let mut command = Command::new(built("memgate"));
    command.arg("serve").args(OPTIONS).arg("--state").arg(root().join("examples/arkonis"));
    command.arg("--tls-ca-out").arg(&ca).env_clear();
    answers_a_review(&Serving::start(&mut command), &ca).await;
}
