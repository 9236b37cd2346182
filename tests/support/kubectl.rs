//! kubectl, as a user would run it, apart from the files and settings of the user who runs the tests.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    thread,
};

use anyhow::{Context, Result, bail};

/// So that a cluster which does not answer ends a test; a later flag of the caller's overrides it.
const REQUEST_TIMEOUT: &str = "--request-timeout=60s";

/// kubectl with one identity.
#[derive(Clone, Debug)]
pub(crate) struct Kubectl {
    /// The executable.
    pub(crate) program: PathBuf,
    /// Whom to be, and where.
    pub(crate) kubeconfig: PathBuf,
    /// The `HOME`, which takes the discovery cache.
    pub(crate) home: PathBuf,
}

/// What one run left.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// What it printed.
    pub(crate) stdout: String,
    /// What it complained about; warnings of the apiserver are here, too.
    pub(crate) stderr: String,
}

impl Kubectl {
    /// Runs it with nothing on standard input.
    ///
    /// # Errors
    /// When it cannot be started; a failure of kubectl itself is in the [`Output`].
    pub(crate) fn run(&self, args: &[&str]) -> Result<Output> {
        self.run_with_input(args, "")
    }

    /// Runs it with `input` on standard input, as for `apply -f -`.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Result<Output> {
        let mut child = Command::new(&self.program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg(REQUEST_TIMEOUT)
            .args(args)
            .env_clear()
            .env("HOME", &self.home)
            .current_dir(&self.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("failed to start {}", self.program.display()))?;
        let mut pipe = child.stdin.take().context("kubectl has no input")?;
        let output = thread::scope(|scope| {
            // Its own failure shows in kubectl's: a closed pipe only says that it did not read.
            scope.spawn(move || pipe.write_all(input.as_bytes()));
            child.wait_with_output()
        })?;
        Ok(Output {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// `kubectl apply -f -` of a manifest, which has to succeed.
    pub(crate) fn apply(&self, manifest: &str) -> Result<Output> {
        self.run_with_input(&["apply", "-f", "-"], manifest)?.ok()
    }

    /// The same for objects in a namespace, whatever comes of it.
    pub(crate) fn apply_in(&self, namespace: &str, manifest: &str) -> Result<Output> {
        self.run_with_input(&["apply", "-n", namespace, "-f", "-"], manifest)
    }
}

impl Output {
    /// Itself when kubectl succeeded.
    ///
    /// # Errors
    /// With kubectl's own words when it failed.
    pub(crate) fn ok(self) -> Result<Self> {
        if !self.status.success() {
            bail!("kubectl failed ({}): {}", self.status, self.stderr.trim());
        }
        Ok(self)
    }

    /// What kubectl complained about when it failed.
    ///
    /// # Errors
    /// When it succeeded.
    pub(crate) fn refusal(self) -> Result<String> {
        if self.status.success() {
            bail!("kubectl should have failed, but printed: {}", self.stdout.trim());
        }
        Ok(self.stderr)
    }
}
