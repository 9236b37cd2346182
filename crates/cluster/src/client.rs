//! Makes a client of a cluster: from a kubeconfig, one of its contexts, or the service account.

use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use thiserror::Error as ThisError;

use memgate_certs::library_error::explained;
use memgate_install::metadata::DEFAULT_NAMESPACE;
use memgate_primitives::causes::{in_words, with_causes};

/// The file with the namespace of a service account.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Why there is no client. The reasons are texts, since the errors of kube repeat their causes.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The kubeconfig or the context cannot be used.
    #[error("failed to use the {what}: {reason}")]
    Unusable {
        /// Which of them, with its path or name.
        what: String,
        /// Why.
        reason: String,
    },
    /// No cluster was found.
    #[error(
        "found no cluster: {0}, and this is not a pod of a cluster; give --kubeconfig FILE or --context NAME"
    )]
    NoCluster(String),
    /// The client library refuses the configuration.
    #[error("failed to make a client of the cluster: {0}")]
    Client(String),
}

/// The choice of a cluster.
#[derive(Debug, Clone, Default)]
pub struct KubeContext {
    /// The kubeconfig; without it KUBECONFIG, `~/.kube/config`, or the service account.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    pub context: Option<String>,
}

impl KubeContext {
    /// A client of the cluster; nothing is called yet.
    ///
    /// # Errors
    /// When there is no such kubeconfig, or it cannot be used.
    pub async fn client(&self) -> Result<kube::Client, Error> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match (&self.kubeconfig, &self.context) {
            (Some(path), _) => {
                let what = format!("kubeconfig {}", path.display());
                let failed = |reason| Error::Unusable { what: what.clone(), reason };
                let kubeconfig = Kubeconfig::read_from(path).map_err(|error| {
                    failed(match error {
                        KubeconfigError::ReadConfig(error, _) => in_words(&error),
                        other => with_causes(&other),
                    })
                })?;
                let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
                config.map_err(|error| failed(with_causes(&error)))?
            }
            (None, Some(context)) => {
                let failed = |reason| Error::Unusable { what: format!("context {context}"), reason };
                let config = kube::Config::from_kubeconfig(&options).await;
                config.map_err(|error| failed(in_plain_words(&error)))?
            }
            (None, None) => {
                let config = kube::Config::infer().await;
                config.map_err(|error| Error::NoCluster(no_kubeconfig(&error)))?
            }
        };
        kube::Client::try_from(config).map_err(|error| Error::Client(explained(&error)))
    }
}

/// Why the usual kubeconfig cannot be used.
fn no_kubeconfig(error: &(dyn std::error::Error + 'static)) -> String {
    match error.source().and_then(|cause| cause.downcast_ref()) {
        Some(error @ KubeconfigError::ReadConfig(..)) => in_plain_words(error),
        Some(other) => format!("the kubeconfig cannot be used ({})", with_causes(other)),
        None => with_causes(error),
    }
}

/// The error in words. That of a file has the path in debug form.
fn in_plain_words(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, path) => {
            format!("the kubeconfig {} cannot be read ({})", path.display(), in_words(error))
        }
        other => with_causes(other),
    }
}

/// The namespace that this process runs in, or the usual one outside of a cluster.
pub fn own_namespace() -> String {
    let namespace = std::fs::read_to_string(Path::new(NAMESPACE_FILE)).unwrap_or_default();
    let namespace = namespace.trim();
    if namespace.is_empty() { DEFAULT_NAMESPACE.to_owned() } else { namespace.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_that_is_not_there_is_named_without_quotes() {
        let not_found = std::fs::File::open("/a/config").expect_err("there is none");
        let error = KubeconfigError::ReadConfig(not_found, PathBuf::from("/a/config"));
        let expected = "the kubeconfig /a/config cannot be read (no such file or directory)";
        assert_eq!(in_plain_words(&error), expected);
    }
}
