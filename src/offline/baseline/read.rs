//! Parses baselines. Errors have line and column.

use std::fs;
use std::io;
use std::sync::Arc;

use serde_json::Value;

use crate::offline::baseline::{Baseline, BaselineEntry, SCHEMA_VERSION, object_ref};
use crate::offline::errors::error_at;
use crate::offline::suppress::{Identity, NOT_SHOWN};
use memgate_manifest::document::{Document, values};
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;
use memgate_model::finding::Severity;
use memgate_primitives::pointer::Pointer;

/// The name of [`NOT_SHOWN`] in older baselines.
const OLD_NOT_SHOWN: &str = "untold";

/// Reads a baseline.
///
/// # Errors
/// When the file cannot be read, or is not a baseline.
pub fn read(path: &str) -> Result<Baseline, Error> {
    let text = fs::read_to_string(path).map_err(|source| unreadable(path, source))?;
    let source = Arc::new(Source::new(path, text));
    let entries = entries(&source)?;
    Ok(Baseline { source, entries })
}

fn unreadable(path: &str, source: io::Error) -> Error {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => Error::Missing { path },
        io::ErrorKind::InvalidData => {
            let message = "this is not text; give the file that --write-baseline wrote".to_owned();
            Error::Encoding { path, line: 1, message }
        }
        _ => Error::Read { path, source },
    }
}

pub(super) fn entries(source: &Arc<Source>) -> Result<Vec<BaselineEntry>, Error> {
    let mut errors = Vec::new();
    let documents = values(source, &mut errors);
    if let Some(error) = errors.into_iter().next() {
        return Err(error);
    }
    let document = match documents.as_slice() {
        [document] => document,
        [] => return Err(Error::Encoding { path: source.name().to_owned(), line: 1, message: empty() }),
        [_, second, ..] => {
            return Err(error_at(second.place(), &Pointer::root(), "a baseline is one object".to_owned()));
        }
    };
    let version = document.value().get("schemaVersion").and_then(Value::as_u64);
    if version != Some(SCHEMA_VERSION) {
        let message =
            format!("this is not a baseline that this memgate reads: schemaVersion is not {SCHEMA_VERSION}");
        return Err(error_at(document.place(), &Pointer::new("/schemaVersion"), message));
    }
    let Some(findings) = document.value().get("findings").and_then(Value::as_array) else {
        let message = "findings of a baseline are a list".to_owned();
        return Err(error_at(document.place(), &Pointer::new("/findings"), message));
    };
    let findings = findings.iter().enumerate();
    findings.map(|(index, value)| entry(document, value, &Pointer::new("/findings").index(index))).collect()
}

fn empty() -> String {
    "this baseline is empty; give the file that --write-baseline wrote".to_owned()
}

fn entry(document: &Document, value: &Value, at: &Pointer) -> Result<BaselineEntry, Error> {
    let text = |path: &[&str]| text(document, value, at, path);
    let (code, severity_name, pointer) = (text(&["code"])?, text(&["severity"])?, text(&["pointer"])?);
    let object = [
        text(&["object", "group"])?,
        text(&["object", "kind"])?,
        text(&["object", "namespace"])?,
        text(&["object", "name"])?,
    ];
    let error = |key: &str, message: &str| error_at(document.place(), &at.key(key), message.to_owned());
    let severities = [Severity::Deny, Severity::Warn];
    let severity = severities.into_iter().find(|severity| severity.name() == severity_name);
    let severity = severity.ok_or_else(|| error("severity", "the severity of an entry is deny or warn"))?;
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(error("pointer", "a pointer is empty or begins with /"));
    }
    let count = value.get("count").and_then(Value::as_u64).filter(|count| *count > 0);
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or_else(|| error("count", "the count of an entry is a number from 1"))?;
    let (code, object_ref, pointer) = (code.to_owned(), object_ref(object), Pointer::new(pointer));
    let identity = Identity { code, severity, object_ref, pointer };
    if text(&["fingerprint"])? != identity.fingerprint() {
        let message = "this fingerprint is not that of code, object and pointer; write the baseline anew";
        return Err(error("fingerprint", message));
    }
    let code = if identity.code == OLD_NOT_SHOWN { NOT_SHOWN.to_owned() } else { identity.code };
    let identity = Identity { code, ..identity };
    let location = document.locate(&at.key("code"));
    Ok(BaselineEntry { identity, count, span: location.value })
}

/// The text at a place of an entry.
fn text<'v>(document: &Document, value: &'v Value, at: &Pointer, path: &[&str]) -> Result<&'v str, Error> {
    let mut here = Some(value);
    let mut place = at.clone();
    for key in path {
        here = here.and_then(|value| value.get(key));
        place = place.key(key);
    }
    let missing = || {
        let message = format!("an entry of a baseline has a text {}", path.join("."));
        error_at(document.place(), &place, message)
    };
    here.and_then(Value::as_str).ok_or_else(missing)
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
            (String::new(), "b.json:1:", "this baseline is empty"),
            ("[]".to_owned(), "b.json:1:1:", "this is not a baseline that this memgate reads"),
            ("{\"schemaVersion\": 2}".to_owned(), "b.json:1:19:", "schemaVersion is not 1"),
            ("{\"schemaVersion\": 1}".to_owned(), "b.json:1:1:", "findings of a baseline are a list"),
            (with("{\"fingerprint", "<<<<<<< HEAD\n{\"fingerprint"), "b.json:2:1:", ""),
            (with("deny", "note"), "b.json:2:81:", "the severity of an entry is deny or warn"),
            (with("\"/spec", "\"spec"), "b.json:2:192:", "a pointer is empty or begins with /"),
            (with(": 2}", ": 0}"), "b.json:2:219:", "the count of an entry is a number from 1"),
            (with(": 2}", ": -1}"), "b.json:2:219:", "the count of an entry is a number from 1"),
            (with("\"orloj/provider-empty\"", "3"), "b.json:2:45:", "an entry of a baseline has a text code"),
            (
                with("notes", "other"),
                "b.json:2:17:",
                "this fingerprint is not that of code, object and pointer",
            ),
            (with("\"name\"", "\"nam\""), "b.json:2:", "an entry of a baseline has a text object.name"),
        ] {
            let error = read_text(&text).expect_err(&text);
            assert!(
                error.starts_with(place) && error.contains(message),
                "{text}: {place} {message}: {error}"
            );
        }
    }
}
