//! Starts, lists and ends pauses, for `memgate pause`: bindings by which the apiserver does not ask memgate for a time.
//!
//! The user's own rights decide: who pauses gives the account of pauses the verb `skip`, which the apiserver allows only to
//! users who have it or may bind the role. Times are those of the apiserver's clock.

use std::collections::BTreeSet;

use axum::http::Method;
use futures::future::{join, join_all};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::ListParams;
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error as ThisError;

use crate::cluster_state::{Fetched, RBAC, elements, text};
use crate::reader::{ClusterReader, path};
use crate::request::{Response, send};
use memgate_certs::library_error::explained;
use memgate_install::pause::{bindings as bindings_of_pauses, namespace_of_account};
use memgate_model::pause::{BY, LABEL, PAUSED, Pause, REASON, SKIP, UNTIL, name};
use memgate_primitives::credential::masked_keys;
use memgate_workbench::built;

/// How many pauses are read.
const MAX_PAUSES: usize = 5000;

/// Where memgate is not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// In this namespace.
    Namespace(&'a str),
    /// In the whole cluster.
    Cluster,
}

/// A pause to start.
#[derive(Debug, Clone, Copy)]
pub struct NewPause<'a> {
    /// Where.
    pub scope: Scope<'a>,
    /// The platform; `None` for all.
    pub family: Option<&'a str>,
    /// How long.
    pub length: SignedDuration,
    /// Why.
    pub reason: &'a str,
    /// The namespace that memgate runs in.
    pub home: &'a str,
}

/// A pause as commands print it; `*` stands for all.
#[derive(Debug, Serialize)]
pub struct ListedPause {
    /// The namespace.
    pub namespace: String,
    /// The platform.
    pub family: String,
    /// When it ends.
    pub until: Option<String>,
    /// Who made it.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl From<&Pause> for ListedPause {
    fn from(pause: &Pause) -> Self {
        Self {
            namespace: pause.namespace_or_all().to_owned(),
            family: pause.family_or_all().to_owned(),
            until: pause.end().map(|end| end.to_string()),
            by: masked_keys(&pause.by).into_owned(),
            reason: masked_keys(&pause.reason).into_owned(),
        }
    }
}

/// Why a pause was not started, listed or ended.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The namespace does not exist.
    #[error("found no namespace {0}")]
    NoNamespace(String),
    /// The installation has no such role.
    #[error(
        "found no ClusterRole {0}: the installed memgate cannot be paused; apply what `memgate manifests` of this version \
         prints (with Helm: rbac.skipRoles=true)"
    )]
    NoRole(String),
    /// The entries ask about the accounts of other namespaces, so that the pause would lift nothing.
    #[error(
        "memgate does not run in the namespace {0}: its entries ask about the account {PAUSED} of {1}; name that with \
         --memgate-namespace"
    )]
    OtherHome(String, String),
    /// The account has every right, so that no pause has an effect.
    #[error(
        "memgate cannot be paused: the account {0}/{PAUSED} has rights to everything, as of a binding for all service \
         accounts, so that its right to `skip` means nothing; remove that binding"
    )]
    HasEveryRight(String),
    /// The pause would end after every date.
    #[error("--for is too long")]
    TooLong,
    /// The user may not pause.
    #[error(
        "{user} may not pause memgate {place}: it takes the verb `skip` on `webhooks` of memgate.dev, or `bind` on the \
         ClusterRole {role}, and the right to create {kind}. A cluster administrator gives these alone with the ClusterRole \
         memgate-pauser of {page}. The apiserver says: {why}"
    )]
    MayNot {
        /// The user.
        user: String,
        /// Where, in words.
        place: String,
        /// The role.
        role: String,
        /// The kind of the binding.
        kind: &'static str,
        /// Where the narrow role is.
        page: String,
        /// The apiserver's message.
        why: String,
    },
    /// The apiserver did not answer well, or the user lacks another right.
    #[error("{0}")]
    Unanswered(String),
}

/// The user and the time, as the apiserver knows them.
struct Asked {
    user: String,
    now: Timestamp,
}

/// Starts a pause, or replaces the one that is there.
///
/// # Errors
/// When the user may not, the namespace or the role does not exist, or the apiserver does not answer.
pub async fn start(client: &Client, new: &NewPause<'_>) -> Result<Pause, Error> {
    let role = name(SKIP, new.family);
    let asked = asked(client).await?;
    let roles = path(RBAC, "", "clusterroles");
    // Who may bind the role need not be able to read it.
    if request(client, Method::GET, &format!("{roles}/{role}"), None).await?.status == 404 {
        return Err(Error::NoRole(role));
    }
    if let Some(others) = asked_for_elsewhere(client, new.home).await? {
        return Err(Error::OtherHome(new.home.to_owned(), others));
    }
    if has_every_right(client, new).await? {
        return Err(Error::HasEveryRight(new.home.to_owned()));
    }
    let until = asked.now.checked_add(new.length).map_err(|_| Error::TooLong)?;
    let mut binding = binding(new, &role, &asked.user, until);
    let base = bindings(new.scope);
    let mut response = request(client, Method::POST, &base, Some(&binding)).await?;
    if response.status == 409 {
        let path = format!("{base}/{}", name(PAUSED, new.family));
        let known = request(client, Method::GET, &path, None).await?;
        add_others(&mut binding, &known.body);
        response = request(client, Method::PUT, &path, Some(&binding)).await?;
        // The role of a binding cannot be changed: this one is of another role, so it pauses nothing.
        if response.status == 422 && Pause::read(&known.body).is_none() {
            request(client, Method::DELETE, &path, None).await?;
            response = request(client, Method::POST, &base, Some(&binding)).await?;
        }
    }
    let failed = |response: &Response| Error::Unanswered(format!("failed to pause: {}", response.message()));
    match (response.status, new.scope) {
        (200..=299, _) => {
            let pause = Pause::read(&response.body).ok_or_else(|| failed(&response))?;
            write_event(client, &pause, true, &response).await;
            Ok(pause)
        }
        (403, scope) => {
            let (kind, place) = match scope {
                Scope::Namespace(namespace) => ("RoleBindings", format!("in the namespace {namespace}")),
                Scope::Cluster => ("ClusterRoleBindings", "in the whole cluster".to_owned()),
            };
            let (user, why) = (asked.user, response.message().to_owned());
            Err(Error::MayNot { user, place, role, kind, page: page_of_role(), why })
        }
        (404, Scope::Namespace(namespace)) => Err(Error::NoNamespace(namespace.to_owned())),
        _ => Err(failed(&response)),
    }
}

/// The pauses of a namespace, or with `Cluster` all of them, in order.
///
/// # Errors
/// When the user may not list them, or the apiserver does not answer.
pub async fn list(client: &Client, scope: Scope<'_>) -> Result<Vec<Pause>, Error> {
    let reader = ClusterReader { client: client.clone(), max_objects: MAX_PAUSES };
    match read(&reader, scope).await {
        Fetched::Found(pauses) => Ok(pauses),
        Fetched::Absent => Ok(Vec::new()),
        Fetched::Unknown(why) => Err(Error::Unanswered(why)),
    }
}

/// Reads the pauses of a namespace, or with `Cluster` all of them, in order.
pub async fn read(reader: &ClusterReader, scope: Scope<'_>) -> Fetched<Vec<Pause>> {
    if let Scope::Namespace(namespace) = scope {
        return bound(reader, "rolebindings", namespace).await;
    }
    match join(bound(reader, "rolebindings", ""), bound(reader, "clusterrolebindings", "")).await {
        (Fetched::Unknown(why), _) | (_, Fetched::Unknown(why)) => Fetched::Unknown(why),
        (of_namespaces, of_cluster) => Fetched::Found(both(&of_namespaces, &of_cluster)),
    }
}

fn both(one: &Fetched<Vec<Pause>>, other: &Fetched<Vec<Pause>>) -> Vec<Pause> {
    let mut both = [one.items(), other.items()].concat();
    both.sort();
    both
}

/// The pauses that bindings of a kind are, in order.
async fn bound(reader: &ClusterReader, plural: &str, namespace: &str) -> Fetched<Vec<Pause>> {
    // By their names: a pause that was made by hand may lack the label, and rights can be limited to the names.
    let lists = bindings_of_pauses().map(|name| {
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        reader.list::<Value>(RBAC, namespace, plural, named)
    });
    let mut pauses = Vec::new();
    for list in join_all(lists).await {
        match list {
            Fetched::Found(found) => pauses.extend(found.iter().filter_map(Pause::read)),
            Fetched::Absent => {}
            Fetched::Unknown(why) => return Fetched::Unknown(why),
        }
    }
    pauses.sort();
    Fetched::Found(pauses)
}

/// Ends a pause.
///
/// # Errors
/// When the user may not, or the apiserver does not answer.
pub async fn end(client: &Client, pause: &Pause) -> Result<(), Error> {
    let scope = pause.namespace.as_deref().map_or(Scope::Cluster, Scope::Namespace);
    let of_binding = format!("{}/{}", bindings(scope), pause.binding());
    let response = request(client, Method::DELETE, &of_binding, None).await?;
    match response.status {
        200..=299 => {
            write_event(client, pause, false, &response).await;
            Ok(())
        }
        404 => Ok(()),
        _ => Err(Error::Unanswered(format!("failed to end the pause: {}", response.message()))),
    }
}

/// Writes the Event of a pause, at the time of the answer to it: no replica may run that does. It is lost without the right
/// to write Events, and while another one writes it.
async fn write_event(client: &Client, pause: &Pause, begins: bool, answer: &Response) {
    let Some(now) = answer.time.and_then(|seconds| Timestamp::from_second(seconds).ok()) else { return };
    let events = path("events.k8s.io/v1", pause.namespace_of_event(), "events");
    let _lost = request(client, Method::POST, &events, Some(&pause.event(begins, now))).await;
}

/// The namespaces whose accounts of pauses the entries ask about, if none of them is this one. `None` also where there is no
/// entry, or the user may not read them.
async fn asked_for_elsewhere(client: &Client, home: &str) -> Result<Option<String>, Error> {
    let path = path("admissionregistration.k8s.io/v1", "", "validatingwebhookconfigurations");
    let response = request(client, Method::GET, &path, None).await?;
    let mut asked = BTreeSet::new();
    for configuration in elements(&response.body, "/items") {
        let conditions =
            elements(configuration, "/webhooks").flat_map(|entry| elements(entry, "/matchConditions"));
        let conditions = conditions.map(|it| [text(it, "/name"), text(it, "/expression")]);
        asked.extend(conditions.filter_map(|it| namespace_of_account(it).map(str::to_owned)));
    }
    let is_other = !asked.is_empty() && !asked.contains(home);
    Ok(is_other.then(|| asked.into_iter().collect::<Vec<_>>().join(", ")))
}

/// Whether the account has the right that nothing gives alone; false if the user may not ask.
async fn has_every_right(client: &Client, new: &NewPause<'_>) -> Result<bool, Error> {
    let namespace = if let Scope::Namespace(namespace) = new.scope { namespace } else { "" };
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:{}:{PAUSED}", new.home),
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{}", new.home), "system:authenticated"],
            "resourceAttributes": {
                "namespace": namespace, "verb": "never", "group": "memgate.dev", "resource": "webhooks",
                "name": new.family.unwrap_or_default(),
            },
        },
    });
    let reviews = path("authorization.k8s.io/v1", "", "subjectaccessreviews");
    let response = request(client, Method::POST, &reviews, Some(&review)).await?;
    Ok(response.body.pointer("/status/allowed") == Some(&true.into()))
}

/// The time by the apiserver's clock.
///
/// # Errors
/// When the apiserver does not answer.
pub async fn now(client: &Client) -> Result<Timestamp, Error> {
    Ok(asked(client).await?.now)
}

async fn asked(client: &Client) -> Result<Asked, Error> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let reviews = path("authentication.k8s.io/v1", "", "selfsubjectreviews");
    let response = request(client, Method::POST, &reviews, Some(&review)).await?;
    let failed = |why: &str| Error::Unanswered(format!("failed to ask the apiserver who you are: {why}"));
    if !(200..=299).contains(&response.status) {
        return Err(failed(response.message()));
    }
    let now = response.time.and_then(|seconds| Timestamp::from_second(seconds).ok());
    let now = now.ok_or_else(|| failed("its answer has no time"))?;
    Ok(Asked { user: text(&response.body, "/status/userInfo/username").to_owned(), now })
}

async fn request(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Response, Error> {
    let sent = send(client, method, path, body);
    match tokio::time::timeout(crate::request::REQUEST_TIMEOUT, sent).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => {
            Err(Error::Unanswered(format!("the apiserver does not answer: {}", explained(&error))))
        }
        Err(_) => Err(Error::Unanswered("the apiserver does not answer in time".to_owned())),
    }
}

/// The URL path of bindings.
fn bindings(scope: Scope<'_>) -> String {
    match scope {
        Scope::Namespace(namespace) => path(RBAC, namespace, "rolebindings"),
        Scope::Cluster => path(RBAC, "", "clusterrolebindings"),
    }
}

fn binding(new: &NewPause<'_>, role: &str, user: &str, until: Timestamp) -> Value {
    let (kind, namespace) = match new.scope {
        Scope::Namespace(namespace) => ("RoleBinding", Some(namespace)),
        Scope::Cluster => ("ClusterRoleBinding", None),
    };
    let metadata = json!({
        "name": name(PAUSED, new.family),
        "namespace": namespace,
        "labels": {LABEL: "true"},
        "annotations": {UNTIL: until.to_string(), BY: user, REASON: new.reason},
    });
    json!({
        "apiVersion": RBAC, "kind": kind, "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": PAUSED, "namespace": new.home}],
    })
}

/// The page with the role that takes no further rights.
fn page_of_role() -> String {
    built::page("operate.md#pause").unwrap_or_else(|| "docs/operate.md, under Pause".to_owned())
}

/// Keeps the subjects of a pause that is replaced: the accounts of other installations.
fn add_others(binding: &mut Value, known: &Value) {
    let home = text(binding, "/subjects/0/namespace");
    let others = elements(known, "/subjects").filter(|subject| text(subject, "/namespace") != home);
    let others: Vec<Value> = others.cloned().collect();
    if let Some(subjects) = binding.get_mut("subjects").and_then(Value::as_array_mut) {
        subjects.extend(others);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_is_read_as_the_pause_that_it_is() {
        let scopes = [(Scope::Namespace("team-a"), Some("ark")), (Scope::Cluster, None)];
        for (scope, family) in scopes {
            let new = NewPause { scope, family, length: SignedDuration::ZERO, reason: "why", home: "gate" };
            let until = "2026-11-25T10:00:00Z".parse().expect("a time");
            let binding = binding(&new, &name(SKIP, family), "jane", until);
            let pause = Pause::read(&binding).expect("a pause");
            assert_eq!((pause.written_end(), &*pause.by, &*pause.reason), (Some(until), "jane", "why"));
            assert_eq!(pause.family.as_deref(), family);
            let next = NewPause { home: "other", ..new };
            let mut replacing = self::binding(&next, &name(SKIP, family), "joe", until);
            add_others(&mut replacing, &binding);
            let accounts: Vec<&str> =
                elements(&replacing, "/subjects").map(|subject| text(subject, "/namespace")).collect();
            assert_eq!(accounts, ["other", "gate"]);
            assert_eq!(pause.namespace.as_deref(), matches!(scope, Scope::Namespace(_)).then_some("team-a"));
        }
    }
}
