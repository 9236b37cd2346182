//! What both benchmarks work on: one agent, its memory, and reviews of its pods.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::family::Family;
use memgate_model::object::{Coverage, KindState, Object};
use memgate_model::snapshot::Snapshot;
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::casefile::Case;
use memgate_workbench::files::casefile::read::read;
use memgate_workbench::files::read::collect;
use serde_json::Value;

/// The state of every benchmark: one agent and the Redis memory that it claims.
#[allow(dead_code, reason = "the bench over TLS has a state of files")]
pub(crate) fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::new(memgate_platforms::default_settings());
    let kinds = snapshot.settings.families.clone().into_iter().flat_map(|family| family.kinds.watched);
    for kind in kinds {
        snapshot.set(kind, KindState::new(Coverage::Watched));
    }
    for (group, kind, spec) in [
        ("arkonis.dev", "ArkAgent", r#"{"memoryRef":{"name":"notes"}}"#),
        (
            "arkonis.dev",
            "ArkMemory",
            r#"{"backend":"redis","redis":{"secretRef":{"name":"s"},"ttlSeconds":5400,"maxEntries":250}}"#,
        ),
    ] {
        let name = if kind == "ArkAgent" { "scout" } else { "notes" };
        let text = format!(r#"{{"metadata":{{"name":"{name}","namespace":"team-a"}},"spec":{spec}}}"#);
        let kind = memgate_platforms::state_kind(&memgate_platforms::ALL, group, kind)
            .expect("a kind of the family");
        let object = Object::read(kind, &mut serde_json::Deserializer::from_str(&text)).expect("JSON");
        snapshot.kind_mut(kind).insert(object.expect("it has a name"));
    }
    snapshot
}

/// A review of an agent pod with so many env vars and so long an annotation.
pub(crate) fn review(label: &str, env: usize, annotation: usize, escaped: bool) -> String {
    let mut variables = String::new();
    for number in 0..env {
        let comma = if number == 0 { "" } else { "," };
        write!(variables, r#"{comma}{{"name":"SETTING_{number:05}","value":"the value of {number}"}}"#)
            .expect("memory");
    }
    let text =
        if escaped { r#"{\"key\":\"value\"} "# } else { "twenty plain letters" }.repeat(annotation / 20);
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","kind":{{"group":"","version":"v1","kind":"Pod"}},"resource":{{"group":"","version":"v1","resource":"pods"}},"requestKind":{{"group":"","version":"v1","kind":"Pod"}},"requestResource":{{"group":"","version":"v1","resource":"pods"}},"namespace":"team-a","operation":"CREATE","userInfo":{{"username":"system:serviceaccount:kube-system:replicaset-controller","uid":"0c2a","groups":["system:serviceaccounts","system:serviceaccounts:kube-system","system:authenticated"]}},"object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"generateName":"scout-agent-6c9d5b7f4d-","namespace":"team-a","creationTimestamp":null,"labels":{{"app.kubernetes.io/name":"agent","{label}":"scout","pod-template-hash":"6c9d5b7f4d"}},"annotations":{{"example.dev/notes":"{text}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"scout-agent-6c9d5b7f4d","uid":"2f1f4c1e-0000-4000-8000-000000000001","controller":true,"blockOwnerDeletion":true}}]}},"spec":{{"volumes":[{{"name":"kube-api-access-x7k2p","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}}],"defaultMode":420}}}}],"containers":[{{"name":"agent","image":"ghcr.io/arkonis-dev/ark-runtime:latest","ports":[{{"name":"health","containerPort":8080,"protocol":"TCP"}}],"env":[{variables}],"resources":{{}},"volumeMounts":[{{"name":"kube-api-access-x7k2p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"livenessProbe":{{"httpGet":{{"path":"/healthz","port":8080,"scheme":"HTTP"}},"initialDelaySeconds":10,"timeoutSeconds":1,"periodSeconds":30,"successThreshold":1,"failureThreshold":3}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"Always"}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","securityContext":{{}},"schedulerName":"default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"}},"status":{{}}}},"oldObject":null,"dryRun":false,"options":{{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}}}}}}"#
    )
}

/// Reads the body, as any webhook must, and answers with as many bytes as a review has.
#[allow(dead_code, reason = "not all benchmarks use it")]
pub(crate) fn constant() -> Router {
    let answer = Bytes::from(vec![b'x'; 1024]);
    Router::new().fallback(move |_body: Bytes| std::future::ready(answer.clone()))
}

/// A case by its family, the file, and its name.
#[allow(dead_code, reason = "not all benchmarks use it")]
pub(crate) fn case(family: &str, file: &str, name: &str) -> Case {
    let file = format!("tests/cases/{family}/{file}.yaml");
    let text = fs::read_to_string(repository().join(&file));
    let source = Arc::new(Source::new(file, text.expect("a file")));
    let documents = values(&source, &mut Vec::new());
    let mut cases = documents.iter().flat_map(|document| read(document.value()).expect("cases"));
    cases.find(|case| case.name == name).expect("a case of this name")
}

/// The case files of a family.
#[allow(dead_code, reason = "only one of the benchmarks uses them")]
pub(crate) fn cases(family: &'static Family) -> Vec<Case> {
    let folder = repository().join("tests/cases").join(family.name);
    let sources =
        collect(&[folder.display().to_string()], &Plan::default(), &mut std::io::empty()).sources.into_iter();
    let documents = sources.flat_map(|source| values(&source, &mut Vec::new()));
    documents.flat_map(|document| read(document.value()).expect("cases")).collect()
}

/// The twenty policies of the library.
#[allow(dead_code, reason = "not all benchmarks use it")]
pub(crate) fn library() -> Vec<Value> {
    let entries = fs::read_dir(repository().join("examples/policy/library")).expect("the library");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let read = |file| Arc::new(Source::new("policy", fs::read_to_string(file).expect("a text")));
    let documents = files.into_iter().flat_map(|file| values(&read(file), &mut Vec::new()));
    documents.map(|document| document.value().clone()).collect()
}

/// The top of the repository, from any crate of it.
#[allow(dead_code, reason = "not all benchmarks use it")]
fn repository() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(|folder| folder.join("Cargo.lock").exists()).expect("a repository")
}
