//! `secrets`: which Secrets may be used, whether one is required, and whether clear-text credentials are allowed.

use std::collections::BTreeSet;

use memgate_model::memory_view::{Element as _, SecretView};
use memgate_model::typed_rule::{JudgedView, RuleOutcome, Sentence, TypedRule};
use memgate_primitives::glob::Glob;

use super::check::{AnyGlob, Check, Condition, Shows};
use super::words::fields;
use crate::names::{names, namespaces};
use crate::reader::Reader;
use crate::text::{Shown, patterns};

#[derive(Debug)]
struct Secrets {
    inline: Option<Check>,
    is_required: bool,
    names: Option<Check>,
    /// The namespaces besides the object's own; `None` when all are allowed.
    namespaces: Option<BTreeSet<String>>,
}

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let fields = fields(reader, &["inline", "required", "names", "namespaces", "alsoNamespaces"])?;
    let is_same = fields.choice("namespaces", &[("same", true)]) == Some(true);
    let also = fields.get("alsoNamespaces").map(|it| namespaces(&it)).unwrap_or_default();
    if fields.has("alsoNamespaces") && !fields.has("namespaces") {
        let cause = memgate_model::finding::Cause::Required;
        fields.fault("namespaces", cause, "is required with alsoNamespaces; use same");
    }
    let forbids_inline = fields.choice("inline", &[("forbid", true), ("allow", false)]) == Some(true);
    let message =
        ("a credential stands in clear text; use a Secret reference", Shows::Nothing, String::new());
    let inline =
        || Check::new("inline[].field", "secrets.inline", "inline", Condition::Exists(false), message);
    Some(Box::new(Secrets {
        inline: forbids_inline.then(inline),
        is_required: fields.get("required").and_then(|it| it.flag()) == Some(true),
        names: fields.get("names").map(|it| among(names(&it))),
        namespaces: is_same.then_some(also),
    }))
}

/// That each Secret has one of these names.
fn among(globs: Vec<Glob>) -> Check {
    let says = ("Secret ", Shows::Name, format!(" does not match the allowed names {}", patterns(&globs)));
    let written = globs.iter().map(|glob| glob.as_str().to_owned()).collect();
    let globs = globs.into_iter().map(AnyGlob::Text).collect();
    let condition = Condition::Fits { globs, written, wanted: true };
    Check::new("secrets[].name", "secrets.names", "names", condition, says)
}

impl TypedRule for Secrets {
    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        let view = judged.view;
        if let Some(inline) = &self.inline {
            let unknowns = outcome.unknowns.len();
            inline.judge(judged, outcome);
            // A clear text that is not known is not reported.
            outcome.unknowns.truncate(unknowns);
        }
        let is_unknown = view.unknown_at("secrets").is_some();
        if self.is_required || self.namespaces.is_some() {
            judged.note_unknown("secrets", outcome);
        }
        // The key of an embedder is not a credential for the memory, where the two have places of their own.
        let (place, of_embedder) = (view.pointer("secrets"), view.pointer("embedding"));
        let is_own = |it: &SecretView| it.field != of_embedder || place == of_embedder;
        let has_none = !is_unknown && !view.secrets.iter().any(is_own);
        // A service that loses its memory asks for a credential all the same.
        let is_in_process = view.flag("durable") == Some(false) && view.endpoint.is_none();
        if self.is_required && has_none && view.has_place("secrets") && !is_in_process {
            outcome.add(view.pointer("secrets"), "a Secret reference is required", "");
        }
        if let Some(names) = &self.names {
            names.judge(judged, outcome);
        }
        let Some(also) = &self.namespaces else { return };
        let is_out =
            |it: &&SecretView| it.namespace != view.effective_namespace() && !also.contains(&it.namespace);
        for secret in view.secrets.iter().filter(is_out) {
            let path = Shown::of(judged, &format!("{}/{}", secret.namespace, secret.name));
            let say = move || format!("Secret {} is outside the allowed namespaces", path.name());
            outcome.add(secret.field.clone(), Sentence::later("namespace", say), secret.whole());
        }
    }

    fn paths(&self) -> Vec<&str> {
        let of_references = self.is_required || self.names.is_some() || self.namespaces.is_some();
        let references = of_references.then_some("secrets");
        self.inline.as_ref().map(|_| "inline").into_iter().chain(references).collect()
    }
}
