//! The static binary by itself.

use std::fs;
use std::process::Command;

use crate::serve::answers_a_review;
use crate::serving::{OPTIONS, Serving};
use crate::{built, root};

/// What `memgate --version` prints in the image.
pub(crate) const VERSION: &str = concat!("memgate ", env!("CARGO_PKG_VERSION"));

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
