//! How a command reaches the cluster of a kubeconfig: the address, the credentials, an exec plugin and a proxy.

use std::error::Error;
use std::fmt::Write as _;
use std::iter::successors;
use std::sync::Arc;

use axum::BoxError;
use kube::Config;
use kube::client::{AuthError, ClientBuilder};
use kube::config::{AuthInfo, Cluster, ExecAuthCluster, Kubeconfig};
use tower::util::MapErrLayer;

use crate::client::proxy::{Proxy, ProxyVariables};
use memgate_certs::library_error::explained;
use memgate_primitives::causes::{cause, in_words, with_causes};
use memgate_primitives::credential::masked;

/// How many characters of an exec plugin's own message are shown.
const MAX_PLUGIN_CHARS: usize = 500;

/// The way to a cluster.
pub(super) struct Access {
    config: Config,
    between: Between,
}

/// The programs between a command and the apiserver, of which one may have failed.
#[derive(Debug, Clone, Default)]
struct Between {
    proxy: Option<Proxy>,
    plugin: Option<Plugin>,
}

/// The program that makes credentials.
#[derive(Debug, Clone)]
struct Plugin {
    command: String,
    /// How to get it.
    install_hint: Option<String>,
}

impl Access {
    /// The way to the cluster of a context, or of the current one.
    ///
    /// # Errors
    /// When the kubeconfig does not have what the context names, or it cannot be used.
    pub(super) fn of(kubeconfig: Kubeconfig, context: Option<&str>) -> Result<Self, String> {
        let name = context.map(str::to_owned).or(kubeconfig.current_context).unwrap_or_default();
        if name.is_empty() {
            return Err("it has no current context; name one with --context".to_owned());
        }
        let mut contexts = kubeconfig.contexts.into_iter().filter(|one| one.name == name);
        let context =
            contexts.find_map(|one| one.context).ok_or_else(|| format!("it has no context {name}"))?;
        let mut clusters = kubeconfig.clusters.into_iter().filter(|one| one.name == context.cluster);
        let cluster = clusters.find_map(|one| one.cluster);
        let cluster = cluster
            .ok_or_else(|| format!("it has no cluster {}, which context {name} names", context.cluster))?;
        let mut users =
            kubeconfig.auth_infos.into_iter().filter(|one| Some(&one.name) == context.user.as_ref());
        let user = users.find_map(|one| one.auth_info).unwrap_or_default();
        let mut access = Self::to(&cluster, user)?;
        if let Some(namespace) = context.namespace {
            access.config.default_namespace = namespace;
        }
        Ok(access)
    }

    /// The way of the service account of this pod, if this is one. The variables of a proxy are for what leaves the cluster.
    pub(super) fn of_pod() -> Option<Self> {
        Some(Self { config: Config::incluster().ok()?, between: Between::default() })
    }

    fn to(cluster: &Cluster, mut user: AuthInfo) -> Result<Self, String> {
        let server = cluster.server.as_deref().filter(|server| !server.is_empty());
        let server = server.ok_or("it has no address of the cluster")?;
        let server =
            server.parse().map_err(|error| format!("the address of the cluster is invalid ({error})"))?;
        // The type for exec plugins is the one that reads the CA.
        let for_plugin = ExecAuthCluster::try_from(cluster).map_err(|error| with_causes(&error))?;
        let proxy = Proxy::choose(cluster.proxy_url.as_deref(), &ProxyVariables::read(), &server)?;
        let mut config = Config::new(server);
        config.root_cert = for_plugin.certificate_authority_data.as_deref().map(certificates).transpose()?;
        config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or_default();
        config.tls_server_name.clone_from(&cluster.tls_server_name);
        config.proxy_url = proxy.as_ref().map(|proxy| proxy.uri.clone());
        let plugin = user.exec.as_mut().map(|exec| {
            if exec.provide_cluster_info {
                exec.cluster = Some(for_plugin);
            }
            Plugin {
                command: exec.command.clone().unwrap_or_default(),
                install_hint: exec.install_hint.clone(),
            }
        });
        config.auth_info = user;
        Ok(Self { config, between: Between { proxy, plugin } })
    }

    /// A client whose errors name the proxy or the plugin that failed.
    pub(super) fn client(self) -> Result<kube::Client, String> {
        let between = Arc::new(self.between);
        let in_words = |error: kube::Error| between.explain(&error).unwrap_or_else(|| explained(&error));
        let builder = ClientBuilder::try_from(self.config).map_err(in_words)?;
        let layer =
            MapErrLayer::new(move |error: BoxError| between.explain(&*error).map_or(error, BoxError::from));
        Ok(builder.with_layer(&layer).build())
    }
}

impl Between {
    /// What an error says about the proxy or the plugin.
    fn explain(&self, error: &(dyn Error + 'static)) -> Option<String> {
        let of_plugin = |plugin: &Plugin| {
            let mut chain = successors(Some(error), |error| cause(*error));
            chain.find_map(|error| plugin.explain(error.downcast_ref()?))
        };
        let of_proxy = |proxy: &Proxy| proxy.explain(error);
        self.plugin.as_ref().and_then(of_plugin).or_else(|| self.proxy.as_ref().and_then(of_proxy))
    }
}

impl Plugin {
    /// What an error says about the plugin: nothing of its arguments, its environment and its output, which hold credentials.
    fn explain(&self, error: &AuthError) -> Option<String> {
        let command = &self.command;
        match error {
            AuthError::AuthExecStart(error) => {
                let mut text = format!(
                    "the exec plugin {command} of the kubeconfig could not be run: {}",
                    in_words(error)
                );
                if let Some(hint) =
                    self.install_hint.as_deref().map(str::trim).filter(|hint| !hint.is_empty())
                {
                    let _infallible = write!(text, "\n{hint}");
                }
                Some(text)
            }
            AuthError::AuthExecRun { out, .. } => {
                let said = String::from_utf8_lossy(&out.stderr);
                let said: String = masked(said.trim()).chars().take(MAX_PLUGIN_CHARS).collect();
                let said = if said.is_empty() { said } else { format!(": {said}") };
                Some(format!("the exec plugin {command} of the kubeconfig ended with {}{said}", out.status))
            }
            AuthError::AuthExecParse(_) => {
                Some(format!("the exec plugin {command} of the kubeconfig did not print an ExecCredential"))
            }
            _ => None,
        }
    }
}

/// The certificates of a PEM file, as DER.
fn certificates(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let blocks =
        pem::parse_many(text).map_err(|error| format!("the CA of the cluster is not PEM ({error})"))?;
    let certificates = blocks.into_iter().filter(|block| block.tag() == "CERTIFICATE");
    Ok(certificates.map(pem::Pem::into_contents).collect())
}
