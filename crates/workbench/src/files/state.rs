//! Adds objects of files to the state that decisions look at. What cannot be added becomes an error or a notice.

use std::io::Read;

use serde_json::Value;

use crate::build::judged_by::{CountsAs, Standings};
use crate::build::origins::files::Files;
use crate::build::origins::search::SpotsOf;
use crate::build::plan::Plan;
use crate::files::errors::error_at;
use crate::files::inputs::{Inputs, Unfilled};
use crate::files::notices::{Notices, unreadable_errors};
use crate::files::objects::{has_required_annotation, is_checked};
use crate::files::places::DocumentValue;
use crate::files::policy_files::{self, PolicyOrigin};
use memgate_core::state::makers::{charts, installations};
use memgate_core::state::{self, AddError, Added, SharedTexts};
use memgate_manifest::document::items;
use memgate_manifest::later::Marks;
use memgate_model::kind::Kind;
use memgate_model::recurring_texts::RecurringTexts;
use memgate_primitives::pointer::Pointer;

/// An object of a document, or a List.
pub(crate) struct FileObject<'d> {
    /// The kind of path at which it was read.
    pub(crate) origin: PolicyOrigin,
    /// Its place and value.
    pub(crate) part: DocumentValue<'d>,
    /// Whether a later step fills in something of the document.
    pub(crate) is_later: bool,
    /// The texts that it shares if it is checked too.
    pub(crate) shared: Option<SharedTexts<'d>>,
}

/// What is loaded so far.
pub(crate) struct Loading<'p> {
    /// What is read.
    pub(crate) plan: &'p Plan,
    /// Standard input.
    pub(crate) stdin: &'p mut dyn Read,
    /// The objects and the state.
    pub(crate) inputs: Inputs,
    pub(crate) notices: Notices,
    pub(crate) texts: RecurringTexts,
    /// What objects are judged by.
    pub(crate) standings: Standings,
    /// The files from which rendered objects come.
    pub(crate) files: Files,
}

impl Loading<'_> {
    /// Adds an object, or each object of a List or of a plain list. Returns whether decisions look at any of them.
    ///
    /// # Errors
    /// When a number is out of bounds.
    pub(crate) fn add(&mut self, object: &FileObject<'_>) -> Result<bool, serde_json::Error> {
        let FileObject { origin, part: DocumentValue { document, within, value }, is_later, .. } = *object;
        let Some(items) = items(value, within) else { return self.add_one(object) };
        let mut is_used = false;
        for (item, within) in items {
            let part = DocumentValue { document, within: &within, value: &item };
            is_used |= self.add(&FileObject { origin, part, is_later, shared: None })?;
        }
        Ok(is_used)
    }

    /// Adds one object. Returns whether decisions look at it.
    ///
    /// # Errors
    /// When a number is out of bounds.
    pub(crate) fn add_one(&mut self, object: &FileObject<'_>) -> Result<bool, serde_json::Error> {
        let FileObject { origin, part, is_later, ref shared } = *object;
        let DocumentValue { document, value, .. } = part;
        let Self { plan, inputs, notices, files, .. } = self;
        let is_policy = policy_files::is_policy(value);
        // What the job gives stands in the work tree, and may be a file of the commit too.
        let mut ignored = Vec::new();
        if origin == PolicyOrigin::Policies && !is_policy {
            return Ok(false);
        }
        let counts = match origin {
            PolicyOrigin::Checked => {
                let mut spots = SpotsOf { origins: &inputs.origins, files };
                let file = || spots.of(document, &Pointer::root()).source().name().to_owned();
                self.standings.counts(value, file, &inputs.snapshot.settings)
            }
            PolicyOrigin::Policies | PolicyOrigin::State => CountsAs::Itself,
        };
        if !matches!(counts, CountsAs::Itself) {
            let Inputs { snapshot, errors, policies, origins, .. } = inputs;
            let errors = if plan.is_base { &mut ignored } else { errors };
            let told = (&mut SpotsOf { origins, files }, errors);
            let is_repeated = is_policy && policies.is_repeated(part, origin, &snapshot.settings, told);
            if let CountsAs::Instead(value) = counts
                && !is_repeated
            {
                // The same was added where it was read first.
                drop(state::add(snapshot, &value));
            }
            return Ok(true);
        }
        if is_later && hides_name(inputs, value) {
            return Ok(true);
        }
        let Inputs { snapshot, errors, policies, places, origins, .. } = inputs;
        let settings = &snapshot.settings;
        let faults = state::unreadable(settings, value);
        if !faults.is_empty() {
            if is_policy {
                errors.extend(unreadable_errors(part, settings));
                return Ok(true);
            }
            let (group, kind) = state::group_and_kind(value);
            let is_checked = is_checked(group, kind) && has_required_annotation(group, kind, value);
            // One that is checked is denied instead. Without a name, it is none of those that others name.
            if origin != PolicyOrigin::Checked || !is_checked {
                notices.unreadable(part, settings);
            } else if faults.iter().all(|(_, fault)| *fault == state::NAME_REQUIRED) {
                return Ok(true);
            }
        }
        let repeated = if plan.is_base { &mut ignored } else { &mut *errors };
        let mut spots = SpotsOf { origins, files };
        if is_policy && policies.is_repeated(part, origin, settings, (&mut spots, repeated)) {
            return Ok(true);
        }
        if is_policy && origin != PolicyOrigin::Checked {
            notices.policy(part, settings);
        }
        if plan.keeps_places {
            places.add(part, settings);
        }
        if let Some(installations) = installations(settings, value) {
            charts::add(snapshot, value);
            let file = SpotsOf { origins, files }.file(document.source());
            inputs.installers.extend(installations.into_iter().map(|it| (file.clone(), it)));
            return Ok(true);
        }
        let is_definition = notices.definition(value);
        match state::add_shared(snapshot, value, shared.as_ref()) {
            Ok(Added { is_used, faults }) => {
                // A policy that is checked is denied instead.
                if origin != PolicyOrigin::Checked {
                    errors.extend(policy_files::errors(part, faults, &mut SpotsOf { origins, files }));
                }
                Ok(is_used || is_definition)
            }
            Err(AddError::Number(error)) => Err(error),
            Err(error @ AddError::Definition(_)) => {
                errors.push(error_at(document.place(), &Pointer::root(), error.to_string()));
                Ok(true)
            }
        }
    }
}

/// Keeps what a later step fills in of an object of the state. Returns whether that is its name, so that nothing can name it.
fn hides_name(inputs: &mut Inputs, value: &Value) -> bool {
    let Some(kind) = state_kind(value, inputs) else { return false };
    if has_hidden_name(value) {
        inputs.snapshot.kind_mut(kind).lacks_some = true;
        return true;
    }
    let (marks, mut bare) = (Marks::of(value), value.clone());
    marks.remove(&mut bare);
    if bare != *value {
        inputs.unfilled.push(Unfilled { bare, later: marks.places(value) });
    }
    false
}

/// Whether a later step fills in the name or namespace of an object: it exists, and its name is not known.
fn has_hidden_name(value: &Value) -> bool {
    let texts = ["/metadata/name", "/metadata/namespace"].map(|at| value.pointer(at).and_then(Value::as_str));
    texts.into_iter().flatten().any(|text| Marks::of(value).are_in(text))
}

/// The kind of an object of the state.
pub(crate) fn state_kind(value: &Value, inputs: &Inputs) -> Option<&'static Kind> {
    let (group, kind) = state::group_and_kind(value);
    memgate_platforms::state_kind(&inputs.snapshot.settings.families, group, kind)
}
