//! Sets of files in `.memgate.yaml`, which are judged apart, and rules about severities.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::run::Scratch;
use crate::schema::expect_report;

const MEMORY: &str =
    "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: team-a}\n";
pub(crate) const AGENT: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: team-a}\n\
                     spec: {model: m, systemPrompt: a, memoryRef: {name: notes}}\n";
const SETS: &str = "sets: {dev: [envs/dev, base], prod: [envs/prod, base]}\n";

pub(crate) fn memory(spec: &str) -> String {
    format!("{MEMORY}spec: {{{spec}}}\n")
}

/// Two environments with the same names, and an agent in both.
fn environments(project: &str, dev: &str, prod: &str) -> Scratch {
    Scratch::with(&[
        (".memgate.yaml", project),
        ("envs/dev/memory.yaml", &memory(dev)),
        ("envs/prod/memory.yaml", &memory(prod)),
        ("base/agent.yaml", AGENT),
    ])
}

/// Each finding as `severity code file sets`.
pub(crate) fn findings(report: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let finding = |it: &Value| {
        let sets: Vec<String> = it["sets"].as_array().into_iter().flatten().map(text).collect();
        format!("{} {} {} {}", text(&it["severity"]), text(&it["code"]), text(&it["file"]), sets.join("+"))
    };
    let mut all: Vec<String> = report["findings"].as_array().expect("findings").iter().map(finding).collect();
    all.sort();
    all
}

fn check(scratch: &Scratch, words: &[&str]) -> (Vec<String>, Option<i32>, String) {
    let output = scratch.run(&[&["check", "-o", "json"], words].concat());
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{stderr}"));
    expect_report(&report, "sets");
    (findings(&report), output.status.code(), stderr)
}

#[test]
fn sets_are_judged_apart() {
    let scratch = environments(SETS, "backend: in-context", "backend: reddis");
    let denied = "deny arkonis/backend-unknown envs/prod/memory.yaml prod";
    let (found, code, stderr) = check(&scratch, &[]);
    // What only follows from it is kept for programs.
    assert_eq!(found, [denied, "warn arkonis/memory-invalid base/agent.yaml prod"]);
    assert!(!stderr.contains("stands twice"), "{found:?} {stderr}");
    assert_eq!((code, found.iter().filter(|it| it.contains("dev")).count()), (Some(1), 0), "{found:?}");
    assert!(stderr.contains("3 objects checked in 3 files in 2 sets: 1 denied"), "{stderr}");
    let (dev, code, _) = check(&scratch, &["--set", "dev"]);
    assert_eq!((dev.len(), code), (0, Some(0)), "{dev:?}");
    assert_eq!(check(&scratch, &["--set", "prod"]).0, found);
    assert_eq!(check(&scratch, &["--set", "prod", "--set", "dev"]).0, found);
    // Typed paths are one set.
    assert!(check(&scratch, &["."]).0.iter().any(|it| it.contains("memgate/object-repeated")));
}

#[test]
fn a_finding_of_all_sets_is_shown_once() {
    let scratch = environments(SETS, "backend: redis", "backend: in-context");
    fs::write(scratch.path().join("base/agent.yaml"), memory("backend: reddis").replace("notes", "other"))
        .expect("x");
    let (found, _, stderr) = check(&scratch, &[]);
    let both = "deny arkonis/backend-unknown base/agent.yaml dev+prod".to_owned();
    assert!(found.contains(&both) && found.len() == 2, "{found:?}");
    assert!(stderr.contains(": 2 denied; 2 denials, 0 warnings"), "{stderr}");
    let text = scratch.out(&["check"]);
    assert!(text.contains("= sets: dev, prod\n") && text.contains("= set: dev\n"), "{text}");
    // A comment counts in both sets, and a fix is made once.
    let ignored =
        format!("{MEMORY}# memgate: ignore[arkonis/backend-unknown] later\nspec: {{backend: reddis}}\n");
    fs::write(scratch.path().join("base/agent.yaml"), ignored.replace("notes", "other")).expect("written");
    let (found, _, _) = check(&scratch, &[]);
    assert!(found.contains(&both.replace("deny", "note")) && found.len() == 2, "{found:?}");
    fs::write(scratch.path().join("base/agent.yaml"), memory("backend: reddis").replace("notes", "other"))
        .expect("x");
    let (_, _, stderr) = check(&scratch, &["--fix"]);
    assert!(stderr.contains("fixed 1 finding in 1 file"), "{stderr}");
    assert!(scratch.read("base/agent.yaml").contains("backend: redis}"));
}

#[test]
fn what_has_an_effect_in_one_set_has_one() {
    let policy = |namespace: &str| {
        format!(
            "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {{name: {namespace}}}\nspec:\n  \
             match: {{namespaces: [{namespace}]}}\n  rules: [{{id: a, backends: {{durable: true}}, hint: a}}]\n"
        )
    };
    let scratch = environments(SETS, "backend: in-context", "backend: in-context");
    let prod = scratch.read("envs/prod/memory.yaml").replace("team-a", "team-b");
    fs::write(scratch.path().join("envs/prod/memory.yaml"), prod).expect("written");
    for (namespace, unused) in [("team-a", 0), ("team-b", 0), ("team-c", 1)] {
        fs::write(scratch.path().join("policy.yaml"), policy(namespace)).expect("written");
        let (found, _, stderr) = check(&scratch, &["--policy", "policy.yaml"]);
        let count = found.iter().filter(|it| it.contains("policy/unused")).count();
        assert_eq!(count, unused, "{namespace} {found:?}");
        assert!(stderr.contains("; 1 policy"), "{stderr}");
    }
}

#[test]
fn a_directory_has_one_name() {
    for (sets, files) in [
        ("{dev: [./base], prod: [base/]}", 1),
        ("{dev: [base], prod: [base/../base, './base/.']}", 1),
        ("{dev: [base], prod: [envs/dev/../../base, envs/dev]}", 2),
    ] {
        let project = format!("sets: {sets}\n");
        let scratch = environments(&project, "backend: in-context", "backend: in-context");
        fs::write(
            scratch.path().join("base/agent.yaml"),
            memory("backend: reddis").replace("notes", "other"),
        )
        .expect("written");
        let (found, _, stderr) = check(&scratch, &[]);
        assert_eq!(found, ["deny arkonis/backend-unknown base/agent.yaml dev+prod"], "{sets}");
        assert_eq!(stderr.contains(&format!("{files} objects")), files > 1, "{sets} {stderr}");
    }
    let twice = "[{codes: ['*'], paths: [./legacy], severity: off}, {codes: ['*'], paths: [legacy/], severity: note}]";
    let scratch = environments(&format!("rules: {twice}\n"), "backend: in-context", "backend: in-context");
    let output = scratch.run(&["check"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("\"*\" has a rule for the same files"), "{stderr}");
}

/// An exemption in a file of several sets counts as unused if no set of these needs it.
#[test]
fn an_exemption_of_shared_files_is_used_once() {
    const POLICY: &str = "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: org}\nspec:\n  \
                          exemptions: {namespaces: [team-a], maxAge: 90d}\n  \
                          rules: [{id: durable, backends: {durable: true}, hint: a}]\n";
    let exemption = |name: &str| {
        format!(
            "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicyExemption\n\
             metadata: {{name: {name}, namespace: team-a}}\nspec: {{policy: org, rules: [durable], \
             target: {{namespaces: [team-a], names: [{name}]}}, reason: moves to redis in March, \
             from: \"2026-12-15T00:00:00Z\", expiresAt: \"2027-03-01T00:00:00Z\"}}\n"
        )
    };
    let redis = "backend: redis, redis: {secretRef: {name: redis}}";
    let scratch = environments(
        "sets: {dev: [envs/dev, base], prod: [envs/prod, base], test: [envs/test]}\n",
        redis,
        "backend: in-context",
    );
    for (file, text) in [
        ("policy.yaml", POLICY.to_owned()),
        ("base/agent.yaml", exemption("notes")),
        ("base/other.yaml", exemption("other")),
        ("envs/test/exemption.yaml", exemption("alone")),
        ("envs/test/memory.yaml", memory(redis)),
    ] {
        let path = scratch.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }
    let unused = |set: &[&str]| {
        let words = [&["--policy", "policy.yaml", "--at", "2027-01-01T00:00:00Z"], set].concat();
        let (mut found, _, _) = check(&scratch, &words);
        found.retain(|it| it.contains("policy/exemption-unused"));
        found.iter().filter_map(|it| it.split(' ').nth(2).map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(unused(&[]), ["base/other.yaml", "envs/test/exemption.yaml"]);
    // Less than the repository is read, so an exemption may have an effect on the rest.
    assert_eq!(unused(&["--set", "prod"]), [""; 0]);
    assert_eq!(unused(&["--set", "dev"]), [""; 0]);
}

/// Of two Jobs with one name, the last one counts, also if only the first one runs an agent.
#[test]
fn a_workload_twice_is_reported_if_one_runs_an_agent() {
    let job = |labels: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: engine, namespace: team-a}}\nspec:\n  template:\n    \
             metadata: {{labels: {labels}}}\n    spec:\n      restartPolicy: Never\n      containers:\n        \
             - {{name: worker, image: a, env: [{{name: ORKA_TASK_NAME, value: t}}, {{name: ORKA_TASK_NAMESPACE, value: \
             team-a}}, {{name: ORKA_CONTROLLER_URL, value: \"http://orka.team-a.svc\"}}]}}\n---\n"
        )
    };
    let (agent, other) = (job("{orka.ai/task: t, orka.ai/task-type: ai}"), job("{app: web}"));
    for (first, second, expected) in
        [(&agent, &other, 1), (&other, &agent, 1), (&agent, &agent, 1), (&other, &other, 0)]
    {
        let scratch = Scratch::with(&[("jobs.yaml", &(first.clone() + second))]);
        let (found, _, _) = check(&scratch, &["jobs.yaml"]);
        let count = found.iter().filter(|it| it.contains("memgate/object-repeated")).count();
        assert_eq!(count, expected, "{found:?}");
    }
}

#[test]
fn a_command_that_reads_one_set_asks_which() {
    let scratch = environments(SETS, "backend: redis", "backend: in-context");
    for (words, expected) in [
        (&["mutate"][..], "has the sets dev, prod, which are judged apart; choose one with --set NAME"),
        (&["view"], "has the sets dev, prod"),
        (&["mutate", "--set", "prd"], "--set prd: the sets are dev, prod; did you mean \"prod\"?"),
        (&["check", "--set", "prod", "base"], "cannot be used with '[PATH]...'"),
        (&["check", "--set", "prod", "--project", "none"], "--set prod: there are no sets"),
    ] {
        let output = scratch.run(words);
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{words:?} {stderr}");
        assert!(stderr.contains(expected), "{words:?} {stderr}");
    }
    assert!(scratch.out(&["mutate", "--set", "prod"]).contains("in-context"));
}

#[test]
fn a_set_has_files_of_the_repository() {
    for (sets, expected) in [
        ("{dev: [none], prod: [envs/prod]}", "none: no such file or directory"),
        ("{dev: [empty], prod: [envs/prod]}", "the set dev has no files: there is no manifest in empty"),
        ("{dev: [../other], prod: [envs/prod]}", "below the directory of .memgate.yaml"),
        ("{dev: [link], prod: [envs/prod]}", "below the directory of .memgate.yaml"),
        ("{dev: [/etc], prod: [envs/prod]}", "below the directory of .memgate.yaml"),
    ] {
        let scratch = Scratch::with(&[
            ("repo/.memgate.yaml", &format!("sets: {sets}\n")),
            ("repo/envs/prod/memory.yaml", &memory("backend: reddis")),
            ("repo/empty/readme.md", ""),
            ("other/memory.yaml", MEMORY),
        ]);
        symlink("../other", scratch.path().join("repo/link")).expect("a link");
        let run = |command| {
            let output = scratch.command(&[command]).current_dir(scratch.path().join("repo")).output();
            let output = output.expect("runs");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{sets} {stderr}");
            assert!(stderr.contains(expected), "{sets} {stderr}");
            String::from_utf8(output.stdout).expect("UTF-8")
        };
        let json =
            scratch.command(&["check", "-o", "json"]).current_dir(scratch.path().join("repo")).output();
        let report: Value = serde_json::from_slice(&json.expect("runs").stdout).expect("JSON");
        // A set is not a file.
        assert!(report["inputErrors"][0].get("file") != Some(&"dev".into()), "{sets} {report}");
        // The other set is checked all the same.
        assert!(run("check").contains("reddis"), "{sets}");
        run("map");
    }
}

#[test]
fn an_object_twice_is_told() {
    let scratch = Scratch::with(&[("a.yaml", &memory("backend: vector-store")), ("b.yaml", MEMORY)]);
    for flag in ["--diff", "-o=json=x.json"] {
        let output = scratch.run(&["mutate", "a.yaml", "b.yaml", flag]);
        assert!(output.status.code() != Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("stands twice"), "{output:?}");
    }
}

#[test]
fn rules_give_findings_their_severity() {
    let (denied, warned) = ("backend: redis", "backend: in-context, ttl: 5");
    for (rules, expected, status) in [
        ("", ["deny", "warn"], 1),
        ("{codes: ['*'], severity: warn}", ["warn", "warn"], 0),
        ("{codes: ['*'], severity: note}", ["note", "note"], 0),
        ("{codes: ['*'], severity: off}", ["note", ""], 0),
        ("{codes: ['*'], severity: deny}", ["deny", "deny"], 1),
        ("{codes: ['arkonis/redis-*'], severity: off}", ["note", "warn"], 0),
        (
            "{codes: [arkonis/unknown-field], severity: deny}, {codes: ['*'], severity: note}",
            ["note", "note"],
            0,
        ),
        (
            "{codes: ['*'], severity: note}, {codes: [arkonis/unknown-field], severity: deny}",
            ["note", "deny"],
            1,
        ),
        ("{codes: ['*'], paths: ['legacy/**'], severity: off}", ["note", "warn"], 0),
        ("{codes: ['*'], paths: [legacy], severity: off}", ["note", "warn"], 0),
        ("{codes: ['*'], paths: [./legacy/], severity: off}", ["note", "warn"], 0),
        ("{codes: ['*'], paths: ['*.yml', b.yaml], severity: off}", ["deny", ""], 1),
        ("{codes: ['*'], paths: ['egacy', '*/a', 'x/legacy'], severity: off}", ["deny", "warn"], 1),
    ] {
        let scratch = Scratch::with(&[
            (".memgate.yaml", &format!("rules: [{rules}]\n")),
            ("legacy/a.yaml", &memory(denied)),
            ("new/b.yaml", &memory(warned).replace("notes", "other")),
        ]);
        let (found, code, stderr) = check(&scratch, &["."]);
        let severities = |file: &str| {
            let of_file = found.iter().find(|it| it.contains(file));
            of_file.and_then(|it| it.split(' ').next()).unwrap_or_default().to_owned()
        };
        assert_eq!([severities("a.yaml"), severities("b.yaml")], expected, "{rules} {found:?}");
        assert_eq!(code, Some(status), "{rules} {stderr}");
        let lowered = [("deny", expected[0]), ("warn", expected[1])];
        let lowered =
            lowered.iter().any(|(before, after)| ["warn", "note", ""].contains(after) && before != after);
        assert_eq!(stderr.contains("(rules)"), lowered, "{rules} {stderr}");
        let shown = scratch.out(&["check", ".", "-o", "concise"]);
        let says_so = shown.contains("(a rule of the repository; the cluster still denies it)");
        assert_eq!(says_so, expected[0] != "deny", "{shown}");
        let plain = scratch.out(&["mutate", "--project", "none", "."]);
        assert_eq!(scratch.out(&["mutate", "."]), plain, "{rules}");
    }
}

/// A file has a rule by the name with which it is given, and by its own.
#[test]
fn rules_find_files_behind_links() {
    for (path, rule) in [
        ("same", "legacy/**"),
        ("same/a.yaml", "legacy"),
        ("same", "same/**"),
        ("link.yaml", "legacy/*"),
        ("link.yaml", "link.yaml"),
        ("legacy", "legacy/**"),
    ] {
        let project = format!("rules: [{{codes: ['*'], paths: ['{rule}'], severity: warn}}]\n");
        let scratch = Scratch::with(&[
            (".memgate.yaml", &project),
            (".git/config", ""),
            ("legacy/a.yaml", &memory("backend: redis")),
        ]);
        symlink("legacy", scratch.path().join("same")).expect("a link");
        symlink("legacy/a.yaml", scratch.path().join("link.yaml")).expect("a link");
        let output = scratch.run(&["check", path]);
        assert_eq!(output.status.code(), Some(0), "{path} {rule} {output:?}");
    }
}

#[test]
fn a_rule_that_fits_no_finding_gets_a_note() {
    let note = |rule: &str, words: &[&str]| {
        let project = format!("rules: [{rule}]\n");
        let text = format!(
            "{MEMORY}# memgate: ignore[arkonis/redis-required] nothing here\nspec: {{backend: in-context}}\n"
        );
        let scratch = Scratch::with(&[(".memgate.yaml", &project), ("a/a.yaml", &text)]);
        let (_, _, stderr) = check(&scratch, words);
        stderr.lines().find(|line| line.contains("fits no finding")).map(str::to_owned)
    };
    let expected = |codes: &str| Some(format!("note: the rule for {codes} in .memgate.yaml fits no finding"));
    assert_eq!(note("{codes: [ark/schema, 'orka/*'], severity: off}", &[]), expected("ark/schema, orka/*"));
    assert_eq!(note("{codes: ['*'], paths: [b], severity: note}", &[]), expected("*"));
    assert_eq!(note("{codes: ['*'], paths: [a], severity: note}", &[]), None);
    assert_eq!(note("{codes: [memgate/ignore-unused], severity: warn}", &[]), None);
    // It is about findings to come.
    assert_eq!(note("{codes: [ark/schema], severity: deny}", &[]), None);
    assert_eq!(note("{codes: [ark/schema], severity: off}", &["--quiet"]), None);
}

/// What `--strict` counts are findings, which have the severities of the repository.
#[test]
fn strict_counts_what_rules_leave() {
    let state = "apiVersion: v1\nkind: Secret\nmetadata: {name: yes, namespace: team-a}\n";
    let misspelt = "apiVersion: v1\nkind: pod\nmetadata: {name: a}\n";
    for (code, text) in [("memgate/state-unreadable", state), ("memgate/kind-misspelt", misspelt)] {
        for (severity, status) in [("off", 0), ("note", 0), ("warn", 1), ("deny", 1)] {
            let project = format!("rules: [{{codes: [{code}], severity: {severity}}}]\n");
            let scratch = Scratch::with(&[
                (".memgate.yaml", &project),
                ("a.yaml", &memory("backend: in-context")),
                ("b.yaml", text),
            ]);
            let (found, code, stderr) = check(&scratch, &["--strict", "."]);
            assert_eq!(code, Some(status), "{severity} {found:?} {stderr}");
        }
    }
}

#[test]
fn rules_come_before_comments_and_apply_to_findings_about_them() {
    let text = format!(
        "{MEMORY}# memgate: ignore[arkonis/redis-required] nothing here\nspec: {{backend: in-context}}\n"
    );
    let of = |severity: &str| {
        let rules = format!("rules: [{{codes: [memgate/ignore-unused], severity: {severity}}}]\n");
        let scratch = Scratch::with(&[(".memgate.yaml", &rules), ("a.yaml", &text)]);
        let (found, code, _) = check(&scratch, &["."]);
        (found.len(), code)
    };
    assert_eq!([of("deny"), of("warn"), of("off")], [(1, Some(1)), (1, Some(0)), (0, Some(0))]);
}

#[test]
fn the_nearest_file_of_a_path_counts() {
    let scratch = Scratch::with(&[
        (".git/config", ""),
        (".memgate.yaml", "failOn: warn"),
        ("deploy/.memgate.yaml", "failOn: deny"),
        ("deploy/x/a.yaml", &memory("backend: in-context, ttl: 5")),
        ("b.yaml", &memory("backend: in-context, ttl: 5")),
    ]);
    for (directory, words, expected) in [
        ("", &["check", "b.yaml"][..], 1),
        ("", &["check", "deploy/x/a.yaml"], 0),
        ("", &["check", "deploy"], 0),
        ("", &["check", "deploy/*/a.yaml"], 0),
        ("", &["check", "."], 1),
        ("", &["check", "deploy/x/a.yaml", "b.yaml"], 1),
        ("deploy/x", &["check", "a.yaml"], 0),
        ("deploy/x", &["check", "."], 0),
        ("deploy/x", &["check", "../../b.yaml"], 1),
        ("deploy/x", &["check", "-"], 3),
    ] {
        let output =
            scratch.command(words).current_dir(scratch.path().join(directory)).output().expect("runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{directory} {words:?} {stderr}");
        let nearest = stderr.contains("deploy/.memgate.yaml") || stderr.contains("from ../.memgate.yaml");
        assert_eq!(nearest, expected != 1, "{directory} {words:?} {stderr}");
    }
}

/// Ten thousand objects in a hundred sets of one rule each.
#[test]
fn many_sets_and_rules_are_read() {
    let mut files = Vec::new();
    let (mut sets, mut rules) = (Vec::new(), Vec::new());
    for number in 0..100 {
        let objects = (0..100)
            .map(|object| memory("backend: reddis").replace("notes", &format!("m{object}")) + "---\n");
        files.push((format!("s{number}/a.yaml"), objects.collect::<String>()));
        sets.push(format!("s{number}: [s{number}]"));
        rules.push(format!("{{codes: ['*'], paths: ['s{number}/*'], severity: warn}}"));
    }
    let (sets, rules) = (sets.join(", "), rules.join(", "));
    files.push((".memgate.yaml".to_owned(), format!("sets: {{{sets}}}\nrules: [{rules}]\n")));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let scratch = Scratch::with(&files);
    let output = scratch.run(&["check", "-o", "concise"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 10_000);
}
