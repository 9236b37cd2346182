//! The state of the decisions of an audit, and what they look up beyond it.
//!
//! The kinds are those that a server watches. Of each object the fields that decisions read are kept; beyond a number of
//! bytes only names are, and decisions look those objects up.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use kube::api::ListParams;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cluster_state::Fetched;
use crate::reader::{ClusterReader, path, resource};
use memgate_model::kind::{Kind, NAMESPACE, SECRET};
use memgate_model::object::{Coverage, KindState, Object, Reference};
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;

use super::{Faults, TooManyFaults};

/// How many bytes of objects are held.
const MAX_BYTES: usize = 96 << 20;

/// How many looked-up objects are remembered, and the most bytes of one.
const MAX_REMEMBERED: usize = 1_000;
const MAX_REMEMBERED_BYTES: usize = 8 << 10;

/// How many objects are looked up at a time.
const AT_A_TIME: usize = 8;

/// How often an object is judged again after what it refers to was looked up.
const MAX_ROUNDS: usize = 4;

/// A stored object.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) kind: &'static Kind,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// Its JSON.
    pub(super) text: Box<str>,
}

/// The objects of a kind, page by page.
pub(super) struct Pages<'r> {
    reader: &'r ClusterReader,
    kind: &'static Kind,
    params: Option<ListParams>,
}

impl<'r> Pages<'r> {
    /// Before the first page; of objects with these labels.
    pub(super) fn new(
        reader: &'r ClusterReader,
        kind: &'static Kind,
        label_selector: Option<String>,
    ) -> Self {
        let limit = Some(reader.page_objects);
        let params = ListParams { label_selector, limit, ..ListParams::default() };
        Self { reader, kind, params: Some(params) }
    }

    /// The next page; `None` behind the last one and for a kind that is not served.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Stored>>, String> {
        let Some(params) = &mut self.params else { return Ok(None) };
        let path = path(&self.kind.api_version(), "", self.kind.plural);
        let page = match self.reader.page(&resource(self.kind), &path, params).await {
            Fetched::Found(page) => page,
            Fetched::Absent => return Ok(None),
            Fetched::Unknown(why) => return Err(why),
        };
        if params.continue_token.is_none() {
            self.params = None;
        }
        Ok(Some(page.into_iter().filter_map(|object| Stored::read(self.kind, object)).collect()))
    }
}

impl Stored {
    /// Reads what tells an object from others; `None` if it cannot be read.
    pub(super) fn read(kind: &'static Kind, object: Box<RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Head {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        #[serde(default)]
        #[derive(Default)]
        struct Metadata {
            name: String,
            namespace: String,
            uid: String,
        }
        let Head { metadata: Metadata { name, namespace, uid } } = serde_json::from_str(object.get()).ok()?;
        Some(Self { kind, namespace, name, uid, text: object.into() })
    }
}

/// What an apiserver has of an object; `None` if there is none.
type Known = Option<Arc<Object>>;

/// The state.
pub(super) struct State<'r> {
    pub(super) reader: &'r ClusterReader,
    pub(super) snapshot: Snapshot,
    /// The kinds of which objects may be looked up.
    kinds: BTreeSet<&'static Kind>,
    remembered: BTreeMap<Reference, Option<Known>>,
}

impl<'r> State<'r> {
    /// Reads all objects that decisions may look up in a state.
    pub(super) async fn read(
        reader: &'r ClusterReader,
        settings: &Settings,
        faults: &mut Faults,
    ) -> Result<Self, TooManyFaults> {
        let mut snapshot = Snapshot::new(memgate_platforms::default_settings());
        snapshot.settings = settings.clone();
        let families = || settings.families.iter().map(|family| &family.kinds);
        let watched = families().flat_map(|kinds| kinds.watched).copied().chain([&NAMESPACE]);
        let mut lists: BTreeMap<&'static Kind, Option<String>> = watched.map(|kind| (kind, None)).collect();
        if settings.platforms.watches_workloads {
            let of_files = families().flat_map(|kinds| kinds.in_files);
            lists
                .extend(of_files.filter_map(|(kind, selector)| Some((*kind, Some((*selector)?.to_owned())))));
        }
        let fetched: BTreeSet<_> = families().flat_map(|kinds| kinds.fetched).copied().collect();
        for kind in &fetched {
            snapshot.set(kind, KindState::new(Coverage::Watched));
        }
        let kinds =
            fetched.into_iter().chain(lists.keys().copied()).filter(|kind| **kind != SECRET).collect();
        let mut bytes = 0;
        for (kind, selector) in lists {
            let state = match list(Pages::new(reader, kind, selector), &mut bytes).await {
                Ok(state) => state,
                Err(why) => {
                    faults.add(why)?;
                    let mut unread = KindState::new(Coverage::Watched);
                    unread.is_installed = true;
                    unread
                }
            };
            snapshot.set(kind, state);
        }
        Ok(Self { reader, snapshot, kinds, remembered: BTreeMap::new() })
    }

    /// Judges objects, each again with what it asks for. `None` stands for one of which too little is known.
    pub(super) async fn judge<J>(
        &mut self,
        objects: Vec<Stored>,
        faults: &mut Faults,
        judge: impl Fn(&Stored, &Snapshot) -> (J, Vec<Reference>),
    ) -> Result<Vec<(Stored, Option<J>)>, TooManyFaults> {
        let mut judged = Vec::new();
        for object in objects {
            let mut known = None;
            let mut snapshot = self.snapshot.clone();
            for _ in 0..=MAX_ROUNDS {
                // One that cannot be judged is not to end the audit of all others.
                let caught = catch_unwind(AssertUnwindSafe(|| judge(&object, &snapshot)));
                let Ok((result, mut unknown)) = caught else {
                    let Stored { kind, namespace, name, .. } = &object;
                    let kind = kind.kind;
                    faults
                        .add(format!("{kind} {namespace}/{name} could not be judged: a fault of memgate"))?;
                    break;
                };
                unknown.retain(|it| self.kinds.contains(it.kind) && !it.name.is_empty());
                if unknown.is_empty() {
                    known = Some(result);
                    break;
                }
                let Some(answers) = self.look_up(unknown, faults).await? else { break };
                snapshot =
                    snapshot.overlaid(answers.into_iter().map(|(reference, known)| (reference, Ok(known))));
            }
            judged.push((object, known));
        }
        Ok(judged)
    }

    /// Looks objects up; `None` if one of them cannot be read.
    async fn look_up(
        &mut self,
        mut wanted: Vec<Reference>,
        faults: &mut Faults,
    ) -> Result<Option<Vec<(Reference, Known)>>, TooManyFaults> {
        wanted.sort();
        wanted.dedup();
        let (mut answers, mut asked, mut is_whole) = (Vec::new(), Vec::new(), true);
        for reference in wanted {
            match self.remembered.get(&reference) {
                Some(Some(known)) => answers.push((reference, known.clone())),
                Some(None) => is_whole = false,
                None if !reference.is_possible() => answers.push((reference, None)),
                None => asked.push(reference),
            }
        }
        let reader = self.reader;
        let found =
            stream::iter(asked).map(|reference| async move { (get(reader, &reference).await, reference) });
        let mut found = found.buffered(AT_A_TIME);
        while let Some((answer, reference)) = found.next().await {
            match answer {
                Ok(known) => {
                    let bytes = known.iter().flatten().map(|object| object.bytes()).sum::<usize>();
                    if bytes <= MAX_REMEMBERED_BYTES && self.remembered.len() < MAX_REMEMBERED {
                        self.remembered.insert(reference.clone(), known.clone());
                    }
                    match known {
                        Some(known) => answers.push((reference, known)),
                        None => is_whole = false,
                    }
                }
                Err(why) => {
                    faults.add(why)?;
                    is_whole = false;
                }
            }
        }
        Ok(is_whole.then_some(answers))
    }
}

/// The objects of a kind, as decisions read them. One that cannot be read is looked up.
async fn list(mut pages: Pages<'_>, bytes: &mut usize) -> Result<KindState, String> {
    let mut state = KindState::new(Coverage::Complete);
    while let Some(page) = pages.next().await? {
        state.is_installed = true;
        for Stored { kind, namespace, name, text, .. } in page {
            match Object::read_to_keep(kind, (&namespace, &name), &text) {
                Ok(Some(mut object)) => {
                    object.held &= *bytes < MAX_BYTES;
                    *bytes += state.put(object).0.bytes();
                }
                _ => state.insert_lacking(&namespace),
            }
        }
    }
    Ok(state)
}

/// One object; `None` if it has more than a decision may read. That is its author's doing, and ends no audit.
async fn get(
    reader: &ClusterReader,
    Reference { kind, namespace, name }: &Reference,
) -> Result<Option<Known>, String> {
    match reader.get_text(kind, namespace, name).await {
        Fetched::Found(text) => {
            let object = Object::read_once(kind, (namespace, name), &text);
            Ok(object.ok().flatten().map(|object| Some(Arc::new(object))))
        }
        Fetched::Absent => Ok(Some(None)),
        Fetched::Unknown(why) => Err(why),
    }
}
