//! Discovery: the API groups that the cluster serves, read every few seconds for all kinds together. Without it, each
//! kind of a platform that is not installed would cost a failing list.
//!
//! Every authenticated account has this permission (the role system:discovery). If it was taken away, every group counts
//! as served, and the list of a kind shows whether it is.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;

use memgate_certs::jitter::jitter;
use memgate_certs::kube_api::with_timeout;
use memgate_certs::library_error::explained;
use memgate_model::kind::Kind;

/// The timeout of one list; it takes milliseconds.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// The served API groups, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApiGroups {
    /// They were not read yet.
    Unknown,
    /// The list is forbidden; any group may be served.
    Any,
    /// These groups are served.
    Only(BTreeSet<String>),
}

impl ApiGroups {
    /// Whether the group of a kind is served; `None` before the first answer. The core group always is.
    pub(super) fn serves(&self, kind: &Kind) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::Any => Some(true),
            Self::Only(groups) => Some(kind.group.is_empty() || groups.contains(kind.group)),
        }
    }
}

/// Keeps `groups` up to date; never ends. Its receivers are notified of every answer, also when nothing has
/// changed. While the apiserver cannot be reached the last answer stays.
pub(crate) async fn poll(client: Client, groups: watch::Sender<ApiGroups>, pause: Duration) {
    loop {
        match with_timeout(LIST_TIMEOUT, client.list_api_groups()).await {
            Ok(list) => {
                let names = list.groups.into_iter().map(|group| group.name).collect();
                groups.send_replace(ApiGroups::Only(names));
            }
            Err(kube::Error::Api(status)) if status.code == 403 => {
                groups.send_replace(ApiGroups::Any);
            }
            Err(error) => tracing::debug!(error = explained(&error), "the API groups could not be listed"),
        }
        tokio::time::sleep(jitter(pause)).await;
    }
}
