//! Where the two differ on purpose.

use anyhow::Result;

use super::verdict::Verdicts;
use crate::support::release::Release;

/// From which Kubernetes on `format: int32` counts in a custom resource; 1.33 does not care, 1.36 does.
const FORMATS_SINCE: (u32, u32) = (1, 36);

/// What is known of the differences on purpose.
#[derive(Debug)]
pub(super) struct Designs {
    /// Whether the apiserver looks at the formats of numbers.
    knows_formats: bool,
}

const PERSONAS: &str = "objects of older releases of Sympozium are read as what they mean";
const UNRELEASED: &str = "MemoryBackend is in no release of Orka, so its bundled CRD refuses nothing";
const OF_QUERY: &str = "Ark itself takes another form of these fields of a Query";
const LATER: &str = "later versions of Sympozium do not ask for it";
const GENERATED: &str = "the name that will be generated is not known, so its length is not judged";
const STATUS: &str =
    "the status of an ark Memory is part of the state of files, though the apiserver drops it";
const FORMATS: &str = "older apiservers take a number in a custom resource whatever its format says";
const UNSERVED: &str = "an object of an unserved version is judged as the newest, with a warning";

impl Designs {
    /// Those of the apiserver that is asked.
    pub(super) fn new() -> Result<Self> {
        Ok(Self { knows_formats: Release::from_environment()?.number() >= FORMATS_SINCE })
    }

    /// Whether the verdicts differ although they should not.
    pub(super) fn differ(&self, verdicts: &Verdicts) -> bool {
        let unsaid =
            verdicts.mutant.is_unserved && !verdicts.check.codes.contains(&"memgate/version-unknown");
        let unlike =
            verdicts.check.allowed != verdicts.apiserver.allowed && self.allowance(verdicts).is_none();
        unsaid || unlike || !unequal_fields(verdicts).is_empty()
    }

    /// Why they differ, when that is on purpose.
    pub(super) fn reason(&self, verdicts: &Verdicts) -> Option<&'static str> {
        let differ = verdicts.check.allowed != verdicts.apiserver.allowed;
        let allowance = self.allowance(verdicts).filter(|_| differ);
        allowance.or_else(|| verdicts.mutant.is_unserved.then_some(UNSERVED))
    }

    /// Why the verdicts may differ.
    fn allowance(&self, verdicts: &Verdicts) -> Option<&'static str> {
        let Verdicts { mutant, check, apiserver } = verdicts;
        if apiserver.allowed {
            let of_status = |cause: &String| cause.starts_with("ark/schema /status");
            let of_format = |line: &str| !line.contains(" deny ") || line.contains(" with format int");
            let of_formats = !self.knows_formats && check.words.lines().all(of_format);
            return check
                .causes
                .iter()
                .all(of_status)
                .then_some(STATUS)
                .or_else(|| of_formats.then_some(FORMATS));
        }
        let causes = &apiserver.causes;
        let all = |is: &dyn Fn(&str) -> bool| !causes.is_empty() && causes.iter().all(|cause| is(cause));
        let personas = check.codes.contains(&"sympozium/legacy-personas")
            && all(&|cause| cause.contains("Required value"));
        let generated = mutant.has_generated_name && all(&|cause| cause.contains("Too long"));
        let unreleased = mutant.kind == "MemoryBackend" && all(&|cause| !cause.starts_with("metadata"));
        let open = ["spec.type ", "spec.target ", "spec "];
        let of_query = mutant.kind == "Query" && all(&|cause| open.iter().any(|it| cause.starts_with(it)));
        let needed = ["spec.model.provider Required", "spec.model.authSecretRef Required"];
        let later = mutant.kind == "AgentRun" && all(&|cause| needed.iter().any(|it| cause.starts_with(it)));
        let reasons = [
            (personas, PERSONAS),
            (generated, GENERATED),
            (unreleased, UNRELEASED),
            (of_query, OF_QUERY),
            (later, LATER),
        ];
        reasons.into_iter().find(|(is, _)| *is).map(|(_, reason)| reason)
    }
}

/// The fields that an apiserver with strict validation calls unknown and a check passes in silence, or the other way round.
/// Fields of older and later releases stay silent, and so do a status, which is dropped in any case, and what no release
/// has. Of a metadata that cannot be read the apiserver names none.
pub(super) fn unequal_fields(verdicts: &Verdicts) -> Vec<String> {
    let Verdicts { mutant, check, apiserver } = verdicts;
    if mutant.is_unserved || mutant.kind == "MemoryBackend" || !apiserver.is_decoded {
        return Vec::new();
    }
    let silent = memgate_platforms::ALL.iter().flat_map(|family| family.definitions.stand_in.old_fields);
    let silent: Vec<&str> =
        silent.filter(|(kind, _)| kind.kind == mutant.kind).map(|(_, field)| *field).collect();
    let is_silent = |field: &str| silent.contains(&without_indexes(field).as_str());
    // Below a value of the wrong type a check looks no further.
    let is_below = |field: &str| check.wrong_types.iter().any(|place| field.starts_with(place));
    let is_status =
        |field: &str| field.starts_with("status.") || field.starts_with("status[") || field == "status";
    let is_not_shown = |field: &&String| {
        !is_status(field) && !check.told.contains(*field) && !is_silent(field) && !is_below(field)
    };
    let not_shown = apiserver.unknown.iter().filter(is_not_shown);
    let invented = check.unknown.difference(&apiserver.unknown);
    not_shown
        .map(|field| format!("the apiserver alone knows no {field}"))
        .chain(invented.map(|field| format!("the check alone knows no {field}")))
        .collect()
}

/// A field with `[]` for each element of a list.
fn without_indexes(field: &str) -> String {
    let mut parts = field.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |path, part| path + "[]" + part.split_once(']').map_or("", |(_, rest)| rest))
}
