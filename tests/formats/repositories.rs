//! Repositories as teams have them (tests/repositories), each checked with the pipeline of docs/ci.md: nothing is found in
//! them as they are, and each mistake stands at the line that a person would edit, in every format that CI systems show.

use std::fs;
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

/// What of which file becomes what.
type Edit = (&'static str, &'static str, &'static str);

/// What becomes of nothing is a new file.
const NEW: &str = "";

/// A chart with one value.
const CHART: Edit = ("charts/notes/Chart.yaml", NEW, "apiVersion: v2\nname: notes\nversion: 0.1.0\n");
const VALUES: Edit = ("charts/notes/values.yaml", NEW, "backend: in-context\n");
const TEMPLATE: Edit = (
    "charts/notes/templates/memory.yaml",
    NEW,
    "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  backend: {{ .Values.backend }}\n",
);

/// A HelmRelease of a chart, with what stands below its `spec`.
macro_rules! release {
    ($chart:literal, $rest:literal) => {
        concat!("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: notes\n  namespace: team-b\nspec:\n  interval: 1h\n  chart:\n    spec:\n      chart: ", $chart, "\n      sourceRef:\n        kind: GitRepository\n        name: fleet\n", $rest)
    };
}

/// An Application of a path, with what stands below its `source`.
macro_rules! application {
    ($path:literal, $rest:literal) => {
        concat!("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: notes\n  namespace: argocd\nspec:\n  project: default\n  source:\n    repoURL: https://git.example.com/fleet.git\n    targetRevision: HEAD\n    path: ", $path, "\n", $rest, "  destination:\n    server: https://kubernetes.default.svc\n    namespace: team-b\n")
    };
}

/// A mistake, and the place of the finding: its code, its file, and what its line begins with. What a tool does not build is an
/// error at a whole file, and has no line.
struct Mistake {
    repository: Repository,
    edits: &'static [Edit],
    code: &'static str,
    at: (&'static str, &'static str),
}

const fn mistake(
    repository: Repository,
    edits: &'static [Edit],
    code: &'static str,
    at: (&'static str, &'static str),
) -> Mistake {
    Mistake { repository, edits, code, at }
}

const MISTAKES: [Mistake; 48] = [
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
    // A variable that is wrong.
    mistake(
        FLUX,
        &[("clusters/prod/agents.yaml", "memory_backend: redis", "memory_backend: reddis")],
        "arkonis/backend-unknown",
        ("apps/agents/memory.yaml", "  backend: ${memory_backend}"),
    ),
    // A patch, or what it is for, by a wrong name.
    mistake(
        KUSTOMIZE,
        &[("overlays/prod/memory.yaml", "name: notes", "name: note")],
        "unreadable",
        ("overlays/prod/kustomization.yaml", ""),
    ),
    mistake(
        KUSTOMIZE,
        &[("overlays/prod/kustomization.yaml", "name: scout", "name: scuot")],
        "memgate/kustomization-invalid",
        ("overlays/prod/kustomization.yaml", "      name: scuot"),
    ),
    mistake(
        KUSTOMIZE,
        &[("overlays/prod/kustomization.yaml", "kind: ArkAgent", "kind: ArkAgnt")],
        "memgate/kustomization-invalid",
        ("overlays/prod/kustomization.yaml", "      kind: ArkAgnt"),
    ),
    mistake(
        KUSTOMIZE,
        &[("overlays/prod/kustomization.yaml", "/spec/model", "/spec/modl")],
        "arkonis/unknown-field",
        ("overlays/prod/kustomization.yaml", "        path: /spec/modl"),
    ),
    // A patch that breaks what it changes.
    mistake(
        KUSTOMIZE,
        &[
            (
                "overlays/dev/other.yaml",
                NEW,
                "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: other\nspec:\n  backend: in-context\n",
            ),
            ("overlays/dev/kustomization.yaml", "  - namespace.yaml", "  - namespace.yaml\n  - other.yaml"),
            ("overlays/dev/memory.yaml", "spec:\n  redis:\n    ttlSeconds: 600\n", "$patch: delete\n"),
        ],
        "arkonis/memory-not-found",
        ("base/agent.yaml", "    name: notes"),
    ),
    mistake(
        KUSTOMIZE,
        &[("overlays/dev/memory.yaml", "  redis:\n    ttlSeconds: 600\n", "  redis: null\n")],
        "arkonis/redis-required",
        ("overlays/dev/memory.yaml", "  redis: null"),
    ),
    mistake(
        KUSTOMIZE,
        &[
            (
                "components/cap/kustomization.yaml",
                NEW,
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n  - patch: |\n      apiVersion: arkonis.dev/v1alpha1\n      kind: ArkMemory\n      metadata:\n        name: notes\n      spec:\n        redis:\n          maxEntries: lots\n",
            ),
            (
                "overlays/dev/kustomization.yaml",
                "patches:",
                "components:\n  - ../../components/cap\npatches:",
            ),
        ],
        "arkonis/field-type",
        ("components/cap/kustomization.yaml", "          maxEntries: lots"),
    ),
    // A replacement that replaces nothing.
    mistake(
        KUSTOMIZE,
        &[(
            "overlays/dev/kustomization.yaml",
            "patches:",
            "replacements:\n  - source:\n      kind: ArkMemory\n      name: notes\n    targets:\n      - select:\n          kind: ArkAgent\n          name: scuot\n        fieldPaths:\n          - spec.memoryRef.name\npatches:",
        )],
        "memgate/kustomization-invalid",
        ("overlays/dev/kustomization.yaml", "          name: scuot"),
    ),
    // Names that kustomize changes, and a file that no kustomization lists.
    mistake(
        KUSTOMIZE,
        &[(
            "overlays/prod/kustomization.yaml",
            "namespace: agents-prod",
            "namespace: agents-prod\nnamePrefix: p-",
        )],
        "arkonis/memory-not-found",
        ("base/agent.yaml", "    name: notes"),
    ),
    mistake(
        KUSTOMIZE,
        &[(
            "base/kustomization.yaml",
            "  - secret.yaml\n",
            "secretGenerator:\n  - name: notes-redis\n    literals:\n      - REDIS_URL=x\n",
        )],
        "arkonis/secret-missing",
        ("base/memory.yaml", "      name: notes-redis"),
    ),
    mistake(
        KUSTOMIZE,
        &[
            (
                "overlays/dev/mid.yaml",
                NEW,
                "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: mid\nspec:\n  backend: in-context\n",
            ),
            ("base/agent.yaml", "name: notes", "name: mid"),
        ],
        "arkonis/memory-not-found",
        ("base/agent.yaml", "    name: mid"),
    ),
    // A field that is missing.
    mistake(
        KUSTOMIZE,
        &[("base/agent.yaml", "  systemPrompt: You scout for facts.\n", "")],
        "arkonis/schema",
        ("base/agent.yaml", "spec:"),
    ),
    // Values and templates.
    mistake(
        HELM,
        &[("charts/agents/values.yaml", "  memory: notes", "  memmory: notes")],
        "arkonis/memory-ref-name",
        ("charts/agents/templates/agent.yaml", "    name: {{ .Values.agent.memory"),
    ),
    mistake(
        HELM,
        &[("charts/agents/templates/memory.yaml", ".Values.memory.secretName", ".Values.memory.secretNam")],
        "arkonis/redis-secret-required",
        ("charts/agents/templates/memory.yaml", "      name: {{ .Values.memory.secretNam "),
    ),
    mistake(
        HELM,
        &[("charts/agents/templates/agent.yaml", "  memoryRef:", "  memoryref:")],
        "arkonis/unknown-field",
        ("charts/agents/templates/agent.yaml", "  memoryref:"),
    ),
    mistake(
        HELM,
        &[("values-prod.yaml", "memory:\n", "memory:\n  backend: redsi\n")],
        "arkonis/backend-unknown",
        ("values-prod.yaml", "  backend: redsi"),
    ),
    mistake(
        HELM,
        &[("charts/agents/templates/memory.yaml", "  {{- end }}\n", "")],
        "unreadable",
        ("charts/agents/Chart.yaml", ""),
    ),
    mistake(
        HELM,
        &[(
            "charts/agents/templates/memory.yaml",
            "name: {{ .Values.memory.name }}",
            "name: {{ .Release.Name }}-notes",
        )],
        "arkonis/memory-not-found",
        ("charts/agents/values.yaml", "  memory: notes"),
    ),
    mistake(
        HELM,
        &[
            (
                "charts/agents/templates/stores.yaml",
                NEW,
                "{{- range .Values.stores }}\n---\napiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: {{ .name }}\nspec:\n  backend: {{ .backend }}\n{{- end }}\n",
            ),
            (
                "charts/agents/values.yaml",
                "agent:",
                "stores:\n  - name: one\n    backend: in-context\n  - name: two\n    backend: in-contxt\nagent:",
            ),
        ],
        "arkonis/backend-unknown",
        ("charts/agents/values.yaml", "    backend: in-contxt"),
    ),
    // A path, and the values of a release.
    mistake(
        FLUX,
        &[("clusters/prod/agents.yaml", "path: ./apps/agents", "path: ./apps/agent")],
        "memgate/kustomization-invalid",
        ("clusters/prod/agents.yaml", "  path:"),
    ),
    mistake(
        FLUX,
        &[
            CHART,
            VALUES,
            TEMPLATE,
            (
                "clusters/prod/notes.yaml",
                NEW,
                release!("./charts/nots", "  values:\n    backend: in-context\n"),
            ),
        ],
        "memgate/kustomization-invalid",
        ("clusters/prod/notes.yaml", "      chart: ./charts/nots"),
    ),
    mistake(
        FLUX,
        &[
            CHART,
            VALUES,
            TEMPLATE,
            ("clusters/prod/notes.yaml", NEW, release!("./charts/notes", "  values:\n    backend: reddis\n")),
        ],
        "arkonis/backend-unknown",
        ("clusters/prod/notes.yaml", "    backend: reddis"),
    ),
    mistake(
        FLUX,
        &[
            CHART,
            VALUES,
            TEMPLATE,
            (
                "clusters/prod/notes.yaml",
                NEW,
                release!(
                    "./charts/notes",
                    "  valuesFrom:\n    - kind: ConfigMap\n      name: notes-values\n"
                ),
            ),
            (
                "clusters/prod/values.yaml",
                NEW,
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: notes-values\n  namespace: team-b\ndata:\n  values.yaml: |\n    backend: reddis\n",
            ),
        ],
        "arkonis/backend-unknown",
        ("clusters/prod/values.yaml", "    backend: reddis"),
    ),
    mistake(
        FLUX,
        &[("apps/agents/secret.yaml", "REDIS_URL:", "REDIS_URI:")],
        "arkonis/secret-key-missing",
        ("apps/agents/memory.yaml", "      name: notes-redis"),
    ),
    mistake(
        ARGO_CD,
        &[("apps/notes.yaml", NEW, application!("envs/stagin", ""))],
        "memgate/kustomization-invalid",
        ("apps/notes.yaml", "    path: envs/stagin"),
    ),
    mistake(
        ARGO_CD,
        &[
            CHART,
            VALUES,
            TEMPLATE,
            (
                "apps/notes.yaml",
                NEW,
                application!("charts/notes", "    helm:\n      valuesObject:\n        backend: reddis\n"),
            ),
        ],
        "arkonis/backend-unknown",
        ("apps/notes.yaml", "        backend: reddis"),
    ),
    mistake(
        ARGO_CD,
        &[
            CHART,
            VALUES,
            TEMPLATE,
            (
                "apps/notes.yaml",
                NEW,
                application!(
                    "charts/notes",
                    "    helm:\n      parameters:\n        - name: backend\n          value: reddis\n"
                ),
            ),
        ],
        "arkonis/backend-unknown",
        ("apps/notes.yaml", "          value: reddis"),
    ),
    mistake(
        ARGO_CD,
        &[
            CHART,
            VALUES,
            TEMPLATE,
            (
                "apps/notes.yaml",
                NEW,
                application!("charts/notes", "    helm:\n      valueFiles:\n        - /envs/notes.yaml\n"),
            ),
            ("envs/notes.yaml", NEW, "backend: reddis\n"),
        ],
        "arkonis/backend-unknown",
        ("envs/notes.yaml", "backend: reddis"),
    ),
];

/// Mistakes that are not found, or not at the line that a person would edit.
const MISSED: [Mistake; 13] = [
    // A note says that the value is not known: another Kustomization may give it.
    mistake(
        FLUX,
        &[("apps/agents/memory.yaml", "${memory_ttl}", "${memory_tll}")],
        "memgate/value-unknown",
        ("apps/agents/memory.yaml", "    ttlSeconds: ${memory_tll}"),
    ),
    // What an ApplicationSet installs may bring the Secret.
    mistake(
        ARGO_CD,
        &[("envs/prod/memory.yaml", "name: notes-redis", "name: notes-radis")],
        "arkonis/secret-missing",
        ("envs/prod/memory.yaml", "      name: notes-radis"),
    ),
    // The unit has no Secret and no other memory, so these may be in the cluster; a note says so of the memory.
    mistake(
        KUSTOMIZE,
        &[("base/kustomization.yaml", "  - secret.yaml\n", "")],
        "arkonis/secret-missing",
        ("base/memory.yaml", "      name: notes-redis"),
    ),
    mistake(
        KUSTOMIZE,
        &[("overlays/dev/memory.yaml", "spec:\n  redis:\n    ttlSeconds: 600\n", "$patch: delete\n")],
        "arkonis/memory-not-found",
        ("base/agent.yaml", "    name: notes"),
    ),
    // The error stands at each overlay, and not in the base.
    mistake(
        KUSTOMIZE,
        &[("base/memory.yaml", "  backend: redis", "  backend redis")],
        "syntax",
        ("base/memory.yaml", "  backend redis"),
    ),
    mistake(
        KUSTOMIZE,
        &[("base/kustomization.yaml", "  - memory.yaml", "  - memroy.yaml")],
        "unreadable",
        ("base/kustomization.yaml", "  - memroy.yaml"),
    ),
    // Namespaces need not be among the inputs.
    mistake(
        FLUX,
        &[("clusters/prod/agents.yaml", "targetNamespace: team-a", "targetNamespace: team-aa")],
        "memgate/kustomization-invalid",
        ("clusters/prod/agents.yaml", "  targetNamespace:"),
    ),
    // The error stands at the chart.
    mistake(
        ARGO_CD,
        &[
            CHART,
            VALUES,
            TEMPLATE,
            (
                "apps/notes.yaml",
                NEW,
                application!("charts/notes", "    helm:\n      valueFiles:\n        - values-prd.yaml\n"),
            ),
        ],
        "memgate/kustomization-invalid",
        ("apps/notes.yaml", "        - values-prd.yaml"),
    ),
    // What Flux and Argo CD change after they have built.
    mistake(
        FLUX,
        &[(
            "clusters/prod/agents.yaml",
            "  postBuild:",
            "  patches:\n    - target:\n        kind: ArkMemory\n      patch: |\n        - op: replace\n          path: /spec/backend\n          value: reddis\n  postBuild:",
        )],
        "arkonis/backend-unknown",
        ("clusters/prod/agents.yaml", "          value: reddis"),
    ),
    mistake(
        ARGO_CD,
        &[
            (
                "envs/prod/kustomization.yaml",
                NEW,
                "resources:\n  - memory.yaml\n  - agent.yaml\n  - secret.yaml\n",
            ),
            ("apps/notes.yaml", NEW, application!("envs/prod", "    kustomize:\n      namePrefix: p-\n")),
        ],
        "arkonis/memory-not-found",
        ("envs/prod/agent.yaml", "    name: notes"),
    ),
    // What a generator lists.
    mistake(
        ARGO_CD,
        &[
            (
                "apps/agents.yaml",
                "    - git:\n        repoURL: https://git.example.com/fleet.git\n        revision: HEAD\n        directories:\n          - path: envs/*\n",
                "    - list:\n        elements:\n          - env: dev\n          - env: prd\n",
            ),
            ("apps/agents.yaml", "\"{{ .path.path }}\"", "envs/{{ .env }}"),
            ("apps/agents.yaml", "name: agents-{{ .path.basename }}", "name: agents-{{ .env }}"),
            ("apps/agents.yaml", "namespace: agents-{{ .path.basename }}", "namespace: agents-{{ .env }}"),
        ],
        "memgate/kustomization-invalid",
        ("apps/agents.yaml", "          - env: prd"),
    ),
    mistake(
        ARGO_CD,
        &[("apps/agents.yaml", "path: envs/*", "path: env/*")],
        "memgate/kustomization-invalid",
        ("apps/agents.yaml", "          - path: env/*"),
    ),
    mistake(
        ARGO_CD,
        &[
            CHART,
            VALUES,
            TEMPLATE,
            (
                "apps/notes.yaml",
                NEW,
                "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata:\n  name: notes\n  namespace: argocd\nspec:\n  goTemplate: true\n  generators:\n    - list:\n        elements:\n          - name: one\n            backend: in-context\n          - name: two\n            backend: reddis\n  template:\n    metadata:\n      name: notes-{{ .name }}\n    spec:\n      project: default\n      source:\n        repoURL: https://git.example.com/fleet.git\n        targetRevision: HEAD\n        path: charts/notes\n        helm:\n          parameters:\n            - name: backend\n              value: \"{{ .backend }}\"\n      destination:\n        server: https://kubernetes.default.svc\n        namespace: team-{{ .name }}\n",
            ),
        ],
        "arkonis/backend-unknown",
        ("apps/notes.yaml", "            backend: reddis"),
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

    /// Runs the pipeline, which writes each format to its file. Returns the exit code, and the notes and errors.
    fn check(&self, words: &[String]) -> (Option<i32>, String) {
        let mut command = self.scratch.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
        for (format, file) in FORMATS {
            command.args(["-o", &format!("{format}={file}")]);
        }
        let output = command.env("PATH", &self.programs).output().expect("memgate runs");
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).expect("is UTF-8"))
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

/// A `PATH` with helm and kubectl, and without a kustomize of its own.
pub(crate) fn programs() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    fs::create_dir_all(&folder).expect("a folder");
    let paths = SearchPaths::from_environment().expect("it names a release");
    let kubectl = Assets::find(&paths).expect("there is a kubectl").kubectl;
    // Tests run at the same time, and each renames its own link.
    let new = folder.join(format!("kubectl.{:?}", std::thread::current().id()));
    fs::remove_file(&new).ok();
    std::os::unix::fs::symlink(kubectl, &new).expect("a link");
    fs::rename(&new, folder.join("kubectl")).expect("it is there");
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

/// The formats, each with the file to which it is written.
const FORMATS: [(&str, &str); 5] = [
    ("text", "findings.txt"),
    ("json", "findings.json"),
    ("github", "findings.log"),
    ("sarif", "findings.sarif"),
    ("gitlab", "gl-code-quality-report.json"),
];

/// Makes a mistake, and returns the exit code, the formats that do not show it at its place, and all that was written.
fn make(mistake: &Mistake) -> (Option<i32>, Vec<&'static str>, String) {
    let clone = Clone::of(mistake.repository);
    for (file, from, to) in mistake.edits {
        let path = clone.scratch.path().join(file);
        if *from == NEW {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, to).expect("it is written");
            continue;
        }
        let text = clone.scratch.read(file);
        assert!(text.contains(from), "{file} has {from:?}");
        fs::write(path, text.replacen(from, to, 1)).expect("it is written");
    }
    let (file, begins) = mistake.at;
    let text = clone.scratch.read(file);
    let line_of =
        |begins| 1 + text.lines().position(|line| line.starts_with(begins)).expect("the line is there");
    let line = (!begins.is_empty()).then(|| line_of(begins));
    let (code, notes) = clone.check(&pipeline(mistake.repository));
    let lacks = |(format, written): &(&'static str, &str)| match (*format, line) {
        // Errors are no part of the text.
        ("text", None) => !notes.contains(&format!("error: {file}: ")),
        _ => !shows(format, &clone.scratch.read(written), mistake.code, file, line),
    };
    let wrong: Vec<&str> = FORMATS.iter().filter(|it| lacks(it)).map(|(format, _)| *format).collect();
    let text = clone.scratch.read("findings.txt");
    (code, wrong, format!("{} at {file}:{line:?}: {code:?}\n{notes}{text}", mistake.code))
}

#[test]
#[ignore = "needs kubectl and helm"]
fn nothing_is_found_in_a_repository_without_a_mistake() {
    for repository in [PLAIN, KUSTOMIZE, HELM, FLUX, ARGO_CD] {
        let words = pipeline(repository);
        assert!(words.windows(2).any(|it| it == ["--fail-on", "warn"]), "{words:?}");
        let clone = Clone::of(repository);
        let (code, notes) = clone.check(&words);
        assert_eq!(code, Some(0), "{}: {notes}", repository.0);
        let text = clone.scratch.read("findings.txt");
        assert!(!text.contains("<kustomize") && !text.contains("<helm"), "{text}");
    }
}

#[test]
#[ignore = "needs kubectl and helm"]
fn each_mistake_stands_at_the_line_that_a_person_would_edit() {
    let mut failed = Vec::new();
    for mistake in &MISTAKES {
        let expected = if mistake.at.1.is_empty() { 2 } else { 1 };
        let (code, wrong, shown) = make(mistake);
        if code != Some(expected) || !wrong.is_empty() {
            failed.push(format!("{wrong:?}, {shown}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// A mistake that has become one that is found belongs to the others.
#[test]
#[ignore = "needs kubectl and helm"]
fn some_mistakes_are_missed() {
    let is_found =
        |(code, wrong, _): &(Option<i32>, Vec<_>, _)| *code != Some(0) && wrong.len() < FORMATS.len();
    let found: Vec<String> = MISSED.iter().map(make).filter(is_found).map(|it| it.2).collect();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// Whether an output shows a finding at this line, or an error at this file.
fn shows(format: &str, output: &str, code: &str, file: &str, line: Option<usize>) -> bool {
    // Files that the walk from here found are named so.
    let output = output.replace("--> ./", "--> ").replace("\"./", "\"");
    let json = || serde_json::from_str::<Value>(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
    let any =
        |list: &Value, is_it: &dyn Fn(&Value) -> bool| list.as_array().is_some_and(|it| it.iter().any(is_it));
    let is_line = |value: Option<&Value>| line.is_none_or(|line| value == Some(&line.into()));
    let list = if line.is_some() { "findings" } else { "inputErrors" };
    match format {
        "text" => {
            let place = line.map(|line| format!("--> {file}:{line}:")).unwrap_or_default();
            let mut groups = output.split("\n\n");
            line.is_some()
                && groups.any(|group| group.contains(&format!("[{code}]")) && group.contains(&place))
        }
        "json" => {
            any(&json()[list], &|it| it["code"] == code && it["file"] == file && is_line(it.get("line")))
        }
        "github" => {
            let place = line.map(|line| format!("line={line},")).unwrap_or_default();
            let is_it = |it: &str| {
                it.contains(&format!("file={file},{place}")) && it.contains(&format!("title={code}"))
            };
            output.lines().any(is_it)
        }
        "sarif" => any(&json()["runs"][0]["results"], &|it| {
            let place = &it["locations"][0]["physicalLocation"];
            it["ruleId"] == code
                && place["artifactLocation"]["uri"] == file
                && is_line(place.pointer("/region/startLine"))
        }),
        _ => any(&json(), &|it| {
            let begin =
                it.pointer("/location/positions/begin/line").or_else(|| it.pointer("/location/lines/begin"));
            it["check_name"] == code && it["location"]["path"] == file && is_line(begin)
        }),
    }
}
