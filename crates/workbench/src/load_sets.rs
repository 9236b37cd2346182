//! Loads the sets of a repository, each with its own state.
//!
//! A file that several sets name has one text, so that a comment or a fix in it counts for all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::load::{Error, InputPlan, InputSet, Inputs, Sources, load, load_paths};
use crate::read::OpenFile;
use crate::walk::leads_to;
use memgate_manifest::error::Error as InputError;
use memgate_manifest::source::Source;

/// Loads the files of a plan, of each set apart, and returns them with the name of the set.
///
/// # Errors
/// Those of [`load()`].
pub fn load_each(plan: &InputPlan) -> Result<Vec<(String, Inputs)>, Error> {
    if plan.sets.is_empty() {
        return Ok(vec![(String::new(), load(plan)?)]);
    }
    let mut known = Sources::new();
    let loaded = plan.sets.iter().map(|set| Ok((set.name.clone(), load_set(plan, set, &mut known)?)));
    let mut all = loaded.collect::<Result<Vec<_>, Error>>()?;
    let sources: Vec<_> = all.iter().flat_map(|(_, inputs)| inputs.sources.iter().cloned()).collect();
    if let Some((plan, alone)) = outside_of_sets(plan, &sources) {
        all.push((alone.name.clone(), load_set(&plan, &alone, &mut known)?));
    }
    Ok(all)
}

/// Loads the files of one set. A set of a repository that has none is an error among its inputs.
pub(crate) fn load_set(plan: &InputPlan, set: &InputSet, known: &mut Sources) -> Result<Inputs, Error> {
    let mut inputs = match with_new_files(plan, &set.paths) {
        Some(plan) => load_paths(&plan, &[&*set.paths, &["-".to_owned()]].concat(), known)?,
        None => load_paths(plan, &set.paths, known)?,
    };
    let nothing = inputs.sources.is_empty() && inputs.errors.is_empty() && plan.reading.open.is_empty();
    if nothing && inputs.unread.unrendered.is_empty() && !set.name.is_empty() {
        let (set, paths) = (&set.name, set.paths.join(", "));
        inputs.errors.push(InputError::Several(format!(
            "the set {set} has no files: there is no manifest in {paths}; correct its paths, or remove it from sets"
        )));
    }
    Ok(inputs)
}

/// The plan in which the path `-` reads the new files of an editor that are in a set with these paths: no walk finds them.
/// `None` if there are none.
fn with_new_files(plan: &InputPlan, paths: &[String]) -> Option<InputPlan> {
    let is_here =
        |file: &OpenFile| file.is_checked_outside && paths.iter().any(|path| leads_to(path, &file.path));
    if paths.iter().any(|path| path == "-") || !plan.reading.open.iter().any(is_here) {
        return None;
    }
    let mut plan = plan.clone();
    for file in &mut plan.reading.open {
        file.is_checked_outside = is_here(file);
    }
    Some(plan)
}

/// The open files that are in no set, as a plan and a set of their own; `None` if there are none.
pub(crate) fn outside_of_sets(plan: &InputPlan, read: &[Arc<Source>]) -> Option<(InputPlan, InputSet)> {
    let read: BTreeSet<&str> = read.iter().map(|source| source.name()).collect();
    let mut outside = plan.clone();
    outside.reading.open.retain(|file| file.is_judged && !read.contains(&*file.path.to_string_lossy()));
    let alone = InputSet { name: String::new(), paths: vec!["-".to_owned()] };
    (!outside.reading.open.is_empty()).then_some((outside, alone))
}
