//! Which API groups the cluster serves: asked once every few seconds for all kinds together, so that
//! a platform that is not installed costs no list of each of its kinds.
//!
//! Every authenticated account may ask (the role system:discovery). Where one may not, every group
//! counts as served, and the lists of the kinds tell the rest.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::model::kind::Kind;
use crate::server::store::watch::spread;

/// How long the apiserver may take to list them; it takes milliseconds.
const LONGEST: Duration = Duration::from_secs(10);

/// What is known of the API groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum Groups {
    /// Nothing yet.
    Unknown,
    /// Nobody says; any may be served.
    Any,
    /// These.
    Only(BTreeSet<String>),
}

impl Groups {
    /// Whether the group of a kind is served; `None` when nothing is known. The core group always is.
    pub(super) fn serve(&self, kind: &Kind) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::Any => Some(true),
            Self::Only(groups) => Some(kind.group.is_empty() || groups.contains(kind.group)),
        }
    }
}

/// Keeps `groups` up to date, and tells its receivers at each answer, also of no change, that it was
/// given; never ends. While the apiserver cannot be reached what is known stays.
pub(in crate::server) async fn follow_groups(client: Client, groups: watch::Sender<Groups>, pause: Duration) {
    loop {
        match timeout(LONGEST, client.list_api_groups()).await {
            Ok(Ok(list)) => {
                let names = list.groups.into_iter().map(|group| group.name).collect();
                groups.send_replace(Groups::Only(names));
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                groups.send_replace(Groups::Any);
            }
            Ok(Err(error)) => tracing::debug!(%error, "the API groups could not be listed"),
            Err(_) => tracing::debug!("the API groups were not listed in time"),
        }
        tokio::time::sleep(spread(pause)).await;
    }
}
