//! Changing the way of installing on a running cluster: no specification changes, and where tools conflict.

use anyhow::{Result, ensure};

use crate::{
    fixture::{Fixture, Trial},
    installed::memgate,
    support::control_plane::ControlPlane,
};

const KUSTOMIZE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/kustomize/base");

/// The image that is named there.
const IMAGE: [&str; 3] = ["manifests", "--image", concat!("memgate:", env!("CARGO_PKG_VERSION"))];

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::new("deploy::another_way_changes_nothing", changes_nothing)]
}

fn changes_nothing(_: &Fixture) -> Result<()> {
    let cluster = &ControlPlane::start()?;
    let apply =
        |flags: &[&str], text: &str| cluster.admin().run_with_input(&[&["apply"], flags].concat(), text);
    let manifests = memgate(&IMAGE)?;
    apply(&["-f", "-"], &manifests)?.ok()?;
    // An apiserver counts an empty list in place of none as a change of entries, so these are compared as they are.
    let specifications = || -> Result<String> {
        let get = |kinds: &str, columns: &str| -> Result<String> {
            let columns = format!("-o=jsonpath={{range .items[*]}}{{.kind}} {columns}\n{{end}}");
            Ok(cluster.kubectl(&["get", kinds, "-n", "memgate-system", &columns])?.ok()?.stdout)
        };
        let entries = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
        let others = get("deployments,poddisruptionbudgets,cronjobs", "{.metadata.generation}")?;
        Ok(others + &get(entries, "{.webhooks}")?)
    };
    let before = specifications()?;
    apply(&["-k", KUSTOMIZE], "")?.ok()?;
    let after = specifications()?;
    ensure!(after == before, "kustomize changes:\n{before}to\n{after}");

    // The apiserver has added defaults to fields that are owned as a whole.
    let tool = ["--server-side", "--field-manager=argocd-controller", "-k", KUSTOMIZE];
    let refusal = apply(&tool, "")?.refusal()?;
    ensure!(refusal.contains("conflict with \"kubectl-client-side-apply\""), "{refusal}");
    Ok(())
}
