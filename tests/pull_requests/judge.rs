//! A branch does not choose by what it is judged: its own file of choices, and the policies, exemptions and
//! labels of Namespaces among its manifests count as they are in the commit that it is compared with.

use std::fs;
use std::os::unix::fs::symlink;

use crate::repository::{Checked, Repository, denied, text};

/// What a branch does to the files.
type Change = fn(&Repository);

/// A policy that denies memory in the process, in namespaces with this label.
fn policy(name: &str, label: &str) -> String {
    format!(
        "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {{name: {name}}}\nspec:\n  \
         actions: {{ci: deny}}\n  exemptions: {{namespaces: [platform], maxAge: 90d}}\n  match: {{namespaceSelector: \
         {{matchLabels: {{env: {label}}}}}}}\n  rules: [{{id: durable, backends: {{durable: true}}}}]\n"
    )
}

fn namespace(name: &str, label: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {{env: {label}}}}}\n")
}

fn exemption(name: &str, memory: &str) -> String {
    format!(
        "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicyExemption\nmetadata: {{name: {name}, namespace: \
         platform}}\nspec:\n  policy: durable\n  rules: [durable]\n  target: {{namespaces: [team-a], names: [{memory}]}}\n  \
         reason: moves to redis soon\n  from: \"2026-12-01T00:00:00Z\"\n  expiresAt: \"2027-01-31T00:00:00Z\"\n"
    )
}

fn fleeting(name: &str) -> String {
    format!(
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: {name}, namespace: team-a}}\n\
         spec: {{backend: in-context}}\n"
    )
}

/// A repository with a policy, a Namespace, an exemption and the choices of the repository on its main branch.
fn governed(choices: &str) -> Repository {
    let repository = Repository::new();
    repository.write("policies/durable.yaml", &policy("durable", "prod"));
    repository.write("policies/exempt.yaml", &exemption("old", "old"));
    repository.write("namespaces/team-a.yaml", &namespace("team-a", "prod"));
    repository.write("deploy/old.yaml", &fleeting("old"));
    if !choices.is_empty() {
        repository.write(".memgate.yaml", choices);
    }
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository
}

const AT: [&str; 4] = ["--at", "2026-12-16T00:00:00Z", "--base", "main"];

fn check(repository: &Repository, more: &[&str]) -> Checked {
    repository.check(&[&AT, more].concat())
}

/// Whether a finding in this file has this in it.
fn tells(checked: &Checked, file: &str, part: &str) -> bool {
    let is_in = |finding: &String| finding.trim_start_matches("./").starts_with(file);
    checked.findings.iter().any(|finding| is_in(finding) && finding.contains(part))
}

/// Expects that the branch is denied for its memory, and that a note says this of what it changed.
fn expect_denied(repository: &Repository, more: &[&str], note: &str, what: &str) {
    let checked = check(repository, more);
    assert_eq!(checked.code, Some(1), "{what}: {:?} {}", checked.findings, checked.stderr);
    assert!(tells(&checked, "deploy/new.yaml", "deny ["), "{what}: {:?}", checked.findings);
    assert!(checked.stderr.contains(note), "{what}: {note}: {}", checked.stderr);
}

/// Each key of the file, and each form of the file itself.
#[test]
fn the_choices_are_those_of_the_commit() {
    let nothing =
        "changed by this branch and counted as in main; takes effect after the merge: .memgate.yaml";
    for (before, now, expected) in [
        ("strict: false\n", "paths: [other]\n", "(paths, strict)"),
        ("strict: false\n", "exclude: [new.yaml]\n", "(exclude, strict)"),
        ("strict: false\n", "exclude: [deploy]\n", "(exclude, strict)"),
        ("strict: false\n", "families: [orka]\n", "(families, strict)"),
        ("strict: false\n", "rules: [{codes: ['arkonis/*'], severity: 'off'}]\n", "(rules, strict)"),
        ("strict: false\n", "settings: {families: [orka]}\n", "(settings, strict)"),
        ("paths: [deploy]\n", "paths: [other]\n", "(paths)"),
        ("paths: [deploy]\n", "paths: [\n", "(cannot be read)"),
        ("paths: [deploy]\n", "paths: [deploy]\n---\n{}\n", "(cannot be read)"),
        ("paths: [deploy]\n", "unknown: 1\n", "(paths, unknown)"),
    ] {
        let repository = governed(before);
        repository.write("deploy/new.yaml", &denied("new"));
        repository.write("other/a.yaml", &fleeting("old"));
        repository.write(".memgate.yaml", now);
        repository.commit();
        expect_denied(&repository, &[], &format!("{nothing} {expected}"), now);
    }
    let ways: [(&str, Change, &str); 5] = [
        ("removed", |it| fs::remove_file(it.path.join(".memgate.yaml")).expect("is there"), " (removed)"),
        (
            "a link",
            |it| {
                it.write("choices.yaml", "paths: [other]\n");
                fs::remove_file(it.path.join(".memgate.yaml")).expect("is there");
                symlink("choices.yaml", it.path.join(".memgate.yaml")).expect("a link");
            },
            " (cannot be read)",
        ),
        (
            "a directory",
            |it| {
                fs::remove_file(it.path.join(".memgate.yaml")).expect("is there");
                it.write(".memgate.yaml/a.yaml", "{}");
            },
            " (cannot be read)",
        ),
        (
            "not text",
            |it| fs::write(it.path.join(".memgate.yaml"), [0xFF]).expect("a file"),
            " (cannot be read)",
        ),
        ("the same", |_| (), ""),
    ];
    for (what, change, expected) in ways {
        let repository = governed("paths: [deploy]\n");
        repository.write("deploy/new.yaml", &denied("new"));
        change(&repository);
        repository.commit();
        let note = if expected.is_empty() { String::new() } else { format!("{nothing}{expected}") };
        expect_denied(&repository, &[], &note, what);
    }
}

/// The next run on the main branch would end with this error.
#[test]
fn choices_that_the_branch_breaks_are_an_error() {
    let rows = [
        (false, "paths: [\n", "unclosed bracket"),
        (false, "unknown: 1\n", "unknown"),
        (false, "exclude: [\"[a\"]\n", "unclosed character class"),
        (true, "paths: [\n", "unclosed"),
    ];
    for (is_new, now, expected) in rows {
        let repository = governed("paths: [deploy]\n");
        if is_new {
            fs::remove_file(repository.path.join(".memgate.yaml")).expect("is there");
            repository.git(&["add", "--all"]);
            repository.git(&["commit", "--quiet", "--amend", "--message", "a"]);
            repository.git(&["branch", "--force", "main"]);
        }
        repository.write(".memgate.yaml", now);
        repository.commit();
        let checked = check(&repository, &[]);
        assert_eq!(checked.code, Some(2), "{:?} {}", checked.findings, checked.stderr);
        let mut lines = checked.stderr.lines();
        let is_said = |line: &str| line.starts_with("error: ") && line.contains(expected);
        assert!(lines.by_ref().any(is_said), "{}", checked.stderr);
        assert!(lines.any(|line| line.contains("--> .memgate.yaml:1:")), "{}", checked.stderr);
        // It stands in each format, at its line.
        let formats = ["json", "github", "sarif", "gitlab", "junit", "markdown", "html", "concise"];
        for format in formats {
            let mut command = repository.command(env!("CARGO_BIN_EXE_memgate"));
            let output =
                command.args(["check", "--base", "main", "-o", format]).output().expect("memgate runs");
            let report = text(&output.stdout);
            assert_eq!(output.status.code(), Some(2), "{format}: {}", text(&output.stderr));
            let part = report.contains(expected) && report.contains(".memgate.yaml");
            assert!(part, "{format}: {report}");
        }
    }
}

/// Keys that weaken no finding but the exit code, and those that name what is not in the files.
#[test]
fn the_other_keys_are_those_of_the_commit() {
    let repository = governed("failOn: warn\nnamespace: team-a\n");
    repository.write("deploy/new.yaml", &fleeting("new").replace("in-context}", "in-context, backnd: a}"));
    repository.write("policies/durable.yaml", "");
    repository.write(".memgate.yaml", "failOn: deny\nnamespace: team-b\nstrict: false\n");
    repository.commit();
    let checked = check(&repository, &["deploy"]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.stderr.contains(".memgate.yaml (failOn, namespace, strict)"), "{}", checked.stderr);

    let labels = |label: &str| format!("namespaces: {{'team-*': {{env: {label}}}}}\n");
    for now in [labels("dev"), String::new()] {
        let repository = governed(&labels("prod"));
        fs::remove_file(repository.path.join("namespaces/team-a.yaml")).expect("is there");
        repository.git(&["add", "--all"]);
        repository.git(&["commit", "--quiet", "--amend", "--message", "a"]);
        repository.git(&["branch", "--force", "main"]);
        repository.write("deploy/new.yaml", &fleeting("new"));
        repository.write(".memgate.yaml", &now);
        // A manifest that is new does not undo the labels of the choices either.
        repository.write("deploy/namespace.yaml", &namespace("team-a", "dev"));
        repository.commit();
        expect_denied(&repository, &[], ".memgate.yaml (namespaces)", &now);
    }
}

/// A file of choices in a sub directory, or where the commit has none.
#[test]
fn new_choices_do_not_count_yet() {
    for (choices, place) in [("strict: false\n", "deploy/.memgate.yaml"), ("", ".memgate.yaml")] {
        let repository = governed(choices);
        repository.write("deploy/new.yaml", &denied("new"));
        repository.write(place, "rules: [{codes: ['arkonis/*'], severity: 'off'}]\nexclude: ['new.*']\n");
        repository.commit();
        expect_denied(&repository, &["deploy"], &format!("{place} (new)"), place);
        expect_denied(&repository, &["--project", place, "deploy"], &format!("{place} (new)"), place);
    }
    let repository = governed("");
    repository.write("deploy/new.yaml", &denied("new"));
    let outside = repository.beside_it("choices.yaml");
    fs::write(&outside, "rules: [{codes: ['arkonis/*'], severity: 'off'}]\n").expect("a file");
    let outside = outside.to_string_lossy().into_owned();
    let checked = check(&repository, &["--project", &outside, "deploy"]);
    assert_eq!(checked.code, Some(0), "the job gives it: {:?} {}", checked.findings, checked.stderr);
}

/// Every way to weaken a policy, an exemption or a Namespace among the manifests.
#[test]
fn what_judges_counts_as_in_the_commit() {
    let remove = |it: &Repository, name: &str| fs::remove_file(it.path.join(name)).expect("is there");
    let ways: [(&str, Change, &str); 14] = [
        ("nothing", |_| (), ""),
        (
            "a weaker policy",
            |it| it.write("policies/durable.yaml", &policy("durable", "prod").replace("deny", "report")),
            "MemoryPolicy durable",
        ),
        (
            "another selector",
            |it| it.write("policies/durable.yaml", &policy("durable", "none")),
            "MemoryPolicy durable",
        ),
        (
            "no policy",
            |it| fs::remove_file(it.path.join("policies/durable.yaml")).expect("is there"),
            "MemoryPolicy durable (removed from policies/durable.yaml)",
        ),
        (
            "a hidden file",
            |it| {
                it.git(&["mv", "policies/durable.yaml", "policies/.durable.yaml"]);
            },
            "MemoryPolicy durable (removed from policies/durable.yaml)",
        ),
        (
            "no manifest any more",
            |it| {
                it.git(&["mv", "policies/durable.yaml", "policies/durable.txt"]);
            },
            "MemoryPolicy durable (removed from policies/durable.yaml)",
        ),
        (
            "another of the same name",
            |it| it.write("zzz/durable.yaml", &policy("durable", "none")),
            "MemoryPolicy durable",
        ),
        (
            "moved and weakened, in a List",
            |it| {
                fs::remove_file(it.path.join("policies/durable.yaml")).expect("is there");
                let item = policy("durable", "none").replace('\n', "\n  ");
                it.write("a/list.yaml", &format!("apiVersion: v1\nkind: List\nitems:\n- {}\n", item.trim()));
            },
            "MemoryPolicy durable (a/list.yaml)",
        ),
        (
            "another label",
            |it| it.write("namespaces/team-a.yaml", &namespace("team-a", "dev")),
            "labels of Namespace team-a",
        ),
        (
            "no label",
            |it| {
                it.write(
                    "namespaces/team-a.yaml",
                    "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n",
                );
            },
            "labels of Namespace team-a",
        ),
        (
            "no Namespace",
            |it| fs::remove_file(it.path.join("namespaces/team-a.yaml")).expect("is there"),
            "labels of Namespace team-a (removed from namespaces/team-a.yaml)",
        ),
        (
            "the Namespace twice",
            |it| it.write("zzz/team-a.yaml", &namespace("team-a", "dev")),
            "labels of Namespace team-a",
        ),
        (
            "a wider exemption",
            |it| it.write("policies/exempt.yaml", &exemption("old", "\"*\"")),
            "MemoryPolicyExemption platform/old",
        ),
        (
            "a wider exemption in another file",
            |it| it.write("zzz/exempt.yaml", &exemption("old", "\"*\"")),
            "MemoryPolicyExemption platform/old (zzz/exempt.yaml)",
        ),
    ];
    for (what, change, expected) in ways {
        let repository = governed("");
        repository.write("deploy/new.yaml", &fleeting("new"));
        change(&repository);
        repository.commit();
        expect_denied(&repository, &["."], expected, what);
    }
    // What the branch takes away, it does not take from itself.
    let repository = governed("");
    remove(&repository, "policies/exempt.yaml");
    repository.commit();
    let checked = check(&repository, &["."]);
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    let note = "takes effect after the merge: MemoryPolicyExemption platform/old (removed from policies/exempt.yaml)";
    assert!(checked.stderr.contains(note), "{}", checked.stderr);
    // A policy that cannot be read is an error, whatever counts.
    let repository = governed("");
    repository.write("policies/durable.yaml", "apiVersion: [");
    repository.commit();
    assert_eq!(check(&repository, &["."]).code, Some(2));
}

/// What the commit does not have counts, and a note says that it is new.
#[test]
fn what_is_new_counts_and_is_listed() {
    let repository = governed("");
    repository.write("deploy/new.yaml", &fleeting("new").replace("team-a", "team-b"));
    repository.write("namespaces/team-b.yaml", &namespace("team-b", "prod"));
    repository.commit();
    let checked = check(&repository, &["."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    let note = "note: new in this branch, and counted: labels of Namespace team-b\n";
    assert!(checked.stderr.contains(note), "{}", checked.stderr);
    // But not against what the job gives.
    let given = repository.beside_it("given.yaml");
    fs::write(&given, namespace("team-b", "prod")).expect("a file");
    repository.write("namespaces/team-b.yaml", &namespace("team-b", "dev"));
    repository.commit();
    let given = given.to_string_lossy().into_owned();
    let checked = check(&repository, &["--with", &given, "."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    assert!(checked.stderr.contains("Namespace team-b (the job gives another one)"), "{}", checked.stderr);
}

/// A branch that began before the policy was there is judged by it too.
#[test]
fn an_old_branch_is_judged_by_the_commit_that_is_named() {
    let repository = Repository::new();
    repository.write("deploy/old.yaml", &fleeting("old"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.write("deploy/new.yaml", &fleeting("new"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "main"]);
    repository.write("policies/durable.yaml", &policy("durable", "prod"));
    repository.write("namespaces/team-a.yaml", &namespace("team-a", "prod"));
    repository.commit();
    repository.git(&["checkout", "--quiet", "feature"]);
    let checked = check(&repository, &["."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    assert!(tells(&checked, "deploy/new.yaml", "deny [policy/durable/durable]"), "{:?}", checked.findings);
    assert!(tells(&checked, "deploy/old.yaml", "already in main"), "{:?}", checked.findings);
}

/// The value that was judged belongs to a known finding: a Secret, a host, a number.
#[test]
fn an_accepted_value_cannot_be_exchanged() {
    let policy = "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: p}\nspec:\n  actions: {ci: \
                  deny}\n  rules:\n  - {id: ttl, retention: {max: 30d}}\n  - {id: secret, secrets: {names: [ok-*]}}\n  \
                  - {id: host, endpoint: {hosts: [ok.example]}}\n";
    let redis = |secret: &str, ttl: u32| {
        format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: a, namespace: t}}\nspec: {{backend: redis, \
             redis: {{secretRef: {{name: {secret}}}, ttlSeconds: {ttl}}}}}\n"
        )
    };
    let milvus = |host: &str| {
        format!(
            "apiVersion: orloj.dev/v1\nkind: Memory\nmetadata: {{name: a, namespace: t}}\nspec: {{type: vector, provider: \
             http, endpoint: \"https://{host}/a\"}}\n"
        )
    };
    let secret =
        |name: &str| format!("{}---\n{}", redis("ok-a", 1), denied("b").replace("{backend: redis}", name));
    let named = |name: &str| format!("{{backend: redis, redis: {{secretRef: {{name: \"{name}\"}}}}}}");
    for (before, now, is_known) in [
        (redis("x", 5_184_000), redis("x", 5_184_000), true),
        (redis("x", 5_184_000), redis("y", 5_184_000), false),
        (redis("x", 5_184_000), redis("x", 5_000_000), true),
        (redis("x", 5_184_000), redis("x", 6_000_000), false),
        (milvus("a.example"), milvus("a.example"), true),
        (milvus("a.example"), milvus("b.example"), false),
        (milvus("a.example"), milvus("a.example/b"), false),
        (secret(&named("Not_A_Name")), secret(&named("Not_A_Name")), true),
        (secret(&named("Not_A_Name")), secret(&named("Not_B_Name")), false),
    ] {
        let repository = Repository::new();
        repository.write("policies/p.yaml", policy);
        repository.write("deploy/a.yaml", &before);
        repository.commit();
        repository.write("deploy/a.yaml", &now);
        let expected = Some(i32::from(!is_known));
        let checked = repository.check(&["--base", "main", "."]);
        assert_eq!(checked.code, expected, "{before}{now}{:?} {}", checked.findings, checked.stderr);
    }
}

/// A comment of the branch does not count yet, and a note lists it. One that the commit has counts for whatever stands there.
#[test]
fn comments_count_as_in_the_commit() {
    let repository = governed("");
    let ignored = |spec: &str| {
        let comment = "# memgate: ignore[arkonis/redis-required] later\nspec:";
        denied("new").replace("spec:", comment).replace("{backend: redis}", spec)
    };
    repository.write("deploy/new.yaml", &ignored("{backend: redis}"));
    repository.commit();
    let checked = check(&repository, &["deploy"]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    let note = "takes effect after the merge: comment in deploy/new.yaml:4 (arkonis/redis-required)";
    assert!(checked.stderr.contains(note), "{}", checked.stderr);
    repository.git(&["branch", "--force", "main"]);
    repository.write("deploy/new.yaml", &ignored("{backend: redis, contextWindow: 5}"));
    let checked = check(&repository, &["deploy"]);
    assert!(!tells(&checked, "deploy/new.yaml", "deny [arkonis/redis-required]"), "{:?}", checked.findings);
    assert!(!checked.stderr.contains("comment in"), "{}", checked.stderr);
}

/// An exemption that the commit does not have counts after the merge, wherever it stands.
#[test]
fn a_new_exemption_does_not_count() {
    for place in ["policies/more.yaml", "deploy/new.yaml", "zzz/exempt.yaml"] {
        let repository = governed("");
        repository.write("deploy/new.yaml", &fleeting("new"));
        let both = if place == "deploy/new.yaml" { fleeting("new") + "---\n" } else { String::new() };
        repository.write(place, &(both + &exemption("more", "new")));
        repository.commit();
        for flags in [&["."][..], &[".", "--strict"]] {
            expect_denied(&repository, flags, "MemoryPolicyExemption platform/more (new)", place);
        }
    }
}

/// The last Secret of a namespace that the branch removes is gone, not unknown.
#[test]
fn the_last_secret_of_a_namespace_is_missed() {
    let repository = Repository::new();
    let memory = denied("a").replace("{backend: redis}", "{backend: redis, redis: {secretRef: {name: a}}}");
    repository.write("a.yaml", &memory);
    repository.write("b.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: team-a}\n");
    repository.commit();
    fs::remove_file(repository.path.join("b.yaml")).expect("is there");
    let checked = repository.check(&["--base", "main", "."]);
    assert_eq!(checked.code, Some(1), "{:?} {}", checked.findings, checked.stderr);
    assert!(
        tells(&checked, "a.yaml", "broken by this branch: Secret \"a\" is gone"),
        "{:?}",
        checked.findings
    );
}

/// Paths of the choices that the branch does not have any more.
#[test]
fn a_path_that_is_gone_is_listed() {
    let repository = governed("paths: [deploy, policies, namespaces]\n");
    repository.git(&["mv", "policies", "rules"]);
    repository.write("deploy/new.yaml", &fleeting("new"));
    repository.write(".memgate.yaml", "paths: [deploy, rules, namespaces]\n");
    repository.commit();
    expect_denied(&repository, &[], "policies (removed)", "moved");
}

/// A policy that the job gives counts as it is, although it is a file of the repository that the branch changes.
#[test]
fn what_the_job_gives_is_not_given_twice() {
    let repository = governed("");
    repository.write("deploy/new.yaml", &fleeting("new"));
    let given = ["--policy", "policies/durable.yaml", "."];
    expect_denied(&repository, &given, "", "the same");
    repository.write("policies/durable.yaml", &policy("durable", "prod").replace("deny", "report"));
    let checked = check(&repository, &given);
    assert_eq!(checked.code, Some(0), "{:?} {}", checked.findings, checked.stderr);
    for part in ["given twice", "after the merge"] {
        assert!(!checked.stderr.contains(part), "{}", checked.stderr);
    }
}
