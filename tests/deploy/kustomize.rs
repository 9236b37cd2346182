//! `deploy/kustomize/base`, which is made of what `memgate manifests` prints: `BLESS=1 cargo test --test deploy kustomize`
//! writes it anew.

use serde_json::json;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::objects::{Objects, compare, read, text};
use crate::support::assets::{Assets, SearchPaths};
use crate::support::release::Release;

/// The root of the repository.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_base_is_up_to_date() {
    let path = Path::new(ROOT).join("deploy/kustomize/base/memgate.yaml");
    let printed = text(&[]);
    let wanted = format!("# Printed by `just generate`; change nothing here.\n---\n{printed}");
    if env::var_os("BLESS").is_some() {
        fs::write(&path, &wanted).expect("the file can be written");
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    assert!(known == wanted, "{} is not what memgate prints; run `just generate`", path.display());
}

/// A kustomization of a user, next to the repository, names the image.
#[test]
#[ignore = "needs Go, for kubectl"]
fn a_user_names_the_image() {
    // Below the root of the repository, wherever else cargo builds: a path of kustomize has to be relative.
    let target = Path::new(ROOT).join("target/tmp");
    fs::create_dir_all(&target).expect("a folder can be made");
    let scratch = tempfile::tempdir_in(target).expect("a folder can be made");
    let kustomization = json!({
        "resources": ["../../../deploy/kustomize/base"],
        "images": [{"name": "memgate", "newName": "registry.example.com/memgate", "newTag": "v1"}],
    });
    fs::write(scratch.path().join("kustomization.yaml"), kustomization.to_string()).expect("can be written");
    let written = run(scratch.path()).expect("it can be built");
    let printed = text(&["--image=registry.example.com/memgate:v1"]);
    compare("the base", read(&printed), written);
}

pub(crate) fn run(folder: &Path) -> Result<Objects, String> {
    let paths = SearchPaths::from_environment().expect("it names a release");
    let [printed, by_the_oldest] = [paths.release, Release::OLDEST].map(|release| {
        let kubectl =
            Assets::find(&SearchPaths { release, ..paths.clone() }).expect("there is a kubectl").kubectl;
        Command::new(kubectl).arg("kustomize").arg(folder).env_clear().output().expect("it starts")
    });
    let stderr = String::from_utf8_lossy(&printed.stderr);
    if !printed.status.success() || !stderr.is_empty() {
        assert!(
            !by_the_oldest.status.success(),
            "{}: only {} fails: {stderr}",
            folder.display(),
            paths.release.series
        );
        return Err(format!("{}: {stderr}", folder.display()));
    }
    assert!(
        printed.stdout == by_the_oldest.stdout,
        "{}: kubectl {} differs",
        folder.display(),
        Release::OLDEST.series
    );
    Ok(read(&String::from_utf8(printed.stdout).expect("is text")))
}
