//! Rename of a memory resource or an agent: in its own manifest, in all that name it, and in kustomizations and patches.
//!
//! Nothing is renamed by half: where one place cannot change, the whole rename is refused, with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lsp_types::PrepareRenameResponse;

use crate::edits::{Edits, RenameEdit};
use crate::kustomize::{mentions_of_kustomize, pattern};
use crate::mentions::{Mention, Role, mentions};
use crate::navigation::Question;
use crate::objects::at_line;
use crate::positions::Lines;
use crate::workspace::path;
use memgate_manifest::document::each_value;
use memgate_manifest::error::Error;
use memgate_manifest::fix::{TextFix, fix};
use memgate_manifest::place::LastSource;
use memgate_manifest::source::Source;
use memgate_model::edge::Form;
use memgate_model::family::Family;
use memgate_model::kind::{Kind, NAMESPACE};
use memgate_model::memory_view::Role as ObjectRole;
use memgate_model::object::Reference;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::Budget;
use memgate_primitives::fix::Fix;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::quoted;
use memgate_workbench::inputs::Inputs;
use memgate_workbench::plan::Plan;
use memgate_workbench::sets::each_set;
use memgate_workbench::view::view_object;

/// The most characters of a name.
const MAX_NAME: usize = 253;

/// The most characters of the value of a label.
const MAX_LABEL: usize = 63;

/// The part of a value that is the name, and the name, if the object can be renamed; `None` where no name is.
///
/// # Errors
/// In a sentence why it cannot.
pub(crate) fn prepare(question: &Question<'_>) -> Result<Option<PrepareRenameResponse>, String> {
    let here = renamings(question, None)?.into_iter().next().map(|renaming| renaming.here);
    let lines = Lines::new(&question.buffer.text, question.encoding);
    let response = |(start, end, placeholder)| PrepareRenameResponse::RangeWithPlaceholder {
        range: lines.range(start, end),
        placeholder,
    };
    Ok(here.map(response))
}

/// The edits that give the object another name; `None` where no name is.
///
/// # Errors
/// In a sentence why it cannot have this name.
pub(crate) fn rename(question: &Question<'_>, new: &str) -> Result<Option<Edits>, String> {
    let mut edits = BTreeMap::new();
    let renamings = renamings(question, Some(new))?;
    let Some(object) = renamings.first().map(|it| title(&it.target)) else { return Ok(None) };
    for renaming in renamings {
        // Sets may share files.
        for edit in renaming.edits {
            edits.insert((path(&question.root, edit.source.name()), edit.change.start), edit);
        }
    }
    Ok(Some(Edits { object, edits: edits.into_values().collect() }))
}

/// The rename of an object in one set of files.
struct Renaming {
    target: Reference,
    /// The first byte of the name at the place of the question, the byte behind its last one, and the name.
    here: (usize, usize, String),
    edits: Vec<RenameEdit>,
}

/// The rename in each set of files that has the place. Without a new name it is only found out whether there may be one.
fn renamings(question: &Question<'_>, new: Option<&str>) -> Result<Vec<Renaming>, String> {
    if let Some(new) = new {
        allow_name(new)?;
    }
    let mut plan = question.run.plan.clone();
    plan.checks_only_open = false;
    // What is rendered is not what is written.
    plan.rendering = None;
    let of_set = |inputs: Inputs| {
        let names = all_mentions(&inputs, &plan);
        InSet { question, inputs: &inputs, names: &names }.renaming(new)
    };
    let (first, others) = each_set(&plan, of_set).map_err(|why| why.to_string())?;
    std::iter::once(first).chain(others).filter_map(Result::transpose).collect()
}

fn all_mentions(inputs: &Inputs, plan: &Plan) -> Vec<Mention> {
    let mut names = mentions(inputs, None);
    names.extend(mentions_of_kustomize(inputs, plan));
    names
}

/// Refuses what is not a name.
fn allow_name(new: &str) -> Result<(), String> {
    let length = new.chars().count();
    match length {
        0 => Err("the new name is empty".to_owned()),
        _ if length > MAX_NAME => {
            Err(format!("the new name has {length} characters; a name has at most {MAX_NAME}"))
        }
        _ if !is_dns_subdomain(new) => Err(format!(
            "{} is not a DNS name: parts of a-z, 0-9 and - with dots between them, each beginning and \
             ending with a letter or digit",
            quoted(new)
        )),
        _ => Ok(()),
    }
}

/// A question in one set of files, with the names in it.
struct InSet<'n> {
    question: &'n Question<'n>,
    inputs: &'n Inputs,
    names: &'n [Mention],
}

impl InSet<'_> {
    /// `None` for a set without a name at the place of the question.
    fn renaming(&self, new: Option<&str>) -> Result<Option<Renaming>, String> {
        let Some(here) = self.names.iter().find(|name| self.is_here(name)) else { return Ok(None) };
        let target = &here.object;
        self.allow(here)?;
        let sites: Vec<&Mention> = self.names.iter().filter(|name| name.means(target)).collect();
        let mut last = LastSource::default();
        for site in &sites {
            last.is_now(&site.place);
            self.allow_site(site, new)?;
        }
        self.allow_patterns(target)?;
        self.allow_unread(target)?;
        self.allow_makers(target)?;
        if let Some(new) = new {
            self.allow_new(target, new)?;
        }
        let edits = new.map(|new| edits(&sites, new)).transpose()?;
        Ok(Some(Renaming { target: target.clone(), here: name_in(here), edits: edits.unwrap_or_default() }))
    }

    /// Whether the place of the question is in the value of a name.
    fn is_here(&self, name: &Mention) -> bool {
        self.question.is_in(&name.place) && {
            let found = name.location();
            // The namespace before a name is not it.
            let is_in_name = || {
                let written = name.place.source().slice(found.value);
                let name = name_in(name).0.saturating_sub(found.value.start);
                let slash = written.get(..name).and_then(|before| before.rfind('/'));
                let start = found.value.start + slash.map_or(0, |slash| slash + 1);
                self.question.touches(start, found.value.end)
            };
            found.exact && found.alias.map_or_else(is_in_name, |alias| self.question.is_at(alias))
        }
    }

    fn snapshot(&self) -> &Snapshot {
        &self.inputs.snapshot
    }

    /// Whether the object at the place of the question can be renamed at all.
    fn allow(&self, here: &Mention) -> Result<(), String> {
        let target = &here.object;
        let (kind, title) = (target.kind, title(target));
        if *kind == NAMESPACE {
            return Err(format!("{title} cannot be renamed here: other objects may be in it"));
        }
        if here.is_later {
            return Err(format!("{}: a later step fills in this name", place(here)));
        }
        // Those of a platform itself too.
        if kind.group.is_empty() || kind.kind == "Secret" {
            return Err(format!(
                "{title} cannot be renamed here: objects outside of these files may name it"
            ));
        }
        let families = &self.snapshot().settings.families;
        let is_kept =
            |family: &&&Family| role(family, kind).is_some() && !family.views.transient.contains(&kind);
        let Some(family) = families.iter().find(is_kept) else {
            return Err(not_renamed(kind));
        };
        let edges = || family.edges.iter().filter(|edge| edge.to.contains(&kind));
        let is_fixed = edges().next().is_some() && edges().all(|edge| edge.form == Form::Fixed);
        if is_fixed || self.has_fixed_name(target) {
            return Err(format!("{title} cannot be renamed: its name has a meaning to {}", family.name));
        }
        let is_own = |name: &Mention| matches!(name.role, Role::Own) && name.object == *target;
        if !self.names.iter().any(is_own) {
            return Err(format!("{title} is not among the files, so it cannot be renamed"));
        }
        Ok(())
    }

    fn has_fixed_name(&self, target: &Reference) -> bool {
        let is_it = |kind: &str, namespace: &str, name: &str| {
            (kind, namespace, name) == (target.kind.kind, &*target.namespace, &*target.name)
        };
        let mut objects = self.inputs.objects.iter().filter(|undecided| {
            let object = &undecided.object.object_ref;
            is_it(&object.kind, &object.namespace, &object.name)
        });
        objects.any(|object| {
            let viewed = view_object(object, self.snapshot(), self.question.run.occasion);
            viewed.is_ok_and(|it| it.views.iter().any(|view| view.has_fixed_name))
        })
    }

    /// Whether the name can change at this place.
    fn allow_site(&self, site: &Mention, new: Option<&str>) -> Result<(), String> {
        let refuse = |why: &str| Err(format!("{}: {why}", place(site)));
        if site.is_later {
            return refuse("a later step fills in this name");
        }
        let found = site.location();
        if found.alias.is_some() || found.anchor.is_some() {
            return refuse("this name is an alias; write it out to rename the object");
        }
        let is_label = site.pointer.as_str().contains("/metadata/labels/");
        if is_label && new.is_some_and(|new| new.len() > MAX_LABEL) {
            return refuse("the value of a label has at most 63 characters");
        }
        match site.role {
            Role::Reference { edge, .. } if edge.form == Form::Made => {
                refuse("this value is made from the name, and does not follow it")
            }
            Role::Reference { is_everywhere: true, .. } if self.is_in_several(&site.object) => {
                refuse("this name means an object in each of several namespaces")
            }
            _ => Ok(()),
        }
    }

    fn is_in_several(&self, object: &Reference) -> bool {
        let budget = Budget::default();
        let state = StateReader::new(self.snapshot(), &budget);
        let first = state.elsewhere(object.kind, "", &object.name);
        first.is_some_and(|first| state.elsewhere(object.kind, first, &object.name).is_some())
    }

    /// Refuses a name that a selector means by a pattern, which may not mean the new one.
    fn allow_patterns(&self, target: &Reference) -> Result<(), String> {
        let selectors = self.names.iter().filter(|name| matches!(name.role, Role::Selector));
        let mut of_kind = selectors.filter(|name| name.object.kind == target.kind);
        let is_it = |name: &&Mention| pattern(&name.text).is_some_and(|it| it.is_match(&target.name));
        match of_kind.find(is_it) {
            Some(name) => Err(format!(
                "{}: this pattern selects {}, and does not follow it",
                place(name),
                title(target)
            )),
            None => Ok(()),
        }
    }

    /// Refuses a name that is also in a text which cannot be read.
    fn allow_unread(&self, target: &Reference) -> Result<(), String> {
        let has_name = |source: &&Arc<Source>| source.text().contains(&target.name);
        let error = |source| each_value(source).find_map(Result::err);
        match self.inputs.sources.iter().filter(has_name).find_map(error).as_ref().and_then(Error::place) {
            Some((file, line)) => {
                let at = format!("{}:{}", file.trim_start_matches("./"), line.unwrap_or(1));
                Err(format!("{at}: this file cannot be read, and may name {}", title(target)))
            }
            None => Ok(()),
        }
    }

    /// Refuses the rename of an object that makes others, where their names are used: these begin with its own.
    fn allow_makers(&self, target: &Reference) -> Result<(), String> {
        let families = &self.snapshot().settings.families;
        let is_memory =
            |kind: &Kind| families.iter().any(|family| role(family, kind) == Some(ObjectRole::Memory));
        let start = format!("{}-", target.name);
        let is_made = |name: &&Mention| {
            let Reference { kind, namespace, name: made } = &name.object;
            matches!(name.role, Role::Reference { is_unknown: true, .. })
                && *kind != target.kind
                && kind.group == target.kind.group
                && *namespace == target.namespace
                && made.starts_with(&start)
                && is_memory(kind)
                && is_memory(target.kind)
        };
        match self.names.iter().find(is_made) {
            Some(made) => Err(format!(
                "{}: this may be the name of an object that {} makes, and does not follow it",
                place(made),
                title(target)
            )),
            None => Ok(()),
        }
    }

    /// Refuses a name that another object has.
    fn allow_new(&self, target: &Reference, new: &str) -> Result<(), String> {
        if new == target.name {
            return Ok(());
        }
        let edges = self.snapshot().settings.families.iter().flat_map(|family| family.edges);
        let twins =
            edges.filter(|edge| edge.to.contains(&target.kind)).flat_map(|edge| edge.to.iter().copied());
        let kinds: BTreeSet<&'static Kind> = twins.chain([target.kind]).collect();
        for kind in kinds {
            let taken = Reference { kind, namespace: target.namespace.clone(), name: new.to_owned() };
            let state = self.snapshot().kind(kind);
            if state.is_some_and(|state| state.object(&taken.namespace, new).is_some()) {
                let place = self.inputs.places.of_object([kind].into_iter(), [&taken.namespace, new]);
                let at = place.map(|(source, span)| format!(", at {}", at_line(&source, span)));
                return Err(format!("{} exists already{}", title(&taken), at.unwrap_or_default()));
            }
        }
        Ok(())
    }
}

impl Mention {
    /// Whether the name is that of an object.
    fn means(&self, target: &Reference) -> bool {
        let is_everywhere = matches!(self.role, Role::Reference { is_everywhere: true, .. });
        self.object == *target
            || is_everywhere && self.object.kind == target.kind && self.object.name == target.name
    }
}

/// The role of the objects of a kind for memory.
fn role(family: &Family, kind: &Kind) -> Option<ObjectRole> {
    family.views.kinds.iter().find(|(known, _)| *known == kind).map(|(_, role)| *role)
}

fn not_renamed(kind: &Kind) -> String {
    format!("{} cannot be renamed here, only memory resources and agents", kind.kind)
}

/// The changes of the texts, by sources.
fn edits(sites: &[&Mention], new: &str) -> Result<Vec<RenameEdit>, String> {
    let mut of_sources: BTreeMap<*const Source, Vec<&Mention>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for site in sites {
        let source = Arc::as_ptr(site.place.source());
        // Several rows of the table may be about one field.
        if seen.insert((source, site.place.start(), &site.pointer)) {
            of_sources.entry(source).or_default().push(site);
        }
    }
    let mut edits = Vec::new();
    let mut last = LastSource::default();
    for sites in of_sources.into_values() {
        let Some(first) = sites.first() else { continue };
        last.is_now(&first.place);
        let source = first.place.source();
        let fixes: Vec<TextFix<'_>> = sites
            .iter()
            .map(|site| TextFix {
                place: &site.place,
                pointer: site.pointer.clone(),
                fix: Fix::Text(site.renamed(new)),
            })
            .collect();
        for (site, change) in sites.iter().zip(fix(source, &fixes).made) {
            let change = change.ok_or_else(|| {
                format!("{}: this name cannot be changed by itself; write it in another form", place(site))
            })?;
            edits.push(RenameEdit { source: Arc::clone(source), change, role: site.role });
        }
    }
    Ok(edits)
}

/// The first byte of the name in a value, the byte behind its last one, and the name.
fn name_in(mention: &Mention) -> (usize, usize, String) {
    let (span, name) = (mention.location().value, mention.object.name.clone());
    let written = mention.place.source().slice(span);
    let start = written.rfind('/').map_or(0, |slash| slash + 1);
    let at = written.get(start..).and_then(|rest| rest.find(&name)).map(|at| span.start + start + at);
    match at {
        Some(at) => (at, at + name.len(), name),
        None => (span.start, span.end, name),
    }
}

/// An object as messages name it.
fn title(Reference { kind, namespace, name }: &Reference) -> String {
    let path = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
    format!("{} {}", kind.kind, quoted(&path))
}

/// The file and line of a name.
fn place(mention: &Mention) -> String {
    at_line(mention.place.source(), mention.location().carets(false).0)
}
