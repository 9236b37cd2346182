//! Which objects a policy judges, as it is written.

use std::collections::BTreeSet;

use memgate_model::family::Family;
use memgate_model::finding::Cause;
use memgate_model::label_selector::{LabelSelector, Requirement, SelectorOperator};
use memgate_model::policy::Match;
use memgate_model::request::Operation;
use memgate_model::workload;
use memgate_primitives::plain_text::quoted_key;
use memgate_primitives::suggest::{did_you_mean, nearest};

use crate::names::{MAX_ENTRIES, MAX_NAME_CHARS, label_key, label_value, names, wrong_label_key};
use crate::reader::Reader;

const FIELDS: [&str; 10] = [
    "families", "kinds", "namespaces", "excludeNamespaces", "namespaceSelector", "objectSelector", "names",
    "excludeUsers", "excludeGroups", "operations",
];

pub(super) fn read(reader: &Reader<'_>) -> Option<Match> {
    let fields = reader.fields(&FIELDS)?;
    let families = fields.get("families").map(|it| families(&it));
    let users = |field| fields.texts(field, MAX_ENTRIES, MAX_NAME_CHARS).unwrap_or_default();
    let owned = |texts: Vec<(&str, Reader<'_>)>| texts.into_iter().map(|(text, _)| text.to_owned()).collect();
    Some(Match {
        kinds: fields.get("kinds").map(|it| kinds(&it, families.as_deref())),
        families: families
            .map(|families| families.into_iter().map(|family| family.name.to_owned()).collect()),
        namespaces: fields.get("namespaces").map(|it| names(&it)),
        exclude_namespaces: fields.get("excludeNamespaces").map(|it| names(&it)).unwrap_or_default(),
        namespace_selector: fields.get("namespaceSelector").and_then(|it| selector(&it)),
        object_selector: fields.get("objectSelector").and_then(|it| selector(&it)),
        names: fields.get("names").map(|it| names(&it)),
        exclude_users: owned(users("excludeUsers")),
        exclude_groups: owned(users("excludeGroups")),
        operations: fields.get("operations").map(|it| operations(&it)),
    })
}

/// The families of these names.
pub(super) fn families(reader: &Reader<'_>) -> Vec<&'static Family> {
    let known = reader.families();
    reader.each(known.len(), MAX_NAME_CHARS, |name| {
        let found = known.iter().copied().find(|family| family.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|family| family.name).collect();
            let hint = did_you_mean(nearest(name, names.iter().copied()));
            let names = names.join(", ");
            let message = format!("there is no family {}; use one of {names}{hint}", quoted_key(name));
            (Cause::NotSupported, message)
        })
    })
}

/// The kinds of these names, which the given families have, or any family.
pub(super) fn kinds(reader: &Reader<'_>, families: Option<&[&'static Family]>) -> Vec<String> {
    let families = families.filter(|families| !families.is_empty()).unwrap_or_else(|| reader.families());
    let known: BTreeSet<&str> = families
        .iter()
        .flat_map(|family| family.views.kinds.iter().map(|(kind, _)| kind.kind))
        .chain(["Pod"])
        .collect();
    let of_families = match families {
        [one] => format!("of {} ", one.name),
        _ => String::new(),
    };
    reader.each(MAX_ENTRIES, MAX_NAME_CHARS, |name| {
        if known.contains(name) {
            return Ok(name.to_owned());
        }
        let is_workload = workload::ALL.iter().any(|it| it.kind == name && it.group != workload::KNATIVE);
        let hint = if is_workload {
            "; a workload stands for its pod: use Pod".to_owned()
        } else if families.iter().any(|family| has_kind(family, name)) {
            format!("; {name} has no memory")
        } else {
            did_you_mean(nearest(name, known.iter().copied()))
        };
        let message = format!("there is no kind {} {of_families}that policies judge{hint}", quoted_key(name));
        Err((Cause::NotSupported, message))
    })
}

/// Whether a family has a kind of this name, with a view or without.
fn has_kind(family: &Family, name: &str) -> bool {
    family.kinds.validated.iter().any(|kind| kind.kind == name)
        || family.other_kinds().any(|(_, other)| other == name)
}

fn operations(reader: &Reader<'_>) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (_, element) in reader.texts(1, 2, MAX_NAME_CHARS) {
        let choices = [("CREATE", Operation::Create), ("UPDATE", Operation::Update)];
        operations.extend(element.choice(&choices));
    }
    operations
}

/// A selector of labels.
pub(super) fn selector(reader: &Reader<'_>) -> Option<LabelSelector> {
    let fields = reader.fields(&["matchLabels", "matchExpressions"])?;
    let mut requirements = Vec::new();
    if let Some(labels) = fields.get("matchLabels").and_then(|it| it.any_fields()) {
        if labels.names().nth(MAX_ENTRIES).is_some() {
            labels.fault_here(Cause::Invalid, &format!("must have at most {MAX_ENTRIES} entries"));
        }
        for key in labels.names().take(MAX_ENTRIES) {
            if let Some(wrong) = wrong_label_key(key) {
                labels.fault_at_key(key, &wrong);
            }
            let Some(value) = labels.get(key).as_ref().and_then(label_value) else { continue };
            let operator = SelectorOperator::In;
            requirements.push(Requirement { key: key.to_owned(), operator, values: vec![value.to_owned()] });
        }
    }
    for element in fields.get("matchExpressions").map(|it| it.list(0, MAX_ENTRIES)).unwrap_or_default() {
        requirements.extend(requirement(&element));
    }
    Some(LabelSelector { requirements })
}

fn requirement(reader: &Reader<'_>) -> Option<Requirement> {
    let fields = reader.fields(&["key", "operator", "values"])?;
    let key = fields.required("key").as_ref().and_then(label_key);
    let operators = [
        ("In", SelectorOperator::In),
        ("NotIn", SelectorOperator::NotIn),
        ("Exists", SelectorOperator::Exists),
        ("DoesNotExist", SelectorOperator::DoesNotExist),
    ];
    let operator = fields.required("operator").and_then(|operator| operator.choice(&operators))?;
    let values = fields.get("values").map(|it| it.list(0, MAX_ENTRIES)).unwrap_or_default();
    let needs_values = matches!(operator, SelectorOperator::In | SelectorOperator::NotIn);
    if needs_values && values.is_empty() {
        fields.fault("values", Cause::Required, "is required with In and NotIn");
    } else if !needs_values && !values.is_empty() {
        fields.fault("values", Cause::Invalid, "must be empty with Exists and DoesNotExist");
    }
    let values = values.iter().filter_map(label_value).map(str::to_owned).collect();
    Some(Requirement { key: key?.to_owned(), operator, values })
}
