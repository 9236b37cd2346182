//! One replica, two of them, and everybody who is in their way.

use anyhow::{Result, ensure};

use crate::{
    certs::scene::{CONFIGURATIONS, Scene},
    support::{certs::Authority, wait},
    world::{Case, World},
};

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::new("certs::builtin_serves_what_the_apiserver_trusts", builtin)]
}

/// From nothing to an answered review, with the rights of the service account alone.
fn builtin(world: &World) -> Result<()> {
    let scene = Scene::new(world.cluster()?, "builtin")?;
    let mut memgate = scene.serve().live()?;
    // There is a CA already, but nobody to trust it.
    wait::until("a CA", || Ok((!scene.secret("ca.crt")?.is_empty()).then_some(())))?;
    wait::until("a reason", || {
        let (status, text) = memgate.probe("/readyz").unwrap_or_default();
        ensure!(status != 200, "ready before anybody trusts it");
        Ok(text.contains("do not trust the certificate").then_some(()))
    })?;
    scene.register(&memgate.endpoint())?;
    memgate.wait_until_ready()?;
    scene.wait_until_repaired()?;
    scene.wait_until_asked()?;

    for kind in CONFIGURATIONS {
        let configuration = scene.configuration(kind)?;
        let managers = configuration["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let own: Vec<_> = managers.iter().filter(|entry| entry["manager"] == "memgate-cabundle").collect();
        let [own] = own.as_slice() else { anyhow::bail!("{managers:?}") };
        let fields = own["fieldsV1"].to_string();
        ensure!(fields.contains("f:caBundle"), "{fields}");
        for other in ["f:rules", "f:url", "f:name", "\".\"", "f:failurePolicy", "f:metadata"] {
            ensure!(!fields.contains(other), "{other} in {fields}");
        }
    }
    scene.overwrite_bundles(None)?;
    scene.wait_until_repaired()?;
    let stranger = Authority::new("a stranger")?.pem();
    scene.overwrite_bundles(Some(&stranger))?;
    scene.wait_until_repaired()?;
    scene.wait_until_asked()?;
    let log = memgate.log();
    ensure!(!log.contains("forbidden"), "{log}");
    Ok(())
}
