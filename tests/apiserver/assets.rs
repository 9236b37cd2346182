//! How the programs of the control plane are found, in directories made for the trial.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Context, Result, ensure};

use crate::{
    fixture::{Fixture, Trial},
    support::{
        assets::{Assets, Program, SearchPaths, go_platform},
        release::{Release, VARIABLE},
        scratch::Scratch,
    },
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("assets::prefers_kubebuilder_assets", prefers_kubebuilder_assets),
        Trial::new("assets::takes_the_newest_patch", takes_the_newest_patch),
        Trial::new("assets::names_the_releases_that_there_are", names_the_releases),
        Trial::new("assets::names_three_ways_when_nothing_is_there", names_three_ways),
    ]
}

fn prefers_kubebuilder_assets(_: &Fixture) -> Result<()> {
    let scratch = Scratch::new("assets")?;
    let named = scratch.path().join("named");
    let unpacked = scratch.path().join("k8s");
    fill(&named, &Program::ALL)?;
    fill(&unpacked.join(version(&format!("{}.3", Release::NEWEST.series))), &Program::ALL)?;

    let found = Assets::find(&SearchPaths {
        kubebuilder_assets: Some(named.clone()),
        setup_envtest: Some(unpacked),
        ..SearchPaths::default()
    })?;
    ensure!(found.apiserver.starts_with(&named), "found {found:?}");
    ensure!(found.kubectl.starts_with(&named), "found {found:?}");
    Ok(())
}

fn takes_the_newest_patch(_: &Fixture) -> Result<()> {
    let scratch = Scratch::new("assets")?;
    // 10 is newer than 9 although its text is smaller, and other series are not asked for.
    for number in ["1.36.9", "1.36.10", "1.37.0", "1.35.12"] {
        fill(&scratch.path().join(version(number)), &Program::ALL)?;
    }
    fill(&scratch.path().join("1.36.11-plan9-mips"), &Program::ALL)?;

    let found = Assets::find(&SearchPaths {
        setup_envtest: Some(scratch.path().to_owned()),
        release: Release::named("1.36")?,
        ..SearchPaths::default()
    })?;
    let expected = scratch.path().join(version("1.36.10"));
    ensure!(found.etcd.starts_with(expected), "found {found:?}");
    Ok(())
}

fn names_the_releases(_: &Fixture) -> Result<()> {
    let error = Release::named("1.12").err().context("there is no 1.12")?.to_string();
    ensure!(error.starts_with(VARIABLE), "{error}");
    for release in Release::ALL {
        ensure!(error.contains(release.series), "{error}");
        ensure!(Release::named(release.series)? == release);
        // The linker gets the version as an argument, and the directory of the cache has it in its name.
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(release.module).join("go.mod");
        let asked = format!("k8s.io/kubernetes {}", release.version);
        ensure!(
            fs::read_to_string(&module)?.contains(&asked),
            "{} does not ask for {asked}",
            module.display()
        );
    }
    Ok(())
}

fn names_three_ways(_: &Fixture) -> Result<()> {
    let scratch = Scratch::new("assets")?;
    let error =
        Assets::find(&SearchPaths { cache: Some(scratch.path().to_owned()), ..SearchPaths::default() });
    let error = error.err().context("programs were found in empty directories")?;
    let text = error.to_string();
    for way in ["KUBEBUILDER_ASSETS", "setup-envtest use", "install Go"] {
        ensure!(text.contains(way), "{way} is not in: {text}");
    }
    Ok(())
}

fn version(number: &str) -> String {
    format!("{number}-{}", go_platform())
}

fn fill(dir: &Path, programs: &[Program]) -> Result<()> {
    fs::create_dir_all(dir)?;
    for program in programs {
        let path = dir.join(program.name());
        fs::write(&path, "")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}
