//! Random repositories: what is found in the units of one run is what is found in the output of kustomize for each.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use memgate_model::request::{Occasion, Point};
use memgate_workbench::build::builder::Builder;
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::judge::Checked;
use memgate_workbench::files::place::report;
use memgate_workbench::files::run::{Run, judged_without_ignored};

use crate::repository::{Repository, kubectl};

/// How many repositories are tried.
const COUNT: u64 = 200;

/// Numbers that look random, the same ones for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).expect("64 bits") % end
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len())]
    }
}

/// The spec of a memory, right or wrong.
const SPECS: [&str; 8] = [
    "{backend: in-context}",
    "{backend: redis}",
    "{backend: redis, redis: {secretRef: {name: keys}, ttlSeconds: 60}}",
    "{backend: redis, redis: {secretRef: {name: keys}, ttlSeconds: -3}}",
    "{backend: reddis}",
    "{backend: redis, redis: {secretRef: {name: 7}}}",
    "{backend: in-context, maxEntriez: 3}",
    "{}",
];

/// Files by their names.
type Files = Vec<(String, String)>;

fn memory(name: &str, spec: &str) -> String {
    format!("apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: {name}\nspec: {spec}\n")
}

fn agent(name: &str, memory: &str) -> String {
    format!(
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata:\n  name: {name}\nspec:\n  model: m\n  \
         systemPrompt: x\n  memoryRef:\n    name: {memory}\n"
    )
}

/// A repository with a base, maybe a component, and overlays with patches of all forms.
fn repository(numbers: &mut Numbers) -> (Files, Vec<String>) {
    let mut files = Files::new();
    let count = 1 + numbers.below(3);
    let mut resources = Vec::new();
    for number in 0..count {
        let name = format!("notes-{number}");
        let spec = numbers.pick(&SPECS);
        files.push((format!("base/m{number}.yaml"), memory(&name, spec)));
        resources.push(format!("m{number}.yaml"));
        if numbers.one_in(2) {
            let named = if numbers.one_in(4) { "other".to_owned() } else { name };
            files.push((format!("base/a{number}.yaml"), agent(&format!("scout-{number}"), &named)));
            resources.push(format!("a{number}.yaml"));
        }
    }
    let mut base = format!("resources: [{}]\n", resources.join(", "));
    if numbers.one_in(4) {
        base += "namespace: base\n";
    }
    if numbers.one_in(4) {
        base += "configMapGenerator:\n- {name: settings, literals: [backend=redis]}\n";
    }
    if numbers.one_in(5) {
        base += "secretGenerator:\n- {name: keys, literals: [url=x]}\n";
    }
    files.push(("base/kustomization.yaml".to_owned(), base));
    let has_component = numbers.one_in(3);
    if has_component {
        let mut text = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n".to_owned();
        text += &patches(numbers, count, &mut files, "component");
        files.push(("component/kustomization.yaml".to_owned(), text));
    }
    let mut overlays = Vec::new();
    for overlay in ["dev", "prod", "staging"].iter().take(1 + numbers.below(3)) {
        let directory = format!("overlays/{overlay}");
        let mut text = "resources: [../../base]\n".to_owned();
        if has_component && numbers.one_in(2) {
            text += "components: [../../component]\n";
        }
        for (field, value) in [("namespace", *overlay), ("namePrefix", "p-"), ("nameSuffix", "-s")] {
            if numbers.one_in(3) {
                let _infallible = writeln!(text, "{field}: {value}");
            }
        }
        if numbers.one_in(6) {
            text += "replacements:\n- source: {kind: ArkMemory, name: notes-0, fieldPath: spec.backend}\n  targets:\n  - select: {kind: ArkMemory}\n    fieldPaths: [spec.backend]\n    options: {create: true}\n";
        }
        text += &patches(numbers, count, &mut files, &directory);
        files.push((format!("{directory}/kustomization.yaml"), text));
        overlays.push(directory);
    }
    (files, overlays)
}

/// Up to three patches of a kustomization, some in files of its directory.
fn patches(numbers: &mut Numbers, count: usize, files: &mut Files, directory: &str) -> String {
    let mut text = String::new();
    for number in 0..numbers.below(4) {
        let name = format!("notes-{}", numbers.below(count));
        let head = format!("apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: {name}\n");
        let merge = match numbers.below(5) {
            0 => format!("{head}spec:\n  backend: in-context\n"),
            1 => format!("{head}spec:\n  redis:\n    secretRef: {{name: keys}}\n    ttlSeconds: 5\n"),
            2 => format!("{head}spec:\n  redis:\n    ttlSeconds: -9\n"),
            3 => format!("{head}spec:\n  redis: null\n"),
            _ => format!("{head}spec:\n  retries: 3\n"),
        };
        let operations = match numbers.below(4) {
            0 => "- {op: add, path: /spec/backend, value: redis}\n",
            1 => "- {op: add, path: /spec/redis, value: {secretRef: {name: keys}}}\n",
            2 => "- {op: add, path: /spec/backend, value: [x]}\n",
            _ => "- {op: add, path: /metadata/labels, value: {team: a}}\n",
        };
        let target = match numbers.below(3) {
            0 => format!("{{kind: ArkMemory, name: {name}}}"),
            1 => "{kind: ArkMemory}".to_owned(),
            _ => "{name: notes-.*}".to_owned(),
        };
        let (file, list) = (format!("p{number}.yaml"), if text.is_empty() { "patches:\n" } else { "" });
        text += list;
        let indented = |text: &str| text.lines().flat_map(|line| ["    ", line, "\n"]).collect::<String>();
        let entry = match numbers.below(4) {
            0 => {
                files.push((format!("{directory}/{file}"), merge));
                format!("- path: {file}\n")
            }
            1 => format!("- patch: |\n{}", indented(&merge)),
            2 => {
                files.push((format!("{directory}/{file}"), operations.to_owned()));
                format!("- path: {file}\n  target: {target}\n")
            }
            _ => format!("- target: {target}\n  patch: |\n{}", indented(operations)),
        };
        text += &entry;
    }
    text
}

/// What is found about objects: unit, object, severity, code, field and message.
fn found(checked: &Checked, unit: &str) -> BTreeSet<String> {
    let of_unit = checked.decided.iter().filter(|decided| &*decided.object.object_ref.unit == unit);
    let finding = of_unit.flat_map(|decided| {
        let object = decided.object.object_ref.title();
        decided.findings().map(move |finding| {
            let (code, field, message) = (finding.code_name(), finding.pointer.field(), finding.message());
            format!("{object} {:?} {code} {field}: {message}", finding.severity)
        })
    });
    finding.collect()
}

fn judged(plan: Plan) -> Checked {
    let run = Run { plan, occasion: Occasion::new(Point::Ci, jiff::Timestamp::UNIX_EPOCH) };
    judged_without_ignored(&run).expect("is judged")
}

/// What kustomize prints for a directory; `None` if it fails.
fn built(directory: &Path) -> Option<String> {
    let mut command = Command::new(kubectl());
    command.arg("kustomize").arg(directory).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().expect("kubectl runs");
    output.status.success().then(|| String::from_utf8(output.stdout).expect("is UTF-8"))
}

/// What became of one repository.
#[derive(Default)]
struct Outcome {
    /// What differs; empty if nothing does.
    wrong: String,
    /// How many findings the run has, and how many units kustomize does not build.
    findings: usize,
    failed: usize,
}

fn outcome(seed: u64) -> Outcome {
    let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (files, overlays) = repository(&mut numbers);
    let scratch = Repository::with(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let builder = Builder { path: Some(crate::repository::path().into()), ..Builder::default() };
    let root = scratch.path().to_string_lossy().into_owned();
    let plan = Plan { checked: vec![root], builder: Some(builder), ..Plan::default() };
    let checked = judged(plan);
    let mut outcome = Outcome::default();
    let wrong = &mut outcome.wrong;
    let built: Vec<_> = overlays.iter().map(|overlay| built(&scratch.path().join(overlay))).collect();
    outcome.failed = built.iter().filter(|text| text.is_none()).count();
    for (overlay, text) in overlays.iter().zip(built) {
        let Some(text) = text else { continue };
        let expected = found(&judged(Plan::of_text(&text)), "");
        let now = found(&checked, overlay);
        outcome.findings += now.len();
        // What a unit that does not build would make is unknown.
        let is_unknown = |line: &str| outcome.failed > 0 && line.contains("not found in namespace");
        let differs =
            expected.symmetric_difference(&now).filter(|line| now.contains(*line) || !is_unknown(line));
        for line in differs {
            let side = if now.contains(line) { "only in the run" } else { "only in the output" };
            let _infallible = writeln!(wrong, "{overlay}: {side}: {line}");
        }
    }
    if checked.inputs.errors.len() != outcome.failed || !checked.inputs.not_built.is_empty() {
        let _infallible =
            writeln!(wrong, "errors: {:?} {:?}", checked.inputs.errors, checked.inputs.not_built);
    }
    for located in report(&checked).findings {
        let (file, line) = (located.location.file, located.location.line);
        let lines = fs::read_to_string(file).map_or(0, |text| text.lines().count());
        if line == 0 || line > lines {
            let _infallible = writeln!(wrong, "no place {file}:{line} of {}", located.finding.message());
        }
    }
    if !wrong.is_empty() {
        let files = files.iter().flat_map(|(name, text)| ["--- ", name, "\n", text]).collect::<String>();
        *wrong = format!("seed {seed}\n{wrong}{files}");
    }
    outcome
}

#[test]
#[ignore = "needs kubectl"]
fn units_are_judged_as_kustomize_builds_them() {
    let count = env::var("MEMGATE_REPOSITORIES").map_or(COUNT, |count| count.parse().expect("a number"));
    let next = AtomicU64::new(1);
    let all = || -> Vec<Outcome> {
        let seeds = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        seeds.take_while(|seed| *seed <= count).map(outcome).collect()
    };
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(all)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("ends")).collect()
    });
    let wrong: Vec<&str> = outcomes.iter().map(|it| it.wrong.as_str()).filter(|it| !it.is_empty()).collect();
    assert!(wrong.is_empty(), "{} of {count} differ; the first:\n{}", wrong.len(), wrong[0]);
    let sum = |of: fn(&Outcome) -> usize| outcomes.iter().map(of).sum::<usize>();
    let (findings, failed) = (sum(|it| it.findings), sum(|it| it.failed));
    assert!(
        findings > outcomes.len() && failed > 0,
        "{findings} findings, {failed} not built: too few to tell"
    );
}
