//! What memgate's account may do, as the apiserver counts it: `kubectl auth can-i --list`, without
//! what everybody may, is held against a file beside this one for each way to install.
//! `BLESS=1 cargo test --test apiserver deploy::` writes them anew.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::renamed::{manifests, text};
use crate::{
    support::{control_plane::ControlPlane, kubectl::Kubectl, wait},
    world::{Case, World},
};

/// The ways to install that differ in what memgate may do.
const WAYS: [(&str, &[&str]); 9] = [
    ("all-families", &[]),
    ("family-arkonis", &["--component", "family-arkonis"]),
    ("family-ark", &["--component", "family-ark"]),
    ("family-orloj", &["--component", "family-orloj"]),
    ("family-orka", &["--component", "family-orka"]),
    ("family-sympozium", &["--component", "family-sympozium"]),
    ("no-events", &["--component", "family-ark", "--no-events"]),
    ("cert-manager", &["--component", "family-ark", "--certs", "cert-manager"]),
    ("nothing-to-write", &["--component", "family-ark", "--certs", "files", "--no-events"]),
];

pub(crate) fn cases() -> Vec<Case> {
    let case = |(way, arguments): (&'static str, &'static [&'static str])| {
        Case::new(format!("deploy::rights_are_those_of_{way}"), move |world| hold(world, way, arguments))
    };
    WAYS.into_iter().map(case).collect()
}

fn hold(world: &World, way: &str, arguments: &[&str]) -> Result<()> {
    let cluster = world.cluster()?;
    let namespace = cluster.fresh_namespace("rights")?;
    let objects = manifests(&namespace, &[arguments, &["--only", "rbac"]].concat())?;
    cluster.admin().apply(&text(&objects))?;
    cluster.kubectl(&["create", "serviceaccount", "nobody", "-n", &namespace])?.ok()?;
    let account = |name: &str| -> Result<Kubectl> {
        Ok(cluster.kubectl_as(cluster.service_account_kubeconfig(&namespace, name)?))
    };
    let (memgate, nobody) = (account("memgate")?, account("nobody")?);
    let elsewhere = cluster.fresh_namespace("elsewhere")?;
    let rights = || -> Result<String> {
        let own = rights_in(&memgate, &nobody, &namespace)?;
        let others = rights_in(&memgate, &nobody, &elsewhere)?;
        let own: Vec<_> = own.difference(&others).cloned().collect();
        let others: Vec<_> = others.into_iter().collect();
        let text =
            format!("everywhere:\n{}\nin its own namespace alone:\n{}\n", others.join("\n"), own.join("\n"));
        Ok(text.replace(&format!("{namespace}-"), ""))
    };
    let path = file(way);
    if env::var_os("BLESS").is_some() {
        settled(cluster, &memgate, &namespace)?;
        fs::write(&path, rights()?)?;
    }
    let known = fs::read_to_string(&path).with_context(|| format!("{} is missing", path.display()))?;
    // Roles reach the authorizer through watches.
    let mut last = String::new();
    let settled = wait::until("the rights to be those of the file", || {
        last = rights()?;
        Ok((last == known).then_some(()))
    });
    settled.with_context(|| format!("{}:\n{last}", path.display()))?;
    ensure!(!known.contains('*'), "{known}");
    Ok(())
}

/// Waits until both roles, where there are two, have reached the authorizer.
fn settled(cluster: &ControlPlane, memgate: &Kubectl, namespace: &str) -> Result<()> {
    let roles = cluster.kubectl(&["get", "roles", "-n", namespace, "--output=name"])?.ok()?.stdout;
    let awaited = if roles.is_empty() { vec![] } else { vec!["secrets"] };
    for resource in awaited.into_iter().chain(["memories.ark.mckinsey.com"]).take(1) {
        wait::until("a right", || {
            let verb = if resource == "secrets" { "create" } else { "list" };
            Ok(memgate
                .run(&["auth", "can-i", verb, resource, "-n", namespace])?
                .status
                .success()
                .then_some(()))
        })?;
    }
    Ok(())
}

fn rights_in(memgate: &Kubectl, nobody: &Kubectl, namespace: &str) -> Result<BTreeSet<String>> {
    let list = |kubectl: &Kubectl| -> Result<BTreeSet<String>> {
        let output = kubectl.run(&["auth", "can-i", "--list", "--no-headers", "-n", namespace])?.ok()?;
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(output.stdout.lines().map(words).collect())
    };
    Ok(list(memgate)?.difference(&list(nobody)?).cloned().collect())
}

fn file(way: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apiserver/deploy/rights");
    folder.join(format!("{way}.txt"))
}
