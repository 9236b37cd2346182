//! Makes a client of a cluster: from a kubeconfig, one of its contexts, or the service account.

mod access;
mod proxy;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kube::config::{Kubeconfig, KubeconfigError};
use thiserror::Error as ThisError;

use crate::client::access::Access;
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
    /// A client of the cluster of this pod, as its service account.
    ///
    /// # Errors
    /// When this is not a pod.
    #[expect(clippy::unused_async, reason = "the client starts a task, which needs a runtime")]
    pub async fn client_of_pod() -> Result<kube::Client, Error> {
        let no_pod = || Error::NoCluster("--in-cluster was given".to_owned());
        let access = Access::of_pod().ok_or_else(no_pod)?;
        access.client().map_err(Error::Client)
    }

    /// A client of the cluster; nothing is called yet.
    ///
    /// # Errors
    /// When there is no such kubeconfig, or it cannot be used.
    #[expect(clippy::unused_async, reason = "the client starts a task, which needs a runtime")]
    pub async fn client(&self) -> Result<kube::Client, Error> {
        let context = self.context.as_deref();
        let access = match (&self.kubeconfig, context) {
            (Some(path), _) => {
                let kubeconfig = Kubeconfig::read_from(path).map_err(|error| match error {
                    KubeconfigError::ReadConfig(error, _) => in_words(&error),
                    other => in_plain_words(&other),
                });
                let access = kubeconfig.and_then(|kubeconfig| Access::of(kubeconfig, context));
                let what = format!("kubeconfig {}", path.display());
                access.map_err(|reason| Error::Unusable { what, reason })?
            }
            (None, Some(name)) => {
                let kubeconfig = usual_kubeconfig().map_err(|error| in_plain_words(&error));
                let access = kubeconfig.and_then(|kubeconfig| Access::of(kubeconfig, context));
                access.map_err(|reason| Error::Unusable { what: format!("context {name}"), reason })?
            }
            (None, None) => usual_kubeconfig()
                .map_err(|error| no_kubeconfig(&error))
                .and_then(|kubeconfig| Access::of(kubeconfig, None).map_err(|reason| unusable(&reason)))
                .or_else(|reason| Access::of_pod().ok_or(Error::NoCluster(reason)))?,
        };
        access.client().map_err(Error::Client)
    }
}

/// The files of KUBECONFIG, else `~/.kube/config`. Of several files, those that do not exist are passed over, as kubectl
/// does.
fn usual_kubeconfig() -> Result<Kubeconfig, KubeconfigError> {
    let list = std::env::var_os("KUBECONFIG").unwrap_or_default();
    merged(std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()))
}

fn merged(paths: impl Iterator<Item = PathBuf>) -> Result<Kubeconfig, KubeconfigError> {
    let (mut whole, mut missing): (Option<Kubeconfig>, _) = (None, None);
    for path in paths {
        match (Kubeconfig::read_from(path), whole.take()) {
            (Err(KubeconfigError::ReadConfig(error, path)), known) if error.kind() == ErrorKind::NotFound => {
                whole = known;
                missing.get_or_insert(KubeconfigError::ReadConfig(error, path));
            }
            (next, None) => whole = Some(next?),
            (next, Some(known)) => whole = Some(known.merge(next?)?),
        }
    }
    match (whole, missing) {
        (Some(whole), _) => Ok(whole),
        (None, Some(missing)) => Err(missing),
        (None, None) => Kubeconfig::read(),
    }
}

/// Why the usual kubeconfig cannot be used.
fn no_kubeconfig(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(..) => in_plain_words(error),
        other => unusable(&in_plain_words(other)),
    }
}

fn unusable(reason: &str) -> String {
    format!("the kubeconfig cannot be used ({reason})")
}

/// The error in words. That of a file has the path in debug form, and that of its text quotes lines, which may hold tokens.
fn in_plain_words(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, path) => {
            format!("the kubeconfig {} cannot be read ({})", path.display(), in_words(error))
        }
        KubeconfigError::Parse(error) => match error.location() {
            Some(place) => {
                format!(
                    "it is not a kubeconfig in YAML; see line {}, column {}",
                    place.line(),
                    place.column()
                )
            }
            None => "it is not a kubeconfig in YAML".to_owned(),
        },
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

    #[test]
    fn of_several_files_those_that_are_missing_are_passed_over() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a"), "current-context: a").expect("a file");
        std::fs::write(path("b"), "{current-context: b, contexts: [{name: b}]}").expect("a file");
        let read = |names: &[&str]| merged(names.iter().map(|name| path(name)));
        let whole = read(&["missing", "a", "gone", "b"]).expect("a kubeconfig");
        assert_eq!(whole.current_context.as_deref(), Some("a"), "the first file wins");
        assert_eq!(whole.contexts.len(), 1, "those behind it add to it");
        let error = in_plain_words(&read(&["missing", "gone"]).expect_err("none exists"));
        assert!(error.contains("/missing cannot be read (no such file"), "{error}");
        std::fs::write(path("a"), "clusters: 1").expect("a file");
        assert!(read(&["b", "a"]).is_err(), "a file that cannot be read is an error");
    }
}
