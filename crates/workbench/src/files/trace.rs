//! Lets findings about built objects stand in the files from which these come, where a person would edit.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::build::origins::files::Files;
use crate::build::origins::search::{of_field, spot};
use crate::build::origins::{Origins, Spots};
use crate::build::plan::Plan;
use crate::files::copied::CopiedSecrets;
use crate::files::inputs::Inputs;
use crate::files::judge::{Checked, Decided};
use crate::files::notices::Notice;
use crate::files::objects::UndecidedObject;
use memgate_manifest::source::Source;
use memgate_model::object::Reference;
use memgate_primitives::pointer::Pointer;

/// Finds the spots of all findings about what helm and kustomize printed. What was found stays the same; reports show
/// other places.
pub(crate) fn trace(checked: &mut Checked, files: &mut Files) {
    let Checked { inputs, decided, .. } = checked;
    if !inputs.origins.has_rendered() {
        return;
    }
    files.know(&inputs.sources);
    for decided in decided.iter_mut() {
        stand(decided, &inputs.origins, files);
    }
    let elsewhere = decided.iter().flat_map(Decided::findings).flat_map(|finding| &finding.elsewhere);
    let elsewhere: Vec<(Reference, Pointer)> =
        elsewhere.map(|it| (it.object.clone(), it.pointer.clone())).collect();
    for (object, pointer) in elsewhere {
        inputs.places.trace(&object, &pointer, |document, pointer| {
            of_field(document, pointer, &inputs.origins, files)
        });
    }
    let root = Pointer::root();
    let of_notices =
        inputs.notices.iter_mut().flat_map(|Notice { finding, source, span, related, .. }| {
            let at = &finding.pointer;
            let related = related.iter_mut().map(move |(source, span, _)| (source, span, at));
            std::iter::once((source, span, at)).chain(related)
        });
    let of_others = inputs.passed_over.iter_mut().map(|it| (&mut it.source, &mut it.span, &root));
    for (source, span, pointer) in of_notices.chain(of_others) {
        if let Some(rendered) = inputs.origins.rendered_in(source)
            && let Some(spot) = spot((rendered, span.start), (pointer, false), (&inputs.origins, files))
        {
            (*source, *span) = (Arc::clone(spot.source()), spot.caret());
        }
    }
    hide_copied(decided, inputs);
    // Also those without a finding may have a comment that ignores one.
    let read: BTreeSet<*const Source> = inputs.sources.iter().map(Arc::as_ptr).collect();
    let others = files.sources().filter(|source| !read.contains(&Arc::as_ptr(source)));
    inputs.origins.add_traced(others.cloned());
}

/// Hides values of Secrets that were copied into other objects.
fn hide_copied(decided: &mut [Decided], inputs: &mut Inputs) {
    let copied = CopiedSecrets::of(&inputs.origins);
    if copied.is_empty() {
        return;
    }
    let of_objects = decided.iter_mut().flat_map(|it| &mut it.decision.findings);
    for finding in of_objects.chain(inputs.notices.iter_mut().map(|it| &mut it.finding)) {
        let pointer = finding.pointer.clone();
        copied.mask(finding, &pointer);
    }
}

/// Finds the spots of an object and of its findings.
pub(crate) fn stand(decided: &mut Decided, origins: &Origins, files: &mut Files) {
    if let Some(spots) = spots(decided, origins, files) {
        decided.object.spots = Some(Box::new(spots));
    }
}

/// Finds the spots of the objects themselves, before they are judged.
pub fn trace_objects(inputs: &mut Inputs, plan: &Plan) {
    let Inputs { objects, origins, sources, .. } = inputs;
    let mut files = plan.files();
    files.know(sources);
    for UndecidedObject { object, .. } in objects.iter_mut().filter(|_| origins.has_rendered()) {
        let spot = of_field(&object.place, &Pointer::root(), origins, &mut files);
        object.spots = spot.map(|spot| {
            let mut spots = Spots::default();
            spots.insert(Pointer::root(), spot);
            Box::new(spots)
        });
    }
}

/// The spots of an object and of its findings; `None` if memgate did not render it.
fn spots(decided: &Decided, origins: &Origins, files: &mut Files) -> Option<Spots> {
    let object = &decided.object;
    let rendered = (origins.rendered_in(object.place.source())?, object.place.start());
    let mut pointers = vec![(false, Pointer::root())];
    pointers.extend(object.later.iter().filter_map(|later| Some((false, later.first.clone()?))));
    for finding in decided.findings() {
        pointers.push((finding.at_key, finding.pointer.clone()));
        pointers.extend(finding.related.iter().map(|(pointer, _)| (false, pointer.clone())));
    }
    // Of two findings about a field, one about its key and one about its value, both stand at the key.
    pointers.sort();
    let mut spots = Spots::default();
    for (at_key, pointer) in pointers {
        if let Some(spot) = spot(rendered, (&pointer, at_key), (origins, files)) {
            spots.insert(pointer, spot);
        }
    }
    Some(spots)
}
