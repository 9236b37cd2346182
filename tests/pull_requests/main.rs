//! `memgate check --base` in real repositories: which findings are old, what is said when the base is not there, and
//! that nothing is left behind.

#![expect(clippy::expect_used, reason = "a test stops where something is wrong")]

#[path = "../support/mod.rs"]
mod support;

mod comment;
mod hidings;
mod judge;
mod odd;
mod outputs;
mod rendering;
mod repository;

use std::fs;

use repository::{Checked, Repository, denied, files, text};

/// A branch that moved and renamed the wrong manifests of its base, while main corrected them.
fn moved() -> Repository {
    let repository = Repository::new();
    repository.write("deploy/old.yaml", &denied("old"));
    repository.write("other/far.yaml", &denied("far"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    fs::remove_file(repository.path.join("deploy/old.yaml")).expect("is there");
    repository.write("deploy/renamed.yaml", &format!("# One\n# two\n{}", denied("old")));
    repository.commit();
    repository.git(&["checkout", "--quiet", "main"]);
    repository.write("deploy/old.yaml", &denied("old").replace("redis", "in-context"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "feature"]);
    repository
}

/// Rules are those of the commit; a unit that the base does not have is new.
#[test]
#[ignore = "needs kubectl and helm"]
fn judges_units_apart_at_the_base_too() {
    let repository = Repository::with_programs();
    let overlay = |name: &str| {
        repository.write(&format!("envs/{name}/a.yaml"), &denied("old"));
        repository.write(&format!("envs/{name}/kustomization.yaml"), "resources: [a.yaml]\n");
    };
    overlay("dev");
    repository.write(".memgate.yaml", "failOn: warn\nrules: [{codes: ['arkonis/*'], severity: warn}]\n");
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    overlay("prod");
    repository.commit();
    let checked = repository.check(&["--base", "main", "envs/dev"]);
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.tells("envs/dev/a.yaml:", "(already in main)"), "{:?}", checked.findings);
    let checked = repository.check(&["--base", "main"]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.tells("envs/prod/a.yaml:", "warn [arkonis/"), "{:?}", checked.findings);
}

#[test]
fn counts_only_what_the_base_lacks() {
    let repository = moved();
    let checked = repository.check(&["--base", "main", "deploy"]);
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    let words = "(already in main; the cluster still denies it)";
    assert!(
        checked.tells("deploy/renamed.yaml:6:1: note [arkonis/redis-required]", words),
        "{:?}",
        checked.findings
    );
    let base = repository.git(&["merge-base", "main", "HEAD"]);
    assert!(checked.stderr.contains(base.get(..12).expect("a commit")), "{}", checked.stderr);
    assert!(checked.stderr.contains("0 denied, 0 warnings, 1 note"), "{}", checked.stderr);

    repository.write("deploy/new.yaml", &denied("new"));
    let checked = repository.check(&["--base", "main", "deploy"]);
    assert_eq!(checked.code, Some(1));
    assert!(
        checked.tells("deploy/new.yaml:4:1: deny [arkonis/redis-required]", ""),
        "{:?}",
        checked.findings
    );
    assert!(checked.tells("deploy/renamed.yaml:6:1: note", words), "{:?}", checked.findings);
    assert_eq!(checked.findings.len(), 2);
}

#[test]
fn counts_what_occurs_once_more_and_what_was_elsewhere() {
    let repository = moved();
    repository.write("deploy/copy.yaml", &denied("old"));
    let checked = repository.check(&["--base", "main", "deploy"]);
    assert_eq!(checked.code, Some(1), "{:?}", checked.findings);
    assert!(checked.tells("deploy/copy.yaml", "note [arkonis/redis-required]"), "{:?}", checked.findings);
    assert!(checked.tells("deploy/renamed.yaml", "deny [arkonis/redis-required]"), "{:?}", checked.findings);
    // What was there under a path that is not asked for was not found by the same check.
    let repository = moved();
    repository.git(&["mv", "other/far.yaml", "deploy/far.yaml"]);
    assert_eq!(repository.check(&["--base", "main", "deploy"]).code, Some(1));
    assert_eq!(repository.check(&["--base", "main", "."]).code, Some(0));
}

#[test]
fn finds_the_same_paths_from_below() {
    let repository = moved();
    let globs = ["*.yaml", "../deploy/renamed.yaml", "./*", "**/*.yaml"];
    for paths in globs.map(|glob| vec![glob]).into_iter().chain([vec!["."], vec!["..", "."]]) {
        let checked = repository.check_in("deploy", &[["--base", "HEAD"].to_vec(), paths.clone()].concat());
        assert_eq!(checked.code, Some(0), "{paths:?}: {:?} {}", checked.findings, checked.stderr);
        assert!(checked.tells("", "already in HEAD"), "{paths:?}: {:?}", checked.findings);
    }
    let whole = repository.path.join("deploy").display().to_string();
    assert_eq!(repository.check(&["--base", "HEAD", &whole]).code, Some(0));
}

#[test]
fn reads_the_state_of_the_base_too() {
    let repository = Repository::new();
    let memory = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: team-a}\n\
                  spec: {backend: redis, redis: {secretRef: {name: notes}}}\n";
    let secret =
        |name| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: team-a}}\n");
    repository.write("deploy/memory.yaml", memory);
    repository.write("state/secrets.yaml", &secret("notes"));
    repository.commit();
    let arguments = ["--fail-on", "warn", "--base", "main", "--with", "state", "deploy"];
    assert_eq!(repository.check(&arguments).code, Some(0));
    // The branch takes away what the memory needs.
    repository.write("state/secrets.yaml", &secret("other"));
    let checked = repository.check(&arguments);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    // State that no commit has, such as what a pipeline has just read from a cluster, is the same for both.
    repository.write("cluster.yaml", &secret("other"));
    let arguments = ["--fail-on", "warn", "--base", "main", "--with", "cluster.yaml", "deploy"];
    let checked = repository.check(&arguments);
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.tells("", "already in main"), "{:?}", checked.findings);
}

#[test]
fn leaves_the_repository_as_it_is() {
    let repository = moved();
    repository.write("deploy/staged.yaml", &denied("staged"));
    repository.git(&["add", "deploy/staged.yaml"]);
    repository.write("deploy/renamed.yaml", &denied("changed"));
    let before = files(&repository.path);
    repository.check(&["--base", "main", "."]);
    assert!(files(&repository.path) == before, "a file of the repository has changed");
}

#[test]
fn says_what_to_fetch() {
    let repository = moved();
    for (reference, message) in [
        (
            "nope",
            "--base nope: there is no such commit here; fetch it: git fetch origin nope (in a pipeline, ",
        ),
        ("main:deploy", "there is no such commit here"),
    ] {
        repository.check(&["--base", reference, "deploy"]).expect_failure(message);
    }
    repository.check(&["--base", "main", "/nowhere"]).expect_failure("/nowhere is outside of the repository");
    repository.git(&["checkout", "--quiet", "--orphan", "alone"]);
    repository.check(&["--base", "main", "deploy"]).expect_failure("nothing is committed here yet");
    repository.commit();
    repository
        .check(&["--base", "main", "deploy"])
        .expect_failure("--base main: it has no commit in common with HEAD\n");
}

/// A base that was fetched without its history, as pipelines do.
#[test]
fn says_that_a_clone_is_shallow() {
    let origin = moved();
    let clone = Repository::beside("clone");
    let url = format!("file://{}", origin.path.display());
    clone.git(&["clone", "--quiet", "--depth", "1", "--branch", "feature", &url, "."]);
    clone.git(&["fetch", "--quiet", "--depth", "1", "origin", "main:refs/remotes/origin/main"]);
    let checked = clone.check(&["--base", "origin/main", "deploy"]);
    checked.expect_failure(
        "it has no commit in common with HEAD in this shallow clone; run git fetch --unshallow (",
    );
    clone.check(&["--base", "main", "deploy"]).expect_failure("did you mean origin/main?");
    clone.git(&["fetch", "--quiet", "--unshallow"]);
    assert_eq!(clone.check(&["--base", "origin/main", "deploy"]).code, Some(0));
}

#[test]
fn does_without_git_and_without_a_repository() {
    let plain = Repository::beside("plain");
    plain.write("a.yaml", &denied("a"));
    plain.check(&["--base", "main", "a.yaml"]).expect_failure("this directory is in no git work tree");
    let mut command = plain.command(env!("CARGO_BIN_EXE_memgate"));
    let command = command.env("PATH", plain.temporary()).args(["check", "--base", "main", "a.yaml"]);
    Checked::of(&command.output().expect("memgate runs")).expect_failure("--base needs git");
}

/// A file that is written through a link of the tree would be written outside.
#[test]
fn writes_links_and_never_through_them() {
    let repository = Repository::new();
    let outside = repository.beside_it("outside");
    fs::create_dir(&outside).expect("a directory");
    repository.write("deploy/old.yaml", &denied("old"));
    std::os::unix::fs::symlink("old.yaml", repository.path.join("deploy/link.yaml")).expect("a link");
    std::os::unix::fs::symlink(&outside, repository.path.join("deploy/far")).expect("a link");
    repository.commit();
    let checked = repository.check(&["--base", "main", "deploy"]);
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert!(files(&outside).is_empty());
}

/// Hooks and filters may come with the change, and would run with the rights of the check.
#[test]
fn runs_no_program_of_the_repository() {
    use std::os::unix::fs::PermissionsExt as _;

    let repository = moved();
    let ran = repository.beside_it("ran");
    let script = format!("#!/bin/sh\necho >> {}\ncat\n", ran.display());
    for name in ["hooks/post-index-change", "hooks/post-checkout", "filter.sh"] {
        repository.write(name, &script);
        let file = repository.path.join(name);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("can be changed");
    }
    repository.write(".gitattributes", "*.yaml filter=own working-tree-encoding=UTF-16\n");
    for (key, value) in [
        ("core.hooksPath", "hooks"),
        ("core.fsmonitor", "./filter.sh"),
        ("filter.own.smudge", "./filter.sh"),
        ("filter.own.required", "true"),
    ] {
        repository.git(&["config", key, value]);
    }
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert!(!ran.exists(), "a program of the repository has run");
}

/// One object has more findings than are shown. The ones that are only counted are known too.
#[test]
fn knows_what_is_only_counted() {
    let repository = Repository::new();
    let many = |count: usize| {
        let fields: Vec<String> = (0..count).map(|number| format!("  field{}: 1\n", 100 + number)).collect();
        denied("many").replace("{backend: redis}", "\n  backend: in-context") + &fields.concat()
    };
    repository.write("many.yaml", &many(55));
    repository.commit();
    let check = || repository.check(&["--fail-on", "warn", "many.yaml", "--base", "main"]);
    let checked = check();
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    assert_eq!(checked.findings.len(), 50);
    repository.write("many.yaml", &many(56));
    let checked = check();
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.stderr.contains("0 denials and 1 warning more, not shown"), "{}", checked.stderr);
}

#[test]
fn hides_what_an_error_of_the_base_quotes() {
    let repository = Repository::new();
    let key = "\"postgres://user:hunter2@db/x\": 1\n";
    repository.write("bad.yaml", &format!("apiVersion: v1\nkind: ConfigMap\n{key}{key}"));
    repository.commit();
    repository.git(&["switch", "--quiet", "--create", "corrected"]);
    repository.git(&["rm", "--quiet", "bad.yaml"]);
    repository.write("a.yaml", &denied("a"));
    repository.commit();
    let checked = repository.check(&["--base", "main", "."]);
    assert!(checked.stderr.contains("1 error at the base"), "{}", checked.stderr);
    assert!(checked.stderr.contains("is given twice"), "{}", checked.stderr);
    assert!(!checked.stderr.contains("hunter2"), "{}", checked.stderr);
}

/// What a branch did to the target of a reference decides what is said of it; one that was missing before is known.
#[test]
fn denies_what_the_branch_broke() {
    let memory = |name: &str, namespace: &str| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
             spec: {{backend: redis, redis: {{secretRef: {{name: url}}}}}}\n"
        )
    };
    let agent = |name: &str, memory: &str| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {{name: {name}, namespace: a}}\n\
             spec: {{model: m, systemPrompt: p, memoryRef: {{name: {memory}}}}}\n"
        )
    };
    let secret = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: a}}\nstringData: {{REDIS_URL: ''}}\n"
        )
    };
    let repository = Repository::new();
    repository.write("memory.yaml", &memory("notes-short", "a"));
    repository.write("agent.yaml", &agent("scout", "notes-short"));
    repository.write("other.yaml", &agent("other", "never"));
    repository.write("secret.yaml", &format!("{}---\n{}", secret("url"), secret("more")));
    repository.write(
        "pod.yaml",
        "apiVersion: v1\nkind: Pod\n\
         metadata: {name: p, namespace: a, labels: {arkonis.dev/deployment: scout}}\n\
         spec: {containers: [{name: agent, image: i}]}\n",
    );
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    let said = |part: &str| {
        let checked = repository.check(&["--base", "main", "."]);
        assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
        assert!(checked.tells("./agent.yaml:4:", part), "{part}: {:?}", checked.findings);
        assert!(checked.tells("./other.yaml:4:53: note", ""), "{:?}", checked.findings);
    };
    repository.write("memory.yaml", &memory("notes-cache", "a"));
    said("broken by this branch: ArkMemory \"notes-short\" is gone");
    // From below, the file has the name that it has there.
    repository.write("deploy/agent.yaml", &agent("scout", "notes-short"));
    fs::create_dir_all(repository.path.join("deploy")).expect("a directory");
    let checked = repository.check_in("deploy", &["--base", "main", "../agent.yaml", "--with", ".."]);
    assert!(checked.tells("../agent.yaml:4:", "is gone"), "{:?}", checked.findings);
    fs::remove_dir_all(repository.path.join("deploy")).expect("is there");
    // The state has the name too.
    let checked = repository.check(&["--base", "main", "agent.yaml", "--with", "."]);
    let gone = "broken by this branch: ArkMemory \"notes-short\" is gone";
    assert!(checked.tells("agent.yaml:4:", gone), "{:?}", checked.findings);
    repository.write("memory.yaml", &memory("notes-short", "b"));
    said("broken by this branch: ArkMemory \"notes-short\" is gone");
    fs::remove_file(repository.path.join("memory.yaml")).expect("is there");
    said("broken by this branch: ArkMemory \"notes-short\" is gone");
    repository.write("memory.yaml", &memory("notes-short", "a"));
    repository.write("agent.yaml", &agent("scout", "notes-shor"));
    said("did you mean \"notes-short\"?; broken by this branch: it named \"notes-short\" before");
    repository.write("agent.yaml", &agent("scout", "notes-short"));
    repository.write("new.yaml", &agent("new", "nowhere"));
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    fs::remove_file(repository.path.join("new.yaml")).expect("is there");

    // What pods name breaks like all else.
    repository.write("memory.yaml", &memory("notes-short", "a"));
    repository.write("agent.yaml", &agent("finder", "notes-short"));
    let checked = repository.check(&["--base", "main", "."]);
    let broken = "broken by this branch: ArkAgent \"scout\" is gone";
    assert!(checked.tells("./pod.yaml:3:", broken), "{:?}", checked.findings);

    repository.write("agent.yaml", &agent("scout", "notes-short"));
    repository.write("secret.yaml", &secret("more"));
    let checked = repository.check(&["--base", "main", "."]);
    assert!(
        checked.tells("./memory.yaml:4:", "broken by this branch: Secret \"url\" is gone"),
        "{:?}",
        checked.findings
    );
}

/// The pod of an agent needs its agent.
#[test]
fn what_pods_name_breaks_too() {
    let repository = Repository::new();
    let memory = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: a}\n\
                  spec: {backend: in-context}\n";
    let agent = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: a}\n\
                 spec: {model: m, systemPrompt: p, memoryRef: {name: notes}}\n";
    let pods = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: scout, namespace: a}\nspec:\n  \
                selector: {matchLabels: {arkonis.dev/deployment: scout}}\n  template:\n    \
                metadata: {labels: {arkonis.dev/deployment: scout}}\n    \
                spec: {containers: [{name: agent, image: i}]}\n";
    for (name, text) in [("memory", memory), ("agent", agent), ("pods", pods)] {
        repository.write(&format!("{name}.yaml"), text);
    }
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.write("agent.yaml", &agent.replace("namespace: a", "namespace: b"));
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    let broken = "broken by this branch: ArkAgent \"scout\" is gone";
    assert!(checked.tells("./pods.yaml:7:", broken), "{:?}", checked.findings);
}

/// A ConfigMap without its key, or a Secret without the object that makes it, is broken; what cannot be read may still be
/// there.
#[test]
fn keys_and_made_objects_break_too() {
    let memory = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: a}\n\
                  spec: {backend: redis, redis: {secretRef: {name: NAME}}}\n";
    let keyed = |map: &str| {
        format!(
            "apiVersion: ark.mckinsey.com/v1alpha1\nkind: Memory\nmetadata: {{name: keyed, namespace: b}}\n\
             spec: {{address: {{valueFrom: {{configMapKeyRef: {{name: {map}, key: url}}}}}}}}\n"
        )
    };
    let maps = |key: &str| {
        let map = |name: &str, key: &str| {
            format!(
                "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: b}}\ndata: {{{key}: 'http://a.b'}}\n"
            )
        };
        map("addresses", key) + &map("less", "other")
    };
    let secret = |name: &str, key: &str| {
        format!(
            "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: a}}\nstringData: {{{key}: ''}}\n"
        )
    };
    let external = |name: &str| {
        format!(
            "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {{name: es, namespace: a}}\n\
             spec: {{target: {{name: {name}}}}}\n"
        )
    };
    let repository = Repository::new();
    for (file, name) in [("held", "url"), ("made", "made")] {
        repository.write(&format!("{file}.yaml"), &memory.replace("NAME", name).replace("notes", file));
    }
    repository.write("secret.yaml", &(secret("url", "REDIS_URL") + &secret("less", "OTHER")));
    repository.write("external.yaml", &external("made"));
    repository.write("keyed.yaml", &keyed("addresses"));
    repository.write("maps.yaml", &maps("url"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    let check = |code: i32| {
        let checked = repository.check(&["--base", "main", "."]);
        assert_eq!(checked.code, Some(code), "{:?} {}", checked.findings, checked.stderr);
        checked
    };
    let expect = |file: &str, part: &str| {
        let checked = check(1);
        let broken = format!("broken by this branch: {part}");
        assert!(checked.tells(file, &broken), "{part}: {:?}", checked.findings);
    };
    repository.write("maps.yaml", &maps("uri"));
    expect("./keyed.yaml:4:", "it was there before");
    repository.write("maps.yaml", &maps("url"));
    repository.write("keyed.yaml", &keyed("less"));
    expect("./keyed.yaml:4:", "it was there before");
    repository.write("keyed.yaml", &keyed("addresses"));
    fs::remove_file(repository.path.join("external.yaml")).expect("is there");
    expect("./made.yaml:4:", "Secret \"made\" is gone");
    repository.write("external.yaml", &external("made"));
    check(0);
    // What a program fills in may hold it too.
    for (text, code) in [("apiVersion: [", 2), ("{{ if true }}\na: [b\n{{ end }}\n", 0)] {
        repository.write("secret.yaml", text);
        repository.write("other.yaml", &secret("other", "REDIS_URL"));
        let checked = check(code);
        assert!(!checked.findings.iter().any(|it| it.contains("broken")), "{:?}", checked.findings);
        if code == 2 {
            let unreadable = "it may be in ./secret.yaml, not all of which can be read now";
            assert!(checked.tells("./held.yaml:4:", unreadable), "{:?}", checked.findings);
        }
    }
}

/// What moved to a file that cannot be read is not gone with the other one.
#[test]
fn what_moved_to_a_file_that_cannot_be_read_is_not_gone() {
    let memory = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: a}\n\
                  spec: {backend: in-context}\n";
    let agent = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: a}\n\
                 spec: {model: m, systemPrompt: p, memoryRef: {name: notes}}\n";
    let repository = Repository::new();
    repository.write("memory.yaml", memory);
    repository.write("agent.yaml", agent);
    repository.commit();
    fs::remove_file(repository.path.join("memory.yaml")).expect("is there");
    repository.write("moved.yaml", &memory.replace("in-context}", "in-context"));
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(2), "{:?} {}", checked.findings, checked.stderr);
    let unreadable = "it may be in ./moved.yaml, not all of which can be read now";
    assert!(checked.tells("./agent.yaml:4:", unreadable), "{:?}", checked.findings);
    let hidden = "ArkMemory \"notes\" is not judged any more";
    assert!(checked.tells("moved.yaml:1:1: deny [memgate/not-judged]", hidden), "{:?}", checked.findings);
    assert!(!checked.findings.iter().any(|it| it.contains("broken")), "{:?}", checked.findings);
}

/// The rules of the base count for what the branch broke too, and no cluster denies that.
#[test]
fn the_rules_of_the_base_count_for_what_the_branch_broke() {
    let memory = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: NAME, namespace: a}\n\
                  spec: {backend: in-context}\n";
    let agent = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: a}\n\
                 spec:\n  model: m\n  systemPrompt: p\n  memoryRef:\n    name: notes\n";
    let ignored = "    # memgate: ignore[arkonis/memory-not-found] later\n    name: notes";
    let repository = Repository::new();
    for (severity, code, expected) in [
        ("deny", 1, "deny [arkonis/memory-not-found]"),
        ("warn", 0, "warn [arkonis/memory-not-found]"),
        ("note", 0, "note [arkonis/memory-not-found]"),
        ("off", 0, ""),
    ] {
        let rules = format!("rules: [{{codes: ['arkonis/memory-not-found'], severity: '{severity}'}}]\n");
        repository.write(".memgate.yaml", &rules);
        repository.write("memory.yaml", &memory.replace("NAME", "notes"));
        repository.write("agent.yaml", agent);
        repository.commit();
        repository.write("memory.yaml", &memory.replace("NAME", "other"));
        let checked = repository.check(&["--base", "HEAD", "."]);
        assert_eq!(checked.code, Some(code), "{severity}: {:?} {}", checked.findings, checked.stderr);
        let told = checked.tells("./agent.yaml:8:", "broken by this branch");
        assert_eq!(told, !expected.is_empty(), "{severity}: {:?}", checked.findings);
        assert!(checked.tells("", expected) || expected.is_empty(), "{severity}: {:?}", checked.findings);
        assert!(!checked.findings.iter().any(|it| it.contains("the cluster")), "{:?}", checked.findings);
        // A comment of the branch does not count yet.
        repository.write("agent.yaml", &agent.replace("    name: notes", ignored));
        let checked = repository.check(&["--base", "HEAD", "."]);
        assert_eq!(checked.code, Some(code), "{severity}: {:?} {}", checked.findings, checked.stderr);
        assert!(!checked.findings.iter().any(|it| it.contains("the cluster")), "{:?}", checked.findings);
    }
}

/// The formats for programs say which findings are old.
#[test]
fn old_findings_have_a_mark() {
    let repository = Repository::new();
    repository.write("old.yaml", &denied("old"));
    repository.commit();
    repository.write("new.yaml", &denied("new"));
    for (format, mark) in [("json", "\"known\": true"), ("sarif", "\"baselineState\": \"unchanged\"")] {
        let mut command = repository.command(env!("CARGO_BIN_EXE_memgate"));
        let output =
            command.args(["check", "--base", "main", "-o", format, "."]).output().expect("memgate runs");
        let report = text(&output.stdout);
        assert_eq!(report.matches(mark).count(), 1, "{report}");
    }
}
