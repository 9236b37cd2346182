//! The sections of the documents, what each starts on, and what is true when it is done.

use anyhow::{Context, Result, ensure};

use crate::cluster::Cluster;
use crate::document::{Section, commands, sections};
use crate::lockout;
use crate::support::shown::fits;

/// The documents of which every section with commands is run, in this order.
const DOCUMENTS: [(&str, &str); 3] = [
    ("install", include_str!("../../docs/install.md")),
    ("operate", include_str!("../../docs/operate.md")),
    ("emergencies", include_str!("../../docs/emergencies.md")),
];
const README: &str = include_str!("../../README.md");
/// README's section with commands for a cluster.
const KIND: &str = "On a kind cluster";

/// What a section starts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    /// A cluster without memgate.
    Bare,
    /// A cluster with memgate as `memgate manifests` installs it.
    Installed,
    /// The same with namespaces that are strict; each block of commands is a way out, and finds a cluster from which
    /// people are locked out.
    LockedOut,
}

/// What must be true afterwards.
type After = fn(&Cluster) -> Result<()>;

/// What a section does to a cluster.
pub(crate) type Run = Box<dyn Fn(&Cluster) -> Result<()> + Send + Sync>;

/// Every section with commands, of all documents.
const SECTIONS: &[(&str, Ground, After)] = &[
    (KIND, Ground::Bare, answers),
    ("With kubectl", Ground::Bare, answers),
    ("With kustomize", Ground::Bare, answers),
    ("With Helm", Ground::Bare, answers),
    ("With Argo CD or Flux", Ground::Bare, answers),
    ("Check", Ground::Installed, answers),
    ("Uninstall", Ground::Installed, is_gone),
    ("Roll out", Ground::Installed, answers),
    ("Policies of your own", Ground::Installed, answers),
    ("Upgrade", Ground::Installed, answers),
    ("A new CA", Ground::Installed, answers),
    ("The way out", Ground::Installed, answers),
    ("Break glass", Ground::Installed, answers),
    ("A policy that locks people out", Ground::LockedOut, without_memgate),
    ("What kubectl prints", Ground::Installed, answers),
    ("From a refusal to its log line", Ground::Installed, answers),
    ("Who changed the policy", Ground::Installed, answers),
];

/// One trial for each section of [`DOCUMENTS`], and for README's section on a kind cluster.
pub(crate) fn trials() -> Vec<(String, Run)> {
    let mut trials: Vec<(String, Run)> = Vec::new();
    let mut add = |document: &str, section: Section| {
        let name = format!("{document}: {}", section.title);
        trials.push((name, Box::new(move |cluster: &Cluster| run(cluster, &section))));
    };
    let mut found = Vec::new();
    for (document, text) in DOCUMENTS {
        for section in sections(text) {
            found.push(section.title.clone());
            add(document, section);
        }
    }
    let known: Vec<&str> = SECTIONS.iter().map(|(title, ..)| *title).filter(|title| *title != KIND).collect();
    assert_eq!(found, known, "the sections with commands");
    let readme = sections(README).into_iter().find(|section| section.title == KIND);
    add("readme", readme.expect("README has commands for a kind cluster"));
    trials
}

fn run(cluster: &Cluster, section: &Section) -> Result<()> {
    let known = SECTIONS.iter().find(|(title, ..)| *title == section.title);
    let (_, ground, after) = known.context("the section is not in the table of tests/operate/sections.rs")?;
    cluster.clear()?;
    match ground {
        Ground::Bare => {}
        Ground::Installed => cluster.install("")?,
        Ground::LockedOut => {
            cluster.install("--component policy-strict")?;
            lockout::run(cluster, section)?;
            return after(cluster);
        }
    }
    for block in &section.blocks {
        for (command, shown) in commands(block) {
            eprintln!("$ {command}");
            let Some(shown) = shown else {
                cluster.sh(&command)?.ok().with_context(|| command.clone())?;
                continue;
            };
            let output = cluster.sh(&format!("{{ {command}\n}} 2>&1"))?.stdout;
            let (shown, printed) =
                (shown.iter().map(String::as_str).collect::<Vec<_>>(), output.lines().collect::<Vec<_>>());
            ensure!(fits(&shown, &printed), "{command}\nprints\n{output}");
        }
    }
    after(cluster)
}

/// memgate answers the apiserver, and nothing is wrong with it.
fn answers(cluster: &Cluster) -> Result<()> {
    cluster.wait()
}

/// memgate is still away: the last way out was not that it came back.
fn without_memgate(cluster: &Cluster) -> Result<()> {
    let pod = "kubectl run probe --image=example.org/none --labels=memgate.dev/inject=required --restart=Never --dry-run=server";
    let refusal = cluster.sh(pod)?.refusal()?;
    ensure!(refusal.contains("failed calling webhook \"required.pods.memgate.dev\""), "{refusal}");
    Ok(())
}

/// Nothing is left, and pods come up.
fn is_gone(cluster: &Cluster) -> Result<()> {
    cluster.ensure_nothing_is_left()?;
    let pod = "kubectl run probe --image=example.org/none --labels=memgate.dev/inject=required --restart=Never \
               && kubectl delete pod probe --now";
    cluster.sh(pod)?.ok()?;
    Ok(())
}
