//! Validates the headers of a Memory. Findings never show the value of a header.

use crate::ark::prelude::*;
use crate::ark::value::{EffectiveValue, ValueOrSource};
use memgate_primitives::plain_text::shown_key;

use super::reference::{self, ReferenceLocation, ValueWords};

/// Headers that Go's client sets itself. Source: Go, net/http, Request.Write.
const CLIENT_HEADERS: [&str; 4] = ["Host", "Content-Length", "Transfer-Encoding", "Trailer"];

/// What is said of the values of a header.
static WORDS: ValueWords = ValueWords {
    subject: "",
    example: "secretKeyRef",
    codes: [&HEADER_VALUE_REQUIRED, &HEADER_VALUE_EXCLUSIVE, &HEADER_SOURCE, &HEADER_SOURCES],
};

/// The header that is being validated.
#[derive(Clone, Copy)]
struct CheckedHeader<'t> {
    /// The name; empty if it is absent or not a string.
    name: &'t str,
    tree: &'t Tree,
    path: Path<'t>,
    work: &'t Budget<'t>,
}

impl CheckedHeader<'_> {
    fn deny(&self, code: &'static Code, pointer: Pointer, text: &'static str) -> Finding {
        Finding::deny_within(self.work, code, pointer, move |_| text)
    }

    fn warn(
        &self,
        code: &'static Code,
        pointer: Pointer,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Finding {
        Finding::warn_within(self.work, code, pointer, move |_| text())
    }

    fn name_pointer(&self) -> Pointer {
        Path::Key(&self.path, "name").pointer()
    }
}

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>, findings: &mut Vec<Finding>) {
    let headers = subject.object.list_at(&["spec", "headers"]);
    let (spec, work) = (Path::Key(&Path::Root, "spec"), state.budget());
    let list = Path::Key(&spec, "headers");
    let mut spellings: ByKey<_, Spellings<'_>> = ByKey::default();
    for (index, tree) in headers.iter().enumerate().filter(|(_, tree)| tree.is_object()) {
        if work.has_ended() {
            break;
        }
        let name = tree.text_at(&["name"]).unwrap_or_default();
        let header = CheckedHeader { name, tree, path: Path::Index(&list, index), work };
        findings.extend(self::name(&header));
        if !name.is_empty()
            && let Some(sent) = spellings.entry(one_spelling(name)).or_default().sent_besides(name)
        {
            let name = excerpt(name);
            let message = move |_: &Pointer| format!("duplicate header name: {}; {sent}", shown_key(&name));
            let finding = Finding::warn_within(work, &HEADER_DUPLICATE, header.name_pointer(), message);
            findings.push(finding.fix(Some(Fix::RemoveRepeated)));
        }
        value(&header, subject.namespace, state, findings);
    }
}

/// How the headers so far of one canonical form are written.
#[derive(Default)]
enum Spellings<'t> {
    /// There are none.
    #[default]
    None,
    /// All in the same way.
    One(&'t str),
    /// In several ways.
    Several,
}

impl<'t> Spellings<'t> {
    /// Adds a name. Returns which header is sent if there was one before.
    fn sent_besides(&mut self, name: &'t str) -> Option<&'static str> {
        let (now, sent) = match self {
            Self::None => (Self::One(name), None),
            Self::One(one) if *one == name => (Self::One(name), Some("ARK sends the last")),
            Self::One(_) | Self::Several => {
                (Self::Several, Some("only the case differs, and ARK sends one of the two at random"))
            }
        };
        *self = now;
        sent
    }
}

fn name(header: &CheckedHeader<'_>) -> Option<Finding> {
    let name = header.name;
    if header.tree.get("name").is_some_and(|name| name.text().is_none()) {
        return None;
    }
    if name.is_empty() {
        return Some(header.deny(&HEADER_NAME, header.name_pointer(), "name is required"));
    }
    if !is_header_name(name) {
        return Some(header.deny(
            &HEADER_NAME,
            header.name_pointer(),
            "invalid header name: use letters, digits and \"-\"",
        ));
    }
    let set_by_client = CLIENT_HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name));
    let name = name.to_owned();
    let message = move || format!("{name} is ignored: ARK's HTTP client sets it itself");
    set_by_client.then(|| header.warn(&HEADER_IGNORED, header.name_pointer(), message))
}

fn value(
    header: &CheckedHeader<'_>,
    namespace: &str,
    state: &mut StateReader<'_>,
    findings: &mut Vec<Finding>,
) {
    let here = Path::Key(&header.path, "value");
    let Some(value) = header.tree.get("value") else {
        return findings.push(WORDS.required(here, header.work));
    };
    if !value.is_object() {
        return;
    }
    let choice = ValueOrSource::read_header(value);
    findings.extend(WORDS.exactly_one(&choice, here, header.work));
    match choice.effective() {
        EffectiveValue::Literal(literal) => self::literal(header, literal, findings),
        EffectiveValue::Source(source) => {
            let path = Path::Key(&here, "valueFrom");
            let path = Path::Key(&path, source.field);
            let location = ReferenceLocation { path, namespace };
            reference::findings(&source, location, state, findings);
        }
        EffectiveValue::Nothing => {}
    }
}

fn literal(header: &CheckedHeader<'_>, literal: &Tree, findings: &mut Vec<Finding>) {
    let pointer = || Path::Key(&Path::Key(&header.path, "value"), "value").pointer();
    let Some(text) = literal.text() else { return };
    if text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        findings.push(header.deny(
            &HEADER_VALUE_CHARS,
            pointer(),
            "invalid header value: it has a control character, such as a line break",
        ));
    }
    if is_credential_header(header.name) {
        let message = || "a credential stands in clear text; use valueFrom.secretKeyRef".to_owned();
        findings.push(header.warn(&HEADER_INLINE_SECRET, pointer(), message));
    }
}
