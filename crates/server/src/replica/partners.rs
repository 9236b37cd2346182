//! The other replicas: known by their Leases, and asked on the plain port when this replica hears nothing.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::{Request, StatusCode};
use futures::future::{join, join_all};
use http_body_util::{BodyExt as _, Limited};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::client::Body;
use kube::{Api, Client, Config};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::options::OwnPod;
use crate::replica::{REQUEST_TIMEOUT, Replica};
use crate::store::lock;
use memgate_certs::failure_log::FailureLog;
use memgate_certs::kube_api::{jitter, with_timeout};
use memgate_install::replica::{ANNOTATION, LABEL, ReplicaReport, SILENT_SECONDS};

/// How often the Leases are read, and the others asked.
const INTERVAL: Duration = Duration::from_secs(30);

/// How long another replica may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// How many Leases are read, and how many replicas are asked.
const MAX_LEASES: u32 = 50;
const MAX_PARTNERS: usize = 8;

/// How many bytes an answer may have: a name and a number.
const MAX_ANSWER_BYTES: usize = 300;

/// Another replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Partner {
    name: String,
    uid: String,
    address: SocketAddr,
}

impl Replica {
    /// Reads the Leases of all replicas, and asks the others when this one hears nothing; never ends.
    pub(super) async fn ask_partners(&self, client: &Client) {
        let Some((installation, own)) = self.installation.as_ref().zip(self.pod()) else { return };
        let leases: Api<Lease> = Api::namespaced(client.clone(), &installation.namespace);
        let params = ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1)).limit(MAX_LEASES);
        let mut failures = FailureLog::default();
        let mut ticks = interval(jitter(INTERVAL));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let listed = with_timeout(REQUEST_TIMEOUT, leases.list(&params));
            let (listed, better) = join(listed, self.better()).await;
            lock(&self.known).better = better;
            if let Some(list) = failures.log("read the Leases of the replicas", listed) {
                self.note_leases(&list.items, own);
            }
        }
    }

    fn note_leases(&self, leases: &[Lease], own: &OwnPod) {
        let now = self.clock.timestamp();
        let read: Vec<_> = leases.iter().map(|lease| read(lease, now)).collect();
        let count =
            |wanted| read.iter().filter(|it| it.as_ref().map(|(is_heard, _)| *is_heard) == wanted).count();
        self.metrics.set_replicas([
            ("heard", count(Some(true))),
            ("silent", count(Some(false))),
            ("unknown", count(None)),
        ]);
        let others = read.into_iter().flatten().filter(|(is_heard, other)| *is_heard && other.uid != own.uid);
        lock(&self.known).partners = others.map(|(_, other)| other).take(MAX_PARTNERS).collect();
    }

    /// A replica that is ready and hears of more kinds than this one, once this one has heard nothing for long.
    async fn better(&self) -> Option<SocketAddr> {
        self.silence()?;
        let partners = lock(&self.known).partners.clone();
        let asked = partners.into_iter().map(|partner| async {
            let address = partner.address;
            Some((timeout(ANSWER_TIMEOUT, partner.silent_kinds()).await.ok()??, address))
        });
        let own = self.store.stale().len();
        let answers = join_all(asked).await.into_iter().flatten();
        answers.filter(|(silent, _)| *silent < own).map(|(_, address)| address).next()
    }
}

impl Partner {
    /// Of how many kinds it has heard nothing, if it is there and ready.
    async fn silent_kinds(self) -> Option<usize> {
        let url = format!("http://{}", self.address).parse().ok()?;
        let mut config = Config::new(url);
        config.default_retry = false;
        let client = Client::try_from(config).ok()?;
        let request = Request::get(format!("/silent/{}", self.uid)).body(Body::empty()).ok()?;
        let answer = client.send(request).await.ok().filter(|answer| answer.status() == StatusCode::OK)?;
        let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await.ok()?.to_bytes();
        // Whoever has this address now does not know the name.
        str::from_utf8(&body).ok()?.strip_prefix(&*self.name)?.trim_start().parse().ok()
    }
}

/// Whether the replica of a Lease hears, and where it can be asked; `None` if no replica wrote it. One that was not renewed is that
/// of a silent replica.
fn read(lease: &Lease, now: Timestamp) -> Option<(bool, Partner)> {
    let metadata = &lease.metadata;
    let report = metadata.annotations.as_ref()?.get(ANNOTATION)?;
    let report: ReplicaReport = serde_json::from_str(report).ok()?;
    let owner = metadata.owner_references.iter().flatten().find(|owner| owner.kind == "Pod")?;
    // It is a part of the path of a request.
    let uid =
        Some(owner.uid.clone()).filter(|uid| uid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))?;
    let heard: Timestamp = report.heard_until.parse().ok()?;
    let renewed = lease.spec.as_ref()?.renew_time.as_ref()?.0;
    let limit = now - SignedDuration::from_secs(SILENT_SECONDS.cast_signed());
    let (name, address) = (owner.name.clone(), report.address.parse().ok()?);
    Some((heard.min(renewed) >= limit, Partner { name, uid, address }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lease(change: impl FnOnce(&mut Value)) -> Lease {
        let report = ReplicaReport {
            address: "10.0.0.7:8081".to_owned(),
            heard_until: "2026-01-01T00:00:00Z".to_owned(),
            ..ReplicaReport::default()
        };
        let mut lease = json!({
            "metadata": {
                "annotations": {ANNOTATION: json!(report).to_string()},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "memgate-0", "uid": "a-1"}],
            },
            "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"},
        });
        change(&mut lease);
        serde_json::from_value(lease).expect("a Lease")
    }

    fn state(change: impl FnOnce(&mut Value), seconds: i64) -> Option<(bool, String)> {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let (is_heard, partner) = read(&lease(change), now + SignedDuration::from_secs(seconds))?;
        Some((is_heard, format!("{} {}", partner.uid, partner.address)))
    }

    #[test]
    fn a_lease_is_that_of_a_replica_which_hears_or_does_not() {
        let at = |is_heard| Some((is_heard, "a-1 10.0.0.7:8081".to_owned()));
        assert_eq!(state(|_| (), 0), at(true));
        assert_eq!(state(|_| (), 121), at(false));
        let renewed = |lease: &mut Value| lease["spec"]["renewTime"] = json!("2026-01-01T01:00:00.000000Z");
        assert_eq!(state(renewed, 3600), at(false), "it writes, but hears nothing");
    }

    #[test]
    fn what_no_replica_wrote_is_not_asked() {
        let annotation = |text: &str| {
            let text = text.to_owned();
            move |lease: &mut Value| lease["metadata"]["annotations"][ANNOTATION] = json!(text)
        };
        let ownerless = |lease: &mut Value| lease["metadata"]["ownerReferences"] = json!([]);
        for state in [
            state(annotation("no JSON"), 0),
            state(annotation("{}"), 0),
            state(annotation(r#"{"address": "example.com:80", "heardUntil": "2026-01-01T00:00:00Z"}"#), 0),
            state(ownerless, 0),
        ] {
            assert_eq!(state, None);
        }
        let path =
            |lease: &mut Value| lease["metadata"]["ownerReferences"][0]["uid"] = json!("a/../../metrics");
        assert_eq!(state(path, 0), None);
    }
}
