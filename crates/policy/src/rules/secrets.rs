//! `secrets`: which Secrets may be used, whether one is required, and whether clear-text credentials are allowed.

use std::collections::BTreeSet;

use memgate_model::cel_view::{CelSide, InCel, MessagePart, Sayable};
use memgate_model::memory_view::SecretView;
use memgate_model::typed_rule::{Judged, RuleOutcome, TypedRule};
use memgate_primitives::glob::Glob;

use super::super::in_cel::{VALUE, globs, text};
use super::super::names::{names, namespaces};
use super::super::reader::Reader;
use super::super::text::{name, patterns, plain_name};
use super::words::fields;

#[derive(Debug)]
struct Secrets {
    forbids_inline: bool,
    is_required: bool,
    names: Option<Vec<Glob>>,
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
    Some(Box::new(Secrets {
        forbids_inline: fields.choice("inline", &[("forbid", true), ("allow", false)]) == Some(true),
        is_required: fields.get("required").and_then(|it| it.flag()) == Some(true),
        names: fields.get("names").map(|it| names(&it)),
        namespaces: is_same.then_some(also),
    }))
}

impl TypedRule for Secrets {
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        let view = judged.view;
        if self.forbids_inline {
            for inline in &view.inline {
                let message = "a credential stands in clear text; use a Secret reference";
                outcome.add(inline.field.clone(), message, inline.digest.to_string());
            }
        }
        let can_have_one = view.fields.iter().any(|(path, _)| *path == "secrets");
        let is_unknown = view.unknown_at("secrets").is_some();
        if self.is_required || self.names.is_some() || self.namespaces.is_some() {
            judged.note_unknown("secrets", outcome);
        }
        let has_none = view.secrets.is_empty() && !is_unknown;
        // A service that loses its memory asks for a credential all the same.
        let is_served = view.remarks.iter().any(|remark| remark.path == "durable");
        if self.is_required && has_none && can_have_one && (view.durable != Some(false) || is_served) {
            outcome.add(view.pointer("secrets"), "a Secret reference is required", "");
        }
        for secret in &view.secrets {
            self.judge_secret(secret, judged, outcome);
        }
    }

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        if self.forbids_inline
            && let Some(inline) = said.entries(side, "inline", "secrets.inline")
        {
            said.add(inline, vec![text("a credential stands in clear text; use a Secret reference")]);
        }
        if self.is_required
            && let Some(secrets) = said.entries(side, "secrets", "secrets.required")
            && let Some(place) = said.entries(side, "secrets.place", "secrets.required")
        {
            let lasts = match side.at("durable") {
                Sayable::Entries(durable) => format!("!{durable}.exists(it, it.endsWith(' false'))"),
                Sayable::Unsaid(_) | Sayable::Absent => "true".to_owned(),
            };
            let list = format!("size({secrets}) == 0 && {lasts} ? {place} : []");
            said.add(list, vec![text("a Secret reference is required")]);
        }
        if let Some(allowed) = &self.names
            && let Some(secrets) = said.entries(side, "secrets", "secrets.names")
        {
            let fits = globs(allowed);
            let end = format!(" does not match the allowed names {}", patterns(allowed));
            let message = vec![text("Secret "), MessagePart::Quoted(1), text(end)];
            said.add(format!("{secrets}.filter(it, !{VALUE}.matches({fits}))"), message);
        }
        // In CEL a Secret is always in the object's own namespace.
        if self.namespaces.is_some() {
            let _its_own = said.entries(side, "secrets", "secrets.namespaces");
        }
    }
}

impl Secrets {
    fn judge_secret(&self, secret: &SecretView, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        let SecretView { name: secret_name, namespace, field, .. } = secret;
        if let Some(globs) = &self.names
            && !globs.iter().any(|glob| glob.matches(secret_name, judged.budget))
        {
            let allowed = patterns(globs);
            let shown = name(judged, secret_name);
            let message = format!("Secret {shown} does not match the allowed names {allowed}");
            outcome.add(field.clone(), message, secret_name);
        }
        if let Some(also) = &self.namespaces
            && namespace != judged.view.effective_namespace()
            && !also.contains(namespace)
        {
            let path = format!("{namespace}/{secret_name}");
            let shown = if judged.is_foreign() { "\"…\"".to_owned() } else { plain_name(&path) };
            outcome.add(field.clone(), format!("Secret {shown} is outside the allowed namespaces"), path);
        }
    }
}
