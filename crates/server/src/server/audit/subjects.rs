//! Reads the stored objects that policies judge, in steps: from the state if it holds the whole object, else from paged
//! lists.

use std::collections::VecDeque;

use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::task::{JoinError, spawn_blocking};

use crate::server::certs::kube_api::{error_message, with_timeout};
use crate::server::store::Store;
use crate::server::store::apply_event::RawObject;
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::object::Object;
use memgate_model::policy::Policies;
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
            text: object.tree.to_json().to_string().into(),
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
        Self { store, client, kinds, place: None, token: None, failed: Vec::new() }
    }

    /// The next objects, all of one kind. Fewer than `most` are not the end; an empty list is.
    ///
    /// # Errors
    /// When a thread ends that reads the state.
    pub(super) async fn next(&mut self, most: u32) -> Result<Vec<Stored>, JoinError> {
        while let Some(&(family, kind)) = self.kinds.front() {
            let (objects, is_last) = if family.holds_whole(kind) {
                self.of_state(kind, most).await?
            } else {
                self.of_list(kind, most).await.unwrap_or_else(|error| {
                    let error = error_message(&error);
                    tracing::warn!(kind = kind.kind, group = kind.group, error, "a kind could not be listed");
                    self.failed.push(kind);
                    (Vec::new(), true)
                })
            };
            if is_last {
                self.kinds.pop_front();
                (self.place, self.token) = (None, None);
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
                if token.is_none() || token == self.token {
                    return Err(kube::Error::Api(status));
                }
                self.token = token;
                return Ok((Vec::new(), false));
            }
            Err(error) => return Err(error),
        };
        self.token = page.metadata.continue_.filter(|token| !token.is_empty());
        let objects = page.items.into_iter().map(|object| Stored::of_list(kind, object));
        Ok((objects.collect(), self.token.is_none()))
    }
}
