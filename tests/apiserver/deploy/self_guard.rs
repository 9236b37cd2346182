//! That memgate's account, which may patch its two webhook configurations, can change nothing in them
//! but `caBundle`: a thief of its token cannot send reviews elsewhere.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use axum::http::Method;
use base64::{Engine, prelude::BASE64_STANDARD};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::renamed::{manifests, name, of_kind, text};
use crate::{
    fixture::{Fixture, Trial},
    request::send,
    support::{control_plane::ControlPlane, wait, webhook::push},
};

/// The kinds that are guarded, with their names in paths.
const KINDS: [(&str, &str); 2] = [
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
];

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("deploy::the_self_guard_leaves_cabundle_alone_open", self_guard),
        Trial::new("deploy::the_self_guard_knows_every_field", knows_every_field),
        Trial::new("deploy::the_self_guard_binds_no_other_account", binds_no_other_account),
    ]
}

/// A namespace with memgate's account, its two configurations and the self-guard around them.
struct Guarded {
    namespace: String,
    client: Client,
}

impl Guarded {
    fn new(cluster: &ControlPlane) -> Result<Self> {
        let namespace = cluster.fresh_namespace("guarded")?;
        let parts = ["--only", "rbac", "--only", "policies", "--only", "webhooks"];
        let mut objects = manifests(&namespace, &parts)?;
        for webhook in objects.iter_mut().filter_map(|object| object["webhooks"].as_array_mut()).flatten() {
            // There is no server behind them, so they are never to be called.
            push(&mut webhook["matchConditions"], json!({"name": "never", "expression": "false"}));
        }
        cluster.admin().apply(&text(&objects))?;
        let config = cluster.config(&cluster.service_account_kubeconfig(&namespace, "memgate")?)?;
        let client = cluster.block_on(async { Client::try_from(config) })?;
        let guarded = Self { namespace, client };
        let forbidden = json!([{"op": "add", "path": "/metadata/labels/any", "value": "thing"}]);
        for (_, plural) in KINDS {
            wait::until("the self-guard to be there", || {
                Ok(guarded
                    .patch(cluster, plural, &forbidden)?
                    .err()
                    .filter(|message| message.contains("self-guard"))
                    .map(|_| ()))
            })?;
        }
        Ok(guarded)
    }

    /// The entries of a configuration, as they are.
    fn entries(&self, cluster: &ControlPlane, plural: &str) -> Result<Vec<Value>> {
        let path = format!("{GROUP}/{plural}/{}", name(&self.namespace));
        let found = cluster.block_on(send(&cluster.client(), Method::GET, &path, None))?.object()?;
        Ok(found["webhooks"].as_array().context("there are no entries")?.clone())
    }

    /// What the apiserver says to a JSON patch by memgate's account.
    fn patch(&self, cluster: &ControlPlane, plural: &str, patch: &Value) -> Result<Result<(), String>> {
        let patch = Patch::<()>::Json(serde_json::from_value(patch.clone())?);
        self.send(cluster, plural, &patch, &PatchParams::default().dry_run())
    }

    fn send<P: serde::Serialize + std::fmt::Debug>(
        &self,
        cluster: &ControlPlane,
        plural: &str,
        patch: &Patch<P>,
        params: &PatchParams,
    ) -> Result<Result<(), String>> {
        let name = name(&self.namespace);
        let client = self.client.clone();
        let answer = cluster.block_on(async {
            if plural == "mutatingwebhookconfigurations" {
                let api: Api<MutatingWebhookConfiguration> = Api::all(client);
                api.patch(&name, params, patch).await.map(|_| ())
            } else {
                let api: Api<ValidatingWebhookConfiguration> = Api::all(client);
                api.patch(&name, params, patch).await.map(|_| ())
            }
        });
        match answer {
            Ok(()) => Ok(Ok(())),
            Err(kube::Error::Api(status)) => Ok(Err(status.message.clone())),
            Err(error) => bail!("the apiserver did not answer: {error}"),
        }
    }
}

fn self_guard(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let guarded = Guarded::new(cluster)?;
    for (kind, plural) in KINDS {
        for (what, patch) in forbidden(kind) {
            let message = guarded.patch(cluster, plural, &patch)?.err();
            let message =
                message.with_context(|| format!("{kind}: the account may change {what}: {patch}"))?;
            ensure!(
                message.contains(&format!("memgate may change caBundle alone, not {what}")),
                "{what}: {message}"
            );
        }
        let bundle =
            json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle(cluster)}]);
        let answer = guarded.patch(cluster, plural, &bundle)?;
        ensure!(answer.is_ok(), "{kind}: {answer:?}");
        apply_bundle(cluster, &guarded, kind, plural)?;
    }
    makes_and_removes_none(cluster, &guarded)
}

/// One field that the apiserver itself would accept, and its name in the message.
fn forbidden(kind: &str) -> Vec<(&'static str, Value)> {
    let replace = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
    let add = |path: &str, value: Value| json!([{"op": "add", "path": path, "value": value}]);
    let entry = |field: &str, value: Value| replace(&format!("/webhooks/0/{field}"), value);
    let owner = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "1"}]);
    let other = json!({
        "name": "other.memgate.dev", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://192.0.2.1/"},
    });
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"],
        "scope": "Namespaced",
    });
    let none = json!({"matchLabels": {"no": "where"}});
    let mut rows = vec![
        ("metadata.labels", add("/metadata/labels/any", json!("thing"))),
        ("metadata.annotations", add("/metadata/annotations/any", json!("thing"))),
        ("metadata.finalizers", add("/metadata/finalizers", json!(["memgate.dev/held"]))),
        ("metadata.ownerReferences", add("/metadata/ownerReferences", owner)),
        ("webhooks[*].name", entry("name", json!("other.memgate.dev"))),
        ("webhooks[*].name", add("/webhooks/-", other)),
        ("webhooks[*].name", json!([{"op": "remove", "path": "/webhooks/0"}])),
        ("webhooks[*].name", replace("/webhooks", json!([]))),
        ("webhooks[*].name", json!([{"op": "move", "from": "/webhooks/0", "path": "/webhooks/1"}])),
        ("webhooks[*].rules", entry("rules", json!([]))),
        ("webhooks[*].rules", add("/webhooks/0/rules/-", rule)),
        ("webhooks[*].clientConfig.url", entry("clientConfig", json!({"url": "https://192.0.2.1/"}))),
        ("webhooks[*].clientConfig.service.name", entry("clientConfig/service/name", json!("other"))),
        (
            "webhooks[*].clientConfig.service.namespace",
            entry("clientConfig/service/namespace", json!("other")),
        ),
        ("webhooks[*].clientConfig.service.port", entry("clientConfig/service/port", json!(444))),
        ("webhooks[*].clientConfig.service.path", entry("clientConfig/service/path", json!("/other"))),
        ("webhooks[*].failurePolicy", entry("failurePolicy", json!("Ignore"))),
        ("webhooks[*].matchPolicy", entry("matchPolicy", json!("Exact"))),
        ("webhooks[*].namespaceSelector", entry("namespaceSelector", none.clone())),
        ("webhooks[*].objectSelector", entry("objectSelector", none)),
        ("webhooks[*].sideEffects", entry("sideEffects", json!("NoneOnDryRun"))),
        ("webhooks[*].timeoutSeconds", entry("timeoutSeconds", json!(30))),
        ("webhooks[*].admissionReviewVersions", entry("admissionReviewVersions", json!(["v1", "v1beta1"]))),
        ("webhooks[*].matchConditions", entry("matchConditions", json!([]))),
    ];
    if kind == "MutatingWebhookConfiguration" {
        rows.push(("webhooks[*].reinvocationPolicy", entry("reinvocationPolicy", json!("Never"))));
    }
    rows
}

/// A certificate as it stands in the field.
fn bundle(cluster: &ControlPlane) -> String {
    BASE64_STANDARD.encode(cluster.authority().pem())
}

/// All entries at once, for good, as memgate does it.
fn apply_bundle(cluster: &ControlPlane, guarded: &Guarded, kind: &str, plural: &str) -> Result<()> {
    let name = name(&guarded.namespace);
    let entry = |entry: &Value| json!({"name": entry["name"], "clientConfig": {"caBundle": bundle(cluster)}});
    let entries: Vec<_> = guarded.entries(cluster, plural)?.iter().map(entry).collect();
    let applied = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name}, "webhooks": entries,
    });
    let params = PatchParams::apply("memgate-cabundle").force();
    let answer = guarded.send(cluster, plural, &Patch::Apply(applied), &params)?;
    ensure!(answer.is_ok(), "{kind}: {answer:?}");
    let bundles = guarded.entries(cluster, plural)?;
    ensure!(bundles.len() == entries.len());
    for entry in bundles {
        ensure!(
            entry["clientConfig"]["caBundle"] == bundle(cluster)
                && entry["clientConfig"]["service"].is_object(),
            "{entry}"
        );
    }
    Ok(())
}

/// Not even with a wider role.
fn makes_and_removes_none(cluster: &ControlPlane, guarded: &Guarded) -> Result<()> {
    let namespace = &guarded.namespace;
    let wider = format!("{namespace}-wider");
    let account = format!("--serviceaccount={namespace}:memgate");
    let resources = format!("--resource={}", KINDS.map(|(_, plural)| plural).join(","));
    let kubectl = cluster.admin();
    kubectl.run(&["create", "clusterrole", &wider, "--verb=create,delete", &resources])?.ok()?;
    kubectl
        .run(&["create", "clusterrolebinding", &wider, &format!("--clusterrole={wider}"), &account])?
        .ok()?;
    for (kind, plural) in KINDS {
        let path = format!("{GROUP}/{plural}");
        let body = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": format!("{namespace}-other")},
        });
        let create = || send(&guarded.client, Method::POST, &path, Some(&body));
        let own = format!("{path}/{}", name(namespace));
        let delete = || send(&guarded.client, Method::DELETE, &own, None);
        let message = wait::until("the wider role", || {
            let answer = cluster.block_on(create())?;
            Ok((!answer.message().contains("is forbidden: User")).then(|| answer.message().to_owned()))
        })?;
        ensure!(
            message.contains("memgate neither makes nor removes webhook configurations"),
            "{kind}: {message}"
        );
        let answer = cluster.block_on(delete())?;
        ensure!(answer.message().contains("memgate neither makes nor removes"), "{kind}: {answer:?}");
    }
    Ok(())
}

/// Holds the list of fields against what the apiserver knows of both kinds: one that a later version
/// adds must be guarded, too.
fn knows_every_field(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let path = "/openapi/v3/apis/admissionregistration.k8s.io/v1";
    let schemas = cluster.block_on(send(&cluster.client(), Method::GET, path, None))?.object()?;
    let fields = |name: &str| -> Result<Vec<String>> {
        let full = ["io.k8s.api.admissionregistration.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1."];
        let found = full.iter().find_map(|start| {
            schemas["components"]["schemas"][format!("{start}{name}")]["properties"].as_object()
        });
        Ok(found.with_context(|| format!("the apiserver knows no {name}"))?.keys().cloned().collect())
    };
    let mut known = BTreeSet::new();
    // What a client cannot change, or not to any effect.
    let others = [
        "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generateName", "generation",
        "managedFields", "name", "namespace", "resourceVersion", "selfLink", "uid",
    ];
    known.extend(fields("ObjectMeta")?.into_iter().filter(|field| !others.contains(&field.as_str())));
    for kind in ["MutatingWebhook", "ValidatingWebhook"] {
        known.extend(fields(kind)?.into_iter().filter(|field| field != "clientConfig"));
    }
    let client = fields("WebhookClientConfig")?.into_iter();
    known.extend(client.filter(|field| !["caBundle", "service"].contains(&field.as_str())));
    known.extend(fields("ServiceReference")?);
    let of_configuration: BTreeSet<_> = fields("MutatingWebhookConfiguration")?.into_iter().collect();
    ensure!(
        of_configuration == ["apiVersion", "kind", "metadata", "webhooks"].map(str::to_owned).into(),
        "{of_configuration:?}"
    );

    let printed = manifests("anywhere", &["--only", "policies"])?;
    let validations =
        of_kind(&printed, "ValidatingAdmissionPolicy")?["spec"]["validations"].as_array().cloned();
    let messages = validations.context("the self-guard says nothing")?;
    let guarded =
        messages.iter().filter_map(|one| one["message"].as_str()?.split_once(", not ")?.1.rsplit('.').next());
    let guarded: BTreeSet<_> = guarded.map(str::to_owned).collect();
    ensure!(
        known == guarded,
        "not guarded: {:?}; unknown: {:?}",
        known.difference(&guarded),
        guarded.difference(&known)
    );
    Ok(())
}

/// Other accounts that may write the configurations still do: the self-guard is for one account.
fn binds_no_other_account(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let guarded = Guarded::new(cluster)?;
    for (kind, plural) in KINDS {
        let path = format!("{GROUP}/{plural}/{}", name(&guarded.namespace));
        let mut object = cluster.block_on(send(&cluster.client(), Method::GET, &path, None))?.object()?;
        object["webhooks"][0]["timeoutSeconds"] = json!(3);
        let answer = cluster.block_on(send(&cluster.client(), Method::PUT, &path, Some(&object)))?;
        ensure!(answer.granted(), "{kind}: {}", answer.message());
        let answer = cluster.block_on(send(&cluster.client(), Method::DELETE, &path, None))?;
        ensure!(answer.granted(), "{kind}: {}", answer.message());
    }
    let policy = format!("{GROUP}/validatingadmissionpolicies/memgate-{}-self-guard", guarded.namespace);
    let status = wait::until("the types of the policy to be checked", || {
        let policy = cluster.block_on(send(&cluster.client(), Method::GET, &policy, None))?.object()?;
        let done = policy["status"]["observedGeneration"] == policy["metadata"]["generation"];
        Ok(done.then(|| policy["status"].clone()))
    })?;
    ensure!(status["typeChecking"].is_object(), "{status}");
    let warnings = &status["typeChecking"]["expressionWarnings"];
    ensure!(warnings.is_null(), "{warnings:#}");
    Ok(())
}
