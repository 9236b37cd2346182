//! What cannot be built, or not as it is meant: each run says why and what to do, and judges the rest.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use memgate_primitives::plain_text::misleads;

use crate::repository::{Repository, path};

/// A plain manifest that is judged whatever becomes of the units, and denied.
const DENIED: (&str, &str) = (
    "plain.yaml",
    "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: plain}\nspec: {backend: reddis}\n",
);

const MEMORY: (&str, &str) = (
    "unit/m.yaml",
    "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes}\nspec: {backend: in-context}\n",
);

const KUSTOMIZATION: (&str, &str) = ("unit/kustomization.yaml", "resources: [m.yaml]\n");

/// A kustomize that does this to build.
fn kustomize(folder: &Path, build: &str) -> String {
    let program = folder.join("kustomize");
    let script = format!("#!/bin/sh\ncase \"$1\" in version) echo v5.4.1;; *) {build};; esac\n");
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("can be run");
    format!("{}:/usr/bin:/bin", folder.display())
}

/// What memgate says of some files, beside the plain manifest, where these programs are on `PATH`.
fn said(files: &[(&str, &str)], path: &str) -> (Option<i32>, String) {
    let repository = Repository::with(files.iter().copied().chain([DENIED]));
    let (code, output) = repository.memgate(&["check", "."], path);
    assert!(output.contains("\"reddis\""), "the plain manifest is judged: {output}");
    (code, output)
}

#[test]
fn what_a_tool_writes_is_bounded_and_read_with_care() {
    for (build, exit, words) in [
        ("exec /usr/bin/head -c 100000000 /dev/zero", 2, "it wrote more than"),
        ("exec /usr/bin/yes", 2, "it wrote more than"),
        ("echo 'a: ['", 2, "what unit becomes cannot be read at line"),
        ("printf '\\377\\376'", 2, "what it prints cannot be read"),
        ("echo just words", 1, "1 denied, 0 warnings"),
        ("echo first >&2; echo the last line >&2; exit 3", 2, "the last line"),
        ("exit 1", 2, "kustomize build unit"),
        (r"printf 'a\302\233\342\200\250b\033[31mc\177\r\n' >&2; exit 3", 2, "a"),
    ] {
        let folder = tempfile::tempdir().expect("a directory");
        let path = kustomize(folder.path(), build);
        let (code, output) = said(&[KUSTOMIZATION, MEMORY], &path);
        assert_eq!(code, Some(exit), "{build}: {output}");
        assert!(output.contains(words), "{build}: {output}");
        assert!(!output.contains(|c| c != '\n' && misleads(c)), "{build}: {output:?}");
    }
}

/// A thousand overlays over one base are built by as many processes at a time as there are cores.
#[test]
fn a_thousand_overlays_take_a_bounded_number_of_processes() {
    let folder = tempfile::tempdir().expect("a directory");
    let runs = folder.path().join("runs");
    fs::create_dir(&runs).expect("a directory");
    let shown = runs.display();
    let build = format!(
        "one=$(/bin/mktemp -d {shown}/XXXXXXXX); set -- {shown}/*; echo $# >> {shown}.txt; printf 'apiVersion: arkonis.dev/v1alpha1\\nkind: ArkMemory\\nmetadata: {{name: notes}}\\nspec: \
         {{backend: redis}}\\n'; /bin/rmdir $one"
    );
    let path = kustomize(folder.path(), &build);
    let overlays: Vec<String> =
        (0..1000).map(|number| format!("overlays/o{number}/kustomization.yaml")).collect();
    let overlays = overlays.iter().map(|name| (name.as_str(), "resources: [../../base]\n"));
    let base = [
        ("base/kustomization.yaml", "resources: [m.yaml]\n"),
        (
            "base/m.yaml",
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes}\nspec: {backend: redis}\n",
        ),
    ];
    let repository = Repository::with(base.into_iter().chain(overlays));
    let (code, output) = repository.memgate(&["check", "-o", "concise", "."], &path);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("1000 denied (1 denial)"), "{}", &output[output.len().saturating_sub(1000)..]);
    let seen = fs::read_to_string(runs.with_extension("txt")).expect("it was run");
    let most = seen.lines().map(|line| line.parse().expect("a number")).max().unwrap_or(0);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    assert!((1..=cores).contains(&most), "{most} at a time, {cores} cores");
    assert_eq!(seen.lines().count(), 1000);
}

#[test]
#[ignore = "needs kubectl and helm"]
fn what_cannot_be_built_is_said_with_its_place() {
    const CHART: &str = "apiVersion: v2\nname: c\nversion: 0.1.0\n";
    let memory = MEMORY.1;
    let dependency =
        format!("{CHART}dependencies: [{{name: redis, version: 1.0.0, repository: 'https://h.example'}}]\n");
    let needs = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: n}\nspec: {backend: {{ required \"say the backend\" .Values.backend }}}\n";
    let crlf = memory.replace('\n', "\r\n");
    let wrong = memory.replace("in-context", "redis").replace('\n', "\r\n");
    let circle = "resources: [m.yaml, ../b]\n";
    for (name, files, exit, words) in [
        (
            "charts/ is empty",
            vec![("c/Chart.yaml", dependency.as_str()), ("c/templates/m.yaml", memory)],
            2,
            "missing in charts/",
        ),
        ("needs a value", vec![("c/Chart.yaml", CHART), ("c/templates/m.yaml", needs)], 2, "say the backend"),
        (
            "an endless loop",
            vec![
                ("c/Chart.yaml", CHART),
                ("c/templates/m.yaml", memory),
                ("c/templates/l.tpl", "{{- define \"a\" }}{{ include \"a\" . }}{{ end }}"),
                ("c/templates/n.yaml", "a: {{ include \"a\" . }}\n"),
            ],
            2,
            "helm template c:",
        ),
        (
            "a circle",
            vec![
                ("a/kustomization.yaml", circle),
                ("a/m.yaml", memory),
                ("b/kustomization.yaml", "resources: [../a]\n"),
            ],
            2,
            "cycle",
        ),
        (
            "two of one folder",
            vec![KUSTOMIZATION, ("unit/kustomization.yml", "resources: [m.yaml]\n"), MEMORY],
            2,
            "multiple kustomization files",
        ),
        (
            "line ends of Windows",
            vec![("unit/kustomization.yaml", "resources: [m.yaml]\r\n"), ("unit/m.yaml", &crlf)],
            1,
            "1 denied, 0 warnings",
        ),
        (
            "line ends of Windows, denied",
            vec![("unit/kustomization.yaml", "resources: [m.yaml]\r\n"), ("unit/m.yaml", &wrong)],
            1,
            "unit/m.yaml:4",
        ),
        (
            "a missing file",
            vec![("unit/kustomization.yaml", "resources: [m.yaml, gone.yaml]\n"), MEMORY],
            2,
            "gone.yaml",
        ),
        (
            "only a component",
            vec![
                (
                    "unit/kustomization.yaml",
                    "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\nresources: [m.yaml]\n",
                ),
                MEMORY,
            ],
            1,
            "unit/",
        ),
    ] {
        let (code, output) = said(&files, path());
        assert_eq!(code, Some(exit), "{name}: {output}");
        assert!(output.contains(words), "{name}: {output}");
    }
}
