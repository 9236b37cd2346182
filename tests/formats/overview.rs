//! The overview of `audit` and `what-if`: denials first, notes by rule, and a table whose numbers are those of the
//! findings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::run::Scratch;
use crate::schema::expect_report;

/// Two policies with actions of all kinds, a rule that cannot be judged without a Namespace, and an exemption.
const POLICIES: &str = r#"
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: base}
spec:
  promote: {at: "2027-01-15T00:00:00Z", to: deny}
  exemptions: {namespaces: [platform], maxAge: 90d}
  rules:
    - {id: durable, backends: {durable: true}, hint: a}
    - {id: owned, labels: {required: [team]}, hint: a, action: {admission: report, ci: warn}}
---
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: prod}
spec:
  actions: {admission: deny}
  match: {namespaceSelector: {matchLabels: {env: prod}}}
  rules:
    - {id: named, labels: {required: [name, cost]}, hint: a}
    - {id: own, labels: {values: {team: [b]}}, hint: a}
---
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicyExemption
metadata: {name: lab, namespace: platform}
spec:
  policy: base
  rules: [durable]
  target: {namespaces: [lab]}
  reason: moves with the next release
  from: "2027-01-01T00:00:00Z"
  expiresAt: "2027-03-01T00:00:00Z"
"#;

const OLD: &str = r"
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: prod}
spec:
  rules:
    - {id: named, labels: {required: [name]}, hint: a}
";

/// Memories in namespaces that are known, unknown and exempt; one that the platform refuses, and one without findings.
fn objects() -> String {
    let mut all = "apiVersion: v1\nkind: Namespace\nmetadata: {name: pay, labels: {env: prod}}\n\
                   ---\napiVersion: v1\nkind: Namespace\nmetadata: {name: lab, labels: {env: lab}}\n"
        .to_owned();
    for namespace in ["pay", "lab", "somewhere"] {
        for (name, labels, spec) in [
            ("a", "{}", "backend: in-context"),
            ("b", "{team: a}", "backend: reddis"),
            ("c", "{team: b, name: c, cost: c}", "backend: redis, redis: {secretRef: {name: x}}"),
        ] {
            let _infallible = write!(
                all,
                "---\napiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\n\
                 metadata: {{name: {name}, namespace: {namespace}, labels: {labels}}}\nspec: {{{spec}}}\n"
            );
        }
    }
    all
}

fn scratch() -> Scratch {
    Scratch::with(&[("policies.yaml", POLICIES), ("old.yaml", OLD), ("objects.yaml", &objects())])
}

/// Each command at each point, before and after the date.
fn each_run(mut visit: impl FnMut(&Scratch, &[&str])) {
    let scratch = scratch();
    for command in [&["audit"][..], &["what-if"], &["what-if", "--base", "old.yaml"]] {
        for point in ["admission", "ci", "audit"] {
            for at in ["2027-01-10T00:00:00Z", "2027-02-10T00:00:00Z"] {
                let rest = ["--policy", "policies.yaml", "objects.yaml", "--point", point, "--at", at];
                visit(&scratch, &[command, &rest].concat());
            }
        }
    }
}

/// The severity of a finding at admission for an audit, else its own.
fn effect(finding: &Value) -> &str {
    match (finding["severity"].as_str(), finding["policy"]["atAdmission"].as_str()) {
        (Some("deny"), _) | (_, Some("deny")) => "denials",
        (Some("warn"), _) | (_, Some("warn")) => "warnings",
        _ => "notes",
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

#[test]
fn the_table_has_the_numbers_of_the_findings() {
    let mut rows = 0;
    each_run(|scratch, words| {
        let report = scratch.json(&[words, &["-o", "json"]].concat());
        expect_report(&report, &words.join(" "));
        let mut expected: BTreeMap<(String, String), [u64; 4]> = BTreeMap::new();
        // what-if has the findings of changes only.
        let of_all = scratch.json(&[&["audit"], &words[words.len() - 7..], &["-o", "json"]].concat());
        let is_audit = words[0] == "audit";
        for finding in of_all["findings"].as_array().expect("findings") {
            let (policy, effect) = (&finding["policy"]["name"], effect(finding));
            if policy.is_null() && (effect == "notes" || !is_audit) {
                continue;
            }
            let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
            let numbers = expected.entry((text(policy), text(&finding["object"]["namespace"]))).or_default();
            numbers[0] += u64::from(effect == "denials");
            numbers[1] += u64::from(effect == "warnings");
            numbers[2] += u64::from(finding["policy"]["status"] == "exempt");
            numbers[3] += 1;
        }
        let of_row =
            |row: &Value| ["denials", "warnings", "exempted", "findings"].map(|column| number(&row[column]));
        let key = |row: &Value| {
            let text = |key: &str| row[key].as_str().unwrap_or("").to_owned();
            (text("policy"), text("namespace"))
        };
        let table = report["table"].as_array().expect("a table");
        let found: BTreeMap<_, _> = table.iter().map(|row| (key(row), of_row(row))).collect();
        assert_eq!(found, expected, "{words:?}");
        let sums = found.values().fold([0; 4], |mut all, row| {
            all.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
            all
        });
        assert_eq!(of_row(&report["total"]), sums, "{words:?}");
        assert_eq!(report["total"]["objects"], 9, "{words:?}");
        rows += table.len();
    });
    assert!(rows > 60, "{rows}");
}

#[test]
fn denials_come_first_and_notes_of_a_rule_are_one_line() {
    each_run(|scratch, words| {
        let report = scratch.json(&[words, &["-o", "json"]].concat());
        let findings = report["findings"].as_array().expect("findings");
        let rank =
            |it: &Value| ["deny", "warn", "note"].iter().position(|severity| it["severity"] == *severity);
        assert!(findings.iter().is_sorted_by_key(rank), "{words:?}");
        let text = scratch.out(words);
        let notes = text.lines().filter(|line| line.starts_with("note["));
        let mut rules: Vec<&str> = notes.map(|line| line.split(']').next().expect("a code")).collect();
        let count = rules.len();
        rules.sort_unstable();
        rules.dedup();
        assert_eq!(rules.len(), count, "{words:?}\n{text}");
        let place = |what: &str| text.find(what);
        for (first, then) in [("deny[", "\nwarn["), ("\nwarn[", "\nnote["), ("newly denied", "newly warned")]
        {
            assert!(place(first) <= place(then) || place(then).is_none(), "{words:?}\n{text}");
        }
        let last = text.lines().last().expect("a line");
        assert!(last.starts_with("total  ") || last.starts_with("total "), "{words:?}\n{text}");
        let listed = scratch.out(&[words, &["-v"]].concat());
        if words[0] == "audit" {
            let notes = findings.iter().filter(|it| it["severity"] == "note").count();
            assert_eq!(listed.lines().filter(|line| line.starts_with("note[")).count(), notes, "{listed}");
        }
    });
}

#[test]
fn the_table_counts_what_is_not_shown() {
    let keys: Vec<String> = (0..100).map(|number| format!("k{number}")).collect();
    let policy = format!(
        "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {{name: many}}\nspec:\n  rules:\n    \
         - {{id: labels, labels: {{required: [{}]}}, hint: a}}\n",
        keys.join(", ")
    );
    let memory = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: a, namespace: b}\n\
                  spec: {backend: reddis}\n";
    let scratch = Scratch::with(&[("policy.yaml", &policy), ("memory.yaml", memory)]);
    for (point, expected) in [("ci", [100, 0]), ("admission", [0, 100]), ("audit", [0, 100])] {
        let words = ["audit", "--policy", "policy.yaml", "memory.yaml", "--point", point, "-o", "json"];
        let report = scratch.json(&words);
        let of = |row: &Value| ["denials", "warnings"].map(|column| number(&row[column]));
        let rows = report["table"].as_array().expect("rows");
        assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), [[1, 0], expected], "{point}");
        assert_eq!(of(&report["total"]), [expected[0] + 1, expected[1]], "{point}");
    }
}

/// An object that is denied already, by the platform or a policy, and gets one more denial.
#[test]
fn one_more_denial_is_a_change() {
    let rule = |rules: &str| {
        format!(
            "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {{name: house}}\nspec: {{rules: [{rules}]}}\n"
        )
    };
    let durable = "{id: durable, backends: {durable: true}, hint: a}";
    let owned = "{id: owned, labels: {required: [team]}, hint: a}";
    let warned = "{id: owned, labels: {required: [team]}, hint: a, action: {ci: warn}}";
    let both = format!("{durable}, {owned}");
    for (backend, old, new, changed) in [
        ("reddis", "", owned, Some("owned")),
        ("reddis", "", warned, None),
        ("in-context", durable, &both, Some("owned")),
        ("in-context", durable, owned, Some("owned")),
        ("in-context", &both, durable, None),
        ("in-context", &both, &both, None),
        ("in-context", &format!("{durable}, {warned}"), &both, Some("owned")),
    ] {
        let memory = format!(
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {{name: a, namespace: b}}\nspec: {{backend: {backend}}}\n"
        );
        let scratch = Scratch::with(&[
            ("memory.yaml", memory.as_str()),
            ("old.yaml", &rule(old)),
            ("new.yaml", &rule(new)),
        ]);
        let words = ["what-if", "--policy", "new.yaml", "memory.yaml", "--base", "old.yaml"];
        let words = if old.is_empty() { &words[..4] } else { &words };
        let report = scratch.json(&[words, &["-o", "json"]].concat());
        let found: Vec<&str> = report["findings"]
            .as_array()
            .expect("findings")
            .iter()
            .filter_map(|it| it["policy"]["rule"].as_str())
            .collect();
        assert_eq!(found, changed.into_iter().collect::<Vec<_>>(), "{backend} {old} {new}");
        let changes = report["changes"].as_array().expect("changes");
        assert_eq!(changes.len(), usize::from(changed.is_some()), "{changes:?}");
        assert!(changes.iter().all(|it| it["from"] == "denied" && it["to"] == "denied"), "{changes:?}");
        let output = scratch.run(words);
        assert_eq!(output.status.code(), Some(0), "nothing is newly denied");
        let said = String::from_utf8_lossy(&output.stderr).contains("1 denied already, and by more rules");
        assert_eq!(said, changed.is_some());
    }
}

/// Paths and the choices of the repository come before the cluster of the environment; without one the
/// working directory is read.
#[test]
fn the_environment_names_a_cluster_where_nothing_else_is_given() {
    let scratch = scratch();
    for command in ["audit", "what-if"] {
        for (rest, kubeconfig, asks_cluster) in [
            (&[][..], "missing.yaml", true),
            (&["objects.yaml"], "missing.yaml", false),
            (&["--project", "choices.yaml"], "missing.yaml", false),
            (&[], "", false),
        ] {
            std::fs::write(scratch.path().join("choices.yaml"), "paths: [objects.yaml]").expect("written");
            let mut run = scratch.command(&[&[command, "--policy", "policies.yaml"], rest].concat());
            let output = run.env("KUBECONFIG", kubeconfig).output().expect("memgate runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(said.contains("found no cluster"), asks_cluster, "{command} {rest:?} {said}");
            let is_judged = !rest.is_empty() && said.contains("9 objects");
            assert_eq!(is_judged, !rest.is_empty(), "{command} {rest:?} {said}");
        }
    }
}
