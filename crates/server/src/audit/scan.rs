//! Counts the running pods of agents that lack their memory, by the controller that owns them.
//!
//! ```text
//! watches of pods ──▶ Pods ──▶ metrics
//!                      ▲
//! changes of the state, lists of the pods in their namespaces
//! ```
//!
//! Only the replica that audits scans, and only if its account may list and watch pods: that is a right of its own. A pod
//! lacks its memory if it would get some were it made now. Of each pod its name, its owner and that answer are kept, not
//! the pod: when an object changes, the pods of its namespace are listed again.

mod pods;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{ListParams, PostParams};
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep, sleep_until};

use crate::lookup::Lookups;
use crate::metrics::Metrics;
use crate::store::apply_event::RawObject;
use crate::store::watch::{Listener, WatchEnd, Watched};
use crate::store::{Store, Touched};
use memgate_certs::kube_api::{jitter, with_timeout};
use memgate_certs::library_error::explained;
use memgate_core::decide::decide;
use memgate_model::family::Family;
use memgate_model::kind::POD;
use memgate_model::object::Reference;
use memgate_model::policy::Policies;
use memgate_model::reason::Reason;
use memgate_model::request::Request;
use memgate_model::selector::PodSelector;
use memgate_model::snapshot::Snapshot;

use self::pods::{Answered, Pods, Running};
use super::judged::{Judge, Judges, retain_possible};
use super::{API_TIMEOUT, GATHER, LOOKUPS, PAUSE, RETRY};

/// How often to ask whether pods may be read.
const ASK_AGAIN: Duration = Duration::from_mins(1);

/// How many events wait at most, and how many are taken at a time: a pod may have a megabyte and a half.
const QUEUE: usize = 4;
const BATCH: usize = 50;

/// How many pods a page of a list has.
const PAGE: u32 = 50;

/// After a list of pods none is begun for this many times as long as it took.
const REST: u32 = 4;

/// Scans for as long as this replica audits.
pub(super) struct Scan {
    pub(super) client: Client,
    pub(super) store: Arc<Store>,
    pub(super) metrics: Arc<Metrics>,
    /// After how much silence a watch begins again.
    pub(super) watch_idle: Duration,
}

/// Pods of one sort.
#[derive(Clone, Copy)]
pub(super) struct Sort {
    family: &'static Family,
    selector: &'static PodSelector,
}

/// An event of the watch of one sort.
struct Arrived {
    sort: usize,
    event: Event<RawObject>,
}

/// Sends the events of a watch on.
#[derive(Clone)]
struct ToChannel {
    sort: usize,
    events: Sender<Arrived>,
}

impl Listener for ToChannel {
    async fn take(&self, event: Event<RawObject>) {
        // The receiver lives as long as the watches.
        drop(self.events.send(Arrived { sort: self.sort, event }).await);
    }
}

impl Scan {
    /// Never ends.
    pub(super) async fn run(&self) {
        while !self.may_read_pods().await {
            sleep(jitter(ASK_AGAIN)).await;
        }
        tracing::info!("this replica counts running pods without their memory");
        let families = self.store.snapshot().settings.families.clone();
        let sorts = |family: &'static Family| {
            family.pods.selectors.iter().map(move |selector| Sort { family, selector })
        };
        let sorts: Vec<_> = families.into_iter().flat_map(sorts).collect();
        let (events, received) = channel(QUEUE);
        let watches = sorts.iter().enumerate().map(|(index, sort)| self.follow(index, *sort, events.clone()));
        tokio::select! {
            _ = join_all(watches) => {}
            () = self.count(&sorts, received) => {}
        }
    }

    /// Whether the account may list and watch pods. It is asked, so that no request is refused where it may not.
    async fn may_read_pods(&self) -> bool {
        let reviews = Api::<SelfSubjectAccessReview>::all(self.client.clone());
        for verb in ["list", "watch"] {
            let attributes = ResourceAttributes {
                resource: Some(POD.plural.to_owned()),
                verb: Some(verb.to_owned()),
                ..ResourceAttributes::default()
            };
            let spec =
                SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..<_>::default() };
            let review = SelfSubjectAccessReview { spec, ..<_>::default() };
            match with_timeout(API_TIMEOUT, reviews.create(&PostParams::default(), &review)).await {
                Ok(answer) if answer.status.as_ref().is_some_and(|status| status.allowed) => {}
                Ok(_) => return false,
                Err(error) => {
                    tracing::debug!(error = explained(&error), "whether pods may be read is not known");
                    return false;
                }
            }
        }
        true
    }

    /// Follows the pods of a sort, once an object of their platform exists; never ends.
    async fn follow(&self, index: usize, sort: Sort, events: Sender<Arrived>) {
        let mut changes = self.store.changes();
        changes.mark_changed();
        while !self.has_objects(sort.family) {
            if changes.changed().await.is_err() {
                return;
            }
        }
        let listener = ToChannel { sort: index, events };
        let mut watched = Watched::new(self.client.clone(), &POD, sort.selector.query(), self.watch_idle);
        loop {
            match watched.until_it_ends(&listener).await {
                WatchEnd::SmallerPages => {}
                WatchEnd::NotServed | WatchEnd::Relist => sleep(jitter(RETRY)).await,
            }
        }
    }

    fn has_objects(&self, family: &Family) -> bool {
        let snapshot = self.store.snapshot();
        let kinds = family.kinds.watched.iter().filter(|kind| !kind.group.is_empty());
        kinds.filter_map(|kind| snapshot.kind(kind)).any(|state| !state.is_empty())
    }

    /// Counts pods as events arrive and objects change; never ends.
    async fn count(&self, sorts: &[Sort], mut received: Receiver<Arrived>) {
        let lookups = Lookups::new(self.client.clone(), LOOKUPS, Arc::clone(&self.metrics));
        let mut pods = Pods::new(sorts);
        let mut changes = self.store.changes();
        // What has changed until now, the watches have yet to bring.
        drop(self.store.take_touched());
        let mut touched = Touched::default();
        let (mut again, mut rested) = (None::<Instant>, Instant::now());
        // The series are written anew once in a while: that takes as long as there are owners, and a batch has few pods.
        let mut shown = None::<Instant>;
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                _ = received.recv_many(&mut batch, BATCH) => {
                    let snapshot = self.store.snapshot();
                    let mut wait = BTreeMap::new();
                    for Arrived { sort, event } in batch {
                        pods.take(sort, event, &snapshot.settings, &mut wait);
                    }
                    self.answer(&mut pods, wait.into_values().collect(), &lookups).await;
                }
                _ = changes.changed() => {
                    again.get_or_insert_with(|| (Instant::now() + GATHER).max(rested));
                }
                () = sleep_until(again.unwrap_or(rested)), if again.is_some() => {
                    let begun = Instant::now();
                    touched.join(self.store.take_touched());
                    let is_done = self.list_again(&mut pods, &touched, &lookups).await;
                    rested = Instant::now() + (begun.elapsed() * REST).max(PAUSE);
                    if is_done {
                        (touched, again) = (Touched::default(), None);
                    } else {
                        again = Some(Instant::now() + jitter(RETRY));
                    }
                }
                () = sleep_until(shown.unwrap_or(rested)), if shown.is_some() => {
                    self.metrics.audit.set_pods(pods.counts());
                    shown = None;
                }
            }
            if pods.has_changed() {
                shown.get_or_insert_with(|| Instant::now() + GATHER);
            }
        }
    }

    /// Answers for pods.
    async fn answer(&self, pods: &mut Pods<'_>, running: Vec<Running>, lookups: &Lookups) {
        let judge = Arc::new(ByInjection { store: Arc::clone(&self.store) });
        let mut judges = Judges::new(&self.store, lookups, judge, Arc::new(Policies::default()));
        // It fails only while the runtime is shutting down.
        for answered in judges.judge(running).await.into_iter().flatten() {
            pods.put(answered);
        }
    }

    /// Answers again for the pods whose objects have changed. Returns whether all of them could be listed.
    async fn list_again(&self, pods: &mut Pods<'_>, touched: &Touched, lookups: &Lookups) -> bool {
        let snapshot = self.store.snapshot();
        let elsewhere = snapshot.settings.platforms.namespaces_of_pods();
        let namespaces = touched.namespaces.iter().chain(elsewhere.iter());
        let namespaces: Vec<&str> =
            if touched.everywhere { vec![""] } else { namespaces.map(String::as_str).collect() };
        for namespace in namespaces {
            for (index, selector) in pods.sorts_in(namespace) {
                let api = match namespace {
                    "" => Api::<RawObject>::all_with(self.client.clone(), &&POD),
                    _ => Api::namespaced_with(self.client.clone(), namespace, &&POD),
                };
                let mut params =
                    ListParams { label_selector: selector.query(), ..<_>::default() }.limit(PAGE);
                loop {
                    let page = match with_timeout(API_TIMEOUT, api.list(&params)).await {
                        Ok(page) => page,
                        Err(error) => {
                            tracing::warn!(error = explained(&error), "pods could not be listed again");
                            return false;
                        }
                    };
                    let known = page
                        .items
                        .into_iter()
                        .filter_map(|pod| pods.take_known(index, pod, &snapshot.settings));
                    let known = known.collect();
                    self.answer(pods, known, lookups).await;
                    params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
                    if params.continue_token.is_none() {
                        break;
                    }
                }
            }
        }
        true
    }
}

/// Decides about pods as if they were made now.
struct ByInjection {
    store: Arc<Store>,
}

impl Judge for ByInjection {
    type Subject = Running;
    type Judged = Answered;

    fn judge(&self, pod: Running, snapshot: &Snapshot) -> Result<Answered, (Running, Vec<Reference>)> {
        let (namespace, name) = &pod.key;
        let request = Request::to_create_pod(namespace, name, &pod.text);
        let Ok(decision) = catch_unwind(AssertUnwindSafe(|| decide(&request, snapshot))) else {
            tracing::error!(namespace, name, "a pod could not be judged: a fault of memgate");
            return Ok(Self::unsure(pod));
        };
        // What was injected into a pod stays in it when the memory is deleted.
        let has_none = matches!(decision.reason, Reason::ReferenceMissing | Reason::ReferenceInvalid);
        if decision.adds_memory() || has_none && !pod.is_injected {
            return Ok(pod.answered(Some(true)));
        }
        let mut unknown = decision.unknown;
        retain_possible(&mut unknown, &self.store);
        if unknown.is_empty() { Ok(pod.answered(Some(false))) } else { Err((pod, unknown)) }
    }

    fn in_doubt(answered: Answered) -> Answered {
        Answered { lacks_memory: answered.lacks_memory.filter(|lacks| *lacks), ..answered }
    }

    fn unsure(pod: Running) -> Answered {
        pod.answered(None)
    }
}

#[cfg(test)]
mod tests;
