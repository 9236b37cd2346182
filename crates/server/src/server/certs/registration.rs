//! The live webhook configurations: whom they trust, and the one field that is written into them.
//!
//! They are read and watched by name, since memgate may not list them. `caBundle` is patched under a
//! field manager of its own, in entries that are there and that still bear the name they were read
//! with: no configuration and no entry is ever made.
//!
//! A JSON patch, not server-side apply: an applied entry belongs to whoever applied any field of it,
//! so a tool that applies a configuration without an entry it once had would leave a half entry
//! behind, which the apiserver refuses together with the rest of what the tool applies. A patched
//! field goes with its entry.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::StreamExt as _;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch as Operations, PatchOperation, TestOperation};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::watch::Sender;
use tokio::time::Instant;

use crate::server::certs::anchor::{self, Anchor, Bundle};
use crate::server::certs::plan::Trust;
use crate::server::certs::troubles::Troubles;
use crate::server::certs::{said, within};
use crate::server::store::watch::spread;

/// Who owns `caBundle`, in the words of the apiserver.
pub(in crate::server) const MANAGER: &str = "memgate-cabundle";

/// The longest that a request may take.
const LONGEST: Duration = Duration::from_secs(5);

/// How long one watch lasts. Then the object is read again, so that a watch that died silently is
/// noticed.
const WATCH: u32 = 60;

/// The least time between two watches, however soon they end.
const BETWEEN_WATCHES: Duration = Duration::from_secs(1);

/// Which of the two configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum Which {
    /// Of the mutating calls.
    Mutating,
    /// Of the validating calls.
    Validating,
}

/// What is known of one configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::server) enum Seen {
    /// Nothing yet.
    #[default]
    Unknown,
    /// It may not be read.
    Denied,
    /// There is none.
    Absent,
    /// It is there.
    There(Registration),
}

/// What one configuration says about trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct Registration {
    uid: String,
    version: String,
    /// In their order: the name of each entry, and its `caBundle`.
    pub(in crate::server) entries: Vec<(String, Bundle)>,
    /// The CAs that all entries trust, and since when.
    trusted: BTreeMap<Anchor, Instant>,
}

/// What is known of both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::server) struct Live {
    /// The configuration of the mutating calls.
    pub(in crate::server) mutating: Seen,
    /// The configuration of the validating calls.
    pub(in crate::server) validating: Seen,
}

impl Which {
    /// Both.
    pub(in crate::server) const ALL: [Self; 2] = [Self::Mutating, Self::Validating];

    /// Reading it, as the log names it.
    const fn reading(self) -> &'static str {
        match self {
            Self::Mutating => "read the mutating webhook configuration",
            Self::Validating => "read the validating webhook configuration",
        }
    }

    /// Its name, for metrics and the log.
    pub(in crate::server) const fn name(self) -> &'static str {
        match self {
            Self::Mutating => "mutating",
            Self::Validating => "validating",
        }
    }

    /// The way to configurations of this kind.
    pub(in crate::server) fn api(self, client: Client) -> Api<DynamicObject> {
        let resource = match self {
            Self::Mutating => ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            Self::Validating => ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
        };
        Api::all_with(client, &resource)
    }
}

impl Live {
    /// What is known of one of them.
    pub(in crate::server) fn of(&self, which: Which) -> &Seen {
        match which {
            Which::Mutating => &self.mutating,
            Which::Validating => &self.validating,
        }
    }

    fn of_mut(&mut self, which: Which) -> &mut Seen {
        match which {
            Which::Mutating => &mut self.mutating,
            Which::Validating => &mut self.validating,
        }
    }

    /// Whether something was found out about both.
    pub(super) fn is_known(&self) -> bool {
        Which::ALL.iter().all(|which| *self.of(*which) != Seen::Unknown)
    }

    /// Whether one of them may not be read.
    pub(super) fn is_denied(&self) -> bool {
        Which::ALL.iter().any(|which| *self.of(*which) == Seen::Denied)
    }

    /// The CAs that both trust. One that is not there refuses none, as long as the other is; of one
    /// that may not be read nothing is known.
    pub(super) fn trust(&self, now: Instant) -> Trust {
        if self.is_denied() {
            return Trust::default();
        }
        let there = Which::ALL.iter().filter_map(|which| self.of(*which).registration());
        let there: Vec<_> = there.filter(|registration| !registration.entries.is_empty()).collect();
        let Some((first, others)) = there.split_first() else { return Trust::default() };
        let for_how_long = |anchor: &Anchor| {
            let since = there.iter().map(|registration| registration.trusted.get(anchor).copied());
            let latest = since.collect::<Option<Vec<_>>>()?.into_iter().max()?;
            Some(now.saturating_duration_since(latest))
        };
        let both = first.trusted.keys().filter(|anchor| others.iter().all(|other| other.trusts(anchor)));
        Trust(both.filter_map(|anchor| Some((anchor.clone(), for_how_long(anchor)?))).collect())
    }

    /// Whether callers trust a CA as far as can be found out.
    pub(super) fn trusts(&self, anchor: &Anchor) -> bool {
        Which::ALL.iter().all(|which| match self.of(*which) {
            Seen::There(registration) => registration.trusts(anchor),
            Seen::Denied => true,
            Seen::Unknown | Seen::Absent => false,
        })
    }
}

impl Seen {
    /// The configuration, when it is there.
    pub(in crate::server) fn registration(&self) -> Option<&Registration> {
        match self {
            Self::There(registration) => Some(registration),
            Self::Unknown | Self::Denied | Self::Absent => None,
        }
    }

    /// What is known now that an object was seen; a CA that was trusted before has been since then.
    fn after(&self, object: &DynamicObject, now: Instant) -> Self {
        let before = self.registration();
        let mut registration = Registration::read(object);
        let since = |anchor: &Anchor| before.and_then(|before| before.trusted.get(anchor)).copied();
        for (anchor, trusted) in &mut registration.trusted {
            *trusted = since(anchor).unwrap_or(now);
        }
        Self::There(registration)
    }
}

impl Registration {
    /// Reads an object; its trust begins now.
    pub(in crate::server) fn read(object: &DynamicObject) -> Self {
        let webhooks = object.data.get("webhooks").and_then(Value::as_array);
        let entries: Vec<_> = webhooks.into_iter().flatten().map(entry).collect();
        let sets: Vec<BTreeSet<&Anchor>> =
            entries.iter().map(|(_, bundle)| bundle.anchors.iter().collect()).collect();
        let mut common = sets.iter();
        let first = common.next().cloned().unwrap_or_default();
        let common = common.fold(first, |all, set| all.intersection(set).copied().collect());
        let now = Instant::now();
        let trusted = common.into_iter().map(|anchor| (anchor.clone(), now)).collect();
        Self {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            version: object.metadata.resource_version.clone().unwrap_or_default(),
            entries,
            trusted,
        }
    }

    /// A configuration without entries calls nobody, and so refuses no CA.
    fn trusts(&self, anchor: &Anchor) -> bool {
        self.entries.is_empty() || self.trusted.contains_key(anchor)
    }

    /// Whether every entry trusts exactly these; their order is nobody's business.
    pub(super) fn says(&self, bundle: &[Anchor]) -> bool {
        let wanted: BTreeSet<_> = bundle.iter().collect();
        let says = |(_, found): &(String, Bundle)| found.anchors.iter().collect::<BTreeSet<_>>() == wanted;
        self.entries.iter().all(says)
    }

    /// What makes every entry trust these; nothing where an entry does already.
    fn patch(&self, bundle: &[Anchor]) -> Operations {
        let text = Value::String(BASE64_STANDARD.encode(anchor::pem(bundle)));
        let uid = Value::String(self.uid.clone());
        let mut operations = vec![test(&["metadata", "uid"], uid)];
        let wanted: BTreeSet<_> = bundle.iter().collect();
        for (index, (name, found)) in self.entries.iter().enumerate() {
            if found.anchors.iter().collect::<BTreeSet<_>>() == wanted {
                continue;
            }
            let index = index.to_string();
            operations.push(test(&["webhooks", &index, "name"], Value::String(name.clone())));
            let path = PointerBuf::from_tokens(["webhooks", &index, "clientConfig", "caBundle"]);
            operations.push(PatchOperation::Add(AddOperation { path, value: text.clone() }));
        }
        Operations(operations)
    }
}

fn test(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: PointerBuf::from_tokens(path.iter().copied()), value })
}

fn entry(webhook: &Value) -> (String, Bundle) {
    let text = |pointer| webhook.pointer(pointer).and_then(Value::as_str);
    let bundle = text("/clientConfig/caBundle").and_then(|text| BASE64_STANDARD.decode(text).ok());
    (text("/name").unwrap_or_default().to_owned(), anchor::parse(&bundle.unwrap_or_default()))
}

/// Reads a configuration and tells what was found.
pub(super) async fn look(
    client: Client,
    which: Which,
    name: &str,
    live: &Sender<Live>,
) -> Result<Seen, kube::Error> {
    let seen = match within(LONGEST, which.api(client).get_opt(name)).await {
        Ok(Some(object)) => note(live, which, &object),
        Ok(None) => Seen::Absent,
        Err(kube::Error::Api(status)) if status.code == 403 => Seen::Denied,
        Err(error) => return Err(error),
    };
    live.send_if_modified(|live| replace(live.of_mut(which), &seen));
    Ok(seen)
}

/// Makes a configuration trust exactly these.
pub(super) async fn write(
    client: Client,
    which: Which,
    name: &str,
    registration: &Registration,
    bundle: &[Anchor],
    live: &Sender<Live>,
) -> Result<(), kube::Error> {
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::<()>::Json(registration.patch(bundle));
    let api = which.api(client);
    let object = within(LONGEST, api.patch(name, &params, &patch)).await?;
    let seen = note(live, which, &object);
    live.send_if_modified(|live| replace(live.of_mut(which), &seen));
    Ok(())
}

fn note(live: &Sender<Live>, which: Which, object: &DynamicObject) -> Seen {
    live.borrow().of(which).after(object, Instant::now())
}

/// Puts something in place of another; whether they differ.
fn replace(place: &mut Seen, seen: &Seen) -> bool {
    let differ = place != seen;
    place.clone_from(seen);
    differ
}

/// Keeps what is known of a configuration up to date; never ends.
pub(super) async fn follow(client: Client, which: Which, name: String, live: Sender<Live>, pause: Duration) {
    let (mut troubles, step) = (Troubles::default(), which.reading());
    loop {
        let seen = look(client.clone(), which, &name, &live).await;
        note_trouble(&mut troubles, step, &seen);
        let Ok(Seen::There(registration)) = seen else {
            tokio::time::sleep(spread(pause)).await;
            continue;
        };
        let started = Instant::now();
        match watch(client.clone(), which, &name, &registration.version, &live).await {
            Ok(()) => tokio::time::sleep(BETWEEN_WATCHES.saturating_sub(started.elapsed())).await,
            Err(error) => {
                tracing::debug!(configuration = which.name(), error = said(&error), "a watch ended");
                tokio::time::sleep(spread(pause) / 4).await;
            }
        }
    }
}

/// Tells once why a configuration cannot be read.
fn note_trouble(troubles: &mut Troubles, step: &'static str, seen: &Result<Seen, kube::Error>) {
    match seen {
        Ok(Seen::Denied) => {
            let help = "memgate's account has no right to; `memgate manifests` prints the role that gives it";
            troubles.note(step, help.to_owned());
        }
        Ok(_) => troubles.over(step),
        Err(error) => troubles.note(step, said(error)),
    }
}

async fn watch(
    client: Client,
    which: Which,
    name: &str,
    version: &str,
    live: &Sender<Live>,
) -> Result<(), kube::Error> {
    let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(WATCH);
    let api = which.api(client);
    let mut events = within(LONGEST, api.watch(&params, version)).await?.boxed();
    let end = Instant::now() + Duration::from_secs(WATCH.into()) + LONGEST;
    while let Ok(Some(event)) = tokio::time::timeout_at(end, events.next()).await {
        let seen = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => note(live, which, &object),
            WatchEvent::Deleted(_) => Seen::Absent,
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        };
        live.send_if_modified(|live| replace(live.of_mut(which), &seen));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
