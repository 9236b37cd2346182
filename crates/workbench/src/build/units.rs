//! The units of a run: what each kustomization and each chart becomes, and the plain manifests. Each is judged with a state
//! of its own.
//!
//! ```text
//! paths ──walk──▶ layout ──▶ tops ──build──▶ texts ──▶ releases ──build──▶ texts ──load, each apart──▶ Inputs
//!           └────────────────▶ plain manifests ───────────────────────────────────load──▶ Inputs
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build::assignments::Assignments;
use crate::build::builder::{Builder, build};
use crate::build::layout::{Layout, Reach, Tool, Top, is_marker, name_of, shown};
use crate::build::neighbours::Neighbours;
use crate::build::ours::Ours;
use crate::build::plan::Plan;
use crate::build::releases::{Release, Releases};
use crate::build::rendered::Rendered;
use crate::build::tools::Tools;
use crate::build::unit::{NotBuilt, Unit};
use crate::in_order;
use crate::paths::normal;
use memgate_core::state::makers::{Installation, add_maker, installations};
use memgate_core::state::reference;
use memgate_manifest::document::{Document, parse_parts};
use memgate_manifest::error::Error as InputError;
use memgate_manifest::source::Source;
use memgate_model::makers::Makers;
use memgate_model::settings::Settings;

/// So many times releases are looked for in what was built: an Application may install a chart with Applications.
const MOST_ROUNDS: usize = 8;

impl Units {
    /// What the objects of all units install that only install others, each with the file that counts as its place.
    pub(crate) fn installations(&self, settings: &Settings) -> Vec<(PathBuf, Installation)> {
        let mut all = Vec::new();
        for UnitTexts { unit, sources, .. } in &self.all {
            for document in sources.iter().flat_map(parse_parts).flat_map(|parsed| parsed.documents) {
                let found = installations(settings, document.value()).into_iter().flatten();
                all.extend(found.map(|it| (unit.marker.clone(), it)));
            }
        }
        all
    }

    /// The directories of what was not built, so that it is not known what it makes.
    pub(crate) fn left(&self) -> Arc<BTreeSet<PathBuf>> {
        Arc::new(self.left.clone())
    }

    /// What the units make, and these plain manifests.
    pub(crate) fn neighbours(&self, plain: &[Arc<Source>], settings: &Settings) -> Neighbours {
        let (unknown, others) = (self.unknown.clone(), self.others.clone());
        let mut all = Neighbours::new(unknown, others);
        let nothing = Unit::default();
        let of_units = self.all.iter().map(|it| (&*it.unit, &*it.sources));
        for (unit, sources) in [(&nothing, plain)].into_iter().chain(of_units) {
            all.add_unit(Arc::clone(&unit.files));
            if self.all.is_empty() {
                break;
            }
            let mut makers = Makers::default();
            for document in sources.iter().flat_map(parse_parts).flat_map(|parsed| parsed.documents) {
                let plain = unit.files.is_empty().then(|| {
                    (document.namespace().map(str::to_owned), normal(Path::new(document.source().name())))
                });
                let document = unit.in_its_namespace(document);
                add_maker(&mut makers, settings, document.value());
                if let Some(object) = reference(settings, document.value()) {
                    all.add(object, plain);
                }
            }
            all.may_make.push(makers);
        }
        all
    }

    /// The documents of units that count in all of a cluster, each with the number of its unit.
    pub(crate) fn shared(&self) -> Vec<(usize, Document)> {
        let mut all = Vec::new();
        for (number, UnitTexts { sources, .. }) in self.all.iter().enumerate() {
            let has_some = |source: &&Arc<Source>| SHARED.iter().any(|it| source.text().contains(it));
            let documents = sources.iter().filter(has_some).flat_map(parse_parts).flat_map(|it| it.documents);
            let shared = documents.filter(|it| is_definition_or_policy(it.group(), it.kind()));
            all.extend(shared.map(|document| (number + 1, document)));
        }
        all
    }
}

/// What stands in texts with definitions and policies.
const SHARED: [&str; 2] = ["apiextensions.k8s.io", "policy.memgate.dev"];

/// Whether an object counts for what others are judged by, wherever it is applied.
pub(crate) fn is_definition_or_policy(group: &str, kind: &str) -> bool {
    (group, kind) == ("apiextensions.k8s.io", "CustomResourceDefinition")
        || memgate_policy::resource::kind(group, kind).is_some()
}

/// What was built.
#[derive(Debug, Default)]
pub(crate) struct Units {
    pub(crate) all: Vec<UnitTexts>,
    pub(crate) not_built: Vec<NotBuilt>,
    /// Files with something of ours that nothing reaches.
    pub(crate) unreached: Vec<String>,
    pub(crate) errors: Vec<InputError>,
    /// The programs that built, with their versions.
    pub(crate) tools: BTreeSet<String>,
    pub(crate) layout: Layout,
    /// The namespaces of what was not built.
    pub(crate) unknown: BTreeSet<String>,
    /// The files of what is not built since it has nothing of ours, with the namespaces of their kustomizations, and the
    /// directories of what is not built.
    others: BTreeMap<PathBuf, Option<String>>,
    left: BTreeSet<PathBuf>,
}

/// A unit with its texts.
#[derive(Debug)]
pub(crate) struct UnitTexts {
    pub(crate) unit: Arc<Unit>,
    pub(crate) sources: Vec<Arc<Source>>,
    /// Of what a tool printed, the objects; and of others that its release stands in.
    pub(crate) rendered: Vec<Arc<Rendered>>,
}

/// A unit to build.
struct Job {
    unit: Unit,
    /// Why it is not built, and what is wrong with it already.
    refusal: Option<String>,
    fault: Option<String>,
    /// Whether its files have something of ours.
    is_ours: bool,
}

/// Builds the units of a plan.
pub(crate) struct Building<'p> {
    plan: &'p Plan,
    builder: &'p Builder,
    tools: Option<Arc<Tools>>,
    ours: Ours,
    /// The directories that are built or not for a reason.
    tried: BTreeSet<PathBuf>,
    /// The files of the walk, absolute.
    walked: BTreeSet<PathBuf>,
    /// The plain manifests, each with the file that counts as its place.
    texts: Vec<(Arc<Source>, PathBuf)>,
    by_name: BTreeMap<String, Arc<Rendered>>,
    units: Units,
}

/// Builds what these files belong to. `manifests` are the manifests that no unit has; those to which Flux gives values leave it.
pub(crate) fn build_all(
    plan: &Plan,
    layout: Layout,
    walked: &[PathBuf],
    manifests: &mut Vec<Arc<Source>>,
) -> Units {
    let units = Units { layout, ..Units::default() };
    let walked = walked.iter().map(|path| normal(path)).collect();
    let texts = manifests.iter().map(|source| (Arc::clone(source), PathBuf::from(source.name()))).collect();
    let (ours, fallback, tried) = (Ours::new(&plan.settings), Builder::default(), BTreeSet::new());
    let builder = plan.builder.as_ref().unwrap_or(&fallback);
    let mut building =
        Building { plan, builder, tools: None, ours, tried, walked, texts, by_name: BTreeMap::new(), units };
    building.run(manifests);
    building.units
}

impl Building<'_> {
    fn run(&mut self, plain: &mut Vec<Arc<Source>>) {
        let (mut reached, mut wanted) = (BTreeSet::new(), Vec::new());
        for top in self.units.layout.tops() {
            let reach = self.reach(&top, None);
            if !self.is_walked(&top, &reach) {
                continue;
            }
            reached.extend(reach.files.iter().cloned());
            let [is_ours, installs] = self.ours.in_files(&reach.files, self.plan);
            if is_ours || installs {
                wanted.push((top, reach, is_ours));
            } else {
                let namespace = self.units.layout.kustomization(&top.directory);
                let namespace = namespace.and_then(|it| it.namespace.clone());
                self.units.left.insert(top.directory);
                self.units.others.extend(reach.files.into_iter().map(|file| (file, namespace.clone())));
            }
        }
        self.name_unreached(&reached);
        let is_plain_ours = |(source, _): &(Arc<Source>, PathBuf)| self.ours.is_in(source.text());
        if !wanted.iter().any(|(.., is_ours)| *is_ours) && !self.texts.iter().any(is_plain_ours) {
            // What installs something from elsewhere is judged without being built.
            wanted.clear();
        }
        let charts = wanted.extract_if(.., |(top, ..)| top.tool == Tool::Helm).collect();
        self.build_alone(wanted);
        self.build_charts(charts);
        self.assign(plain);
    }

    fn reach(&self, top: &Top, release: Option<&Release>) -> Reach {
        let of_release = release.into_iter().flat_map(Release::files).map(|file| normal(file));
        let is_chart = top.tool == Tool::Helm;
        let given = if is_chart { self.builder.values_of(&top.directory) } else { Vec::new() };
        let read = |path: &Path| self.plan.source(path);
        let values = (&*of_release.collect::<Vec<_>>(), &*given);
        self.units.layout.reach(top, values, (&read, self.plan.max_bytes))
    }

    /// Whether the walk found a top, or a part of it.
    fn is_walked(&self, top: &Top, reach: &Reach) -> bool {
        let is_marker = |file: &&PathBuf| file.parent() == Some(&*top.directory) && is_marker(file);
        let below = self.walked.range::<PathBuf, _>(&top.directory..);
        let mut below = below.take_while(|file| file.starts_with(&top.directory));
        below.any(|file| is_marker(&file)) || !reach.files.is_disjoint(&self.walked)
    }

    fn job(&self, top: Top, reach: Reach, (release, is_ours): (Option<Release>, bool)) -> Job {
        let mut name = name_of(&top.directory);
        if top.tool == Tool::Helm && self.units.layout.kustomization(&top.directory).is_some() {
            name += " (chart)";
        }
        if let Some(release) = &release {
            name.extend([" (", &release.place, ")"]);
        }
        let unit = Unit {
            tool: Some(top.tool),
            marker: self.units.layout.marker(&top),
            directory: top.directory,
            name,
            release: release.map(Arc::new),
            assignment: None,
            files: Arc::new(reach.files),
            resources: Arc::new(reach.resources),
            directories: Arc::new(reach.directories),
        };
        Job { unit, refusal: reach.refusal, fault: reach.fault, is_ours }
    }

    /// Names the parts with something of ours that no unit reaches.
    fn name_unreached(&mut self, reached: &BTreeSet<PathBuf>) {
        let layout = &self.units.layout;
        let is_one = |file: &&PathBuf| layout.is_part(file) && !reached.contains(*file);
        let parts: Vec<PathBuf> = self.walked.iter().filter(is_one).cloned().collect();
        for part in parts {
            let [is_ours, _] = self.ours.in_files(&BTreeSet::from([part.clone()]), self.plan);
            self.units.unreached.extend(is_ours.then(|| shown(&part)));
        }
    }

    /// Builds units, each unless there is a reason not to.
    fn build(&mut self, wanted: Vec<Job>) {
        let mut jobs = Vec::new();
        for Job { unit, refusal, fault, is_ours } in wanted {
            self.tried.insert(unit.directory.clone());
            match (refusal.or_else(|| self.obstacle(&unit)), fault) {
                (None, None) => jobs.push((unit, is_ours)),
                // What only installs others is known from its files well enough.
                _ if !is_ours => drop(self.units.left.insert(unit.directory)),
                (Some(why), _) => self.leave(&unit, why),
                (None, Some(why)) => self.fail(&unit, &why),
            }
        }
        let Some(tools) = self.tools.clone() else { return };
        let (builder, Plan { max_bytes, .. }) = (self.builder, self.plan);
        let work = |(unit, is_ours): (Unit, bool)| {
            let of_tool = |tool| {
                let program = tools.program(tool).map_err(str::to_owned)?;
                build(&unit, (builder, &tools, program), *max_bytes)
            };
            let made = unit.tool.map_or_else(|| Err(String::new()), of_tool);
            (unit, is_ours, made)
        };
        let mut done = Vec::new();
        let Ok(()) = in_order::each(jobs, 1, work, |job| {
            done.push(job);
            Ok::<_, Infallible>(())
        });
        for (unit, is_ours, made) in done {
            let Some(program) = unit.tool.and_then(|tool| tools.program(tool).ok()) else { continue };
            self.units.tools.insert(program.title.clone());
            match made {
                Ok(text) => self.add(unit, text, &tools),
                Err(_) if !is_ours => drop(self.units.left.insert(unit.directory)),
                Err(why) => self.fail(&unit, &format!("{} {}: {why}", program.shown, unit.name)),
            }
        }
    }

    /// Why a unit cannot be built here.
    fn obstacle(&mut self, unit: &Unit) -> Option<String> {
        let tool = unit.tool?;
        if self.plan.builder.is_none() {
            return Some("--no-render leaves it out".to_owned());
        }
        if let Some(why) = unit.release.as_ref().and_then(|release| release.refusal.clone()) {
            return Some(why);
        }
        if self.tools.is_none() {
            match Tools::find(self.builder.path.as_deref()) {
                Ok(tools) => self.tools = Some(Arc::new(tools)),
                Err(error) => return Some(format!("no folder can be made for it: {}", error.kind())),
            }
        }
        let program = self.tools.as_ref()?.program(tool);
        program.err().map(str::to_owned)
    }

    /// Notes a unit that is not checked, of which nothing is known.
    fn leave(&mut self, unit: &Unit, why: String) {
        self.note_unknown(unit);
        let is_chart = unit.tool == Some(Tool::Helm);
        let (name, marker, files) = (unit.name.clone(), unit.marker.clone(), Arc::clone(&unit.files));
        self.units.not_built.push(NotBuilt { name, is_chart, marker, files, why });
    }

    fn fail(&mut self, unit: &Unit, why: &str) {
        self.note_unknown(unit);
        let file = unit.marker.to_string_lossy();
        let why = why.strip_prefix(&format!("{file}: ")).unwrap_or(why);
        self.units.errors.push(InputError::of_input(file, why));
    }

    /// What a unit that was not built makes is unknown in its own namespaces: that of the kustomization or release, else those
    /// that its files name, else that of objects without one.
    fn note_unknown(&mut self, unit: &Unit) {
        self.units.left.insert(unit.directory.clone());
        let kustomization = self.units.layout.kustomization(&unit.directory);
        let own = kustomization.and_then(|it| it.namespace.clone());
        let own = own.or_else(|| unit.release.as_ref()?.namespace.clone());
        let mut all = own.map_or_else(|| self.ours.namespaces_in(&unit.files, self.plan), |own| [own].into());
        if all.is_empty() {
            all.insert(self.builder.namespace.clone().unwrap_or_else(|| "default".to_owned()));
        }
        self.units.unknown.extend(all);
    }

    fn add(&mut self, unit: Unit, text: Source, tools: &Arc<Tools>) {
        self.units.left.remove(&unit.directory);
        let (unit, source) = (Arc::new(unit), Arc::new(text));
        let asks = (Arc::clone(tools), self.builder.kustomize_args.clone(), self.plan.max_bytes);
        let asks = Some(asks).filter(|_| unit.tool == Some(Tool::Kustomize));
        let rendered = Arc::new(Rendered::of(&unit, &source, asks));
        self.texts.push((Arc::clone(&source), unit.marker.clone()));
        self.by_name.insert(source.name().to_owned(), Arc::clone(&rendered));
        let mut all = vec![rendered];
        // The object with the values of a release may be one that a tool printed.
        let inline = unit.release.iter().flat_map(|release| release.inline()).map(|it| &it.document);
        all.extend(inline.filter_map(|place| self.by_name.get(place.source().name()).cloned()));
        self.units.all.push(UnitTexts { unit, sources: vec![source], rendered: all });
    }

    /// Builds the charts: those with releases with their values, once these are known, the others with their own.
    fn build_charts(&mut self, mut charts: Vec<(Top, Reach, bool)>) {
        let mut seen = BTreeSet::new();
        for _ in 0..MOST_ROUNDS {
            let jobs = self.jobs_of_releases(&mut seen, !charts.is_empty());
            if !jobs.is_empty() {
                self.build(jobs);
                continue;
            }
            charts.retain(|(top, ..)| !seen.iter().any(|(directory, _)| *directory == top.directory));
            // A chart with its own values may install others.
            let installs = |(_, reach, _): &mut (Top, Reach, bool)| {
                let [_, installs] = self.ours.in_files(&reach.files, self.plan);
                installs
            };
            let first: Vec<_> = charts.extract_if(.., installs).collect();
            if first.is_empty() {
                break;
            }
            self.build_alone(first);
        }
        self.build_alone(charts);
    }

    /// The charts of releases, and what else is installed and used by others too.
    fn jobs_of_releases(&mut self, seen: &mut BTreeSet<(PathBuf, String)>, has_charts: bool) -> Vec<Job> {
        let releases = Releases::of(&self.texts).all.into_iter().map(|(directory, it)| (directory, Some(it)));
        let assigned = Assignments::of(&self.texts).all.into_iter().map(|(directory, _)| (directory, None));
        let mut jobs = Vec::new();
        for (directory, release) in releases.chain(assigned) {
            let Some(top) = self.units.layout.top_at(&directory) else { continue };
            let release = release.filter(|_| top.tool == Tool::Helm);
            let is_known = release.is_none() && self.tried.contains(&directory);
            let place = release.as_ref().map(|release| release.place.clone()).unwrap_or_default();
            if is_known || !seen.insert((directory, place)) {
                continue;
            }
            let reach = self.reach(&top, release.as_ref());
            let [in_files, installs] = self.ours.in_files(&reach.files, self.plan);
            let is_in = |release: &Release| release.inline().any(|it| self.ours.is_in(&it.text));
            let is_ours = in_files || release.as_ref().is_some_and(is_in);
            if is_ours || installs && has_charts {
                jobs.push(self.job(top, reach, (release, is_ours)));
            }
        }
        jobs
    }

    fn build_alone(&mut self, tops: Vec<(Top, Reach, bool)>) {
        let job = |(top, reach, is_ours)| self.job(top, reach, (None, is_ours));
        self.build(tops.into_iter().map(job).collect());
    }

    /// Gives units what Kustomizations of Flux put in, and the namespace of an Application: a unit for each that does, and one
    /// of the plain files below the path of a Kustomization.
    fn assign(&mut self, plain: &mut Vec<Arc<Source>>) {
        let assignments = Assignments::of(&self.texts);
        let releases = Releases::of(&self.texts).all;
        let mut all = Vec::new();
        for UnitTexts { unit, sources, rendered } in std::mem::take(&mut self.units.all) {
            let layout = &self.units.layout;
            let is_over = |path: &Path| {
                let directory = &unit.directory;
                directory == path || directory.starts_with(path) && layout.kustomization(path).is_none()
            };
            let over = assignments.all.iter().filter(|(path, _)| is_over(path));
            let over = over
                .map(|(_, it)| (&it.place, Unit { assignment: Some(Arc::clone(it)), ..Unit::clone(&unit) }));
            let is_of = |directory: &PathBuf, it: &Release| {
                unit.tool == Some(Tool::Kustomize) && *directory == unit.directory && it.namespace.is_some()
            };
            let of = releases.iter().filter(|(directory, it)| is_of(directory, it));
            let of = of.map(|(_, it)| {
                (&it.place, Unit { release: Some(Arc::new(it.clone())), ..Unit::clone(&unit) })
            });
            let installed: Vec<_> = over.chain(of).collect();
            let count = installed.len();
            let units = installed.into_iter().map(|(place, mut installed)| {
                if count > 1 {
                    installed.name.extend([" (", place, ")"]);
                }
                Arc::new(installed)
            });
            for unit in units.chain((count == 0).then(|| Arc::clone(&unit))) {
                all.push(UnitTexts { unit, sources: sources.clone(), rendered: rendered.clone() });
            }
        }
        for (path, assignment) in &assignments.all {
            if self.units.layout.kustomization(path).is_some() {
                continue;
            }
            let is_below = |source: &&Arc<Source>| normal(Path::new(source.name())).starts_with(path);
            let sources = self.texts.iter().map(|(source, _)| source).filter(is_below).cloned();
            let sources: Vec<_> = sources.collect();
            let Some(first) = sources.first() else { continue };
            plain.retain(|source| !sources.iter().any(|taken| Arc::ptr_eq(taken, source)));
            let unit = Arc::new(Unit {
                directory: path.clone(),
                marker: PathBuf::from(first.name()),
                name: format!("{} ({})", name_of(path), assignment.place),
                assignment: Some(Arc::clone(assignment)),
                ..Unit::default()
            });
            all.push(UnitTexts { unit, sources, rendered: Vec::new() });
        }
        self.units.all = all;
    }
}
