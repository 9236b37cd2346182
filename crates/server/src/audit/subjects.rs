//! Reads the stored objects that policies judge, in steps: from the state if it holds all objects of the kind whole, else
//! from paged lists.

use std::collections::VecDeque;

use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::task::{JoinError, spawn_blocking};

use crate::store::Store;
use crate::store::apply_event::RawObject;
use memgate_certs::kube_api::with_timeout;
use memgate_certs::library_error::explained;
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::object::Object;
use memgate_model::policy::{Policies, Rule};
use memgate_model::request::{Occasion, Operation, Point, Request};
use memgate_policy::selection::may_be_judged;

use super::API_TIMEOUT;

/// The HTTP statuses of a kind that is not served, and of a list whose continue token has expired.
const NOT_FOUND: u16 = 404;
const GONE: u16 = 410;

/// A stored object.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) kind: &'static Kind,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// The object, or its fields that the state holds, as JSON.
    pub(super) text: Box<str>,
}

impl Stored {
    fn of_state(object: &Object) -> Self {
        Self {
            kind: object.kind,
            namespace: object.namespace.to_string(),
            name: object.name.to_string(),
            uid: object.uid().unwrap_or_default().to_owned(),
            text: object.tree().to_json().to_string().into(),
        }
    }

    fn of_list(kind: &'static Kind, object: RawObject) -> Self {
        let ([namespace, name, uid], text) = object.into_parts();
        Self { kind, namespace, name, uid, text: text.into() }
    }

    /// The request that an audit judges: the creation of the stored object.
    pub(super) fn request(&self, now: Timestamp) -> Request<'_> {
        Request {
            operation: Operation::Create,
            group: self.kind.group.into(),
            version: self.kind.version.into(),
            kind: self.kind.kind.into(),
            subresource: "".into(),
            namespace: self.namespace.as_str().into(),
            name: self.name.as_str().into(),
            object: Some(&self.text),
            old_object: None,
            occasion: Occasion::new(Point::Audit, now),
            read_pod: None,
            cancelled: None,
        }
    }
}

/// An iterator over all stored objects.
pub(super) struct Subjects<'s> {
    store: &'s Store,
    client: &'s Client,
    /// The remaining kinds; the first one is being read.
    kinds: VecDeque<(&'static Family, &'static Kind)>,
    /// The last object of that kind that was read from the state.
    place: Option<(String, String)>,
    /// The continue token of its list.
    token: Option<String>,
    /// Whether objects are listed that the state has without their annotations.
    reads_annotations: bool,
    /// Whether the token came with a 410 and has brought no page yet.
    is_renewed: bool,
    /// The kinds that could not be listed.
    pub(super) failed: Vec<&'static Kind>,
}

impl<'s> Subjects<'s> {
    /// Starts before the first object. Kinds that no policy judges are skipped.
    pub(super) fn new(store: &'s Store, client: &'s Client, policies: &Policies) -> Self {
        let families = store.snapshot().settings.families.clone();
        let audited = |family: &'static Family| family.audited().map(move |kind| (family, kind));
        let kinds = families.into_iter().flat_map(audited);
        let kinds = kinds.filter(|(family, kind)| may_be_judged(policies, family, kind)).collect();
        let reads_annotations =
            policies.iter().any(|policy| policy.rules.iter().any(Rule::reads_annotations));
        let (place, token, failed) = (None, None, Vec::new());
        Self { store, client, kinds, place, token, reads_annotations, is_renewed: false, failed }
    }

    /// The next objects, all of one kind. Fewer than `most` are not the end; an empty list is.
    ///
    /// # Errors
    /// When a thread ends that reads the state.
    pub(super) async fn next(&mut self, most: u32) -> Result<Vec<Stored>, JoinError> {
        while let Some(&(family, kind)) = self.kinds.front() {
            // What was begun in one way goes on in that way.
            let is_here = self.place.is_some() || self.token.is_none() && self.store.holds_all(kind);
            let holds_whole = family.holds_whole(kind) && !self.reads_annotations;
            let (objects, is_last) = if holds_whole && is_here {
                self.of_state(kind, most).await?
            } else {
                self.of_list(kind, most).await.unwrap_or_else(|error| {
                    let error = explained(&error);
                    tracing::warn!(
                        kind = kind.kind,
                        group = kind.group_in_words(),
                        error,
                        "a kind could not be listed"
                    );
                    self.failed.push(kind);
                    (Vec::new(), true)
                })
            };
            if is_last {
                self.kinds.pop_front();
                (self.place, self.token, self.is_renewed) = (None, None, false);
            }
            if !objects.is_empty() {
                return Ok(objects);
            }
        }
        Ok(Vec::new())
    }

    async fn of_state(&mut self, kind: &'static Kind, most: u32) -> Result<(Vec<Stored>, bool), JoinError> {
        let (snapshot, place, most) = (self.store.snapshot(), self.place.clone(), most as usize);
        let read = move || {
            let place = place.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
            let objects = snapshot.kind(kind).into_iter().flat_map(|state| state.objects_behind(place));
            objects.take(most).map(Stored::of_state).collect::<Vec<_>>()
        };
        let objects = spawn_blocking(read).await?;
        let is_last = objects.len() < most;
        self.place = objects.last().map(|last| (last.namespace.clone(), last.name.clone()));
        Ok((objects, is_last))
    }

    async fn of_list(&mut self, kind: &'static Kind, most: u32) -> kube::Result<(Vec<Stored>, bool)> {
        let api = Api::<RawObject>::all_with(self.client.clone(), &kind);
        let mut params = ListParams::default().limit(most);
        params.continue_token.clone_from(&self.token);
        let page = match with_timeout(API_TIMEOUT, api.list(&params)).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.code == NOT_FOUND => return Ok((Vec::new(), true)),
            Err(kube::Error::Api(status)) if status.code == GONE => {
                // With this status the apiserver sends a token that goes on at the same place, with newer objects.
                let token = status.metadata.as_ref().and_then(|metadata| metadata.continue_.clone());
                if token.is_none() || self.is_renewed {
                    return Err(kube::Error::Api(status));
                }
                (self.token, self.is_renewed) = (token, true);
                return Ok((Vec::new(), false));
            }
            Err(error) => return Err(error),
        };
        self.is_renewed = false;
        self.token = page.metadata.continue_.filter(|token| !token.is_empty());
        let objects = page.items.into_iter().map(|object| Stored::of_list(kind, object));
        Ok((objects.collect(), self.token.is_none()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use futures::FutureExt as _;
    use memgate_model::snapshot::Snapshot;
    use serde_json::{Value, json};

    use super::*;
    use crate::test_support::{Reply, client};

    fn gone(token: &Value) -> Reply {
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Expired", "code": 410,
            "metadata": {"continue": token},
        });
        (410, status.to_string())
    }

    /// What a list comes to whose first page gets a 410 with `token`, and that with this token `second`.
    async fn listed(token: Value, second: Reply) -> (Vec<Stored>, usize, usize) {
        let store = Store::fixed(Snapshot::new(memgate_platforms::default_settings()));
        let (client, asked) = client(move |path| {
            let reply = if path.contains("continue=fresh") { second.clone() } else { gone(&token) };
            ready(reply).boxed()
        });
        let (family, kind) =
            memgate_platforms::validated(&memgate_platforms::ALL, "arkonis.dev", "ArkMemory")
                .expect("a kind");
        let kinds = [(family, kind)].into_iter().collect();
        let mut subjects = Subjects {
            reads_annotations: false,
            store: &store,
            client: &client,
            kinds,
            place: None,
            token: None,
            is_renewed: false,
            failed: Vec::new(),
        };
        let mut objects = Vec::new();
        while !subjects.kinds.is_empty() {
            let (some, is_last) = subjects.of_list(kind, 10).await.unwrap_or_else(|_| {
                subjects.failed.push(kind);
                (Vec::new(), true)
            });
            objects.extend(some);
            if is_last {
                subjects.kinds.clear();
            }
        }
        (objects, subjects.failed.len(), asked.all().len())
    }

    #[tokio::test]
    async fn goes_on_once_with_the_token_of_a_410() {
        let object = json!({"metadata": {"name": "notes", "namespace": "lab", "uid": "u"}, "spec": {}});
        let page = json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemoryList", "metadata": {}, "items": [object]});
        let (objects, failed, _) = listed("fresh".into(), (200, page.to_string())).await;
        assert_eq!((objects.len(), failed), (1, 0));
        for (token, second, requests) in
            [("fresh".into(), gone(&"fresh".into()), 2), (Value::Null, gone(&Value::Null), 1)]
        {
            let (objects, failed, asked) = listed(token, second).await;
            assert_eq!((objects.len(), failed, asked), (0, 1, requests));
        }
    }
}
