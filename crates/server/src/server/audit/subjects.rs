//! Stored objects that policies judge, so many at a time: from the state where that holds all of an object, else from
//! paged lists.

use std::collections::VecDeque;

use kube::api::ListParams;
use kube::{Api, Client};

use crate::model::family::Family;
use crate::model::kind::Kind;
use crate::model::object::Object;
use crate::model::policy::Policies;
use crate::policy::selection::may_be_judged;
use crate::server::certs::kube_api::with_timeout;
use crate::server::store::Store;
use crate::server::store::apply_event::RawObject;

use super::API_TIMEOUT;

/// The HTTP statuses of a kind that is not served, and of the rest of a list that has become too old.
const NOT_FOUND: u16 = 404;
const GONE: u16 = 410;

/// A stored object.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) kind: &'static Kind,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// What is read of it, or all of it, as JSON.
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

    /// As etcd orders the objects of a kind.
    fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// The way through all of them.
pub(super) struct Subjects<'s> {
    store: &'s Store,
    client: &'s Client,
    /// The kinds that are left; the first one is on its way.
    kinds: VecDeque<(&'static Family, &'static Kind)>,
    /// Behind which object of that kind it goes on in the state.
    place: Option<(String, String)>,
    list: List,
}

/// Where a list stands.
#[derive(Debug, Default)]
struct List {
    /// What the apiserver goes on by.
    token: Option<String>,
    /// The last object that was handed out: a list that begins anew comes by it again.
    last: Option<String>,
}

impl<'s> Subjects<'s> {
    /// Before the first one. Kinds that no policy judges are passed over.
    pub(super) fn new(store: &'s Store, client: &'s Client, policies: &Policies) -> Self {
        let families = store.snapshot().settings.families.clone();
        let audited = |family: &'static Family| family.audited().map(move |kind| (family, kind));
        let kinds = families.into_iter().flat_map(audited);
        let kinds = kinds.filter(|(family, kind)| may_be_judged(policies, family, kind)).collect();
        Self { store, client, kinds, place: None, list: List::default() }
    }

    /// The next objects, all of one kind; fewer than `most` do not mean the end, and none do.
    ///
    /// # Errors
    /// When a kind cannot be listed.
    pub(super) async fn next(&mut self, most: u32) -> kube::Result<Vec<Stored>> {
        while let Some(&(family, kind)) = self.kinds.front() {
            let (objects, is_last) = if family.holds_whole(kind) {
                self.of_state(kind, most)
            } else {
                self.of_list(kind, most).await?
            };
            if is_last {
                self.kinds.pop_front();
                (self.place, self.list) = (None, List::default());
            }
            if !objects.is_empty() {
                return Ok(objects);
            }
        }
        Ok(Vec::new())
    }

    fn of_state(&mut self, kind: &'static Kind, most: u32) -> (Vec<Stored>, bool) {
        let snapshot = self.store.snapshot();
        let place = self.place.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
        let most = most as usize;
        let objects = snapshot.kind(kind).into_iter().flat_map(|state| state.objects_behind(place));
        let objects: Vec<_> = objects.take(most).map(Stored::of_state).collect();
        let is_last = objects.len() < most;
        self.place = objects.last().map(|last| (last.namespace.clone(), last.name.clone()));
        (objects, is_last)
    }

    async fn of_list(&mut self, kind: &'static Kind, most: u32) -> kube::Result<(Vec<Stored>, bool)> {
        let api = Api::<RawObject>::all_with(self.client.clone(), &kind);
        let mut params = ListParams::default().limit(most);
        params.continue_token.clone_from(&self.list.token);
        let page = match with_timeout(API_TIMEOUT, api.list(&params)).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.code == NOT_FOUND => return Ok((Vec::new(), true)),
            Err(kube::Error::Api(status)) if status.code == GONE && self.list.token.is_some() => {
                self.list.token = None;
                return Ok((Vec::new(), false));
            }
            Err(error) => return Err(error),
        };
        self.list.token = page.metadata.continue_.filter(|token| !token.is_empty());
        let last = self.list.last.take();
        let is_new = |stored: &Stored| last.as_ref().is_none_or(|last| stored.key() > *last);
        let objects = page.items.into_iter().map(|object| Stored::of_list(kind, object));
        let objects: Vec<_> = objects.filter(is_new).collect();
        self.list.last = objects.last().map(Stored::key).or(last);
        Ok((objects, self.list.token.is_none()))
    }
}
