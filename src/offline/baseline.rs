//! Baselines: files of known findings, so that only new ones count.
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
//! Each entry has a line, and the order is fixed, so that a diff shows the changes. An entry has neither file nor line: a
//! known finding stays known when its object moves. An entry without a finding is a finding itself, so a baseline only
//! shrinks.

pub mod read;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use serde_json::json;

use crate::offline::check::Checked;
use crate::offline::notices::Notice;
use crate::offline::suppress::{Identity, KnownFindings, each, not_shown, suppress};
use crate::report::{ObjectRef, counted, fingerprint};
use memgate_core::decide::codes;
use memgate_core::family::{self, common};
use memgate_manifest::source::{Source, Span};
use memgate_model::finding::{Finding, Severity};
use memgate_primitives::pointer::Pointer;

/// The version of the format. The reader refuses any other.
const SCHEMA_VERSION: u64 = 1;

/// The reason in the message of a note.
const REASON: &str = "in the baseline";

/// A baseline.
#[derive(Debug)]
pub struct Baseline {
    source: Arc<Source>,
    entries: Vec<BaselineEntry>,
}

/// A known finding.
#[derive(Debug)]
struct BaselineEntry {
    identity: Identity,
    count: usize,
    /// Its place in the file.
    span: Span,
}

/// Removes a baseline from the files that were read: it may be among the manifests.
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
    /// Turns known findings into notes. Returns the text of a new baseline with the entries that still occur. The other
    /// entries are reported, unless `shrinks` says that the new text replaces the old one.
    pub fn apply(&self, checked: &mut Checked, identities: &[Identity], shrinks: bool) -> String {
        let mut known = KnownFindings::default();
        for entry in &self.entries {
            known.add(&entry.identity, entry.count);
        }
        suppress(checked, identities, &mut known, REASON);
        let mut counts = BTreeMap::new();
        // An entry may still occur in a file that cannot be read, or for a family that is switched off.
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

    fn fixed(&self, entry: &BaselineEntry, gone: usize) -> Notice {
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
        Notice::new(&self.source, entry.span, finding)
    }
}

/// Whether a code could have been reported. A code that does not exist any more cannot occur.
fn is_judged(checked: &Checked, code: &str) -> bool {
    let is_in = |families| codes::all(families).any(|known| known.name == code);
    is_in(&checked.families) || !is_in(&family::ALL)
}

/// The text of a baseline with all findings that are not notes yet. They become notes.
pub fn record(checked: &mut Checked, identities: &[Identity]) -> String {
    let (mut counts, mut known) = (BTreeMap::new(), KnownFindings::default());
    let mut all = identities.iter();
    each(checked, |_, finding| {
        let Some(identity) = all.next() else { return };
        if finding.severity != Severity::Note {
            add(&mut counts, identity, 1);
        }
        known.add(identity, 1);
    });
    for (identity, count) in not_shown(checked) {
        add(&mut counts, &identity, count);
        known.add(&identity, count);
    }
    suppress(checked, identities, &mut known, REASON);
    text(&counts)
}

/// The number of each entry, in the order of the file: by object, then place, then code.
type Counts = BTreeMap<[String; 7], usize>;

fn add(counts: &mut Counts, identity: &Identity, count: usize) {
    let Identity { code, severity, object_ref, pointer } = identity;
    let ObjectRef { kind, namespace, name, .. } = object_ref;
    let key = [object_ref.group(), kind, namespace, name, pointer.as_str(), code, severity.name()];
    if count > 0 {
        *counts.entry(key.map(str::to_owned)).or_default() += count;
    }
}

fn text(counts: &Counts) -> String {
    let mut text = format!("{{\n  \"schemaVersion\": {SCHEMA_VERSION},\n  \"findings\": [");
    let mut separator = "\n    ";
    for ([group, kind, namespace, name, pointer, code, severity], count) in counts {
        let object = object_ref([group, kind, namespace, name]);
        let entry = json!({
            "fingerprint": fingerprint::of(code, &object, &Pointer::new(pointer)),
            "code": code,
            "severity": severity,
            "object": {"group": group, "kind": kind, "namespace": namespace, "name": name},
            "pointer": pointer,
            "count": count,
        });
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
