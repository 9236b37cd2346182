//! Loads the sets of a repository, each with its own state.
//!
//! A file that several sets name has one text, so that a comment or a fix in it counts for all of them.

use std::collections::BTreeSet;

use crate::inputs::Inputs;
use crate::load::{Error, Sources, load, load_paths};
use crate::plan::{InputSet, OpenFile, Plan};
use crate::walk::leads_to;
use memgate_manifest::error::Error as InputError;

/// Loads the files of a plan, of each set apart, and returns what `make` makes of the first set and of the others. Open files
/// that are in no set come last.
///
/// # Errors
/// Those of [`load()`].
pub fn each_set<T>(plan: &Plan, mut make: impl FnMut(Inputs) -> T) -> Result<(T, Vec<T>), Error> {
    let [first, others @ ..] = plan.sets.as_slice() else { return Ok((make(load(plan)?), Vec::new())) };
    let (mut known, mut read) = (Sources::new(), BTreeSet::new());
    let mut of_set = |set: &InputSet| {
        let inputs = load_set(plan, set, &mut known)?;
        read.extend(inputs.sources.iter().map(|source| source.name().to_owned()));
        Ok::<_, Error>(make(inputs))
    };
    let first = of_set(first)?;
    let mut others = others.iter().map(of_set).collect::<Result<Vec<_>, _>>()?;
    let mut outside = plan.clone();
    outside.open.retain(|file| file.is_judged && !read.contains(&*file.path.to_string_lossy()));
    if !outside.open.is_empty() {
        let alone = InputSet { name: String::new(), paths: vec!["-".to_owned()] };
        others.push(make(load_set(&outside, &alone, &mut known)?));
    }
    Ok((first, others))
}

/// Loads the files of one set. A set of a repository that has none is an error among its inputs.
fn load_set(plan: &Plan, set: &InputSet, known: &mut Sources) -> Result<Inputs, Error> {
    let mut inputs = match with_new_files(plan, &set.paths) {
        Some(plan) => load_paths(&plan, (&set.name, &[&*set.paths, &["-".to_owned()]].concat()), known)?,
        None => load_paths(plan, (&set.name, &set.paths), known)?,
    };
    let nothing = inputs.sources.is_empty() && inputs.errors.is_empty() && plan.open.is_empty();
    if nothing && inputs.unrendered.is_empty() && !set.name.is_empty() {
        let (set, paths) = (&set.name, set.paths.join(", "));
        inputs.errors.push(InputError::Several(format!(
            "the set {set} has no files: there is no manifest in {paths}; correct its paths, or remove it from sets"
        )));
    }
    inputs.set.clone_from(&set.name);
    Ok(inputs)
}

/// The plan in which the path `-` reads the new files of an editor that are in a set with these paths: no walk finds them.
/// `None` if there are none.
fn with_new_files(plan: &Plan, paths: &[String]) -> Option<Plan> {
    let is_here =
        |file: &OpenFile| file.is_checked_outside && paths.iter().any(|path| leads_to(path, &file.path));
    if paths.iter().any(|path| path == "-") || !plan.open.iter().any(is_here) {
        return None;
    }
    let mut plan = plan.clone();
    for file in &mut plan.open {
        file.is_checked_outside = is_here(file);
    }
    Some(plan)
}
