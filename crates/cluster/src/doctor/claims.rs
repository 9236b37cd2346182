//! Objects that do not count: they claim a place in another namespace, and the settings do not let their own do so.

use crate::doctor::check::{Check, abbreviated};
use memgate_model::kind::Counts;
use memgate_model::object::{KindState, Object};
use memgate_model::snapshot::Snapshot;
use memgate_workbench::report::counted;

const ID: &str = "claims";

/// A check if there are such objects.
pub fn check(snapshot: &Snapshot) -> Option<Check> {
    let settings = &snapshot.settings.platforms;
    let does_not_count =
        |counts: Counts, object: &&Object| !counts(object.tree(), &object.namespace, settings);
    let ignored = |state: &KindState| -> Vec<String> {
        let title = |object: &Object| format!("{} {}/{}", object.kind.kind, object.namespace, object.name);
        let counts = state.objects().next().and_then(|object| object.kind.counts);
        let ignored = counts.into_iter().flat_map(|counts| {
            state.objects().filter(move |object| does_not_count(counts, object)).map(title)
        });
        ignored.collect()
    };
    let mut titles: Vec<String> = snapshot.kinds().flat_map(ignored).collect();
    titles.sort_unstable();
    let count = counted(titles.len(), "object");
    let message = format!("{count} with orloj.dev/target-namespace, ignored: {}", abbreviated(&titles));
    let help =
        "add the namespaces that may claim others to orloj.sourceNamespaces (--orloj-source-namespace)";
    (!titles.is_empty()).then(|| Check::warn(ID, "", message).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_core::state;
    use serde_json::json;

    #[test]
    fn counts_what_claims_another_namespace() {
        let said = |sources: &[&str]| {
            let mut settings = memgate_platforms::default_settings();
            settings.platforms.orloj.source_namespaces =
                sources.iter().map(|source| (*source).to_owned()).collect();
            let mut snapshot = state::empty(settings);
            for (kind, namespace, target) in
                [("Agent", "lab", "team"), ("Memory", "ops", "team"), ("Memory", "team", "team")]
            {
                let metadata = json!({
                    "name": "notes", "namespace": namespace,
                    "annotations": {"orloj.dev/target-namespace": target},
                });
                let object = json!({"apiVersion": "orloj.dev/v1", "kind": kind, "metadata": metadata});
                state::add(&mut snapshot, &object).expect("an object");
            }
            check(&snapshot).map(|check| check.message)
        };
        for (sources, message) in [
            (
                &[][..],
                Some("2 objects with orloj.dev/target-namespace, ignored: Agent lab/notes, Memory ops/notes"),
            ),
            (&["lab"], Some("1 object with orloj.dev/target-namespace, ignored: Memory ops/notes")),
            (&["*"], None),
        ] {
            assert_eq!(said(sources).as_deref(), message, "{sources:?}");
        }
    }
}
