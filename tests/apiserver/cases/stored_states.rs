//! What is in the cluster before a case asks.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context, Result, bail};
use axum::http::Method;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use memgate_model::kind::MEMORY_POLICY;
use serde_json::{Value, json};

use super::isolated::IsolatedCase;
use crate::{
    installed::{GUARDED, Installed},
    request::{self, path, send},
    support::{control_plane::ControlPlane, wait},
};

/// How many states are stored at a time.
const CONCURRENT_STATES: usize = 16;

/// Why the state of a case is not stored, by the name of its trial.
type Errors = BTreeMap<String, String>;

/// Whether the states of all cases that run side by side are stored.
#[derive(Default)]
pub(super) struct StoredStates(Mutex<Option<Result<Errors, String>>>);

impl StoredStates {
    /// Stores the states, if they are not.
    ///
    /// # Errors
    /// When memgate does not come to know them, every time.
    pub(super) fn store(
        &self,
        cluster: &ControlPlane,
        memgate: &Installed,
        all: &[IsolatedCase],
    ) -> Result<()> {
        let store = || store_all(cluster, memgate, sharing(all)).map_err(|error| format!("{error:#}"));
        match self.lock().get_or_insert_with(store) {
            Ok(_) => Ok(()),
            Err(error) => bail!("the states are not stored: {error}"),
        }
    }

    /// Why the state of a case is not stored.
    pub(super) fn error(&self, isolated: &IsolatedCase) -> Option<String> {
        self.lock().as_ref()?.as_ref().ok()?.get(&isolated.name()).cloned()
    }

    /// Removes the states, if they are stored.
    pub(super) fn remove(
        &self,
        cluster: &ControlPlane,
        memgate: &Installed,
        all: &[IsolatedCase],
    ) -> Result<()> {
        match self.lock().take() {
            Some(_) => remove_all(cluster, memgate, sharing(all)),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Result<Errors, String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sharing(all: &[IsolatedCase]) -> impl Iterator<Item = &IsolatedCase> {
    all.iter().filter(|isolated| !isolated.alone)
}

/// Stores the states of cases and waits until memgate has seen them.
pub(super) fn store_all<'m>(
    cluster: &ControlPlane,
    memgate: &Installed,
    cases: impl IntoIterator<Item = &'m IsolatedCase>,
) -> Result<Errors> {
    let client = memgate.exempt_client();
    let errors = cluster.block_on(async {
        let stored = stream::iter(cases).map(|isolated| async {
            let error = store(&client, isolated).await.err()?;
            Some((isolated.name(), format!("{error:#}")))
        });
        stored.buffer_unordered(CONCURRENT_STATES).filter_map(|error| async { error }).collect().await
    });
    until_known(cluster, memgate)?;
    Ok(errors)
}

/// Removes the states of cases and waits until memgate has forgotten them.
pub(super) fn remove_all<'m>(
    cluster: &ControlPlane,
    memgate: &Installed,
    cases: impl IntoIterator<Item = &'m IsolatedCase>,
) -> Result<()> {
    let client = memgate.exempt_client();
    let objects =
        cases.into_iter().flat_map(|isolated| isolated.stored().map(move |object| (isolated, object)));
    let objects = objects.filter(|(_, object)| object["kind"] != "Namespace");
    cluster.block_on(async {
        let gone = stream::iter(objects).map(|(isolated, object)| remove(&client, isolated, object));
        gone.buffer_unordered(CONCURRENT_STATES).try_collect::<()>().await
    })?;
    until_known(cluster, memgate)
}

fn until_known(cluster: &ControlPlane, memgate: &Installed) -> Result<()> {
    let client = memgate.exempt_client();
    wait::until("memgate to know all objects", || {
        // Other trials add to them meanwhile.
        let before = cluster.block_on(stored_objects(&client))?;
        let known = memgate.known_objects()?;
        let after = cluster.block_on(stored_objects(&client))?;
        Ok((before == known && known == after).then_some(()))
    })
}

async fn store(client: &Client, isolated: &IsolatedCase) -> Result<()> {
    for name in &isolated.namespaces {
        let given = |object: &&Value| object["kind"] == "Namespace" && object["metadata"]["name"] == **name;
        // A Namespace that is to be created is not there yet.
        let is_new =
            isolated.case.object.iter().any(|object| given(&object)) && isolated.case.old_object.is_none();
        if !is_new {
            guarded(client, name, isolated.stored().find(given)).await?;
        }
    }
    for object in isolated.stored().filter(|object| object["kind"] != "Namespace") {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_else(|| isolated.home());
        let stored = request::create(client, namespace, &fitted(object), "").await?.object()?;
        if !object["status"].is_null() && stored["status"].is_null() {
            let mut reported = stored;
            reported["status"] = object["status"].clone();
            let path = format!("{}/status", path_of(isolated, object)?);
            send(client, Method::PUT, &path, Some(&reported)).await?.object()?;
        }
        if is_going(object) {
            send(client, Method::DELETE, &path_of(isolated, object)?, None).await?.object()?;
        }
    }
    Ok(())
}

/// Removes an object, if it was stored at all.
async fn remove(client: &Client, isolated: &IsolatedCase, object: &Value) -> Result<()> {
    let path = path_of(isolated, object)?;
    let at_once = json!({"gracePeriodSeconds": 0});
    let mut left = send(client, Method::DELETE, &path, Some(&at_once)).await?.body;
    if is_going(&left) && !left["metadata"]["finalizers"].is_null() {
        left["metadata"]["finalizers"] = Value::Null;
        send(client, Method::PUT, &path, Some(&left)).await?.object()?;
    }
    Ok(())
}

fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Makes a namespace about which memgate is asked, or one that is there already into one.
async fn guarded(client: &Client, name: &str, given: Option<&Value>) -> Result<()> {
    let mut namespace = given
        .cloned()
        .unwrap_or_else(|| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    namespace["metadata"]["labels"][GUARDED.0] = json!(GUARDED.1);
    let path = "/api/v1/namespaces";
    let answer = send(client, Method::POST, path, Some(&namespace)).await?;
    if answer.status != 409 {
        answer.object()?;
        return Ok(());
    }
    let path = format!("{path}/{name}");
    let stored = send(client, Method::GET, &path, None).await?.object()?;
    namespace["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    namespace["spec"] = stored["spec"].clone();
    send(client, Method::PUT, &path, Some(&namespace)).await?.object()?;
    Ok(())
}

/// The object as it can be stored. A Service has no address of its own: the cluster has but a few, and
/// it is never called. What is being deleted has a finalizer, or it would be gone.
fn fitted(object: &Value) -> Value {
    let mut object = object.clone();
    if object["kind"] == "Service" && object["spec"]["type"].is_null() {
        object["spec"]["clusterIP"] = json!("None");
    }
    if is_going(&object) {
        object["metadata"]["deletionTimestamp"] = Value::Null;
        if object["metadata"]["finalizers"].is_null() {
            object["metadata"]["finalizers"] = json!(["test.memgate.dev/hold"]);
        }
    }
    object
}

fn path_of(isolated: &IsolatedCase, object: &Value) -> Result<String> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().context("a stored object has a name")?;
    path(object, metadata["namespace"].as_str().unwrap_or_else(|| isolated.home()), Some(name))
}

/// How many objects there are of the kinds that memgate counts: those that families watch, and policies.
async fn stored_objects(client: &Client) -> Result<u64> {
    let mut count = 0;
    let watched = memgate_platforms::ALL.into_iter().flat_map(|family| family.kinds.watched);
    for kind in watched.copied().chain([&MEMORY_POLICY]) {
        let root = if kind.group.is_empty() { "api".to_owned() } else { format!("apis/{}", kind.group) };
        let path = format!("/{root}/{}/{}?limit=1", kind.version, kind.plural);
        let list = send(client, Method::GET, &path, None).await?.object()?;
        let listed = list["items"].as_array().map_or(0, Vec::len);
        count += list["metadata"]["remainingItemCount"].as_u64().unwrap_or_default() + u64::try_from(listed)?;
    }
    Ok(count)
}
