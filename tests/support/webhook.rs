//! One running `memgate serve`, and the registration that makes an apiserver call it.

use std::{
    ffi::OsString,
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};

use super::{
    certs::{Authority, Pair},
    process::Process,
    scratch::Scratch,
    wait,
};

/// What to start; the addresses and the certificate are added to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Serve {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    settings: Option<String>,
    at: Option<Addresses>,
    own_certificate: bool,
    identity: Option<Identity>,
}

/// A certificate that several webhooks share, and its authority.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pair: Pair,
    ca: String,
}

impl Identity {
    /// A new one of an authority of its own.
    pub(crate) fn new() -> Result<Self> {
        let authority = Authority::new("memgate test webhook")?;
        Ok(Self { pair: authority.server("memgate")?, ca: authority.pem() })
    }

    /// The authority, PEM.
    pub(crate) fn ca(&self) -> &str {
        &self.ca
    }
}

/// Where a webhook listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    /// Reviews, by TLS.
    pub(crate) listen: SocketAddr,
    /// Probes and metrics, plain.
    pub(crate) health: SocketAddr,
}

impl Serve {
    /// `program serve`; the program is `env!("CARGO_BIN_EXE_memgate")`.
    pub(crate) fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }

    /// One more argument.
    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// With a settings file of this text.
    pub(crate) fn settings(mut self, text: &str) -> Self {
        self.settings = Some(text.to_owned());
        self
    }

    /// One variable; there is no other in its environment than these and `PATH`.
    pub(crate) fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Watch the cluster of a kubeconfig file.
    pub(crate) fn kubeconfig(self, path: &Path) -> Self {
        self.arg("--kubeconfig").arg(path)
    }

    /// Let it find a certificate by itself; its CA is unknown then.
    pub(crate) fn own_certificate(mut self) -> Self {
        self.own_certificate = true;
        self
    }

    /// Listen where another one did, rather than on free ports.
    pub(crate) fn at(mut self, addresses: Addresses) -> Self {
        self.at = Some(addresses);
        self
    }

    /// With this certificate, rather than one of its own.
    pub(crate) fn identity(mut self, identity: &Identity) -> Self {
        self.identity = Some(identity.clone());
        self
    }

    /// Starts it and waits until it says that it is ready.
    pub(crate) fn ready(&self) -> Result<Webhook> {
        self.start(Webhook::wait_until_ready)
    }

    /// Starts it and waits until it answers probes at all, ready or not.
    pub(crate) fn live(&self) -> Result<Webhook> {
        self.start(Webhook::wait_until_live)
    }

    fn start(&self, wait: fn(&mut Webhook) -> Result<()>) -> Result<Webhook> {
        let start_at = |addresses| {
            let mut webhook = self.spawn(addresses)?;
            wait(&mut webhook)?;
            Ok(webhook)
        };
        match self.at {
            Some(addresses) => start_at(addresses),
            None => wait::with_free_ports(|[listen, health]| start_at(Addresses::new(listen, health))),
        }
    }

    fn spawn(&self, addresses: Addresses) -> Result<Webhook> {
        let scratch = Scratch::new("webhook")?;
        let Identity { pair, ca } = match &self.identity {
            Some(identity) => identity.clone(),
            None => Identity::new()?,
        };
        let (cert, key) = pair.write(&scratch, "tls")?;
        let files = [Path::new("--tls-cert"), &cert, Path::new("--tls-key"), &key];
        if let Some(text) = &self.settings {
            fs::write(scratch.path().join("settings.yaml"), text)?;
        }
        let mut command = Command::new(&self.program);
        command
            .arg("serve")
            .args(["--listen", &addresses.listen.to_string()])
            .args(["--health", &addresses.health.to_string()])
            .args(files.iter().filter(|_| !self.own_certificate))
            .args(["--settings", "settings.yaml"].iter().filter(|_| self.settings.is_some()))
            .args(&self.args)
            .envs(self.env.iter().map(|(key, value)| (key, value)))
            .current_dir(scratch.path());
        let log = scratch.path().join("memgate.log");
        Ok(Webhook {
            process: Process::start("memgate serve", &command, &log)?,
            addresses,
            ca: if self.own_certificate { String::new() } else { ca },
            _scratch: scratch,
        })
    }
}

impl Addresses {
    fn new(listen: u16, health: u16) -> Self {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self { listen: at(listen), health: at(health) }
    }
}

/// A running webhook, killed on drop.
#[derive(Debug)]
pub(crate) struct Webhook {
    process: Process,
    addresses: Addresses,
    ca: String,
    _scratch: Scratch,
}

impl Webhook {
    /// Where it listens.
    pub(crate) fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// The authority of its certificate, PEM.
    pub(crate) fn ca(&self) -> &str {
        &self.ca
    }

    /// Where reviews go; the path is `/mutate` or `/validate`.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.addresses.listen, &self.ca)
    }

    /// Status and body of a probe or of `/metrics`; `None` when it does not answer.
    pub(crate) fn probe(&self, path: &str) -> Option<(u16, String)> {
        wait::http_get(self.addresses.health, path)
    }

    /// All of its metrics.
    pub(crate) fn metrics(&self) -> Result<String> {
        Ok(self.probe("/metrics").context("memgate has no metrics")?.1)
    }

    /// The value of one series of its metrics.
    pub(crate) fn metric(&self, series: &str) -> Result<f64> {
        let metrics = self.metrics()?;
        let value = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        Ok(value.with_context(|| format!("no {series}"))?.parse()?)
    }

    /// Everything that it printed so far, both streams.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    /// Its process, for signals and for waiting.
    pub(crate) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Asks it to end with `SIGTERM` and waits until it has.
    pub(crate) fn terminate(mut self) -> Result<ExitStatus> {
        self.process.signal("TERM")?;
        self.process.wait()
    }

    /// Waits until `/readyz` says 200.
    pub(crate) fn wait_until_ready(&mut self) -> Result<()> {
        self.wait_for("memgate to be ready", |(status, _)| *status == 200)
    }

    /// Waits until `/readyz` says anything.
    pub(crate) fn wait_until_live(&mut self) -> Result<()> {
        self.wait_for("memgate to answer probes", |_| true)
    }

    fn wait_for(&mut self, what: &str, enough: fn(&(u16, String)) -> bool) -> Result<()> {
        let health = self.addresses.health;
        self.process.until(what, || {
            let answer = wait::http_get(health, "/readyz");
            Ok(answer.filter(enough).map(|_| ()))
        })
    }
}

/// What an apiserver has to know to call a webhook on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    base: String,
    ca_bundle: String,
}

impl Endpoint {
    /// For a server that listens there with a certificate of this authority; an empty text is none.
    pub(crate) fn new(address: SocketAddr, ca_pem: &str) -> Self {
        Self { base: format!("https://{address}"), ca_bundle: BASE64_STANDARD.encode(ca_pem) }
    }

    /// The URL without a path, and the authority, DER.
    pub(crate) fn parts(&self) -> Result<(&str, Vec<u8>)> {
        let pem = BASE64_STANDARD.decode(&self.ca_bundle)?;
        Ok((&self.base, CertificateDer::from_pem_slice(&pem)?.to_vec()))
    }

    /// The `clientConfig` for a path that begins with a slash.
    pub(crate) fn client_config(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.base);
        if self.ca_bundle.is_empty() {
            return json!({"url": url});
        }
        json!({"url": url, "caBundle": self.ca_bundle})
    }

    /// Turns a webhook configuration made for a cluster into one for a test: each webhook in it is
    /// called here, and only for one namespace, for tests share a cluster.
    pub(crate) fn adopt(&self, configuration: &mut Value, namespace: &str) -> Result<()> {
        let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]});
        self.adopt_where(configuration, namespace, &only)
    }

    /// The same for all namespaces that fulfil a requirement of a label selector.
    pub(crate) fn adopt_where(&self, configuration: &mut Value, name: &str, only: &Value) -> Result<()> {
        configuration["metadata"]["name"] = json!(name);
        let is_mutating = configuration["kind"] == "MutatingWebhookConfiguration";
        let path = if is_mutating { "/mutate" } else { "/validate" };
        let webhooks = configuration["webhooks"].as_array_mut();
        for webhook in webhooks.context("the configuration has no webhooks")? {
            webhook["clientConfig"] = self.client_config(path);
            push(&mut webhook["namespaceSelector"]["matchExpressions"], only.clone());
        }
        Ok(())
    }
}

/// The sum of the series of metrics that begin like this.
pub(crate) fn sum(metrics: &str, start: &str) -> f64 {
    let values = metrics.lines().filter(|line| line.starts_with(start));
    values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Appends to a list that may not be there yet.
pub(crate) fn push(list: &mut Value, item: Value) {
    match list.as_array_mut() {
        Some(items) => items.push(item),
        None => *list = json!([item]),
    }
}
