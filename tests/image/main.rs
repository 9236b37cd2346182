//! What the container image is made of.
//!
//! The build file is checked as text. The tests of the binary, of its bill of materials and of the image need the
//! results of `tools/build-static.sh --image` and `tools/build-image.sh`, and are run by `.ci/night image` after them:
//! `cargo test --test image -- --ignored`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may panic"
)]

mod bill;
mod binary;
mod containerfile;
#[path = "../support/https.rs"]
mod https;
mod layout;
#[path = "../support/review.rs"]
mod review;
mod run;
mod serve;
#[path = "../support/serving.rs"]
mod serving;
mod twice;

use std::path::{Path, PathBuf};

/// What `tools/build-static.sh --image` has made for this machine's architecture.
fn built(file: &str) -> PathBuf {
    let target = format!("target/static/image/{}-unknown-linux-musl", std::env::consts::ARCH);
    let path = root().join(target).join(file);
    assert!(path.exists(), "{} is not there; run tools/build-static.sh --image", path.display());
    path
}

/// The directory of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
