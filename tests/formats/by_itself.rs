//! On a terminal, and only there, check runs helm and kustomize by itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::run::Scratch;

/// A kustomize that notes which directories it builds, and a helm that fails.
const PROGRAMS: [(&str, &str); 2] = [
    (
        "bin/kustomize",
        "#!/bin/sh\necho $2 >> calls\ncase $2 in *slow*) sleep 3;; esac\ncat <<'END'\napiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\n\
         metadata: {name: printed, namespace: team-a}\nspec: {backend: reddis}\nEND\n",
    ),
    ("bin/helm", "#!/bin/sh\necho helm $2 >> calls\necho no such dependency >&2\nexit 1\n"),
];

const FILES: [(&str, &str); 9] = [
    ("base/kustomization.yaml", "resources: [memory.yaml]\n"),
    (
        "base/memory.yaml",
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: team-a}\nspec: {backend: in-context}\n",
    ),
    ("overlays/dev/kustomization.yaml", "resources: [../../base]\n"),
    ("far/kustomization.yaml", "resources: [\"https://user:hunter2@h.example/r//base?ref=v1\"]\n"),
    ("over/far/kustomization.yaml", "resources: [../../far, memory.yaml]\n"),
    (
        "over/far/memory.yaml",
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: near, namespace: team-a}\nspec: {backend: reddis}\n",
    ),
    ("plugged/kustomization.yaml", "transformers: [t.yaml]\nresources: [../base]\n"),
    ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 0.1.0\n"),
    ("chart/templates/a.yaml", "kind: {{ .Values.kind }}\n"),
];

/// A directory with these files, and with programs in `bin`.
fn scratch(files: &[(&str, &str)]) -> Scratch {
    let scratch = Scratch::with(&[files, &PROGRAMS].concat());
    for (program, _) in PROGRAMS {
        let path = scratch.path().join(program);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }
    scratch
}

/// What check shows on a terminal with these flags and variables, and which programs it ran.
fn on_terminal(scratch: &Scratch, flags: &str, variables: &[(&str, &str)]) -> (String, Vec<String>) {
    let _ = fs::remove_file(scratch.path().join("calls"));
    let memgate = env!("CARGO_BIN_EXE_memgate");
    let mut command = Command::new("script");
    command.args(["-qec", &format!("'{memgate}' check --exclude bin -o concise {flags}"), "/dev/null"]);
    let path = format!("{}/bin:/usr/bin:/bin", scratch.path().display());
    command.env_clear().env("PATH", path).env("TERM", "xterm").envs(variables.iter().copied());
    let output = command.current_dir(scratch.path()).stdin(Stdio::null()).output().expect("there is script");
    let calls = fs::read_to_string(scratch.path().join("calls")).unwrap_or_default();
    let mut calls: Vec<String> = calls.lines().map(str::to_owned).collect();
    calls.sort();
    (String::from_utf8(output.stdout).expect("is UTF-8"), calls)
}

#[test]
fn renders_what_needs_nothing_but_files_here_and_says_so() {
    let (shown, calls) = on_terminal(&scratch(&FILES), ".", &[]);
    assert_eq!(calls, ["./overlays/dev", "helm ./chart"], "{shown}");
    for expected in [
        "note: charts and overlays were rendered with helm and kustomize, as this is a terminal (--no-render",
        "overlays/dev/kustomization.yaml:1:1: deny [arkonis/backend-unknown]",
        "over/far/memory.yaml:4:17: deny [arkonis/backend-unknown]",
        "@h.example/r//base?ref=v1, which only --render lets kustomize fetch",
        "it has transformers, which only --render lets kustomize run",
        "no such dependency",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn runs_nothing_unless_a_person_may_wait_for_it() {
    let scratch = scratch(&FILES[..3]);
    for (flags, variables) in [
        (". --no-render", &[][..]),
        (".", &[("CI", "true")]),
        (".", &[("PRE_COMMIT", "1")]),
        (".", &[("GIT_DIR", ".git")]),
        (".", &[("GIT_INDEX_FILE", ".git/index")]),
        (". | cat", &[]),
        (". 2>errors", &[]),
        ("overlays - </dev/null", &[]),
    ] {
        let (shown, calls) = on_terminal(&scratch, flags, variables);
        assert!(
            calls.is_empty() && !shown.contains("as this is a terminal"),
            "{flags} {variables:?}: {shown}"
        );
    }
    for command in ["view", "map", "mutate --diff", "audit", "what-if --policy base"] {
        let (shown, calls) = on_terminal(
            &scratch,
            &format!("--version; '{}' {command} overlays", env!("CARGO_BIN_EXE_memgate")),
            &[],
        );
        assert!(calls.is_empty(), "{command}: {shown}");
    }
}

/// A program of the repository is none of the user's.
#[test]
fn runs_no_program_of_a_directory_that_the_path_names_relatively() {
    let scratch = scratch(&FILES[..3]);
    let (shown, calls) = on_terminal(&scratch, ".", &[("PATH", "bin:./bin:/usr/bin:/bin")]);
    assert!(calls.is_empty(), "{shown}");
}

#[test]
fn a_long_run_shows_how_far_it_is_and_wipes_that() {
    let files = [&FILES[..2], &[("slow/kustomization.yaml", "resources: [../base]\n")]].concat();
    let scratch = scratch(&files);
    let (shown, _) = on_terminal(&scratch, ".", &[]);
    let (_, behind) = shown.split_once("\r0 of 1 charts and overlays rendered\x1b[K").expect("it is shown");
    let (_, report) = behind.rsplit_once("\r\x1b[K").expect("it is wiped");
    assert!(report.contains("slow/kustomization.yaml:1:1: deny"), "{shown}");
    let (shown, _) = on_terminal(&scratch, ". --render 2>errors", &[]);
    assert!(!shown.contains("of 1") && !scratch.read("errors").contains("of 1"), "{shown}");
}
