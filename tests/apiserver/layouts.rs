//! That what is denied in a repository is what an apiserver with memgate's webhook refuses of what is built from it.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    request::create,
    support::{
        assets::{Assets, SearchPaths},
        layouts::{self, Layout},
        tools,
    },
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::new("layouts::what_is_denied_in_a_repository_is_refused", denied_is_refused)]
}

fn denied_is_refused(fixture: &Fixture) -> Result<()> {
    let programs = tempfile::tempdir()?;
    let kubectl = Assets::find(&SearchPaths::from_environment()?)?.kubectl;
    symlink(kubectl, programs.path().join("kubectl"))?;
    symlink(tools::helm()?, programs.path().join("helm"))?;
    let path = format!("{}:/usr/bin:/bin", programs.path().display());
    let namespace = fixture.namespace("layouts", &[])?;
    let (mut wrong, mut count) = (Vec::new(), 0);
    // Where nothing is built, no apiserver is asked; a test of files has these.
    for layout in layouts::all().iter().filter(|layout| !layout.build.is_empty()) {
        let root = tempfile::tempdir()?;
        write(layout, root.path())?;
        let mut refused = BTreeSet::new();
        for (unit, command) in &layout.build {
            let objects = built(command, root.path(), &path)?;
            count += objects.len();
            refused.extend(refused_of(fixture, &namespace, unit, objects)?);
        }
        let denied = denied(layout, root.path(), &path)?;
        if denied.0 != refused.len()
            || !denied.1.iter().all(|name| refused.iter().any(|it| it.ends_with(name)))
        {
            wrong.push(format!("{}: denied {denied:?}, refused {refused:?}", layout.name));
        }
    }
    println!("{count} objects of {} layouts", layouts::all().len());
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn write(layout: &Layout, root: &Path) -> Result<()> {
    fs::create_dir(root.join(".git"))?;
    for (name, text) in &layout.files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().context("a parent")?)?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// The objects of our kinds that a command prints. Its values of a release are in a file beside the repository.
fn built(command: &str, root: &Path, path: &str) -> Result<Vec<Value>> {
    let layout = layouts::all()
        .into_iter()
        .find(|it| it.build.values().any(|build| build == command) && root_has(root, it));
    let given = tempfile::NamedTempFile::new()?;
    fs::write(given.path(), layout.and_then(|it| it.given).unwrap_or_default())?;
    let command = command.replace("given.yaml", &given.path().to_string_lossy());
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().context("a program")?)
        .args(words)
        .env("PATH", path)
        .current_dir(root)
        .output()?;
    ensure!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    Ok(documents.into_iter().filter(|it| it["apiVersion"] == "arkonis.dev/v1alpha1").collect())
}

fn root_has(root: &Path, layout: &Layout) -> bool {
    layout
        .files
        .iter()
        .all(|(name, text)| fs::read_to_string(root.join(name)).is_ok_and(|there| there == *text))
}

/// The unit, kind and name of each object that the apiserver refuses.
fn refused_of(
    fixture: &Fixture,
    namespace: &str,
    unit: &str,
    objects: Vec<Value>,
) -> Result<BTreeSet<String>> {
    let cluster = fixture.cluster()?;
    let client = cluster.client();
    let mut refused = BTreeSet::new();
    for mut object in objects {
        let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let is_valid = own.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let home = if is_valid { namespace } else { own }.to_owned();
        object["metadata"]["namespace"] = json!(home);
        let answer =
            cluster.block_on(create(&client, &home, &object, "?dryRun=All&fieldValidation=Ignore"))?;
        if !answer.granted() {
            refused.insert(format!("{unit} {} {}", object["kind"], object["metadata"]["name"]));
        }
    }
    Ok(refused)
}

/// How many objects memgate denies in a repository, and the kinds and names of those with a finding.
fn denied(layout: &Layout, root: &Path, path: &str) -> Result<(usize, BTreeSet<String>)> {
    let Output { stdout, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(["check", "-o", "json", "."])
        .args(&layout.arguments)
        .env_clear()
        .env("PATH", path)
        .current_dir(root)
        .output()?;
    let report: Value = serde_json::from_slice(&stdout)
        .with_context(|| format!("{}: {}", layout.name, String::from_utf8_lossy(&stderr)))?;
    let findings = report["findings"].as_array().context("findings")?;
    let denials = findings.iter().filter(|finding| finding["severity"] == "deny");
    let names = denials.map(|it| format!("{} {}", it["object"]["kind"], it["object"]["name"]));
    let count = report["summary"]["denied"].as_u64().context("a number")?;
    Ok((usize::try_from(count)?, names.collect()))
}
