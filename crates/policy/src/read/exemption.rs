//! An exemption, as it is written.

use memgate_model::finding::Cause;
use memgate_model::policy::{Exemption, Target};
use memgate_primitives::plain_text::quoted;

use super::instant;
use super::matching;
use super::rule::MAX_ID;
use crate::names::{self, namespaces};
use crate::read::MAX_NAME;
use crate::reader::Reader;
use crate::values::is_kebab;

/// The most rules that one exemption names.
const MAX_RULES: usize = 64;

/// The least and the most characters of a reason.
const REASON_CHARS: (usize, usize) = (10, 500);

/// The most characters of a ticket and of who approved.
const MAX_NOTE_CHARS: usize = 100;

const FIELDS: [&str; 8] =
    ["policy", "rules", "target", "reason", "expiresAt", "from", "ticket", "approvedBy"];

pub(super) fn read(reader: &Reader<'_>, namespace: String, name: String) -> Option<Exemption> {
    let fields = reader.fields(&FIELDS)?;
    let policy = fields.required("policy").and_then(|it| it.text(MAX_NAME));
    let rules = fields.required("rules").map(|it| rules(&it));
    let target = fields.required("target").and_then(|it| target(&it));
    let reason = fields.required("reason").and_then(|it| reason(&it));
    let expires_at = fields.required("expiresAt").and_then(|it| instant(&it));
    let from = fields.required("from").and_then(|it| instant(&it));
    if from.zip(expires_at).is_some_and(|(from, expires_at)| expires_at <= from) {
        fields.fault("expiresAt", Cause::Invalid, "must be after from");
    }
    let note = |field| fields.text(field, MAX_NOTE_CHARS).map(str::to_owned);
    let (ticket, approved_by) = (note("ticket"), note("approvedBy"));
    Some(Exemption {
        namespace,
        name,
        policy: policy?.to_owned(),
        rules: rules?,
        target: target?,
        from: from?,
        expires_at: expires_at?,
        reason: reason?.to_owned(),
        ticket,
        approved_by,
    })
}

fn rules(reader: &Reader<'_>) -> Vec<String> {
    reader.each(MAX_RULES, MAX_ID, |id| match id {
        id if is_kebab(id) => Ok(id.to_owned()),
        "*" => Err((Cause::Invalid, "name each rule; * is not accepted".to_owned())),
        _ => Err((Cause::Invalid, format!("{} is not the id of a rule", quoted(id)))),
    })
}

fn target(reader: &Reader<'_>) -> Option<Target> {
    let fields = reader.fields(&["namespaces", "families", "kinds", "names", "selector"])?;
    let namespaces = fields.required("namespaces").map(|it| namespaces(&it));
    let families = fields.get("families").map(|it| matching::families(&it));
    Some(Target {
        namespaces: namespaces?.into_iter().collect(),
        kinds: fields.get("kinds").map(|it| matching::kinds(&it, families.as_deref())),
        families: families
            .map(|families| families.into_iter().map(|family| family.name.to_owned()).collect()),
        names: fields.get("names").map(|it| names::names(&it)),
        selector: fields.get("selector").and_then(|it| matching::selector(&it)),
    })
}

fn reason<'v>(reader: &Reader<'v>) -> Option<&'v str> {
    let (least, most) = REASON_CHARS;
    let text = reader.text(most)?;
    if text.chars().count() < least {
        reader.fault(Cause::Invalid, &format!("must have at least {least} characters"));
        return None;
    }
    Some(text)
}
