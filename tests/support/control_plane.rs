//! One running cluster: started in order, reached as any user that a test wants to be, ended on drop.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    api::{ObjectMeta, PostParams},
};
use tokio::runtime::Handle;

use super::{
    assets::{Assets, SearchPaths},
    audit::{Annotations, AuditLog},
    certs::Authority,
    components::{self, ApiServerFiles},
    connection::{self, Connection},
    kubeconfig::{self, Credential},
    kubectl::{Kubectl, Output},
    process::Process,
    scratch::Scratch,
    wait,
};

/// etcd, kube-apiserver and kube-controller-manager, ended in the opposite order of their start.
pub(crate) struct ControlPlane {
    controller_manager: Process,
    apiserver: Mutex<Process>,
    etcd: Mutex<Process>,
    admin: PathBuf,
    files: ApiServerFiles,
    port: u16,
    namespaces: AtomicU32,
    audit: AuditLog,
    connection: Connection,
    authority: Authority,
    assets: Assets,
    scratch: Scratch,
}

impl ControlPlane {
    /// Finds or builds the programs, starts them, and waits until the apiserver is ready.
    ///
    /// # Errors
    /// When a program is missing, or one does not come up; the text ends with the end of its log.
    pub(crate) fn start() -> Result<Self> {
        Self::start_with(None, &[])
    }

    /// The same with an apiserver that reaches Services through a proxy for HTTPS, since there is no
    /// network for them here, and with the controllers that let things come and go as in a real one.
    pub(crate) fn start_behind(proxy: SocketAddr) -> Result<Self> {
        Self::start_with(Some(proxy), &components::FURTHER)
    }

    fn start_with(proxy: Option<SocketAddr>, further: &[&str]) -> Result<Self> {
        let assets = Assets::find(&SearchPaths::from_environment()?)?;
        wait::with_free_ports(|[port]| Self::start_at(&assets, port, proxy, further))
    }

    fn start_at(assets: &Assets, port: u16, proxy: Option<SocketAddr>, further: &[&str]) -> Result<Self> {
        let scratch = Scratch::new("cluster")?;
        let authority = Authority::new("memgate test cluster")?;
        let files = ApiServerFiles::write(&scratch, &authority, proxy)?;
        let kubeconfig = |name: &str, user: &str, groups: &[&str]| {
            let pair = authority.client(user, groups)?;
            let credential = Credential::Certificate(&pair);
            kubeconfig::write(&scratch, name, &url(port), &authority.pem(), credential)
        };
        let admin = kubeconfig("admin", "test-admin", &["system:masters"])?;
        let controllers = kubeconfig("controllers", "system:kube-controller-manager", &[])?;

        let etcd = start_etcd(assets, &scratch)?;
        let mut apiserver = start_apiserver(assets, &files, &scratch, port)?;
        let connection = Connection::new(&admin)?;
        connection.wait_until_ready(&mut apiserver)?;
        let controller_manager = Process::start(
            "kube-controller-manager",
            &components::controller_manager(assets, &controllers, further),
            &scratch.path().join("kube-controller-manager.log"),
        )?;
        Ok(Self {
            controller_manager,
            apiserver: Mutex::new(apiserver),
            etcd: Mutex::new(etcd),
            admin,
            audit: AuditLog::new(&files.audit_log),
            files,
            port,
            namespaces: AtomicU32::new(0),
            connection,
            authority,
            assets: assets.clone(),
            scratch,
        })
    }

    /// The apiserver's address, `https://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        url(self.port)
    }

    /// The authority that signed the apiserver's certificate and whose clients it trusts.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The file of the audit log.
    pub(crate) fn audit_log_file(&self) -> &Path {
        &self.files.audit_log
    }

    /// A directory that lives as long as the cluster.
    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// The kubeconfig file of a member of `system:masters`.
    pub(crate) fn admin_kubeconfig(&self) -> &Path {
        &self.admin
    }

    /// A kubeconfig file for a user in at most two groups, proven by a client certificate.
    pub(crate) fn user_kubeconfig(&self, user: &str, groups: &[&str]) -> Result<PathBuf> {
        let pair = self.authority.client(user, groups)?;
        self.write_kubeconfig(user, Credential::Certificate(&pair))
    }

    /// A kubeconfig file for a service account, which has to exist, with a token that the
    /// apiserver issued: the identity that a pod of that account has, groups and all.
    pub(crate) fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let output = self.kubectl(&["create", "token", name, "--namespace", namespace])?;
        let token = output.ok()?.stdout;
        self.write_kubeconfig(&format!("{namespace}-{name}"), Credential::Token(token.trim()))
    }

    /// A kubeconfig file for a new service account that may do this to such resources in the namespace.
    pub(crate) fn account_that_may(&self, verb: &str, resource: &str, namespace: &str) -> Result<PathBuf> {
        let (verb, resource) = (format!("--verb={verb}"), format!("--resource={resource}"));
        self.kubectl(&["create", "role", "reader", &verb, &resource, "-n", namespace])?.ok()?;
        self.kubectl(&["create", "serviceaccount", "reader", "-n", namespace])?.ok()?;
        let account = format!("--serviceaccount={namespace}:reader");
        let binding = ["create", "rolebinding", "reader", "--role=reader", &account, "-n", namespace];
        self.kubectl(&binding)?.ok()?;
        self.service_account_kubeconfig(namespace, "reader")
    }

    fn write_kubeconfig(&self, user: &str, credential: Credential<'_>) -> Result<PathBuf> {
        let name = user.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let ca = self.authority.pem();
        kubeconfig::write(&self.scratch, &name, &self.url(), &ca, credential)
    }

    /// kubectl with the admin's identity.
    pub(crate) fn admin(&self) -> Kubectl {
        self.kubectl_as(self.admin.clone())
    }

    /// Runs kubectl as the admin, with nothing on standard input.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Result<Output> {
        self.admin().run(args)
    }

    /// kubectl with the identity of a kubeconfig file.
    pub(crate) fn kubectl_as(&self, kubeconfig: PathBuf) -> Kubectl {
        Kubectl { program: self.assets.kubectl.clone(), kubeconfig, home: self.scratch.path().to_owned() }
    }

    /// A client with the admin's identity.
    pub(crate) fn client(&self) -> Client {
        self.connection.client()
    }

    /// The settings for a client with the identity of a kubeconfig file.
    pub(crate) fn config(&self, kubeconfig: &Path) -> Result<Config> {
        self.block_on(connection::config(kubeconfig))
    }

    /// Runs a future to its end, for trials are plain functions.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.connection.block_on(future)
    }

    /// The runtime of the client, for what runs during the test.
    pub(crate) fn runtime(&self) -> &Handle {
        self.connection.runtime()
    }

    /// Creates a namespace that no other test has, and returns its name.
    pub(crate) fn fresh_namespace(&self, prefix: &str) -> Result<String> {
        self.labelled_namespace(prefix, &[])
    }

    /// The same with labels.
    pub(crate) fn labelled_namespace(&self, prefix: &str, labels: &[(&str, &str)]) -> Result<String> {
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed);
        let name = format!("{prefix}-{number}");
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some(labels.collect::<BTreeMap<_, _>>()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let api: Api<Namespace> = Api::all(self.client());
        self.block_on(api.create(&PostParams::default(), &namespace))
            .with_context(|| format!("failed to create the namespace {name}"))?;
        Ok(name)
    }

    /// Kills the apiserver and starts it again at the same address, on the same store; returns
    /// when it is ready. Other users of the cluster get errors meanwhile.
    pub(crate) fn restart_apiserver(&self) -> Result<()> {
        let mut apiserver = self.lock_apiserver();
        apiserver.kill()?;
        *apiserver = start_apiserver(&self.assets, &self.files, &self.scratch, self.port)?;
        self.connection.wait_until_ready(&mut apiserver)
    }

    /// Stops the store for as long as the value lives; the apiserver still runs, but whatever needs
    /// the store has to wait.
    pub(crate) fn stall_store(&self) -> Result<Stalled<'_>> {
        let mut etcd = self.etcd.lock().unwrap_or_else(PoisonError::into_inner);
        etcd.signal("STOP")?;
        Ok(Stalled(etcd))
    }

    /// The ids of what runs: the apiserver, its store, and the controllers.
    pub(crate) fn processes(&self) -> Result<[u32; 3]> {
        let etcd = self.etcd.lock().unwrap_or_else(PoisonError::into_inner);
        let ids = [self.lock_apiserver().id(), etcd.id(), self.controller_manager.id()];
        let [Some(apiserver), Some(etcd), Some(controllers)] = ids else { bail!("a component has ended") };
        Ok([apiserver, etcd, controllers])
    }

    /// The audit log so far: every answered write, one `audit.k8s.io/v1` Event a line.
    pub(crate) fn audit_log(&self) -> String {
        fs::read_to_string(&self.files.audit_log).unwrap_or_default()
    }

    /// What webhooks and others noted about the request with this audit id, once it is written.
    pub(crate) fn annotations(&self, audit_id: &str) -> Result<Annotations> {
        wait::until("a request in the audit log", || self.audit.annotations(audit_id))
    }

    fn lock_apiserver(&self) -> MutexGuard<'_, Process> {
        // A trial that panicked while it held the lock left a process that is whole.
        self.apiserver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store that does nothing until this is dropped.
pub(crate) struct Stalled<'c>(MutexGuard<'c, Process>);

impl Drop for Stalled<'_> {
    fn drop(&mut self) {
        // The caller that waits for the store will say that it did not go on.
        let _ = self.0.signal("CONT");
    }
}

fn url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

fn start_etcd(assets: &Assets, scratch: &Scratch) -> Result<Process> {
    let log = scratch.path().join("etcd.log");
    let mut etcd = Process::start("etcd", &components::etcd(assets, scratch), &log)?;
    let socket = components::etcd_socket(scratch);
    etcd.until("etcd to listen", || Ok(socket.exists().then_some(())))?;
    Ok(etcd)
}

fn start_apiserver(assets: &Assets, files: &ApiServerFiles, scratch: &Scratch, port: u16) -> Result<Process> {
    Process::start(
        "kube-apiserver",
        &components::apiserver(assets, files, port),
        &scratch.path().join("kube-apiserver.log"),
    )
}
