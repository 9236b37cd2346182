//! What the other units of a run make. Units with no file in common may be applied together, so what one of them makes is not
//! missing in another; those that share a base or a chart are the same for another place, and know nothing of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::inputs::Inputs;
use crate::judge::{Checked, Decided, NO_OBJECT_OF_KIND};
use crate::layout::shown;
use crate::paths::normal;
use crate::units::Units;
use memgate_core::state;
use memgate_manifest::document::parse_parts;
use memgate_model::finding::{Finding, Severity};
use memgate_model::object::Reference;
use memgate_model::settings::Settings;
use memgate_primitives::plain_text::plain;

/// The number of the plain manifests among the units.
const PLAIN: usize = 0;

/// The objects of the units, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    makers: BTreeMap<(&'static str, String, String), Vec<usize>>,
    /// The files of plain manifests whose objects a kustomization may give another namespace.
    listed: BTreeMap<(&'static str, String), PathBuf>,
    /// The files of each unit, and the directories of its kustomizations and charts.
    files: Vec<Arc<BTreeSet<PathBuf>>>,
    directories: Vec<Arc<Vec<PathBuf>>>,
    /// The namespaces of units that were not built.
    unknown: BTreeSet<String>,
}

/// What is known of an object that a unit lacks.
enum Elsewhere {
    /// Another unit makes it, or may make it.
    Made,
    /// A file has it that no kustomization lists.
    Unlisted(PathBuf),
}

impl Neighbours {
    pub(crate) fn of(plain: &Inputs, units: &Units) -> Self {
        let mut all = Self { unknown: units.unknown.clone(), ..Self::default() };
        if units.all.is_empty() && all.unknown.is_empty() {
            return all;
        }
        let settings = &plain.snapshot.settings;
        all.files.push(Arc::default());
        all.directories.push(Arc::default());
        for source in &plain.sources {
            all.add(PLAIN, source, settings);
        }
        for (number, texts) in units.all.iter().enumerate() {
            texts.sources.iter().for_each(|source| all.add(number + 1, source, settings));
            all.files.push(Arc::clone(&texts.unit.files));
            all.directories.push(Arc::clone(&texts.unit.directories));
        }
        all
    }

    fn add(&mut self, number: usize, source: &Arc<memgate_manifest::source::Source>, settings: &Settings) {
        for document in parse_parts(source).flat_map(|parsed| parsed.documents) {
            let Some(Reference { kind, namespace, name }) = state::reference(settings, document.value()) else {
                continue;
            };
            if number == PLAIN {
                let file = normal(Path::new(source.name()));
                self.listed.entry((kind.kind, name.clone())).or_insert(file);
            }
            let makers = self.makers.entry((kind.kind, namespace, name)).or_default();
            if makers.last() != Some(&number) {
                makers.push(number);
            }
        }
    }

    /// Where an object is that a unit lacks.
    fn find(&self, number: usize, missing: &Reference) -> Option<Elsewhere> {
        let Reference { kind, namespace, name } = missing;
        let directories = self.directories.get(number);
        let is_below = |file: &&PathBuf| {
            directories.is_some_and(|all| all.iter().any(|directory| file.starts_with(directory)))
        };
        if let Some(file) = self.listed.get(&(kind.kind, name.clone())).filter(is_below) {
            return Some(Elsewhere::Unlisted(file.clone()));
        }
        let makers = self.makers.get(&(kind.kind, namespace.clone(), name.clone()));
        let is_apart = |other: &&usize| match (self.files.get(number), self.files.get(**other)) {
            (Some(own), Some(other)) => own.is_disjoint(other),
            _ => false,
        };
        let is_made = makers.into_iter().flatten().filter(|other| **other != number).any(|it| is_apart(&it));
        (is_made || self.unknown.contains(namespace)).then_some(Elsewhere::Made)
    }
}

/// Leaves out what is only said because an object is missing that another unit makes, and says of an object that a file has
/// which no kustomization lists that it does.
pub(crate) fn apply(checked: &mut Checked) {
    let (neighbours, number) = (Arc::clone(&checked.inputs.neighbours), checked.inputs.number);
    if neighbours.files.is_empty() {
        return;
    }
    let elsewhere = |finding: &Finding| {
        let missing = || finding.missing.iter().find_map(|missing| neighbours.find(number, missing));
        if finding.is_denial() { None } else { missing() }
    };
    for Decided { admitted, unknown, .. } in &mut checked.decided {
        if !unknown.is_empty() {
            *unknown = unknown.iter().filter(|it| neighbours.find(number, it).is_none()).cloned().collect();
        }
        if admitted.decision.findings.iter().all(|finding| finding.missing.is_empty()) {
            continue;
        }
        let findings = &mut Arc::make_mut(admitted).decision.findings;
        findings.retain_mut(|finding| match elsewhere(finding) {
            Some(Elsewhere::Made) => false,
            Some(Elsewhere::Unlisted(file)) => {
                let (file, message) = (shown(&file), finding.message());
                let message = message.strip_suffix(&format!(" ({NO_OBJECT_OF_KIND})")).unwrap_or(&message);
                let message = format!("{message}; {} has it, but no kustomization lists it", plain(&file));
                *finding = finding.clone().with_message(message);
                finding.severity = finding.severity.max(Severity::Warn);
                true
            }
            None => true,
        });
    }
}
