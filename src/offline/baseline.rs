//! Baselines: files that say which findings are known, so that only new ones count.
//!
//! ```json
//! {
//!   "schemaVersion": 1,
//!   "findings": [
//!     {"fingerprint": "…", "code": "ark/…", "severity": "deny", "object": {…}, "pointer": "/spec", "count": 1}
//!   ]
//! }
//! ```
//!
//! One entry a line and in a fixed order, so that a diff shows what changed. There is no file and no line in it: what
//! is known stays known where it is moved. An entry that occurs no longer is a finding, so a baseline only shrinks.

pub mod read;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use serde::Serialize;

use crate::decide::codes;
use crate::family::{self, common};
use crate::manifest::source::{Source, Span};
use crate::model::finding::{Finding, Severity};
use crate::model::pointer::Pointer;
use crate::offline::check::Checked;
use crate::offline::notices::Notice;
use crate::offline::suppress::{Identity, Known, each, suppress, untold};
use crate::report::{ObjectRef, counted};

/// The version of the form. A reader refuses any other.
const SCHEMA_VERSION: u64 = 1;

/// Why a finding is a note, in its message.
const WORDS: &str = "in the baseline";

/// What is known.
#[derive(Debug)]
pub struct Baseline {
    source: Arc<Source>,
    entries: Vec<Entry>,
}

/// A finding that is known.
#[derive(Debug)]
struct Entry {
    identity: Identity,
    count: usize,
    /// Where it stands in the file.
    span: Span,
}

/// Leaves a baseline out of what was read: it may stand among the manifests.
pub fn pass_by(checked: &mut Checked, path: &str) {
    let Ok(baseline) = fs::canonicalize(path) else { return };
    let is_other = |source: &Source| fs::canonicalize(source.name()).is_ok_and(|file| file != baseline);
    checked.notices.retain(|it| it.finding.code != &common::NOT_AN_OBJECT || is_other(&it.source));
    checked.passed_over.retain(|it| it.object_ref.is_some() || is_other(&it.source));
    let hidden = |file: &str| {
        let file = file.strip_suffix(" (hidden)").map(fs::canonicalize);
        file.is_some_and(|file| file.is_ok_and(|file| file == baseline))
    };
    checked.unread.files.retain(|file| !hidden(file));
}

impl Baseline {
    /// Makes notes of what is known. What of the baseline still occurs, as the text of a new one; what does not is added
    /// to what there is to say, unless `shrinks` says that the new text takes the place of the old.
    pub fn apply(&self, checked: &mut Checked, identities: &[Identity], shrinks: bool) -> String {
        let mut known = Known::default();
        for entry in &self.entries {
            known.add(&entry.identity, entry.count);
        }
        suppress(checked, identities, &mut known, WORDS);
        let mut counts = BTreeMap::new();
        // Of what cannot be read, or belongs to a family that is switched off, it is not known whether it occurs.
        let all_is_read = checked.errors.is_empty();
        for entry in &self.entries {
            let left = known.take(&entry.identity, entry.count);
            let gone = if all_is_read && is_judged(checked, &entry.identity.code) { left } else { 0 };
            add(&mut counts, &entry.identity, entry.count - gone);
            if gone > 0 && !shrinks {
                checked.notices.push(self.fixed(entry, gone));
            }
        }
        text(&counts)
    }

    fn fixed(&self, entry: &Entry, gone: usize) -> Notice {
        let Identity { code, object_ref, pointer, .. } = &entry.identity;
        let about = if object_ref.kind.is_empty() { String::new() } else { object_ref.title() + ": " };
        let at =
            if pointer.as_str().is_empty() { String::new() } else { format!(" at {}", pointer.as_str()) };
        let message = if gone == entry.count {
            format!("{about}{code}{at} occurs no longer")
        } else {
            let (left, known) = (entry.count - gone, counted(entry.count, "time"));
            format!("{about}{code}{at} occurs {} and not {known}", counted(left, "time"))
        };
        let finding = Finding::warn(&common::BASELINE_FIXED, Pointer::root(), message)
            .help("write the baseline anew: --write-baseline FILE behind --baseline FILE adds nothing to it");
        let (source, object_ref) = (Arc::clone(&self.source), ObjectRef::default());
        Notice { finding, object_ref, source, span: entry.span, related: None }
    }
}

/// Whether a code could have been reported. One that there is no longer cannot occur any more.
fn is_judged(checked: &Checked, code: &str) -> bool {
    let is_in = |families| codes::all(families).any(|known| known.name == code);
    is_in(&checked.families) || !is_in(&family::ALL)
}

/// The text of a baseline that has everything that was found and is no note yet, which becomes one.
pub fn record(checked: &mut Checked, identities: &[Identity]) -> String {
    let (mut counts, mut known) = (BTreeMap::new(), Known::default());
    let mut all = identities.iter();
    each(checked, |_, finding| {
        let Some(identity) = all.next() else { return };
        if finding.severity != Severity::Note {
            add(&mut counts, identity, 1);
        }
        known.add(identity, 1);
    });
    for (identity, count) in untold(checked) {
        add(&mut counts, &identity, count);
        known.add(&identity, count);
    }
    suppress(checked, identities, &mut known, WORDS);
    text(&counts)
}

/// How often each entry occurs, in the order of the file: by object, then place, then code.
type Counts = BTreeMap<[String; 7], usize>;

fn add(counts: &mut Counts, identity: &Identity, count: usize) {
    let Identity { code, severity, object_ref, pointer } = identity;
    let ObjectRef { kind, namespace, name, .. } = object_ref;
    let key = [group(object_ref), kind, namespace, name, pointer.as_str(), code, severity.name()];
    if count > 0 {
        *counts.entry(key.map(str::to_owned)).or_default() += count;
    }
}

fn group(object_ref: &ObjectRef) -> &str {
    object_ref.api_version.split_once('/').map_or("", |(group, _)| group)
}

#[derive(Serialize)]
struct JsonEntry<'e> {
    fingerprint: String,
    code: &'e str,
    severity: &'e str,
    object: JsonObject<'e>,
    pointer: &'e str,
    count: usize,
}

#[derive(Serialize)]
struct JsonObject<'e> {
    group: &'e str,
    kind: &'e str,
    namespace: &'e str,
    name: &'e str,
}

fn text(counts: &Counts) -> String {
    let mut text = format!("{{\n  \"schemaVersion\": {SCHEMA_VERSION},\n  \"findings\": [");
    let mut separator = "\n    ";
    for ([group, kind, namespace, name, pointer, code, severity], count) in counts {
        let entry = JsonEntry {
            fingerprint: fingerprint(code, [group, kind, namespace, name], pointer),
            code,
            severity,
            object: JsonObject { group, kind, namespace, name },
            pointer,
            count: *count,
        };
        // Texts and a number are always JSON.
        let entry = serde_json::to_string(&entry).unwrap_or_default();
        let _infallible = write!(text, "{separator}{entry}");
        separator = ",\n    ";
    }
    text.push_str(if counts.is_empty() { "]\n}\n" } else { "\n  ]\n}\n" });
    text
}

fn object_ref([group, kind, namespace, name]: [&str; 4]) -> ObjectRef {
    let version_of = if group.is_empty() { String::new() } else { format!("{group}/") };
    let text = str::to_owned;
    ObjectRef { api_version: version_of, kind: text(kind), namespace: text(namespace), name: text(name) }
}

fn fingerprint(code: &str, object: [&str; 4], pointer: &str) -> String {
    crate::report::fingerprint::of(code, &object_ref(object), &Pointer::new(pointer))
}
