//! Baselines: files of known findings, so that only new ones count.
//!
//! ```json
//! {
//!   "schemaVersion": 1,
//!   "findings": [
//!     {"fingerprint": "…", "value": "…", "code": "ark/…", "severity": "deny", "object": {…}, "pointer": "/spec", "count": 1}
//!   ]
//! }
//! ```
//!
//! Each entry has a line, and the order is fixed, so that a diff shows the changes. An entry has neither file nor line: a
//! known finding stays known when its object moves. An entry without a finding is a finding itself, so a baseline only
//! shrinks. `value` is a hash of what was judged, so that another value is a new finding; of a number `excess` says how far
//! it is on the forbidden side, and less of it is known too. An older entry without `value` covers any value.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::errors::{error_at, error_in};
use crate::judge::Checked;
use crate::notices::Notice;
use crate::report::fingerprint::Fingerprint;
use crate::report::json::without_nulls;
use crate::report::{ObjectRef, counted};
use crate::suppress::{
    Identity, JudgedValue, KnownFindings, each, is_judged, known as known_findings, suppress,
};
use crate::texts::{DEFAULT_MAX_BYTES, file, refused};
use memgate_manifest::document::{Document, values};
use memgate_manifest::error::Error;
use memgate_manifest::source::{Source, Span};
use memgate_model::finding::{Finding, Severity};
use memgate_platforms::common;
use memgate_primitives::pointer::Pointer;

/// The version of the format. The reader refuses any other.
const SCHEMA_VERSION: u64 = 1;

/// The text of a baseline without entries.
pub const EMPTY: &str = "{\"schemaVersion\": 1, \"findings\": []}";

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
    checked.inputs.notices.retain(|it| it.finding.code != &common::NOT_AN_OBJECT || is_other(&it.source));
    checked.inputs.passed_over.retain(|it| it.object_ref.is_some() || is_other(&it.source));
    let hidden = |file: &str| {
        let file = file.strip_suffix(" (hidden)").map(fs::canonicalize);
        file.is_some_and(|file| file.is_ok_and(|file| file == baseline))
    };
    checked.inputs.skipped.retain(|file| !hidden(file));
}

impl Baseline {
    /// Turns known findings into notes. Returns the text of a new baseline with the entries that still occur. The other
    /// entries are reported, unless `shrinks` says that the new text replaces the old one.
    pub fn apply(&self, checked: &mut Checked, identities: &[Identity], shrinks: bool) -> String {
        let mut known = KnownFindings::default();
        for entry in &self.entries {
            known.add(&entry.identity, entry.count);
        }
        // With their values of today, which an older entry lacks.
        let mut left = suppress(checked, identities, &mut known, REASON);
        let mut others = known_findings(checked, identities);
        for (identity, count) in &left.0 {
            others.take_exactly(identity, *count);
        }
        // An entry may still occur in a file that cannot be read, or for a family that is switched off.
        let all_is_read = checked.inputs.errors.is_empty() && !checked.inputs.is_partial;
        let has_sets = !checked.places_of_sets.is_empty();
        for entry in &self.entries {
            let unused = known.take_exactly(&entry.identity, entry.count);
            let set = &entry.identity.object_ref.set;
            let is_read = all_is_read
                && (!has_sets || checked.places_of_sets.contains_key(&**set))
                && is_judged(checked, &entry.identity.code);
            // What is worse now, or denied as broken by the branch, is not fixed.
            let [is_there, has_other_value] = others.occurs(&entry.identity);
            let gone = if is_read && !is_there { unused } else { 0 };
            left.add(&entry.identity, unused - gone);
            if gone > 0 && !shrinks {
                checked.add_notices([self.fixed(entry, gone, has_other_value)]);
            }
        }
        text(&left)
    }

    /// Whether an older memgate wrote an entry, so that it covers any value.
    pub fn is_older(&self) -> bool {
        self.entries.iter().any(|entry| entry.identity.judged.value.is_none())
    }

    fn fixed(&self, entry: &BaselineEntry, gone: usize, has_other_value: bool) -> Notice {
        let Identity { code, object_ref, pointer, .. } = &entry.identity;
        let about = if object_ref.kind.is_empty() { String::new() } else { object_ref.title() + ": " };
        let at = if pointer.as_str().is_empty() { String::new() } else { format!(" at {}", pointer.shown()) };
        let message = if gone == entry.count {
            let with = if has_other_value { " with this value" } else { "" };
            format!("{about}{code}{at} occurs no longer{with}")
        } else {
            let (left, known) = (entry.count - gone, counted(entry.count, "time"));
            format!("{about}{code}{at} occurs {} and not {known}", counted(left, "time"))
        };
        let finding = Finding::warn(&common::BASELINE_FIXED, Pointer::root(), message)
            .help("write the baseline anew: --write-baseline FILE behind --baseline FILE adds nothing to it");
        Notice::new(&self.source, entry.span, finding)
    }
}

/// The text of a baseline with all findings that are not notes yet. They become notes.
pub fn record(checked: &mut Checked, identities: &[Identity]) -> String {
    let (mut new, mut all) = (Vec::new(), identities.iter());
    each(checked, |_, finding| {
        new.extend(all.next().filter(|_| finding.severity != Severity::Note).cloned());
    });
    let new = known_findings(checked, &new);
    suppress(checked, identities, &mut known_findings(checked, identities), REASON);
    text(&new)
}

/// The text of a baseline with these entries.
fn text(entries: &KnownFindings) -> String {
    let entry = |(identity, count): (&Identity, &usize)| {
        let Identity { object_ref, pointer, code, severity, judged } = identity;
        let ([kind, namespace, name], set) = (object_ref.shown(), &object_ref.set);
        let entry = without_nulls(json!({
            "fingerprint": identity.fingerprint(),
            "value": judged.value.map(|value| value.to_string()),
            // As a text: it may be larger than the numbers of JSON.
            "excess": (judged.excess != 0).then(|| judged.excess.to_string()),
            "code": code,
            "severity": severity.name(),
            "object": {"group": object_ref.group(), "kind": kind, "namespace": namespace, "name": name},
            "pointer": pointer.shown(),
            "count": count,
            "set": Some(&**set).filter(|set| !set.is_empty()),
        }));
        format!("\n    {entry}")
    };
    let lines = entries.0.iter().map(entry).collect::<Vec<_>>().join(",");
    let end = if lines.is_empty() { "" } else { "\n  " };
    format!("{{\n  \"schemaVersion\": {SCHEMA_VERSION},\n  \"findings\": [{lines}{end}]\n}}\n")
}

/// A finding in the file.
#[derive(Deserialize)]
struct WrittenEntry {
    fingerprint: String,
    value: Option<String>,
    excess: Option<String>,
    code: String,
    severity: String,
    object: WrittenObject,
    #[serde(default)]
    set: String,
    pointer: String,
    count: NonZeroUsize,
}

#[derive(Deserialize)]
struct WrittenObject {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

/// Reads a baseline.
///
/// # Errors
/// When the file cannot be read, or is not a baseline.
pub fn read(path: &str) -> Result<Baseline, Error> {
    let source = file(Path::new(path), DEFAULT_MAX_BYTES)?;
    refused(&source).map_or_else(|| parse(source), Err)
}

/// Reads a baseline of this text.
///
/// # Errors
/// When it is not a baseline.
pub fn parse(source: Source) -> Result<Baseline, Error> {
    let source = Arc::new(source);
    let entries = entries(&source)?;
    Ok(Baseline { source, entries })
}

fn entries(source: &Arc<Source>) -> Result<Vec<BaselineEntry>, Error> {
    let mut errors = Vec::new();
    let documents = values(source, &mut errors);
    if let Some(error) = errors.into_iter().next() {
        return Err(error);
    }
    let [document] = documents.as_slice() else {
        let message = "a baseline is one object; give the file that --write-baseline wrote";
        return Err(error_in(source, message.to_owned()));
    };
    let version = document.value().get("schemaVersion").and_then(Value::as_u64);
    let findings = document.value().get("findings").and_then(Value::as_array);
    let Some(findings) = findings.filter(|_| version == Some(SCHEMA_VERSION)) else {
        let message = format!(
            "this is not a baseline that this memgate reads: it needs schemaVersion {SCHEMA_VERSION} and a list of findings"
        );
        return Err(error_at(document.place(), &Pointer::root(), message));
    };
    let findings = findings.iter().enumerate();
    findings.map(|(index, value)| entry(document, value, &Pointer::new("/findings").index(index))).collect()
}

fn entry(document: &Document, value: &Value, at: &Pointer) -> Result<BaselineEntry, Error> {
    let failed = |message: String| error_at(document.place(), at, message);
    let damaged = "this is not an entry that --write-baseline wrote; write the baseline anew";
    let written = WrittenEntry::deserialize(value).map_err(|_| failed(damaged.to_owned()))?;
    let WrittenObject { group, kind, namespace, name } = written.object;
    let mut severities = [Severity::Deny, Severity::Warn].into_iter();
    let severity = severities.find(|severity| severity.name() == written.severity);
    let severity = severity.ok_or_else(|| failed(damaged.to_owned()))?;
    let object_ref = ObjectRef {
        api_version: (group + "/").into(),
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
        set: written.set.into(),
    };
    let value = written.value.as_deref().map(|value| Fingerprint::of_hex(value).ok_or(()));
    let excess = written.excess.as_deref().map_or(Ok(0), |excess| excess.parse().map_err(drop));
    let (Ok(value), Ok(excess)) = (value.transpose(), excess) else { return Err(failed(damaged.to_owned())) };
    let judged = JudgedValue { value, excess };
    let identity = Identity::new(&object_ref, Pointer::new(written.pointer), &written.code, severity, "");
    let identity = Identity { judged, ..identity };
    if written.fingerprint != identity.fingerprint() {
        let message = "this fingerprint is not that of code, object and pointer; write the baseline anew";
        return Err(failed(message.to_owned()));
    }
    let span = document.locate(&at.key("code")).value;
    Ok(BaselineEntry { identity, count: written.count.get(), span })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = r#"{"fingerprint": "3c351a9051bddc5a", "code": "orloj/provider-empty", "severity": "deny", "object": {"group": "orloj.dev", "kind": "Memory", "namespace": "team-a", "name": "notes"}, "pointer": "/spec/provider", "count": 2}"#;

    fn read_text(text: &str) -> Result<Vec<BaselineEntry>, String> {
        entries(&Arc::new(Source::new("b.json", text))).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_entries() {
        let text = format!("{{\"schemaVersion\": 1, \"findings\": [\n{ENTRY}\n]}}");
        let entries = read_text(&text).expect("reads");
        let [entry] = entries.as_slice() else { panic!("{entries:?}") };
        assert_eq!((entry.count, entry.span.line), (2, 2));
        assert_eq!(entry.identity.object_ref.title(), "Memory team-a/notes");
    }

    #[test]
    fn reports_where_a_baseline_is_damaged() {
        let with = |from: &str, to: &str| {
            let entry = ENTRY.replace(from, to);
            assert_ne!(entry, ENTRY, "{from}");
            format!("{{\"schemaVersion\": 1, \"findings\": [\n{entry}\n]}}")
        };
        for (text, place, message) in [
            (String::new(), "b.json:1:", "a baseline is one object"),
            ("[]".to_owned(), "b.json:1:1:", "this is not a baseline that this memgate reads"),
            ("{\"schemaVersion\": 2}".to_owned(), "b.json:1:1:", "it needs schemaVersion 1"),
            ("{\"schemaVersion\": 1}".to_owned(), "b.json:1:1:", "a list of findings"),
            (with("{\"fingerprint", "<<<<<<< HEAD\n{\"fingerprint"), "b.json:2:1:", ""),
            (with("deny", "note"), "b.json:2:", "this is not an entry"),
            (with(": 2}", ": 0}"), "b.json:2:", "this is not an entry"),
            (with("\"orloj/provider-empty\"", "3"), "b.json:2:", "this is not an entry"),
            (with("notes", "other"), "b.json:2:", "this fingerprint is not that of code, object and pointer"),
            (with("\"name\"", "\"nam\""), "b.json:2:", "this is not an entry"),
            (with("\"code\"", "\"value\": \"3c\", \"code\""), "b.json:2:", "this is not an entry"),
            (with("\"code\"", "\"excess\": \"much\", \"code\""), "b.json:2:", "this is not an entry"),
        ] {
            let error = read_text(&text).expect_err(&text);
            assert!(
                error.starts_with(place) && error.contains(message),
                "{text}: {place} {message}: {error}"
            );
        }
    }
}
