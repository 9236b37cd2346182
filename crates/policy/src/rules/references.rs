//! `references`: what is referred to must exist, or be in the same namespace.

use memgate_model::finding::Cause;
use memgate_model::memory_view::{MemoryView, ReferenceView, Why, qualified};
use memgate_model::typed_rule::{JudgedView, RuleOutcome, Sentence, TypedRule};
use memgate_primitives::plain_text::quoted_key;
use memgate_primitives::suggest::{did_you_mean, nearest};

use super::words::{MAX_CHARS, MAX_ENTRIES, fields};
use crate::reader::Reader;
use crate::text::{Shown, name};

#[derive(Debug)]
struct References {
    /// The kinds that must exist.
    kinds: Vec<String>,
    forbids_crossing: bool,
}

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["mustExist", "crossNamespace"])?;
    let kinds = fields.get("mustExist").map(|it| kinds(&it)).unwrap_or_default();
    let crossing = fields.choice("crossNamespace", &[("forbid", true), ("allow", false)]);
    Some(Box::new(References { kinds, forbids_crossing: crossing == Some(true) }))
}

fn kinds(reader: &Reader<'_>) -> Vec<String> {
    let related = || reader.families().iter().flat_map(|family| family.kinds.related());
    let known = || related().map(|kind| kind.kind);
    reader.each(MAX_ENTRIES, MAX_CHARS, |name| {
        if known().any(|kind| kind.eq_ignore_ascii_case(name)) {
            return Ok(name.to_lowercase());
        }
        let hint = did_you_mean(nearest(name, known()));
        Err((Cause::NotSupported, format!("memory refers to no kind {}{hint}", quoted_key(name))))
    })
}

impl TypedRule for References {
    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        for reference in &judged.view.references {
            let ReferenceView { kind, namespace, name, field, found } = reference;
            let path = qualified(namespace, name);
            let value = || format!("{kind} {path}");
            let shown = || format!("{kind} {}", self::name(judged, &path));
            let says = |about| {
                let (kind, path) = (*kind, Shown::of(judged, &path));
                Sentence::later(about, move || format!("{kind} {} {about}", path.name()))
            };
            if self.kinds.iter().any(|wanted| kind.eq_ignore_ascii_case(wanted)) {
                match found {
                    Some(true) => {}
                    // Whether an object exists in another namespace is not reported.
                    Some(false) if judged.is_foreign() => {
                        outcome.add_unknown(field.clone(), Why::Object(shown()));
                    }
                    Some(false) => outcome.add(field.clone(), says("not found"), value()),
                    None => outcome.add_unknown(field.clone(), Why::Object(shown())),
                }
            }
            if self.forbids_crossing && crosses(judged.view, namespace) {
                outcome.add(field.clone(), says("is in another namespace"), value());
            }
        }
    }

    fn paths(&self) -> Vec<&str> {
        vec!["references"]
    }
}

/// Whether a reference leads out of the namespace of the object, in the platform's own sense.
fn crosses(view: &MemoryView, namespace: &str) -> bool {
    !namespace.is_empty() && namespace != view.effective_namespace()
}
