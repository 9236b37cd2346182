//! The static binary by itself.

use std::fs;
use std::process::Command;

use crate::serve::{OPTIONS, Serving};
use crate::{built, root};

/// What the image may weigh unpacked, which holds this binary and its bill of materials. The goal is 15 MB;
/// docs/image.md says by how much it is missed, and this keeps it from being missed by more.
const MAX_IMAGE_BYTES: u64 = 21 << 20;

#[test]
#[ignore = "needs the results of tools/build-static.sh"]
fn the_binary_is_static_and_small() {
    let binary = built("memgate");
    let ldd = Command::new("ldd").arg(&binary).output().unwrap();
    let output = String::from_utf8_lossy(&[ldd.stdout, ldd.stderr].concat()).into_owned();
    assert!(output.contains("statically linked") || output.contains("not a dynamic executable"), "{output}");
    let bytes = fs::metadata(&binary).unwrap().len() + fs::metadata(built("memgate.cdx.json")).unwrap().len();
    assert!(bytes <= MAX_IMAGE_BYTES, "the image has {bytes} bytes");
    let version = Command::new(&binary).arg("--version").output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&version.stdout).trim(),
        concat!("memgate ", env!("CARGO_PKG_VERSION"))
    );
}

/// Paths of the machine that built it would differ on the next one.
#[test]
#[ignore = "needs the results of tools/build-static.sh"]
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
#[ignore = "needs the results of tools/build-static.sh"]
async fn the_binary_answers_a_review() {
    let directory = tempfile::tempdir().unwrap();
    let ca = directory.path().join("ca.crt");
    let mut command = Command::new(built("memgate"));
    command.arg("serve").args(OPTIONS).arg("--state").arg(root().join("examples/arkonis"));
    command.arg("--tls-ca-out").arg(&ca).env_clear();
    Serving::start(&mut command).answers_a_review(&ca).await;
}
