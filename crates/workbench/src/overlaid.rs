//! What kustomizations make of the objects in files: those that are not rendered other names, other namespaces and other
//! references, and all of them nothing of what a patch removes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::compared::{Moved, NamingField, Target};
use crate::inputs::Inputs;
use crate::origins::files::{Files, file_name};
use crate::origins::kustomize::{changer, objects_of, remover};
use crate::origins::overlay::{Made, Maker};
use crate::repository::{Tool, Unit};
use memgate_primitives::plain_text::plain;
use memgate_primitives::pointer::Pointer;

/// The parts of an object with keys to which others refer.
const WITH_KEYS: [&str; 3] = ["/data", "/stringData", "/spec"];

/// What kustomizations that are not rendered make of objects, step by step.
#[derive(Debug, Default)]
pub(crate) struct Overlaid {
    /// What is made of an object, by its file and first byte.
    by_place: BTreeMap<(String, usize), Vec<Arc<Made>>>,
    /// What is made of objects with a name, by kind.
    by_name: BTreeMap<(String, String), Vec<Arc<Made>>>,
}

impl Overlaid {
    /// That of the objects of some inputs, and what they become; `home` is the namespace of objects without one.
    pub(crate) fn of(inputs: &Inputs, home: &str, files: &mut Files) -> (Self, Moved) {
        let (mut overlaid, mut moved) = (Self::default(), Moved::default());
        let rendered: BTreeSet<&Unit> = inputs.origins.rendered.values().collect();
        let rendered = rendered.into_iter().map(|unit| (unit, true));
        let others = inputs.unrendered.iter().map(|it| (&it.unit, false));
        let units = rendered.chain(others).filter(|(unit, _)| unit.tool == Tool::Kustomize && unit.is_whole);
        for (unit, is_rendered) in units {
            let directory: Arc<str> = plain(&unit.directory.to_string_lossy()).into();
            let objects = objects_of(&unit.directory, files);
            for made in objects.by_name.values().flatten() {
                let namespace = if made.namespace.is_empty() { home } else { &made.namespace };
                let target = Target::new(&made.kind, namespace, &made.name);
                if let Some(file) = remover(made, &mut files.overlays) {
                    moved.removed.insert(target, file.into());
                } else if !is_rendered {
                    moved.made.entry(target).or_insert_with(|| Arc::clone(&directory));
                    overlaid.add(made, &directory, &mut moved);
                }
            }
        }
        moved.is_cut = files.overlays.room == 0;
        (overlaid, moved)
    }

    fn add(&mut self, made: &Arc<Made>, directory: &Arc<str>, moved: &mut Moved) {
        let is_open = |step: &Made| matches!(&step.by, Maker::Layer(layer) if layer.is_open);
        if made.steps().any(is_open) {
            moved.open.entry(made.kind.clone()).or_insert_with(|| Arc::clone(directory));
        }
        let Some(Made { by: Maker::Document(document), kind, name, .. }) = made.steps().last() else {
            return;
        };
        let place = (file_name(Path::new(document.source().name())), document.place().start());
        self.by_place.entry(place).or_default().push(Arc::clone(made));
        self.by_name.entry((kind.clone(), name.clone())).or_default().push(Arc::clone(made));
    }

    /// The objects that a field names in the namespaces that its own object gets, if it names one beside it.
    pub(crate) fn targets_of<'f>(&'f self, field: &'f NamingField) -> impl Iterator<Item = Target> + 'f {
        let is_own = field.target.namespace == *field.user.namespace;
        let made = self.by_place.get(&place_of(field)).into_iter().flatten().filter(move |_| is_own);
        let namespaces = made.map(|made| made.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let namespaces: BTreeSet<&str> = namespaces.collect();
        let name = &field.target.name;
        let in_one = move |namespace| field.kinds.iter().map(move |kind| Target::new(kind, namespace, name));
        namespaces.into_iter().flat_map(in_one)
    }

    /// The file of a kustomization that may change what a field says, or the keys of the object that it names.
    pub(crate) fn changer_of(&self, field: &NamingField, files: &mut Files) -> Option<String> {
        let users = self.by_place.get(&place_of(field)).into_iter().flatten();
        let pointer = field.part.join(&field.pointer);
        let mut changed = users.filter_map(|made| changer(made, &pointer, &mut files.overlays));
        if let Some(changer) = changed.next() {
            return Some(changer);
        }
        let target = field.key.as_ref().map(|_| field.found.as_ref().unwrap_or(&field.target))?;
        let targets = self.by_name.get(&(target.kind.clone(), target.name.clone())).into_iter().flatten();
        let parts = WITH_KEYS.map(Pointer::new);
        let mut changed = targets
            .flat_map(|made| parts.iter().map(move |part| (made, part)))
            .filter_map(|(made, part)| changer(made, part, &mut files.overlays));
        changed.next()
    }
}

/// The file and the first byte of the object with a field.
fn place_of(field: &NamingField) -> (String, usize) {
    (file_name(Path::new(field.place.source().name())), field.place.start())
}
