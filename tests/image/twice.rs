//! The same binary makes the same image.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{built, root};

/// Builds the image in a directory of its own, with a mask for new files.
fn build_in(directory: &Path, umask: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let results = format!("target/static/image/{}-unknown-linux-musl", std::env::consts::ARCH);
    for below in ["tools", &results] {
        fs::create_dir_all(directory.join(below)).unwrap();
    }
    for file in ["Cargo.toml", "tools/build-image.sh"] {
        fs::copy(root().join(file), directory.join(file)).unwrap();
    }
    for file in ["memgate", "memgate.cdx.json", "revision"] {
        // Written, not copied, so that time and mode are this file's own.
        fs::write(directory.join(&results).join(file), fs::read(built(file)).unwrap()).unwrap();
    }
    let script = format!("umask {umask}; exec tools/build-image.sh --out made");
    let made = Command::new("bash").args(["-c", &script]).current_dir(directory).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made = directory.join("made");
    let blobs = fs::read_dir(made.join("blobs/sha256")).unwrap().map(|file| file.unwrap().path());
    let files = blobs.chain([made.join("index.json"), made.join("oci-layout")]);
    files.map(|file| (file.strip_prefix(&made).unwrap().to_owned(), fs::read(&file).unwrap())).collect()
}

#[test]
#[ignore = "needs the results of tools/build-static.sh --image"]
fn the_image_is_the_same_in_two_directories() {
    let scratch = tempfile::tempdir().unwrap();
    let first = build_in(&scratch.path().join("one"), "022");
    let second = build_in(&scratch.path().join("another/place"), "077");
    assert_eq!(first.len(), 6, "{:?}", first.keys());
    assert!(first == second, "{:?} and {:?}", first.keys(), second.keys());
}
