//! Runs a command as a page, an alert or memgate prints it, with kubectl and memgate on the `PATH`.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use crate::{installed::MEMGATE, support::control_plane::ControlPlane};

/// Runs it in a shell as the administrator; it has to succeed.
pub(crate) fn run(cluster: &ControlPlane, script: &str) -> Result<String> {
    let kubectl = cluster.admin();
    let folders = [Path::new(MEMGATE), &kubectl.program].map(|program| program.parent().map(Path::display));
    let [memgate, programs] = folders.map(|folder| folder.map(|it| it.to_string()).unwrap_or_default());
    let output = Command::new("/bin/bash")
        .args(["-euo", "pipefail", "-c", script])
        .env_clear()
        .env("HOME", &kubectl.home)
        .env("KUBECONFIG", cluster.admin_kubeconfig())
        .env("PATH", format!("{memgate}:{programs}:/usr/bin:/bin"))
        .current_dir(&kubectl.home)
        .output()
        .context("failed to start bash")?;
    ensure!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
