//! Renders all charts and overlays among the inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::built;
use crate::by_itself::obstacles;
use crate::in_order;
use crate::plan::Plan;
use crate::progress::Step;
use crate::releases::{Release, Releases};
use crate::render::{RenderError, Rendering, error_of_helm, error_of_kustomize, name, render};
use crate::repository::{Repository, Tool, Unit};
use crate::walk::Item;
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;

/// A text that a program printed, of a chart with the release of which it is, or why there is none.
type Text = (Option<Release>, Result<Source, Error>);

/// What was rendered.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    /// The texts of each unit: of a chart as many as it has releases.
    pub(crate) texts: BTreeMap<Unit, Vec<Text>>,
    /// The units that memgate left alone since it was not asked to render them, with the reasons.
    pub(crate) left: BTreeMap<(Tool, PathBuf), String>,
    /// The errors of kustomize, each once.
    pub(crate) failures: Vec<Error>,
    /// The programs that rendered without being asked to.
    pub(crate) programs: BTreeSet<&'static str>,
    /// Whether an overlay was left out since it includes itself, or builds on one that does.
    pub(crate) is_circular: bool,
    /// The charts that will be rendered once releases of them are known.
    charts: BTreeSet<Unit>,
}

impl Rendered {
    /// Renders the overlays of these items. The repository learns which ones are left.
    pub(crate) fn new(items: &[Item], repository: &mut Repository, plan: &Plan) -> Self {
        let mut rendered = Self::default();
        let Some(rendering) = plan.rendering.as_ref().filter(|_| built::HAS_WORKSTATION) else {
            return rendered;
        };
        let units = items.iter().filter_map(|item| item.unit(repository, true));
        let mut units: BTreeSet<Unit> =
            units.filter(|unit| unit.is_whole && repository.is_rendered(unit)).collect();
        // What is wrong with them is known, and kustomize would not say where.
        let circular: Vec<Unit> = units.extract_if(.., |unit| repository.is_circular(unit)).collect();
        rendered.is_circular = !circular.is_empty();
        if rendered.is_circular {
            repository.leave(circular.into_iter());
        }
        if rendering.by_itself {
            rendered.leave_some(&mut units, repository, rendering, plan);
        }
        let is_chart = |unit: &Unit| unit.tool == Tool::Helm;
        let (charts, overlays): (BTreeSet<_>, BTreeSet<_>) = units.into_iter().partition(is_chart);
        rendered.charts = charts;
        let jobs = overlays.into_iter().map(|unit| (unit, None));
        rendered.render(jobs.collect(), repository, rendering, plan);
        rendered
    }

    /// Renders the charts: once for each release of them in these texts, which are all that was read and rendered so far,
    /// else with their own values.
    pub(crate) fn add_charts(
        &mut self,
        texts: &[Arc<Source>],
        rendered: &BTreeMap<String, Unit>,
        repository: &mut Repository,
        plan: &Plan,
    ) {
        let charts = std::mem::take(&mut self.charts);
        let Some(rendering) = plan.rendering.as_ref().filter(|_| !charts.is_empty()) else { return };
        let mut releases = Releases::of(texts, rendered);
        let jobs_of = |unit: Unit| {
            let mut all: Vec<_> = releases.take(unit.absolute()).into_iter().map(Some).collect();
            if all.is_empty() {
                all.push(None);
            }
            all.into_iter().map(move |release| (unit.clone(), release))
        };
        let jobs = charts.into_iter().flat_map(jobs_of).collect();
        self.render(jobs, repository, rendering, plan);
    }

    fn render(
        &mut self,
        jobs: Vec<(Unit, Option<Release>)>,
        repository: &mut Repository,
        rendering: &Rendering,
        plan: &Plan,
    ) {
        plan.progress.begin(Step::Render, jobs.len());
        let Plan { instead, max_bytes, progress, .. } = plan;
        let work = |(unit, release): (Unit, Option<Release>)| {
            let name = name(&unit, release.as_ref());
            let text = match instead.get(&name) {
                Some(text) => Ok(Source::new(name, text.as_str())),
                None => {
                    let way_out = repository.way_out_of(&unit, *max_bytes);
                    render((&unit, way_out), release.as_ref(), rendering, *max_bytes)
                }
            };
            progress.done(Step::Render);
            (unit, (release, text))
        };
        let (mut failed, mut seen) = (Vec::new(), BTreeSet::new());
        let mut failures = BTreeMap::<(Tool, String), (String, Vec<Unit>)>::new();
        let Ok(()) = in_order::each(jobs, 1, work, |(unit, (release, text))| {
            match text {
                Err(error) if rendering.by_itself => {
                    self.left.insert(key(&unit), error.to_string());
                    failed.push(unit);
                }
                Err(RenderError::Failed { command, why }) => {
                    let key = (unit.tool, why);
                    let (_, units) = failures.entry(key).or_insert_with(|| (command, Vec::new()));
                    // A chart may have several releases.
                    if units.last() != Some(&unit) {
                        units.push(unit.clone());
                    }
                    failed.extend((unit.tool == Tool::Kustomize).then_some(unit));
                }
                Err(RenderError::Placed(error)) if seen.insert(error.to_string()) => {
                    self.texts.entry(unit).or_default().push((release, Err(*error)));
                }
                Err(RenderError::Placed(_)) => {}
                Ok(text) => self.texts.entry(unit).or_default().push((release, Ok(text))),
            }
            Ok::<_, Infallible>(())
        });
        for ((tool, why), (command, units)) in failures {
            let Some(first) = units.first() else { continue };
            let said = (command.as_str(), why.as_str());
            if tool == Tool::Helm {
                let error = error_of_helm(&units, said, (rendering, plan.max_bytes)).map(Err);
                let texts = self.texts.entry(first.clone()).or_default();
                texts.extend(error.map(|error| (None, error)));
                continue;
            }
            let reached = repository.reached_from(vec![first.absolute().to_owned()]);
            let files: Vec<&Path> = reached.into_values().collect();
            self.failures.extend(error_of_kustomize(&units, said, (&files, plan.max_bytes)));
        }
        if !failed.is_empty() {
            // Their files are read as without rendering, so that the cause is found.
            repository.leave(failed.into_iter());
        }
    }

    /// Leaves the units that cannot be rendered with files and programs that are here.
    fn leave_some(
        &mut self,
        units: &mut BTreeSet<Unit>,
        repository: &mut Repository,
        rendering: &Rendering,
        plan: &Plan,
    ) {
        let of_kustomize = units.iter().filter(|unit| unit.tool == Tool::Kustomize);
        let obstacles = obstacles(of_kustomize.map(|unit| unit.absolute().to_owned()), plan.max_bytes);
        let programs = [Tool::Helm, Tool::Kustomize].map(|tool| (tool, rendering.program_of(tool)));
        let mut left = Vec::new();
        units.retain(|unit| {
            let program = programs.iter().find(|(tool, _)| *tool == unit.tool).and_then(|(_, name)| *name);
            let why = obstacles.get(unit.absolute()).filter(|_| unit.tool == Tool::Kustomize);
            self.left.extend(why.map(|why| (key(unit), why.clone())));
            if why.is_some() || program.is_none() {
                left.push(unit.clone());
                return false;
            }
            self.programs.extend(program);
            true
        });
        repository.leave(left.into_iter());
    }
}

fn key(unit: &Unit) -> (Tool, PathBuf) {
    (unit.tool, unit.absolute().to_owned())
}
