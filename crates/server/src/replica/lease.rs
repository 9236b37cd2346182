//! The Lease in which a replica says what it knows. Its name is that of the pod, which owns it, so it goes when the pod goes.

use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::options::OwnPod;
use crate::replica::{REQUEST_TIMEOUT, Replica};
use crate::store::lock;
use memgate_certs::failure_log::FailureLog;
use memgate_certs::kube_api::with_timeout;
use memgate_install::metadata::NAME;
use memgate_install::replica::{ANNOTATION, LABEL, ReplicaReport, SILENT_SECONDS};
use memgate_primitives::plain_text::cut;

/// The pause between two writes.
const PAUSE: Duration = Duration::from_secs(10);

/// How many texts of each sort it has, and how long they may be.
const MAX_TEXTS: usize = 20;
const MAX_CHARS: usize = 600;

impl Replica {
    /// Writes the Lease again and again; never ends.
    pub(super) async fn keep_lease(&self, client: &Client, reasons: impl Fn() -> Vec<String>) {
        let Some((installation, pod)) = self.installation.as_ref().zip(self.pod()) else { return };
        let api: Api<Lease> = Api::namespaced(client.clone(), &installation.namespace);
        let params = PatchParams::apply("memgate-replica").force();
        let (step, mut failures) =
            (format!("write the Lease {} of this replica", pod.name), FailureLog::default());
        loop {
            let lease = lease(pod, &self.report(pod, &reasons()), self.clock.timestamp());
            let written =
                with_timeout(REQUEST_TIMEOUT, api.patch(&pod.name, &params, &Patch::Apply(&lease))).await;
            failures.log(&step, written);
            sleep(PAUSE).await;
        }
    }

    fn report(&self, pod: &OwnPod, not_ready: &[String]) -> ReplicaReport {
        let short = |text: &String| cut(text, MAX_CHARS).into_owned();
        let unread = self.store.unread().into_iter().take(MAX_TEXTS).filter_map(|unread| {
            Some((format!("{} {}", unread.kind.api_version(), unread.kind.kind), short(unread.why.as_ref()?)))
        });
        ReplicaReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            address: SocketAddr::new(pod.address, self.port).to_string(),
            heard_until: format!("{:.0}", self.clock.timestamp() - self.store.silence()),
            not_ready: not_ready.iter().take(MAX_TEXTS).map(short).collect(),
            not_read: unread.collect(),
            entries: lock(&self.known).entries.clone(),
            clock_seconds: self.clock.ahead(),
        }
    }
}

fn lease(pod: &OwnPod, report: &ReplicaReport, now: Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": pod.name,
            "labels": {"app.kubernetes.io/name": NAME, LABEL.0: LABEL.1},
            "annotations": {ANNOTATION: json!(report).to_string()},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}],
        },
        "spec": {
            "holderIdentity": pod.name,
            "leaseDurationSeconds": SILENT_SECONDS,
            "renewTime": format!("{now:.6}"),
        },
    })
}
