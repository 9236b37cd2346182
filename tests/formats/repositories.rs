//! Repositories as teams have them (tests/repositories), each checked with the pipeline of docs/ci.md: nothing is found in
//! them as they are, and each mistake stands at the line that a person would edit, in every format that CI systems show.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ci::{blocks, command};
use crate::run::Scratch;
use crate::support::assets::{Assets, SearchPaths};
use crate::support::tools;

const PAGE: &str = include_str!("../../docs/ci.md");

/// A repository: its folder, and the heading of its pipeline.
type Repository = (&'static str, &'static str);

const PLAIN: Repository = ("plain", "### Plain manifests");
const KUSTOMIZE: Repository = ("kustomize", "### Kustomize");
const HELM: Repository = ("helm", "### Helm");
const FLUX: Repository = ("flux", "### Flux");
const ARGO_CD: Repository = ("argocd", "### Argo CD");

/// A mistake: what of which file becomes what, and the place of the finding: its code, its file, and what its line begins with.
struct Mistake {
    repository: Repository,
    edits: &'static [(&'static str, &'static str, &'static str)],
    code: &'static str,
    at: (&'static str, &'static str),
}

const fn mistake(
    repository: Repository,
    edits: &'static [(&'static str, &'static str, &'static str)],
    code: &'static str,
    at: (&'static str, &'static str),
) -> Mistake {
    Mistake { repository, edits, code, at }
}

const MISTAKES: [Mistake; 22] = [
    // Renamed.
    mistake(
        PLAIN,
        &[("manifests/memory.yaml", "name: notes\n", "name: notes-short\n")],
        "arkonis/memory-not-found",
        ("manifests/agent.yaml", "    name: notes"),
    ),
    mistake(
        KUSTOMIZE,
        &[
            ("base/memory.yaml", "name: notes\n", "name: memos\n"),
            ("overlays/dev/memory.yaml", "name: notes\n", "name: memos\n"),
            ("overlays/prod/memory.yaml", "name: notes\n", "name: memos\n"),
        ],
        "arkonis/memory-not-found",
        ("base/agent.yaml", "    name: notes"),
    ),
    mistake(
        HELM,
        &[("charts/agents/values.yaml", "  name: notes\n", "  name: memos\n")],
        "arkonis/memory-not-found",
        ("charts/agents/values.yaml", "  memory: notes"),
    ),
    mistake(
        FLUX,
        &[("apps/agents/memory.yaml", "name: notes\n", "name: memos\n")],
        "arkonis/memory-not-found",
        ("apps/agents/agent.yaml", "    name: notes"),
    ),
    mistake(
        ARGO_CD,
        &[("envs/prod/memory.yaml", "name: notes\n", "name: memos\n")],
        "arkonis/memory-not-found",
        ("envs/prod/agent.yaml", "    name: notes"),
    ),
    // In a namespace by mistake.
    mistake(
        PLAIN,
        &[("manifests/memory.yaml", "  namespace: team-a\n", "")],
        "arkonis/memory-not-found",
        ("manifests/agent.yaml", "    name: notes"),
    ),
    mistake(
        ARGO_CD,
        &[("envs/dev/memory.yaml", "namespace: agents-dev", "namespace: agents-prod2")],
        "arkonis/memory-not-found",
        ("envs/dev/agent.yaml", "    name: notes"),
    ),
    // The wrong Secret.
    mistake(
        PLAIN,
        &[("manifests/memory.yaml", "name: notes-redis", "name: notes-radis")],
        "arkonis/secret-missing",
        ("manifests/memory.yaml", "      name: notes-radis"),
    ),
    mistake(
        KUSTOMIZE,
        &[("base/memory.yaml", "name: notes-redis", "name: notes-radis")],
        "arkonis/secret-missing",
        ("base/memory.yaml", "      name: notes-radis"),
    ),
    mistake(
        ARGO_CD,
        &[("envs/prod/memory.yaml", "name: notes-redis", "name: notes-radis")],
        "arkonis/secret-missing",
        ("envs/prod/memory.yaml", "      name: notes-radis"),
    ),
    mistake(
        FLUX,
        &[("apps/agents/memory.yaml", "name: notes-redis", "name: notes-radis")],
        "arkonis/secret-missing",
        ("apps/agents/memory.yaml", "      name: notes-radis"),
    ),
    mistake(
        PLAIN,
        &[("manifests/secret.yaml", "REDIS_URL:", "REDIS_URI:")],
        "arkonis/secret-key-missing",
        ("manifests/memory.yaml", "      name: notes-redis"),
    ),
    // A kind and a version that do not exist.
    mistake(
        HELM,
        &[("charts/agents/templates/memory.yaml", "kind: ArkMemory", "kind: ArkMemry")],
        "memgate/kind-misspelt",
        ("charts/agents/templates/memory.yaml", "kind:"),
    ),
    mistake(
        ARGO_CD,
        &[("envs/dev/memory.yaml", "arkonis.dev/v1alpha1", "arkonis.dev/v1")],
        "memgate/version-unknown",
        ("envs/dev/memory.yaml", "apiVersion:"),
    ),
    // The wrong unit, and quotes.
    mistake(
        FLUX,
        &[("clusters/prod/agents.yaml", "memory_ttl: \"3600\"", "memory_ttl: 30d")],
        "arkonis/field-type",
        ("apps/agents/memory.yaml", "    ttlSeconds:"),
    ),
    mistake(
        KUSTOMIZE,
        &[("overlays/prod/memory.yaml", "86400", "\"86400\"")],
        "arkonis/field-type",
        ("overlays/prod/memory.yaml", "    ttlSeconds:"),
    ),
    // A typo in a patch.
    mistake(
        KUSTOMIZE,
        &[("overlays/prod/memory.yaml", "maxEntries: 250", "maxEntriez: 250")],
        "arkonis/unknown-field",
        ("overlays/prod/memory.yaml", "    maxEntriez"),
    ),
    mistake(
        KUSTOMIZE,
        &[("overlays/prod/kustomization.yaml", "value: llama3.3", "value: [llama3.3]")],
        "arkonis/schema",
        ("overlays/prod/kustomization.yaml", "        value: [llama3.3]"),
    ),
    // A value in a chart.
    mistake(
        HELM,
        &[("values-prod.yaml", "ttlSeconds: 86400", "ttlSeconds: -1")],
        "arkonis/number-negative",
        ("values-prod.yaml", "  ttlSeconds: -1"),
    ),
    mistake(
        HELM,
        &[("charts/agents/templates/memory.yaml", "    ttlSeconds:", "    ttlSecond:")],
        "arkonis/unknown-field",
        ("charts/agents/templates/memory.yaml", "    ttlSecond:"),
    ),
    // A variable that is wrong, and one that is unknown.
    mistake(
        FLUX,
        &[("clusters/prod/agents.yaml", "memory_backend: redis", "memory_backend: reddis")],
        "arkonis/backend-unknown",
        ("apps/agents/memory.yaml", "  backend: ${memory_backend}"),
    ),
    mistake(
        FLUX,
        &[("apps/agents/memory.yaml", "${memory_ttl}", "${memory_tll}")],
        "memgate/value-unknown",
        ("apps/agents/memory.yaml", "    ttlSeconds: ${memory_tll}"),
    ),
];

/// A copy of a repository, with the programs that render it.
struct Clone {
    scratch: Scratch,
    programs: String,
}

impl Clone {
    fn of((folder, _): Repository) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/repositories").join(folder);
        let files: Vec<(String, String)> = files(&root, &root);
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        let scratch = Scratch::with(&files);
        fs::create_dir(scratch.path().join(".git")).expect("a repository");
        Self { scratch, programs: programs() }
    }

    /// What the pipeline prints in a format, and its exit code.
    fn check(&self, words: &[String], format: &str) -> (Option<i32>, String) {
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["-o", format]).collect();
        let output = self.scratch.command(&words).env("PATH", &self.programs).output().expect("memgate runs");
        let text = if format == "text" { [output.stdout, output.stderr].concat() } else { output.stdout };
        (output.status.code(), String::from_utf8(text).expect("is UTF-8"))
    }
}

/// The files below a directory, with their names in it.
fn files(root: &Path, directory: &Path) -> Vec<(String, String)> {
    let entries =
        fs::read_dir(directory).expect("it can be read").map(|entry| entry.expect("an entry").path());
    let of_entry = |path: PathBuf| {
        if path.is_dir() {
            return files(root, &path);
        }
        let name = path.strip_prefix(root).expect("it is below").to_string_lossy().into_owned();
        vec![(name, fs::read_to_string(&path).expect("is text"))]
    };
    entries.flat_map(of_entry).collect()
}

/// A `PATH` with helm, and with a kustomize that is kubectl's.
pub(crate) fn programs() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("repositories");
    fs::create_dir_all(&folder).expect("a folder");
    let paths = SearchPaths::from_environment().expect("it names a release");
    let kubectl = Assets::find(&paths).expect("there is a kubectl").kubectl;
    let script = format!("#!/bin/sh\nshift\nexec '{}' kustomize \"$@\"\n", kubectl.display());
    let (kustomize, new) =
        (folder.join("kustomize"), folder.join(format!("kustomize.{:?}", std::thread::current().id())));
    fs::write(&new, script).expect("it is written");
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("it can be run");
    fs::rename(&new, &kustomize).expect("it is there");
    let helm = tools::helm().expect("there is a helm");
    format!("{}:{}:/usr/bin:/bin", folder.display(), helm.parent().expect("a folder").display())
}

/// The words of the command in the pipeline of a repository, without its format.
fn pipeline((_, heading): Repository) -> Vec<String> {
    let section = PAGE.split_once(heading).unwrap_or_else(|| panic!("{heading} is a heading")).1;
    let section = section.split("\n### ").next().expect("a section");
    let lines: Vec<String> = blocks(section).into_iter().map(|(_, text)| text).collect();
    let found = lines.iter().flat_map(|text| text.lines()).find_map(command);
    let words = found.unwrap_or_else(|| panic!("{heading} has a pipeline")).split_whitespace();
    let words: Vec<String> = words.map(str::to_owned).collect();
    let format = words.iter().position(|word| word == "-o").expect("it has a format");
    words[..format].to_vec()
}

#[test]
#[ignore = "needs kubectl and helm"]
fn nothing_is_found_in_a_repository_without_a_mistake() {
    for repository in [PLAIN, KUSTOMIZE, HELM, FLUX, ARGO_CD] {
        let words = pipeline(repository);
        assert!(words.windows(2).any(|it| it == ["--fail-on", "warn"]), "{words:?}");
        let (code, text) = Clone::of(repository).check(&words, "text");
        assert_eq!(code, Some(0), "{}: {text}", repository.0);
        assert!(!text.contains("<kustomize") && !text.contains("<helm"), "{text}");
    }
}

#[test]
#[ignore = "needs kubectl and helm"]
fn each_mistake_stands_at_the_line_that_a_person_would_edit() {
    let mut wrong = Vec::new();
    for mistake in &MISTAKES {
        let clone = Clone::of(mistake.repository);
        for (file, from, to) in mistake.edits {
            let text = clone.scratch.read(file);
            assert!(text.contains(from), "{file} has {from:?}");
            fs::write(clone.scratch.path().join(file), text.replacen(from, to, 1)).expect("it is written");
        }
        let (file, begins) = mistake.at;
        let text = clone.scratch.read(file);
        let line = 1 + text.lines().position(|line| line.starts_with(begins)).expect("the line is there");
        let words = pipeline(mistake.repository);
        for format in ["text", "json", "github", "sarif", "gitlab"] {
            let (code, output) = clone.check(&words, format);
            if code != Some(1) || !shows(format, &output, mistake.code, file, line) {
                wrong.push(format!("{format}, {} at {file}:{line}: {code:?}\n{output}", mistake.code));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Whether an output shows a finding at this line. Without PATH, files are named from `./` on.
fn shows(format: &str, output: &str, code: &str, file: &str, line: usize) -> bool {
    let output = output.replace("--> ./", "--> ").replace("\"./", "\"");
    let json = || serde_json::from_str::<Value>(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
    let any =
        |list: &Value, is_it: &dyn Fn(&Value) -> bool| list.as_array().is_some_and(|it| it.iter().any(is_it));
    match format {
        "text" => {
            let mut groups = output.split("\n\n");
            groups.any(|group| {
                group.contains(&format!("[{code}]")) && group.contains(&format!("--> {file}:{line}:"))
            })
        }
        "json" => {
            any(&json()["findings"], &|it| it["code"] == code && it["file"] == file && it["line"] == line)
        }
        "github" => output.lines().any(|it| {
            it.contains(&format!("file={file},line={line},")) && it.contains(&format!("title={code}"))
        }),
        "sarif" => any(&json()["runs"][0]["results"], &|it| {
            let place = &it["locations"][0]["physicalLocation"];
            it["ruleId"] == code
                && place["artifactLocation"]["uri"] == file
                && place["region"]["startLine"] == line
        }),
        _ => any(&json(), &|it| {
            it["check_name"] == code
                && it["location"]["path"] == file
                && it
                    .pointer("/location/positions/begin/line")
                    .or_else(|| it.pointer("/location/lines/begin"))
                    == Some(&line.into())
        }),
    }
}
