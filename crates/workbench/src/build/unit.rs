//! A unit: what is built on its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::{DirEntry, WalkBuilder};

use crate::build::assignments::Assignment;
use crate::build::exclude::Exclude;
use crate::build::layout::Tool;
use crate::build::object_name::is_of_no_namespace;
use crate::build::releases::Release;
use crate::paths::normal;
use memgate_manifest::document::Document;

/// So many files of a directory with sources are searched.
const MOST_SOURCES: usize = 20_000;

/// What is built on its own, or files to which Flux gives values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unit {
    /// The program that builds it.
    pub(crate) tool: Option<Tool>,
    /// The directory, absolute.
    pub(crate) directory: PathBuf,
    /// The file that makes it a kustomization or a chart, as the user would write it.
    pub(crate) marker: PathBuf,
    /// By this it is known in reports: the path from the root of the repository, and what installs it.
    pub(crate) name: String,
    /// How an object among the inputs installs it.
    pub(crate) release: Option<Arc<Release>>,
    /// What a Kustomization of Flux puts into it.
    pub(crate) assignment: Option<Arc<Assignment>>,
    /// The files from which it is built, absolute.
    pub(crate) files: Arc<BTreeSet<PathBuf>>,
    /// The manifests among them, of a kustomization.
    pub(crate) resources: Arc<BTreeSet<PathBuf>>,
    /// The directories of the kustomizations and charts among them.
    pub(crate) directories: Arc<Vec<PathBuf>>,
}

/// A unit that was not built.
#[derive(Debug, Clone)]
pub struct NotBuilt {
    /// Its name.
    pub name: String,
    /// Whether it is a chart.
    pub is_chart: bool,
    /// Its file.
    pub marker: PathBuf,
    /// The files from which it would be built, absolute.
    pub files: Arc<BTreeSet<PathBuf>>,
    /// Why, and what to do.
    pub why: String,
}

impl Unit {
    /// The namespace of its objects without one.
    pub(crate) fn fallback(&self) -> Option<&str> {
        self.release.as_ref().and_then(|release| release.namespace.as_deref())
    }

    /// A document of it in the namespace that it gets when it is applied.
    pub(crate) fn in_its_namespace(&self, mut document: Document) -> Document {
        let given = self.assignment.as_ref().and_then(|assignment| assignment.namespace.as_deref());
        let own = document.namespace().is_some();
        let namespace = given.or_else(|| self.fallback().filter(|_| !own));
        if let Some(namespace) = namespace.filter(|_| !is_of_no_namespace(document.group(), document.kind()))
        {
            document.set_namespace(namespace);
        }
        document
    }

    /// The name of what is printed for it.
    pub(crate) fn source_name(&self) -> String {
        let command = match self.tool {
            Some(Tool::Helm) => "helm template",
            _ => "kustomize build",
        };
        format!("<{command} {}>", self.name)
    }

    /// That of the files of a directory, for a text that was built from some of them.
    pub(crate) fn of_directory(directory: &Path, exclude: &Exclude) -> Self {
        let root = directory.to_owned();
        let wanted = |path: &Path| path.is_file() && !exclude.excludes(path, &root);
        let all = WalkBuilder::new(directory).standard_filters(false).build().flatten().take(MOST_SOURCES);
        let files = all.map(DirEntry::into_path).filter(|path| wanted(path)).map(|path| normal(&path));
        let name = String::new();
        Self { name, directory: normal(directory), files: Arc::new(files.collect()), ..Self::default() }
    }
}
