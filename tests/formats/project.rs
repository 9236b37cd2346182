//! `.memgate.yaml` of a hostile change: it names files below its own directory and no others, and nothing is shown of a
//! file that is not a manifest.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::repositories::programs;
use crate::run::{BAD, Scratch};

/// What no output may hold: the text of files that are not manifests.
const SECRET: &str = "hunter2-of-another-file";

/// A repository beside a file with a secret, and what a change may put into it.
fn repository(project: &str) -> Scratch {
    let secret = format!("{SECRET}: [\n  {SECRET}\n\t{SECRET}\n");
    let scratch = Scratch::with(&[
        ("outside/secret", &secret),
        ("outside/secret.yaml", &secret),
        ("outside/memory.yaml", BAD),
        ("repo/.git/config", &format!("[core]\n\ttoken = {SECRET}\n")),
        ("repo/.env", &secret),
        ("repo/credentials.json", &format!("{{\"type\": \"account\", \"key\": \"{SECRET}\",}}")),
        ("repo/word.yaml", SECRET),
        ("repo/good/memory.yaml", &BAD.replace("reddis", "in-context")),
        ("repo/.memgate.yaml", project),
    ]);
    let repo = scratch.path().join("repo");
    for (target, link) in [
        ("../outside/secret", "link"),
        ("../outside/secret.yaml", "link.yaml"),
        ("../outside", "folder"),
        ("../../outside/secret.yaml", "good/link.yaml"),
        ("../.git/config", "good/git.yaml"),
        ("/dev/stdin", "good/stdin.yaml"),
        ("/dev/zero", "zero.yaml"),
        ("../../outside/secret.yaml", "good/kustomization.yaml"),
        ("memory.yaml", "good/same.yaml"),
    ] {
        symlink(target, repo.join(link)).expect("a link");
    }
    for pipe in ["pipe", "good/pipe.yaml"] {
        let made = Command::new("mkfifo").arg(repo.join(pipe)).status().expect("mkfifo runs");
        assert!(made.success());
    }
    scratch
}

/// Runs memgate in the repository. Standard input stays open and empty, so that reading it takes too long.
fn run(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
    command.args(words).env_clear().current_dir(directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("memgate starts");
    let stdin = child.stdin.take();
    let start = Instant::now();
    while child.try_wait().expect("can be asked").is_none() {
        if start.elapsed() > Duration::from_secs(20) {
            child.kill().expect("can be ended");
            panic!("{words:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(stdin);
    child.wait_with_output().expect("its output")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

#[test]
fn paths_lead_nowhere_else() {
    let scratch = repository("");
    let outside = scratch.path().join("outside");
    let outside = outside.to_str().expect("UTF-8");
    let repo = scratch.path().join("repo");
    let absolute = [format!("{outside}/secret"), format!("{outside}/*.yaml"), format!("{outside}/none")];
    let mut paths = vec![
        "/etc/passwd", "/dev/stdin", "/dev/fd/0", "/proc/self/environ", "/proc/self/fd/0", "-", "pipe",
        "link", "link.yaml", "folder", "folder/secret", "folder/*", "folder/**/*.yaml", "../outside",
        "../outside/*", "../outside/memory.yaml", "good/../../outside/secret", "zero.yaml", ".git/config",
        ".git/*", ".env", "credentials.json", "good", "good/*", "good/**", "*", "**/*", "*.json", ".",
        "good/link.yaml", "..", "good/git.yaml", "good/stdin.yaml", "good/pipe.yaml", "word.yaml", "./-",
        "/", "/dev", "../*",
    ];
    paths.extend(absolute.iter().map(String::as_str));
    for path in paths {
        fs::write(repo.join(".memgate.yaml"), format!("paths: [\"{path}\"]")).expect("written");
        for words in
            [&["check"][..], &["check", "-o", "json"], &["check", "--strict"], &["mutate"], &["view"]]
        {
            let output = run(&repo, words);
            let shown = text(&output);
            assert!(!shown.contains(SECRET), "{path} {words:?}\n{shown}");
            assert!(!shown.contains("root:"), "{path} {words:?}\n{shown}");
            assert!(!shown.contains("reddis"), "{path} {words:?}\n{shown}");
        }
        let code = run(&repo, &["check"]).status.code();
        let is_good = ["good", "good/*", "good/**", "*", "**/*", "."].contains(&path);
        assert!(code != Some(1), "{path} denies");
        assert!(is_good || code != Some(0), "{path} checks something");
    }
}

#[test]
fn the_file_itself_is_not_a_link() {
    for target in
        ["../outside/secret", ".git/config", ".env", "pipe", "/dev/stdin", "credentials.json", "none"]
    {
        let scratch = repository("");
        let repo = scratch.path().join("repo");
        fs::remove_file(repo.join(".memgate.yaml")).expect("is there");
        symlink(target, repo.join(".memgate.yaml")).expect("a link");
        let output = run(&repo, &["check", "good"]);
        assert_eq!(output.status.code(), Some(2), "{target}");
        assert!(!text(&output).contains(SECRET), "{target} {}", text(&output));
        assert_eq!(run(&repo, &["check", "good", "--project", "none"]).status.code(), Some(0), "{target}");
    }
}

#[test]
fn links_of_a_directory_lead_nowhere_else() {
    let scratch = repository("");
    for (directory, words) in [
        ("repo", &["check", "."][..]),
        ("repo", &["check", "good"]),
        ("repo", &["check", "good/*.yaml"]),
        ("repo/good", &["check", "."]),
        ("", &["check", "repo/good"]),
    ] {
        let output = run(&scratch.path().join(directory), words);
        let shown = text(&output).replace(&format!("{SECRET}\n"), "");
        assert!(!shown.contains(SECRET), "{directory} {words:?}\n{shown}");
        let note = "link.yaml (a link that leads out of the repository)";
        assert!(shown.contains(note), "{directory} {words:?}\n{shown}");
    }
}

#[test]
fn the_user_may_name_anything() {
    let scratch = repository("paths: [good]");
    let repo = scratch.path().join("repo");
    for path in ["../outside/memory.yaml", "../outside/m*.yaml"] {
        assert_eq!(run(&repo, &["check", path]).status.code(), Some(1), "{path}");
    }
    // The author of a change can make any file a link, so one that leads out of the repository is not read.
    for path in ["link.yaml", "folder/memory.yaml"] {
        let output = run(&repo, &["check", path]);
        let shown = text(&output);
        assert_eq!(output.status.code(), Some(2), "{path} {shown}");
        assert!(shown.contains("this is a link that leads out of the repository"), "{path} {shown}");
        assert!(!shown.contains(SECRET) && !shown.contains("reddis"), "{path} {shown}");
    }
    let writer = format!("cat {}/outside/memory.yaml > pipe", scratch.path().display());
    let writer = Command::new("sh").args(["-c", &writer]).current_dir(&repo).spawn();
    assert_eq!(run(&repo, &["check", "pipe"]).status.code(), Some(1));
    writer.expect("sh runs").wait().expect("ends");
}

#[test]
fn a_summary_says_what_is_switched_off() {
    for (project, expected) in [
        ("paths: [good]", Some("all files but those in good (paths)")),
        ("paths: [good]\nexclude: [same.yaml]", Some("(paths); same.yaml (exclude)")),
        (
            "paths: [good]\nfamilies: [ark]",
            Some("(paths); arkonis, orloj, orka, sympozium, kagent (families)"),
        ),
        ("strict: false", None),
    ] {
        let scratch = repository(project);
        for command in ["check", "mutate"] {
            let shown = text(&run(&scratch.path().join("repo"), &[command]));
            let line = shown.lines().find(|line| line.contains("switched off"));
            assert_eq!(line.is_some(), expected.is_some(), "{command} {project}\n{shown}");
            assert!(line.zip(expected).is_none_or(|(line, words)| line.contains(words)), "{line:?}");
        }
    }
}

#[test]
fn policies_that_the_caller_names_are_read_whatever_the_repository_leaves_out() {
    let policy = "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: p}\nspec:\n  \
                  rules:\n  - {id: durable, backends: {durable: true}}\n";
    let memory = BAD.split("---").next().expect("a memory").replace("reddis", "in-context");
    for exclude in ["policy.yaml", "*.yaml", "**", "rules", "rules/**", "**/policy.yaml", "../rules/*"] {
        let project = format!("exclude: [\"{exclude}\"]");
        let scratch = Scratch::with(&[
            ("repo/.memgate.yaml", &project),
            ("repo/memory.yaml", &memory),
            ("repo/rules/policy.yaml", policy),
            ("rules/policy.yaml", policy),
        ]);
        for path in ["../rules", "rules", "rules/policy.yaml"] {
            let output = run(&scratch.path().join("repo"), &["check", "memory.yaml", "--policy", path]);
            assert_eq!(output.status.code(), Some(1), "{exclude} {path}: {}", text(&output));
        }
        let words = ["check", "memory.yaml", "--with", "../rules"];
        let output = run(&scratch.path().join("repo"), &words);
        assert_eq!(output.status.code(), Some(1), "{exclude}: {}", text(&output));
    }
}

#[test]
fn a_kubeconfig_is_not_shown() {
    let kubeconfig =
        format!("apiVersion: v1\nkind: Config\nusers: [{{name: a, user: {{token: {SECRET}}}}}]\n");
    for other in ["", BAD] {
        let scratch = Scratch::with(&[
            (".memgate.yaml", "paths: [\".\"]"),
            ("kube.yaml", &kubeconfig),
            ("a.yaml", other),
        ]);
        for words in
            [&["check"][..], &["mutate"], &["mutate", "--diff"], &["view"], &["check", "-o", "sarif"]]
        {
            assert!(!text(&run(scratch.path(), words)).contains(SECRET), "{words:?}");
        }
    }
}

/// A link to a directory of another repository brings no choices from there; one within the repository does.
#[test]
fn a_file_behind_a_link_is_that_of_this_repository() {
    let warned = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: team-a}\n\
                  spec: {backend: in-context, ttl: 5}\n";
    let scratch = Scratch::with(&[
        ("outside/.memgate.yaml", "failOn: warn"),
        ("outside/memory.yaml", warned),
        ("repo/.git/config", ""),
        ("repo/deploy/.memgate.yaml", "failOn: warn"),
        ("repo/deploy/memory.yaml", warned),
    ]);
    let repo = scratch.path().join("repo");
    symlink("../outside", repo.join("link")).expect("a link");
    symlink("deploy", repo.join("same")).expect("a link");
    for (directory, path, code) in [
        ("", "link/memory.yaml", 2),
        ("", "link", 2),
        ("", "same/memory.yaml", 1),
        ("", "deploy/memory.yaml", 1),
        ("link", "../repo/deploy/memory.yaml", 1),
    ] {
        let output = run(&repo.join(directory), &["check", path]);
        assert_eq!(output.status.code(), Some(code), "{directory} {path} {}", text(&output));
    }
}

/// A kustomization or chart that leads out of the repository is not built, and nothing of what is there is shown or changed.
#[test]
#[ignore = "needs kubectl and helm"]
fn what_is_built_stays_in_the_repository() {
    let patch = format!(
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: notes}}\n\
         spec: {{backend: redis, {SECRET}: 1}}\n"
    );
    let own = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes}\n\
               spec: {backend: in-context}\n";
    let scratch = Scratch::with(&[
        ("outside/p.yaml", &patch),
        ("repo/.git/config", ""),
        ("repo/own/m.yaml", own),
        ("repo/own/p.yaml", &patch.replace(SECRET, "endpont")),
        ("repo/chart/Chart.yaml", "{apiVersion: v2, name: chart, version: 0.1.0}"),
        ("repo/chart/templates/a.yaml", own),
    ]);
    let repo = scratch.path().join("repo");
    let absolute = scratch.path().join("outside/p.yaml").display().to_string();
    symlink("../../outside/p.yaml", repo.join("own/link.yaml")).expect("a link");
    symlink("../outside/p.yaml", repo.join("v.yaml")).expect("a link");
    let programs = programs();
    let check = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
        command.arg("check").args(words).env_clear().env("PATH", &programs).current_dir(&repo);
        let shown = text(&command.stdin(Stdio::null()).output().expect("memgate runs"));
        assert!(!shown.contains(SECRET), "{words:?} {shown}");
        shown
    };
    for path in ["../../outside/p.yaml", &absolute, "link.yaml", "p.yaml"] {
        for field in
            ["patches: [{path: PATH}]", "patchesJson6902: [{path: PATH}]", "patchesStrategicMerge: [PATH]"]
        {
            let kustomization = format!("resources: [m.yaml]\n{}\n", field.replace("PATH", path));
            fs::write(repo.join("own/kustomization.yaml"), kustomization).expect("a file");
            let shown = check(&["own"]);
            // A patch without a target is not one of JSON.
            let expected = match (path, field.contains("6902")) {
                ("p.yaml", false) => "endpont",
                ("p.yaml", true) => "own/kustomization.yaml",
                _ => "not checked: kustomization own",
            };
            assert!(shown.contains(expected), "{field} {path} {shown}");
            check(&["own", "--fix", "--diff"]);
        }
        fs::write(repo.join("own/m.yaml"), own).expect("a file");
        check(&["own", "--fix"]);
    }
    assert_eq!(scratch.read("outside/p.yaml"), patch);
    let shown = check(&["--values", "chart=v.yaml", "chart"]);
    assert!(shown.contains("v.yaml") && shown.contains("a link that leads out"), "{shown}");
    symlink("../../../outside/p.yaml", repo.join("chart/templates/t.yaml")).expect("a link");
    let shown = check(&["chart"]);
    assert!(
        shown.contains("not checked: chart chart: ") && shown.contains("chart/templates/t.yaml"),
        "{shown}"
    );
}

/// A matcher of such a glob would take too much memory, so the glob is refused wherever it may be.
#[test]
fn globs_that_are_too_large_are_errors() {
    let large = "*a".repeat(100_000);
    for project in [
        format!("exclude: [\"{large}\"]"),
        format!("paths: [\"{large}\"]"),
        format!("rules: [{{codes: [\"{large}\"], severity: off}}]"),
        format!("rules: [{{codes: [\"*\"], paths: [\"{large}\"], severity: off}}]"),
    ] {
        let scratch = Scratch::with(&[(".memgate.yaml", &project), ("a.yaml", BAD)]);
        let output = scratch.run(&["check"]);
        let (start, shown) = (&project[..20], text(&output));
        assert_eq!(output.status.code(), Some(2), "{start} {}", shown.len());
        assert!(shown.contains("this glob is too large"), "{start} {}", shown.len());
    }
}
