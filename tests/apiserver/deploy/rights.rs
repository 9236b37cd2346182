//! What memgate's account may do, as the apiserver counts it: `kubectl auth can-i --list`, without
//! what every account may, is compared with a file in this directory for each way to install.
//! `BLESS=1 cargo test --test apiserver deploy::` writes them anew.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::renamed::{manifests, text};
use crate::{
    fixture::{Fixture, Trial},
    support::{kubectl::Kubectl, wait},
};

/// The ways to install that differ in what memgate may do.
const WAYS: [(&str, &[&str]); 12] = [
    ("all-families", &[]),
    ("family-arkonis", &["--family", "arkonis"]),
    ("family-ark", &["--family", "ark"]),
    ("family-orloj", &["--family", "orloj"]),
    ("family-orka", &["--family", "orka"]),
    ("family-sympozium", &["--family", "sympozium"]),
    ("family-kagent", &["--family", "kagent"]),
    ("no-policies", &["--family", "ark", "--without=policies"]),
    ("no-policies-orka", &["--family", "orka", "--without=policies"]),
    ("no-events", &["--family", "ark", "--without=events"]),
    ("cert-manager", &["--family", "ark", "--component", "cert-manager"]),
    ("nothing-to-write", &["--family", "ark", "--component", "cert-files", "--without=events"]),
];

pub(crate) fn trials() -> Vec<Trial> {
    let case = |(way, arguments): (&'static str, &'static [&'static str])| {
        Trial::new(format!("deploy::rights_are_those_of_{way}"), move |fixture| hold(fixture, way, arguments))
    };
    WAYS.into_iter().map(case).collect()
}

fn hold(fixture: &Fixture, way: &str, arguments: &[&str]) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("rights")?;
    let objects = manifests(&namespace, &[arguments, &["--only", "rbac"]].concat())?;
    cluster.admin().apply(&text(&objects))?;
    cluster.kubectl(&["create", "serviceaccount", "unbound", "-n", &namespace])?.ok()?;
    let account = |name: &str| -> Result<Kubectl> {
        Ok(cluster.kubectl_as(cluster.service_account_kubeconfig(&namespace, name)?))
    };
    let (memgate, baseline) = (account("memgate")?, account("unbound")?);
    let elsewhere = cluster.fresh_namespace("elsewhere")?;
    let rights = || -> Result<String> {
        let own = rights_in(&memgate, &baseline, &namespace)?;
        let others = rights_in(&memgate, &baseline, &elsewhere)?;
        let own: Vec<_> = own.difference(&others).cloned().collect();
        let others: Vec<_> = others.into_iter().collect();
        let text =
            format!("everywhere:\n{}\nin its own namespace alone:\n{}\n", others.join("\n"), own.join("\n"));
        Ok(text.replace(&format!("-{namespace}"), ""))
    };
    let path = file(way);
    if env::var_os("BLESS").is_some() {
        let named = resources(&objects);
        let complete = |text: &String| named.iter().all(|resource| text.contains(resource));
        let text = wait::until("all rights", || Ok(Some(rights()?).filter(complete)))?;
        fs::write(&path, text)?;
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

/// The resources that the printed roles name, as the list writes them.
fn resources(objects: &[Value]) -> Vec<String> {
    // Audits have an account of their own.
    let is_own = |object: &&Value| !object["metadata"]["name"].to_string().ends_with("-audit\"");
    let rules = objects.iter().filter(is_own).filter_map(|object| object["rules"].as_array()).flatten();
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let named = rules.flat_map(|rule| {
        let group = texts(&rule["apiGroups"]).concat();
        let end = if group.is_empty() { String::new() } else { format!(".{group}") };
        texts(&rule["resources"]).into_iter().map(move |resource| match resource.split_once('/') {
            Some((resource, part)) => format!("{resource}{end}/{part} "),
            None => format!("{resource}{end} "),
        })
    });
    named.collect()
}

fn rights_in(memgate: &Kubectl, baseline: &Kubectl, namespace: &str) -> Result<BTreeSet<String>> {
    let list = |kubectl: &Kubectl| -> Result<BTreeSet<String>> {
        let output = kubectl.run(&["auth", "can-i", "--list", "--no-headers", "-n", namespace])?.ok()?;
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(output.stdout.lines().map(words).collect())
    };
    Ok(list(memgate)?.difference(&list(baseline)?).cloned().collect())
}

fn file(way: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apiserver/deploy/rights");
    folder.join(format!("{way}.txt"))
}
