//! Whether memgate's account has the rights that `memgate manifests` gives it.

use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::check::{Check, abbreviated};
use crate::cluster_state::Installation;
use crate::doctor::paused::{MAX_CONCURRENT_REVIEWS, allowed};
use crate::reader::ClusterReader;
use memgate_install::metadata::NAME;
use memgate_install::rights::Right;

const ID: &str = "rights";

/// One check of all rights.
pub(super) async fn check(reader: &ClusterReader, found: &Installation, rights: Vec<Right>) -> Check {
    let subject = format!("ServiceAccount {}/{NAME}", found.namespace);
    let count = rights.len();
    let asked = rights.into_iter().map(|right| async move {
        let is_given = allowed(reader, &right.review(Some((&found.namespace, NAME)))).await?.is_some();
        Ok::<_, String>((!is_given).then(|| right.to_string()))
    });
    let missing = stream::iter(asked).buffered(MAX_CONCURRENT_REVIEWS).try_collect::<Vec<_>>().await;
    match missing.map(|missing| missing.into_iter().flatten().collect::<Vec<String>>()) {
        Err(why) => Check::unknown(ID, subject, why),
        Ok(missing) if missing.is_empty() => Check::ok(ID, subject, format!("it has all {count} rights")),
        Ok(missing) => {
            let help = format!("{} | kubectl apply -f -", found.manifests("--only rbac"));
            Check::fail(ID, subject, format!("it may not {}", abbreviated(&missing))).help(help)
        }
    }
}
