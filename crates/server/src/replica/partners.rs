//! The other replicas: known by their Leases, and asked on the plain port when this replica hears nothing.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use futures::future::{join, join_all};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client};
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

/// How many bytes an answer may have: a number.
const MAX_ANSWER_BYTES: usize = 16;

/// Another replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Partner {
    uid: String,
    address: SocketAddr,
}

/// What a Lease shows of a replica.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Heard,
    Silent,
    Unknown,
}

impl Replica {
    /// Reads the Leases of all replicas, and asks the others when this one hears nothing; never ends.
    pub(super) async fn ask_partners(&self, client: &Client) {
        let Some((installation, own)) = self.installation.as_ref().zip(self.pod()) else { return };
        let leases: Api<Lease> = Api::namespaced(client.clone(), &installation.namespace);
        let params = ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1)).limit(MAX_LEASES);
        let http = HttpClient::builder(TokioExecutor::new()).build_http();
        let mut failures = FailureLog::default();
        let mut ticks = interval(jitter(INTERVAL));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let listed = with_timeout(REQUEST_TIMEOUT, leases.list(&params));
            let (listed, better) = join(listed, self.better(&http)).await;
            lock(&self.known).better = better;
            if let Some(list) = failures.log("read the Leases of the replicas", listed) {
                self.note_leases(&list.items, own);
            }
        }
    }

    fn note_leases(&self, leases: &[Lease], own: &OwnPod) {
        let now = self.clock.timestamp();
        let states: Vec<_> = leases.iter().map(|lease| read(lease, now)).collect();
        let count = |wanted| states.iter().filter(|(state, _)| *state == wanted).count();
        self.metrics.set_replicas([
            ("heard", count(State::Heard)),
            ("silent", count(State::Silent)),
            ("unknown", count(State::Unknown)),
        ]);
        let others =
            states.into_iter().filter(|(state, _)| *state == State::Heard).filter_map(|(_, partner)| partner);
        let others = others.filter(|partner| partner.uid != own.uid).take(MAX_PARTNERS);
        lock(&self.known).partners = others.collect();
    }

    /// A replica that is ready and hears of more kinds than this one, once this one has heard nothing for long.
    async fn better(&self, http: &HttpClient<HttpConnector, Empty<Bytes>>) -> Option<SocketAddr> {
        self.silence()?;
        let partners = lock(&self.known).partners.clone();
        let addresses: Vec<_> = partners.iter().map(|partner| partner.address).collect();
        let asked =
            partners.into_iter().map(|partner| timeout(ANSWER_TIMEOUT, partner.silent_kinds(http.clone())));
        let answers = join_all(asked).await.into_iter().zip(addresses);
        let own = self.store.stale().len();
        answers
            .filter(|(silent, _)| matches!(silent, Ok(Some(silent)) if *silent < own))
            .map(|(_, it)| it)
            .next()
    }
}

impl Partner {
    /// Of how many kinds it has heard nothing, if it is there and ready.
    async fn silent_kinds(self, http: HttpClient<HttpConnector, Empty<Bytes>>) -> Option<usize> {
        let url = format!("http://{}/silent/{}", self.address, self.uid).parse().ok()?;
        let answer = http.get(url).await.ok()?;
        if answer.status() != StatusCode::OK {
            return None;
        }
        let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await.ok()?.to_bytes();
        str::from_utf8(&body).ok()?.parse().ok()
    }
}

/// What a Lease says, and where its replica can be asked. One that was not renewed counts as silent, and one that no replica
/// wrote as unknown.
fn read(lease: &Lease, now: Timestamp) -> (State, Option<Partner>) {
    let metadata = &lease.metadata;
    let report = metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION));
    let report = report.and_then(|text| serde_json::from_str::<ReplicaReport>(text).ok());
    let owner = metadata.owner_references.iter().flatten().find(|owner| owner.kind == "Pod");
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0);
    let (Some(report), Some(owner), Some(renewed)) = (report, owner, renewed) else {
        return (State::Unknown, None);
    };
    let (Ok(heard), Ok(address)) = (report.heard_until.parse::<Timestamp>(), report.address.parse()) else {
        return (State::Unknown, None);
    };
    let limit = now - SignedDuration::from_secs(SILENT_SECONDS.cast_signed());
    let state = if heard.min(renewed) < limit { State::Silent } else { State::Heard };
    // It is a part of the path of a request.
    let is_plain = owner.uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (state, is_plain.then(|| Partner { uid: owner.uid.clone(), address }))
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

    fn state(change: impl FnOnce(&mut Value), seconds: i64) -> (State, Option<String>) {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let (state, partner) = read(&lease(change), now + SignedDuration::from_secs(seconds));
        (state, partner.map(|partner| format!("{} {}", partner.uid, partner.address)))
    }

    #[test]
    fn a_lease_is_that_of_a_replica_which_hears_or_does_not() {
        let at = || Some("a-1 10.0.0.7:8081".to_owned());
        assert_eq!(state(|_| (), 0), (State::Heard, at()));
        assert_eq!(state(|_| (), 121), (State::Silent, at()));
        let renewed = |lease: &mut Value| lease["spec"]["renewTime"] = json!("2026-01-01T01:00:00.000000Z");
        assert_eq!(state(renewed, 3600), (State::Silent, at()), "it writes, but hears nothing");
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
            assert_eq!(state, (State::Unknown, None));
        }
        let path =
            |lease: &mut Value| lease["metadata"]["ownerReferences"][0]["uid"] = json!("a/../../metrics");
        assert_eq!(state(path, 0), (State::Heard, None));
    }
}
