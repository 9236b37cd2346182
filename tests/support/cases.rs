//! The project's own case files.

#![allow(dead_code, reason = "each test program uses the part of it that it needs")]
#![allow(clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_workbench::files::casefile::Case;
use memgate_workbench::files::casefile::read::read;
use serde_json::Value;

/// A folder of the repository, found from every crate of the workspace.
pub(crate) fn folder(name: &str) -> Result<PathBuf> {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join(name));
    folders.into_iter().find(|folder| folder.is_dir()).with_context(|| format!("there is no {name}"))
}

/// Every document below `tests/cases`, with its file as `family/face.yaml`.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn documents() -> Result<Vec<(String, Value)>> {
    documents_below(&folder("tests/cases")?)
}

/// Every document below another folder of the repository.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn documents_of(name: &str) -> Result<Vec<(String, Value)>> {
    documents_below(&folder(name)?)
}

fn documents_below(root: &Path) -> Result<Vec<(String, Value)>> {
    let mut all = Vec::new();
    for path in files_below(root)? {
        let file = path.strip_prefix(root)?.display().to_string();
        let text = fs::read_to_string(&path).with_context(|| format!("{file} cannot be read"))?;
        let mut errors = Vec::new();
        let documents = values(&Arc::new(Source::new(&file, &text)), &mut errors);
        ensure!(errors.is_empty(), "{errors:?}");
        all.extend(documents.iter().map(|document| (file.clone(), document.value().clone())));
    }
    ensure!(!all.is_empty(), "there is no case in {}", root.display());
    Ok(all)
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// Every case with its file.
///
/// # Errors
/// When a file cannot be read or is not a case file.
pub(crate) fn cases() -> Result<Vec<(String, Case)>> {
    read_all(documents()?)
}

fn read_all(documents: Vec<(String, Value)>) -> Result<Vec<(String, Case)>> {
    let mut all = Vec::new();
    for (file, value) in documents {
        let cases = read(&value).map_err(|faults| anyhow::anyhow!("{faults:?}"));
        let cases = cases.with_context(|| format!("{file} is not a case file"))?;
        all.extend(cases.into_iter().map(|case| (file.clone(), case)));
    }
    Ok(all)
}

/// Every case below `tests/claims`, for an installation in which objects of every namespace may claim another one of Orloj.
///
/// # Errors
/// When a file cannot be read or is not a case file.
pub(crate) fn claims() -> Result<Vec<(String, Case)>> {
    read_all(documents_below(&folder("tests/claims")?)?)
}

/// The cases of the library of policies, with `library/NAME.yaml` for their file. Each has its policy in its state. One of
/// CI is there twice, the second time as [`at_admission`].
///
/// # Errors
/// When a file cannot be read, or there is not one policy for each file of cases.
pub(crate) fn library() -> Result<Vec<(String, Value)>> {
    let policies = documents_below(&folder("examples/policy/library")?)?;
    let mut all = Vec::new();
    for (file, cases) in documents_below(&folder("examples/library-cases")?)? {
        let mut of_file = policies.iter().filter(|(of_policy, _)| *of_policy == file);
        let (_, policy) = of_file.next().with_context(|| format!("{file} has no policy"))?;
        ensure!(of_file.next().is_none(), "{file} has two policies");
        for case in cases.as_array().with_context(|| format!("{file} is not a list of cases"))? {
            let mut case = case.clone();
            let state =
                case["state"].as_array_mut().with_context(|| format!("{file}: a case has no state"))?;
            state.push(policy.clone());
            let other = at_admission(&case);
            all.extend(
                [Some(case), other].into_iter().flatten().map(|case| (format!("library/{file}"), case)),
            );
        }
    }
    Ok(all)
}

/// A case of CI, asked at admission, where the last object of its state, a policy, has the actions that it has in CI.
fn at_admission(case: &Value) -> Option<Value> {
    let mut case = case.clone();
    let fields = case.as_object_mut()?;
    fields.remove("point").filter(|point| point == "ci")?;
    case["name"] = format!("{}-at-admission", case["name"].as_str()?).into();
    let policy = case["state"].as_array_mut()?.last_mut()?;
    let spec = policy["spec"].as_object_mut()?;
    spec.remove("promote");
    let as_in_ci = |actions: &mut Value, default: Option<Value>| {
        if let Some(action) = actions.get("ci").cloned().or(default) {
            actions["admission"] = action;
        }
    };
    as_in_ci(&mut policy["spec"]["actions"], Some("deny".into()));
    for rule in policy["spec"]["rules"].as_array_mut()? {
        if rule.get("action").is_some() {
            as_in_ci(&mut rule["action"], None);
        }
    }
    Some(case)
}

/// Every case of [`library`], read.
///
/// # Errors
/// When a file cannot be read or is not a case file.
pub(crate) fn library_cases() -> Result<Vec<(String, Case)>> {
    read_all(library()?)
}
