//! A case in namespaces of its own, where that is possible, so that cases can share a cluster.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow};
use memgate_model::kind::MEMORY_POLICY;
use memgate_workbench::files::casefile::read::read;
use memgate_workbench::files::casefile::{self};
use serde_json::Value;

/// The namespaces of cases whose names mean nothing to a platform. The others do, or are
/// words of other texts, too.
const FREE: [&str; 5] = ["acme", "media", "ops", "team-a", "team-b"];

/// Four digits to the base of 36 are enough for all cases.
const MIN_NAME_CHARS: usize = 4;

/// A case with what it needs of the cluster.
pub(super) struct IsolatedCase {
    /// Its file, without the ending.
    pub(super) file: String,
    pub(super) case: casefile::Case,
    /// The namespaces of its objects; whatever names none is in the first.
    pub(super) namespaces: BTreeSet<String>,
    /// Whether no other trial may run meanwhile, since this one has objects that others would meet.
    pub(super) alone: bool,
}

/// The same case in other namespaces. Their names are as long as those they replace, and in the same
/// order.
pub(super) fn isolate(file: &str, case: &Value, index: usize) -> Result<IsolatedCase> {
    let (mut text, expect) = (case.to_string(), case["expect"].to_string());
    let used: Vec<&str> = FREE.into_iter().filter(|name| replaced(&text, name, "") != text).collect();
    let mut own = BTreeSet::new();
    for (rank, name) in ('a'..='z').zip(&used) {
        let name_here = format!("{rank}{}", digits(index, name.len().max(MIN_NAME_CHARS) - 1));
        text = replaced(&text, name, &name_here);
        own.insert(name_here);
    }
    if used.iter().skip(1).any(|name| expect.contains(name)) {
        // Then it matters that no other case has an object of this name.
        text = text.replace("notes", &format!("n{index:04}"));
    }
    let cases = read(&serde_json::from_str(&text)?).map_err(|faults| anyhow!("{file}: {faults:?}"))?;
    let case = cases.into_iter().next().context("a case is none")?;
    let mut namespaces = namespaces(&case);
    if namespaces.is_empty() {
        own.insert(format!("a{}", digits(index, MIN_NAME_CHARS - 1)));
        namespaces.clone_from(&own);
    }
    let alone = !namespaces.is_subset(&own) || objects(&case).any(is_cluster_wide);
    Ok(IsolatedCase { file: file.to_owned(), case, namespaces, alone })
}

impl IsolatedCase {
    /// The name of its trial.
    pub(super) fn name(&self) -> String {
        format!("cases::{}::{}", self.file, self.case.name)
    }

    /// Where an object is that does not say so.
    pub(super) fn home(&self) -> &str {
        self.namespaces.first().map_or("default", String::as_str)
    }

    /// What is in the cluster before the request, in the order of its making.
    pub(super) fn stored(&self) -> impl Iterator<Item = &Value> {
        self.case.state.iter().chain(&self.case.old_object)
    }
}

fn objects(case: &casefile::Case) -> impl Iterator<Item = &Value> {
    case.state.iter().chain(&case.object).chain(&case.old_object)
}

fn namespaces(case: &casefile::Case) -> BTreeSet<String> {
    let of_object = |object: &Value| {
        let field = if object["kind"] == "Namespace" { "name" } else { "namespace" };
        object["metadata"][field].as_str().map(str::to_owned)
    };
    objects(case).filter_map(of_object).chain(case.namespace.clone()).collect()
}

/// Whether an object is in no namespace, so that all cases would share it.
fn is_cluster_wide(object: &Value) -> bool {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    if MEMORY_POLICY.is(group, text("kind")) {
        return true;
    }
    let kind = memgate_platforms::state_kind(&memgate_platforms::ALL, group, text("kind"));
    kind.is_some_and(|kind| !kind.namespaced && kind.kind != "Namespace")
}

/// Replaces a name wherever it is not part of a longer one.
fn replaced(text: &str, name: &str, other: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut new = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(name) {
        new.push_str(before);
        let within = before.ends_with(is_part) || after.starts_with(is_part);
        new.push_str(if within { name } else { other });
        rest = after;
    }
    new + rest
}

/// A number in as many digits to the base of 36.
fn digits(number: usize, length: usize) -> String {
    let digit = |position: usize| {
        let value = number / 36_usize.pow(u32::try_from(position).unwrap_or_default()) % 36;
        char::from_digit(u32::try_from(value).unwrap_or_default(), 36).unwrap_or('0')
    };
    (0..length).rev().map(digit).collect()
}
