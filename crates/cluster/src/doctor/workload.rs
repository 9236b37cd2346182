//! Whether the apiserver's calls reach a running memgate: Service, endpoints, ports, replicas.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use crate::cluster_state::{CONTAINERS, Fetched, Installation, elements, template_labels, text};
use crate::doctor::check::{Check, abbreviated, unreadable};

/// How to install what is missing.
const APPLY: &str = "memgate manifests --only workload | kubectl apply -f -; -n says where memgate runs";

/// Service, Deployment and versions. The workload behind a URL cannot be read.
pub fn checks(found: &Installation) -> Vec<Check> {
    if let Some(url) = found.own_url() {
        let message = format!("memgate is called at {url}: what runs there cannot be seen from here");
        return vec![Check::ok("service", "", message)];
    }
    let mut checks = deployment(found);
    checks.extend(service(found));
    checks.extend(versions(found));
    checks
}

/// What to do while no replica answers: look, and lift memgate off the namespaces that cannot wait.
fn outage(look: &str) -> String {
    format!(
        "{look}; meanwhile `memgate explain runbook/no-answer` says how to let the writes of a namespace pass"
    )
}

fn service(found: &Installation) -> Vec<Check> {
    let subject = format!("Service {}/memgate", found.namespace);
    let service = match &found.service {
        Fetched::Found(service) => service,
        Fetched::Absent => {
            return vec![Check::fail("service", subject, "there is no such Service").help(APPLY)];
        }
        Fetched::Unknown(why) => return vec![Check::unknown("service", subject, why.clone())],
    };
    let mut checks = vec![port(&subject, service, found)];
    let endpoints = found.endpoints.items().iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let ready =
        endpoints.filter(|endpoint| endpoint.conditions.as_ref().is_none_or(|one| one.ready != Some(false)));
    checks.push(match (unreadable(&found.endpoints, "endpoints", &subject), ready.count()) {
        (Some(unknown), _) => unknown,
        (None, 0) => {
            let look = format!("kubectl -n {} get pods; kubectl -n {0} logs deploy/memgate", found.namespace);
            Check::fail("endpoints", subject, "no replica behind it is ready").help(outage(&look))
        }
        (None, ready) => Check::ok("endpoints", subject, format!("ready endpoints: {ready}")),
    });
    checks
}

/// Whether the Service leads to a port of the container, and to the Deployment's pods.
fn port(subject: &str, service: &Service, found: &Installation) -> Check {
    const ID: &str = "service";
    let spec = service.spec.clone().unwrap_or_default();
    let Some(port) = spec.ports.iter().flatten().find(|port| port.port == 443) else {
        let help = "the webhook configurations call port 443";
        return Check::fail(ID, subject, "it has no port 443").help(help);
    };
    let Some(deployment) = found.deployment.as_ref().found() else {
        return Check::ok(ID, subject, "it has port 443");
    };
    let labels = template_labels(deployment).unwrap_or_default();
    let selector = spec.selector.clone().unwrap_or_default();
    if selector.iter().any(|(key, value)| labels.get(key) != Some(value)) {
        let message = "its selector does not match the pods of the Deployment memgate";
        return Check::fail(ID, subject, message);
    }
    match target(port, deployment) {
        Ok(number) => match listens(found) {
            Some(listens) if listens != number => {
                let message = format!("it leads to port {number}, but memgate listens on {listens}");
                Check::fail(ID, subject, message).help("bring targetPort and --listen together")
            }
            _ => Check::ok(ID, subject, format!("port 443 leads to port {number} of the container")),
        },
        Err(name) => {
            let message = format!("its port leads to the container port \"{name}\", which nothing has");
            Check::fail(ID, subject, message)
        }
    }
}

fn target<'p>(port: &'p ServicePort, deployment: &Value) -> Result<i64, &'p str> {
    match &port.target_port {
        None => Ok(port.port.into()),
        Some(IntOrString::Int(number)) => Ok((*number).into()),
        Some(IntOrString::String(name)) => {
            let mut ports = elements(deployment, CONTAINERS).flat_map(|one| elements(one, "/ports"));
            let named = ports.find(|port| text(port, "/name") == name);
            named.and_then(|port| port.get("containerPort")?.as_i64()).ok_or(name)
        }
    }
}

/// The port of `--listen`, if a container says so.
fn listens(found: &Installation) -> Option<i64> {
    let listen = found.arguments().find_map(|argument| argument.strip_prefix("--listen="))?;
    listen.rsplit_once(':')?.1.parse().ok()
}

fn deployment(found: &Installation) -> Vec<Check> {
    const ID: &str = "deployment";
    let subject = format!("Deployment {}/memgate", found.namespace);
    let deployment = match &found.deployment {
        Fetched::Found(deployment) => deployment,
        Fetched::Absent => {
            return vec![Check::fail(ID, subject, "there is no such Deployment").help(outage(APPLY))];
        }
        Fetched::Unknown(why) => return vec![Check::unknown(ID, subject, why.clone())],
    };
    let count = |pointer| deployment.pointer(pointer).and_then(Value::as_i64);
    let wanted = count("/spec/replicas").unwrap_or(1);
    let [available, updated] =
        ["/status/availableReplicas", "/status/updatedReplicas"].map(|one| count(one).unwrap_or_default());
    let help = format!("kubectl -n {} describe deployment memgate", found.namespace);
    let mut checks = vec![if available == 0 {
        Check::fail(ID, &subject, format!("0 of {wanted} replicas are available")).help(outage(&help))
    } else if available < wanted || updated < wanted {
        let message =
            format!("of {wanted} replicas {available} are available and {updated} are of the newest form");
        Check::warn(ID, &subject, message).help(help)
    } else {
        Check::ok(ID, &subject, format!("{available} of {wanted} replicas are available"))
    }];
    if wanted == 0 {
        let help = format!("kubectl -n {} scale deployment memgate --replicas=2", found.namespace);
        checks.push(Check::fail("replicas", &subject, "0 replicas are wanted").help(help));
    } else if wanted < 2 {
        let message = "one replica: memgate does not answer while it is replaced or its node is drained";
        checks.push(Check::warn("replicas", &subject, message).help("run 2 or more"));
    } else {
        checks.push(Check::ok("replicas", &subject, format!("{wanted} replicas are wanted")));
    }
    checks
}

/// Whether all replicas have one version, and the version of this program, whose rules the checks use.
fn versions(found: &Installation) -> Option<Check> {
    const ID: &str = "versions";
    let subject = format!("Namespace {}", found.namespace);
    if let unknown @ Some(_) = unreadable(&found.replicas, ID, &subject) {
        return unknown;
    }
    // Of one digest, by the image that the first replica names.
    let images: BTreeMap<&str, &str> = found.replicas.items().iter().rev().filter_map(image).collect();
    let images: Vec<String> = images.into_values().map(str::to_owned).collect();
    let own = env!("CARGO_PKG_VERSION");
    Some(match images.as_slice() {
        [] => return None,
        [image] => match version(image) {
            Some(version) if version == own => Check::ok(ID, subject, format!("all replicas run {image}")),
            Some(_) => {
                Check::warn(ID, subject, format!("the replicas run {image}, and this is memgate {own}"))
                    .help("run the doctor of the version that is installed: it judges by its own rules")
            }
            None => {
                let message =
                    format!("all replicas run {image}, whose name does not say which version it is");
                Check::unknown(ID, subject, message).help(format!(
                    "kubectl -n {} exec deployment/memgate -- /memgate --version",
                    found.namespace
                ))
            }
        },
        several => Check::warn(ID, subject, format!("the replicas differ: {}", abbreviated(several)))
            .help("normal during an update; otherwise see why it does not end"),
    })
}

/// The version in the name of an image: its tag.
pub fn version(image: &str) -> Option<&str> {
    let name = image.split('@').next()?;
    let (_, tag) = name.rsplit_once('/').map_or(name, |(_, end)| end).rsplit_once(':')?;
    let tag = tag.strip_prefix('v').unwrap_or(tag);
    tag.starts_with(|first: char| first.is_ascii_digit()).then_some(tag)
}

/// The image of a replica: its digest or else itself, and as the pod names it.
pub fn image(pod: &Value) -> Option<(&str, &str)> {
    let is_deleting = pod.pointer("/metadata/deletionTimestamp").is_some();
    let container = elements(pod, "/spec/containers").find(|container| text(container, "/name") == "memgate");
    let image = text(container.filter(|_| !is_deleting)?, "/image");
    let digest = image.split_once('@').map_or(image, |(_, digest)| digest);
    (!image.is_empty()).then_some((digest, image))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::doctor::check::CheckStatus;
    use crate::doctor::inferred::tests::{installed, object};

    fn read<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("an object")
    }

    fn listed<T>(items: Vec<T>) -> Fetched<Vec<T>> {
        Fetched::Found(items)
    }

    /// What `memgate manifests` installs, up and running.
    fn healthy() -> Installation {
        let mut deployment: Value = object(&memgate_platforms::ALL, "Deployment");
        deployment["status"] = json!({"availableReplicas": 2, "updatedReplicas": 2, "observedGeneration": 1});
        let pod = json!({"spec": {"containers": [{"name": "memgate", "image": concat!("memgate:", env!("CARGO_PKG_VERSION"))}]}});
        let slice = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}]});
        Installation {
            namespace: "home".to_owned(),
            name: "memgate".to_owned(),
            mutating: listed(vec![installed(&memgate_platforms::ALL).mutating]),
            service: Fetched::Found(object(&memgate_platforms::ALL, "Service")),
            endpoints: listed(vec![read(slice)]),
            deployment: Fetched::Found(deployment),
            replicas: listed(vec![pod]),
            ..Installation::default()
        }
    }

    fn checks_of(change: impl FnOnce(&mut Installation)) -> Vec<(&'static str, CheckStatus, String)> {
        let mut found = healthy();
        change(&mut found);
        let checks = checks(&found).into_iter().filter(|check| check.status != CheckStatus::Ok);
        checks.map(|check| (check.id, check.status, check.message)).collect()
    }

    fn only(change: impl FnOnce(&mut Installation)) -> (&'static str, CheckStatus, String) {
        match checks_of(change).as_slice() {
            [one] => one.clone(),
            other => panic!("{other:#?}"),
        }
    }

    fn changed<T: Clone + serde::Serialize + DeserializeOwned>(
        seen: &mut Fetched<T>,
        pointer: &str,
        to: Value,
    ) {
        let Fetched::Found(object) = seen else { panic!("it was found") };
        let mut value = serde_json::to_value(&*object).expect("an object");
        *value.pointer_mut(pointer).expect("a field") = to;
        *object = read(value);
    }

    #[test]
    fn what_is_installed_is_healthy_once_it_runs() {
        assert_eq!(checks_of(|_| ()), []);
    }

    #[test]
    fn says_what_keeps_calls_from_arriving() {
        let (id, status, _) = only(|found| found.service = Fetched::Absent);
        assert_eq!((id, status), ("service", CheckStatus::Fail));
        let (id, status, _) = only(|found| found.endpoints = listed(Vec::new()));
        assert_eq!((id, status), ("endpoints", CheckStatus::Fail));
        let (id, _, text) =
            only(|found| changed(&mut found.service, "/spec/ports/0/targetPort", json!("web")));
        assert_eq!((id, text.contains("\"web\", which nothing has")), ("service", true));
        let (_, _, text) = only(|found| changed(&mut found.service, "/spec/ports/0/targetPort", json!(8443)));
        assert_eq!(text, "it leads to port 8443, but memgate listens on 10250");
        let (_, _, text) = only(|found| changed(&mut found.service, "/spec/ports/0/port", json!(8443)));
        assert_eq!(text, "it has no port 443");
        let (_, _, text) =
            only(|found| changed(&mut found.service, "/spec/selector", json!({"app": "other"})));
        assert!(text.starts_with("its selector does not match"), "{text}");
    }

    #[test]
    fn says_what_is_wrong_with_the_replicas() {
        let (id, status, _) =
            only(|found| changed(&mut found.deployment, "/status/availableReplicas", json!(0)));
        assert_eq!((id, status), ("deployment", CheckStatus::Fail));
        let (id, status, _) =
            only(|found| changed(&mut found.deployment, "/status/updatedReplicas", json!(1)));
        assert_eq!((id, status), ("deployment", CheckStatus::Warn));
        let (id, status, _) = only(|found| changed(&mut found.deployment, "/spec/replicas", json!(1)));
        assert_eq!((id, status), ("replicas", CheckStatus::Warn));
        let (id, status, _) = only(|found| changed(&mut found.deployment, "/spec/replicas", json!(0)));
        assert_eq!((id, status), ("replicas", CheckStatus::Fail));
    }

    #[test]
    fn says_when_versions_differ() {
        let pod = |image: &str| json!({"spec": {"containers": [{"name": "memgate", "image": image}]}});
        let (id, _, text) = only(|found| found.replicas = listed(vec![pod("m:0.0.1")]));
        assert_eq!((id, text.contains("this is memgate")), ("versions", true));
        let (_, _, text) = only(|found| found.replicas = listed(vec![pod("m:0.0.1"), pod("m:0.0.2")]));
        assert_eq!(text, "the replicas differ: m:0.0.1, m:0.0.2");
        let digest =
            |tag: &str, digit: &str| pod(&format!("r.example:5000/m{tag}@sha256:{}", digit.repeat(64)));
        let (_, _, text) =
            only(|found| found.replicas = listed(vec![digest(":0.0.1", "a"), digest(":0.0.1", "b")]));
        assert!(text.starts_with("the replicas differ: "), "{text}");
        let (_, status, text) = only(|found| found.replicas = listed(vec![digest("", "a"), digest("", "a")]));
        assert_eq!((status, text.contains("does not say which version")), (CheckStatus::Unknown, true));
        let own = concat!(":", env!("CARGO_PKG_VERSION"));
        for same in [digest(own, "a"), pod(&format!("r.example:5000/m{own}"))] {
            assert_eq!(checks_of(|found| found.replicas = listed(vec![same.clone(), same])), []);
        }
    }

    #[test]
    fn a_missing_right_is_shown_where_it_matters() {
        let why = "you may not get deployments";
        let (id, status, text) = only(|found| found.deployment = Fetched::Unknown(why.to_owned()));
        assert_eq!((id, status, text.as_str()), ("deployment", CheckStatus::Unknown, why));
    }

    #[test]
    fn a_memgate_at_a_url_cannot_be_seen() {
        let mut config = installed(&memgate_platforms::ALL).mutating;
        for webhook in config.webhooks.iter_mut().flatten() {
            let url = Some("https://127.0.0.1:1/mutate".to_owned());
            webhook.client_config = WebhookClientConfig { url, ..WebhookClientConfig::default() };
        }
        let found = Installation {
            name: "memgate".to_owned(),
            mutating: listed(vec![config]),
            ..Installation::default()
        };
        let checks = checks(&found);
        assert_eq!(checks.len(), 1);
        assert!(checks[0].message.contains("https://127.0.0.1:1:"), "{checks:?}");
    }
}
