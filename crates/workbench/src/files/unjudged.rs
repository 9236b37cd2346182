//! What a branch hides from its check: documents of judged kinds that no unit and no plain run judges, though the base
//! judged them or the branch brings them. `kubectl apply -R` and Argo CD apply many of them all the same.
//!
//! ```text
//! run ──▶ documents from which judged objects come ─┐
//! all files of the tree ──▶ documents ──────────────┴▶ judged or not ──compared with the base──▶ denials
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build::layout::shown;
use crate::build::origins::files::Files;
use crate::build::origins::search::came_from;
use crate::build::ours::Ours;
use crate::build::plan::Plan;
use crate::build::texts::file;
use crate::build::unit::NotBuilt;
use crate::build::walk::{is_hidden, leads_to};
use crate::files::judge::Checked;
use crate::files::judged_documents::{JudgedDocuments, WrittenName};
use crate::files::notices::Notice;
use crate::files::objects::is_ours;
use crate::files::passed_over::Why;
use crate::paths::{is_manifest, looks_like_manifest, normal};
use crate::report::ObjectRef;
use memgate_manifest::document::{Document, parse, values};
use memgate_manifest::later::{is_filled_in_later, is_of_template, may_hold};
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::Source;
use memgate_model::finding::{DeniedBy, Finding};
use memgate_platforms::common::NOT_JUDGED;
use memgate_primitives::plain_text::{plain, quoted};
use memgate_primitives::pointer::Pointer;
use serde_json::Value;

/// The files of a tree.
#[derive(Debug)]
pub struct Tree {
    /// Its root, absolute and without links.
    pub root: PathBuf,
    /// The paths from there.
    pub names: Arc<[String]>,
}

/// From what the judged objects of a unit come. Whether an object opts out is a decision too.
pub(crate) fn judged_documents(checked: &Checked, files: &mut Files) -> JudgedDocuments {
    let Checked { inputs, decided, .. } = checked;
    files.know(&inputs.sources);
    let objects = decided.iter().filter(|it| it.is_judged).map(|it| &it.object);
    let objects = objects.map(|it| (it.place.source(), it.place.start(), Some(&it.object_ref)));
    let others = inputs.passed_over.iter().filter(|it| Why::DECIDED.contains(&it.why));
    let others = others.map(|it| (&it.source, it.span.start, it.object_ref.as_ref()));
    let mut judged = JudgedDocuments::default();
    for (source, start, object) in objects.chain(others) {
        let Some(rendered) = inputs.origins.rendered_in(source) else {
            judged.documents.insert((normal(Path::new(source.name())), start));
            continue;
        };
        let (documents, template) = came_from((rendered, start), (&inputs.origins, files));
        let documents = documents.iter().map(|it| (normal(Path::new(it.source().name())), it.start()));
        judged.documents.extend(documents);
        let name = object.map(|it| [&it.kind, &it.namespace, &it.name].map(ToString::to_string));
        judged.printed.extend(name.zip(template.map(|it| normal(&it))));
    }
    let rendered = inputs.origins.rendered.values();
    judged.built = rendered.flat_map(|it| it.unit.files.iter().cloned()).collect();
    judged
}

/// A document of a judged kind.
#[derive(Debug)]
struct SeenDocument {
    /// Its file from the root.
    file: PathBuf,
    place: Arc<DocumentPlace>,
    is_judged: bool,
    /// Whether this run is to check its file.
    is_wanted: bool,
}

/// The documents of judged kinds in all files of a tree.
#[derive(Debug, Default)]
pub struct Documents {
    seen: Vec<(WrittenName, SeenDocument)>,
    /// Manifests not all of which can be read, and the first of them with each word.
    opaque: BTreeSet<PathBuf>,
    words: BTreeMap<String, PathBuf>,
    /// What templates print, each with its template.
    printed: BTreeMap<WrittenName, PathBuf>,
    /// The namespaces of judged documents, by kind and name.
    judged: BTreeMap<[String; 2], BTreeSet<String>>,
}

impl Documents {
    /// Reads the files of a tree over which the run of a plan has found this.
    pub fn of(Tree { root, names }: &Tree, plan: &Plan, judged: &JudgedDocuments) -> Self {
        let ours = Ours::new(&plan.settings);
        let from_root = |file: &PathBuf| file.strip_prefix(root).map(Path::to_owned).unwrap_or_default();
        let printed = judged.printed.iter().map(|(name, file)| (name.clone(), from_root(file))).collect();
        let mut documents = Self { printed, ..Self::default() };
        let is_file = |path: &Path| {
            fs::symlink_metadata(path).is_ok_and(|it| it.is_file() && it.len() <= plan.max_bytes as u64)
        };
        for name in names.iter().filter(|name| is_file(&root.join(name))) {
            let (path, below) = (root.join(name), Path::new(name));
            match file(Path::new(&shown(&path)), plan.max_bytes) {
                Ok(source) if may_have_object(source.text(), below, &ours) => {
                    let named = Path::new(source.name());
                    let is_wanted = plan.checked.iter().any(|it| leads_to(it, named));
                    let is_wanted = is_wanted && !plan.exclude.excludes_file(named);
                    documents.add((&path, below), &Arc::new(source), is_wanted, judged);
                }
                Err(_) if looks_like_manifest(below) => drop(documents.opaque.insert(below.to_owned())),
                _ => {}
            }
        }
        documents
    }

    fn add(
        &mut self,
        (path, below): (&PathBuf, &Path),
        source: &Arc<Source>,
        is_wanted: bool,
        judged: &JudgedDocuments,
    ) {
        let (parsed, is_built) = (parse(source), judged.built.contains(path));
        let is_opaque = !parsed.errors.is_empty() || values(source, &mut Vec::new()).iter().any(is_open);
        if is_opaque && looks_like_manifest(below) && !is_built {
            self.opaque.insert(below.to_owned());
            for word in words(source.text()) {
                self.words.entry(word.to_owned()).or_insert_with(|| below.to_owned());
            }
        }
        // What a template prints is judged, however its text reads.
        if is_built && source.text().lines().any(is_of_template) {
            return;
        }
        for document in parsed.documents.iter().filter(|it| is_one(it)) {
            let names = [document.kind(), document.namespace().unwrap_or_default(), document.name()];
            let (name, place) = (names.map(str::to_owned), document.shared_place());
            let is_judged = judged.documents.contains(&(path.clone(), place.start()));
            if is_judged {
                let [kind, namespace, own] = name.clone();
                self.judged.entry([kind, own]).or_default().insert(namespace);
            }
            let seen = SeenDocument { file: below.to_owned(), place, is_judged, is_wanted };
            self.seen.push((name, seen));
        }
    }

    /// Whether an object of this name is judged, in whatever file it stands.
    fn judges(&self, name: &WrittenName) -> bool {
        let [kind, namespace, own] = name;
        let homes = self.judged.get(&[kind.clone(), own.clone()]);
        let is_home = |home: &String| home.is_empty() || namespace.is_empty() || home == namespace;
        self.printed.contains_key(name) || homes.is_some_and(|homes| homes.iter().any(is_home))
    }

    /// All of them with their names.
    fn all(&self) -> impl Iterator<Item = (&WrittenName, &SeenDocument)> {
        self.seen.iter().map(|(name, seen)| (name, seen))
    }
}

impl SeenDocument {
    fn text(&self) -> &str {
        self.place.source().slice(self.place.span())
    }
}

/// Whether a text may have an object of ours, also with its group in other characters, or where a later step says it.
fn may_have_object(text: &str, file: &Path, ours: &Ours) -> bool {
    let is_escaped = || ["\\u", "\\x", "\\U", "\\\n"].iter().any(|escape| text.contains(escape));
    ours.is_in(text) || is_escaped() || looks_like_manifest(file) && may_hold(text)
}

/// Whether memgate judges documents of this kind. Policies have rules of their own.
fn is_one(document: &Document) -> bool {
    let (group, kind) = (document.group(), document.kind());
    is_ours(group, kind, document.value()) && memgate_policy::resource::kind(group, kind).is_none()
}

/// Whether a later step fills in what a document is.
fn is_open(document: &Document) -> bool {
    let texts = ["apiVersion", "kind", "items"].map(|key| document.value().get(key).and_then(Value::as_str));
    texts.into_iter().flatten().any(is_filled_in_later)
}

/// What the branch hides from its check, and what it removes, in words.
pub(crate) fn hidden(
    checked: &Checked,
    (before, not_built): (&Documents, &[NotBuilt]),
    (tree, plan): (&Tree, &Plan),
) -> (Vec<Notice>, BTreeSet<String>) {
    let now = Documents::of(tree, plan, &checked.judged);
    let (mut notices, mut told) = (Vec::new(), BTreeSet::new());
    // The files of units that are built neither here nor at the base.
    let names: BTreeSet<&str> = not_built.iter().map(|it| it.name.as_str()).collect();
    let is_left = |it: &&NotBuilt| names.contains(it.name.as_str());
    let left: BTreeSet<&PathBuf> =
        checked.inputs.not_built.iter().filter(is_left).flat_map(|it| &*it.files).collect();
    let read: BTreeSet<&str> = checked.inputs.sources.iter().map(|it| it.name()).collect();
    let (mut left_files, mut left_texts) = (BTreeSet::new(), BTreeSet::new());
    for (name, it) in before.all().filter(|(_, it)| !it.is_judged) {
        left_files.insert((name, &*it.file));
        left_texts.extend((!tree.root.join(&it.file).exists()).then(|| (name, it.text())));
    }
    for (name, seen) in now.all().filter(|(_, it)| !it.is_judged) {
        let is_gone = before.judges(name) && !now.judges(name);
        // What the base did not judge either is not hidden by the branch. A copy of what it judged may have moved too.
        let is_moved = || !is_gone && left_texts.contains(&(name, seen.text()));
        if left_files.contains(&(name, &*seen.file)) || is_moved() {
            continue;
        }
        if is_gone || seen.is_wanted && !left.contains(&tree.root.join(&seen.file)) {
            told.insert(name.clone());
            let is_read = read.contains(seen.place.source().name());
            notices.push(notice_of(name, seen, (before.judges(name), is_read)));
        }
    }
    let mut removed = BTreeSet::new();
    let here: BTreeSet<_> =
        now.all().filter(|(_, it)| it.is_judged).map(|(name, it)| (name, &it.file)).collect();
    let templates: BTreeSet<&PathBuf> = before.printed.values().collect();
    let judged = before.all().filter(|(_, it)| it.is_judged).map(|(name, it)| (name, &it.file));
    for (name, file) in judged.chain(&before.printed) {
        let [kind, namespace, own] = name;
        let is_here = here.contains(&(name, file));
        let is_gone = !now.judges(name) && told.insert(name.clone());
        let is_unread = now.opaque.contains(file) && !is_here && (is_gone || !before.opaque.contains(file));
        let unread = Some(file)
            .filter(|it| is_unread || is_gone && templates.contains(it) && is_unbuilt(it, checked, tree));
        match unread.or_else(|| now.words.get(own).filter(|_| is_gone)) {
            Some(file) => notices.push(of_file(file, &format!("{kind} {}", quoted(own)), tree)),
            None if is_gone => {
                let home = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
                removed.insert(format!("{kind} {home}{own} ({})", file.display()));
            }
            None => {}
        }
    }
    (notices, removed)
}

/// Whether a template is there, and nothing is built from it.
fn is_unbuilt(file: &Path, checked: &Checked, tree: &Tree) -> bool {
    let path = tree.root.join(file);
    path.exists() && !checked.judged.built.contains(&path)
}

/// The denial at a document, with the reason why it is not judged.
fn notice_of(
    [kind, namespace, name]: &WrittenName,
    SeenDocument { file, place, is_wanted, .. }: &SeenDocument,
    (was_judged, is_read): (bool, bool),
) -> Notice {
    let source = place.source();
    let why = match () {
        () if is_hidden(file, Path::new("")) => "a hidden file, or one in a hidden folder, is not read",
        () if !is_manifest(file) => "its file does not end in .yaml, .yml or .json",
        () if !is_wanted => "its file is outside of the paths that are checked",
        () if is_read => "its file was read, and no platform judges this apiVersion and kind",
        () => "its file is a part of a kustomization or chart, and nothing that is built has the object",
    };
    let how = if was_judged { "not judged any more" } else { "not judged any more, though it is new" };
    let finding = denial(format!("{kind} {} is {how}: {why}", quoted(name)));
    let [kind, namespace, name] = [kind, namespace, name].map(|it| Arc::from(it.as_str()));
    let object_ref = ObjectRef { kind, namespace, name, ..ObjectRef::default() };
    Notice { object_ref, ..Notice::new(source, place.locate(&Pointer::root()).caret, finding) }
}

/// The denial at a file that had objects and cannot be read now. Its text is not shown.
fn of_file(file: &Path, what: &str, tree: &Tree) -> Notice {
    let name = shown(&tree.root.join(file));
    let why = format!("not all of {} can be read, or a later step says what it holds", plain(&name));
    let source = Arc::new(Source::new(name, ""));
    Notice::new(&source, source.span(0, 0), denial(format!("{what} is not judged any more: {why}")))
}

fn denial(message: String) -> Finding {
    let finding = Finding::deny(&NOT_JUDGED, Pointer::root(), message);
    Finding { denied_by: DeniedBy::Report, ..finding }
        .help("let the check read it as it did before, or remove it: whoever applies the folder may apply this file too")
}

/// The words of a text that may be names.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.');
    text.split(move |c| !is_of_name(c)).filter(|word| !word.is_empty())
}
