//! What is read around the open files: a repository, or nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::buffers::{Buffer, Buffers};
use memgate_primitives::causes::in_words;
use memgate_workbench::build::plan::OpenFile;
use memgate_workbench::build::walk::leads_to;
use memgate_workbench::files::run::Run;
use memgate_workbench::paths::{PROJECT_FILE, root_of, without_dots};

/// The kind of exemptions.
const EXEMPTION: &str = "MemoryPolicyExemption";

/// Plans what is read in the working directory; in words why it cannot be read.
pub type Planner<'p> = dyn Fn() -> Result<Run, String> + 'p;

/// The directory from which a file is judged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Root {
    /// The directory.
    pub(crate) directory: PathBuf,
    /// Whether its files are state for one another. A file outside of any repository is judged alone: its directory may be
    /// a whole home.
    pub(crate) is_repository: bool,
}

/// The folders of an editor.
pub(crate) struct Workspace<'p> {
    folders: Vec<PathBuf>,
    planner: &'p Planner<'p>,
}

impl<'p> Workspace<'p> {
    /// A workspace without folders.
    pub(crate) fn new(planner: &'p Planner<'p>) -> Self {
        Self { folders: Vec::new(), planner }
    }

    /// Adds folders and removes others.
    pub(crate) fn change(&mut self, added: impl IntoIterator<Item = PathBuf>, removed: &[PathBuf]) {
        self.folders.retain(|folder| !removed.contains(folder));
        self.folders.extend(added);
    }

    /// The root of a file: the nearest directory with choices of its own, up to the folder of the editor, else that folder.
    /// Without a folder the repository around the file takes its place, and also where the folder is a home or above one,
    /// since all of it would be read.
    pub(crate) fn root(&self, file: &Path) -> Root {
        let parent = file.parent().unwrap_or(file);
        let home = std::env::home_dir().unwrap_or_default();
        let around =
            self.folders.iter().filter(|folder| file.starts_with(folder) && !home.starts_with(folder));
        let folder = around.max_by_key(|folder| folder.components().count());
        let Some(top) = folder.map(PathBuf::as_path).or_else(|| root_of(parent)) else {
            return Root { directory: parent.to_owned(), is_repository: false };
        };
        let mut directories = parent.ancestors().take_while(|directory| directory.starts_with(top));
        let nearest = directories.find(|directory| directory.join(PROJECT_FILE).is_file());
        Root { directory: nearest.unwrap_or(top).to_owned(), is_repository: true }
    }

    /// The open files by their roots.
    pub(crate) fn by_root<'b>(&self, buffers: &'b Buffers) -> BTreeMap<Root, Vec<&'b Buffer>> {
        let mut roots: BTreeMap<Root, Vec<&Buffer>> = BTreeMap::new();
        for buffer in buffers.iter() {
            roots.entry(self.root(&buffer.path)).or_default().push(buffer);
        }
        roots
    }

    /// Plans what is read around the open files of a root, with the texts of all open files in place of those on disk.
    /// Enters its directory, so that paths mean the same as for a command that runs there.
    ///
    /// # Errors
    /// When the directory is gone, or the choices of the repository are wrong.
    pub(crate) fn run(&self, root: &Root, own: &[&Buffer], all: &Buffers) -> Result<Run, String> {
        let Root { directory, is_repository } = root;
        std::env::set_current_dir(directory)
            .map_err(|error| format!("{}: {}", directory.display(), in_words(&error)))?;
        let mut run = (self.planner)()?;
        let plan = &mut run.plan;
        if !is_repository {
            plan.checked.clear();
        }
        let paths: Vec<&String> = plan.checked.iter().collect();
        let is_own = |it: &Buffer| own.iter().any(|own| own.uri == it.uri);
        // Below the directory there may be others with choices of their own.
        let is_below = |it: &Buffer| *is_repository && it.path.starts_with(directory);
        let open = all.iter().map(|it| (it, is_own(it))).filter(|(it, is_own)| *is_own || is_below(it));
        let open = open.map(|(buffer, is_judged)| OpenFile {
            path: PathBuf::from(name(root, &buffer.path)),
            text: buffer.text.clone(),
            is_checked_outside: !is_repository || is_new_manifest(&buffer.path, root, &paths),
            is_judged,
        });
        plan.open = open.collect();
        // Whether an exemption has an effect is known only once all files are judged.
        plan.checks_only_open = !own.iter().any(|buffer| buffer.text.contains(EXEMPTION));
        // For files that a walk does not find.
        plan.checked.push("-".to_owned());
        Ok(run)
    }
}

/// Whether a file that was not written yet will be read as a manifest: one of these paths leads to it, and it is in no
/// hidden directory and not part of a chart.
fn is_new_manifest(file: &Path, root: &Root, paths: &[&String]) -> bool {
    let within = file.strip_prefix(&root.directory).unwrap_or(file);
    let is_hidden = || within.iter().any(|part| part.to_str().is_some_and(|part| part.starts_with('.')));
    let is_in_chart =
        || within.ancestors().any(|above| root.directory.join(above).join("Chart.yaml").exists());
    let is_read = || paths.iter().any(|path| leads_to(path, within));
    !file.exists() && is_read() && !is_hidden() && !is_in_chart()
}

/// The name of an open file in reports: the path from the root.
pub(crate) fn name(root: &Root, path: &Path) -> String {
    path.strip_prefix(&root.directory).unwrap_or(path).to_string_lossy().into_owned()
}

/// The path of a file by its name in reports.
pub(crate) fn path(root: &Root, name: &str) -> PathBuf {
    without_dots(&root.directory.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_choices_decide_within_a_folder() {
        let scratch = tempfile::tempdir().expect("a directory");
        let top = scratch.path().join("work");
        std::fs::create_dir_all(top.join("team/deep")).expect("directories");
        std::fs::write(top.join("team").join(PROJECT_FILE), "strict: true").expect("a file");
        std::fs::write(scratch.path().join(PROJECT_FILE), "strict: true").expect("a file");
        let planner = || Err(String::new());
        let mut workspace = Workspace::new(&planner);
        let alone = workspace.root(&top.join("a.yaml"));
        assert_eq!(alone, Root { directory: top.clone(), is_repository: false });
        std::fs::create_dir(top.join(".git")).expect("a directory");
        for folders in [vec![], vec![top.clone()], vec![scratch.path().to_owned(), top.clone()]] {
            workspace.change(folders, &[]);
            for (file, directory) in [("a.yaml", ""), ("team/deep/a.yaml", "team"), ("other/a.yaml", "")] {
                let root = workspace.root(&top.join(file));
                let directory = if directory.is_empty() { top.clone() } else { top.join(directory) };
                assert_eq!(root, Root { directory, is_repository: true }, "{file}");
            }
        }
    }
}
