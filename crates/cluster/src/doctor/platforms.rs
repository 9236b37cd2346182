//! The kinds of the platforms that the apiserver serves.

use std::collections::BTreeSet;

use crate::check::{Check, abbreviated};
use crate::cluster_state::{Fetched, Installation, ServedResources};
use memgate_model::family::Family;
use memgate_model::kind::Kind;

/// Whether the cluster has what memgate needs for these families.
pub(super) fn checks(found: &Installation, families: &[&'static Family]) -> Vec<Check> {
    match &found.served {
        Fetched::Found(served) => families.iter().map(|family| platform(family, served)).collect(),
        Fetched::Absent => Vec::new(),
        Fetched::Unknown(why) => vec![Check::unknown("platforms", "", why.clone())],
    }
}

/// Whether a platform is installed, in the versions that memgate reads.
fn platform(family: &'static Family, served: &ServedResources) -> Check {
    const ID: &str = "platforms";
    let subject = format!("platform {}", family.name);
    let (mut installed, mut unsupported) = (Vec::new(), Vec::new());
    let kinds: BTreeSet<&Kind> =
        family.kinds.validated.iter().copied().filter(|kind| !kind.group.is_empty()).collect();
    for Kind { group, version, plural, .. } in kinds {
        let serving = served.iter().filter(|((of, _), plurals)| of == group && plurals.contains(*plural));
        let versions: Vec<&str> = serving.map(|((_, version), _)| version.as_str()).collect();
        if versions.contains(version) {
            installed.push(format!("{plural}.{group}"));
        } else if !versions.is_empty() {
            unsupported.push(format!("{plural}.{group} in {} and not in {version}", versions.join(", ")));
        }
    }
    if !unsupported.is_empty() {
        let message = format!("the cluster serves {}", abbreviated(&unsupported));
        return Check::fail(ID, subject, message).help("see whether a newer memgate knows these versions");
    }
    if installed.is_empty() {
        return Check::ok(ID, subject, "not installed; memgate picks it up when it comes");
    }
    Check::ok(ID, subject, format!("installed: {}", abbreviated(&installed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CheckStatus;

    fn served(rows: &[(&str, &str, &str)]) -> Fetched<ServedResources> {
        let mut served = ServedResources::new();
        for (group, version, plural) in rows {
            let plurals = served.entry(((*group).to_owned(), (*version).to_owned())).or_default();
            plurals.insert((*plural).to_owned());
        }
        Fetched::Found(served)
    }

    fn checks_of(rows: &[(&str, &str, &str)]) -> Vec<(CheckStatus, String)> {
        let found = Installation { served: served(rows), ..Installation::default() };
        checks(&found, &[&memgate_platforms::orloj::FAMILY])
            .into_iter()
            .map(|check| (check.status, check.message))
            .collect()
    }

    #[test]
    fn reports_platforms_that_are_there_and_those_in_other_versions() {
        let (status, text) = &checks_of(&[])[0];
        assert!(*status == CheckStatus::Ok && text.starts_with("not installed"), "{text}");
        let (status, text) =
            &checks_of(&[("orloj.dev", "v1", "memories"), ("orloj.dev", "v2", "memories")])[0];
        assert!(*status == CheckStatus::Ok && text == "installed: memories.orloj.dev", "{text}");
        let (status, text) = &checks_of(&[("orloj.dev", "v2", "memories")])[0];
        assert!(
            *status == CheckStatus::Fail && text.contains("memories.orloj.dev in v2 and not in v1"),
            "{text}"
        );
    }
}
