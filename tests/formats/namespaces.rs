//! Labels of Namespaces in a pipeline: from which of four origins they come, and what follows when they are not known.

use crate::run::Scratch;

/// A policy for production, and a rule that takes the tenant from a label.
const POLICY: &str = r"
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: prod}
spec:
  match: {namespaceSelector: {matchLabels: {env: prod}}}
  rules:
    - {id: durable, backends: {durable: true}, hint: a}
";

const MEMORY: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: a, namespace: pay-eu}\n\
                      spec: {backend: in-context}\n";

fn namespace(label: &str) -> String {
    format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: pay-eu, labels: {{{label}}}}}\n")
}

/// The severity of the finding, the exit code with and without `--strict`, and how many findings were assumed.
fn outcome(policy: &str, project: &str, state: &str, flag: &str) -> (String, [Option<i32>; 2], u64) {
    let scratch = Scratch::with(&[
        (".memgate.yaml", project),
        ("policy.yaml", policy),
        ("memory.yaml", &format!("{MEMORY}{state}")),
    ]);
    let mut words = vec!["check", "memory.yaml", "--policy", "policy.yaml"];
    if !flag.is_empty() {
        words.extend(["--namespace-labels", flag]);
    }
    let report = scratch.json(&[&words[..], &["-o", "json"]].concat());
    let finding =
        report["findings"].as_array().expect("findings").iter().find(|it| it.get("policy").is_some());
    let severity = finding.map_or("none", |it| it["severity"].as_str().expect("a severity")).to_owned();
    let assumed = report["summary"]["assumed"].as_u64().expect("a number");
    let marked = finding.is_some_and(|it| it["policy"]["assumed"] == true);
    assert_eq!(marked, assumed > 0, "{report:#}");
    let code = |strict: &[&str]| scratch.run(&[&words[..], strict].concat()).status.code();
    let counted = String::from_utf8(scratch.run(&words).stderr).expect("UTF-8");
    assert_eq!(counted.contains(&format!("{assumed} assumed")), assumed > 0, "{counted}");
    (severity, [code(&[]), code(&["--strict"])], assumed)
}

#[test]
fn a_flag_wins_over_a_manifest_and_that_over_the_repository() {
    let (prod, lab) = ("namespaces: {\"pay-*\": {env: prod}}", "namespaces: {\"pay-*\": {env: lab}}");
    let denied = || ("deny".to_owned(), [Some(1), Some(1)], 0);
    // Nothing else is judged by the policy, so policy/unused warns.
    let passes = || ("none".to_owned(), [Some(0), Some(0)], 0);
    for (project, manifest, flag, expected) in [
        ("", "", "", ("warn".to_owned(), [Some(0), Some(1)], 1)),
        (prod, "", "", denied()),
        (lab, "", "", passes()),
        ("", "env: prod", "", denied()),
        ("", "env: lab", "", passes()),
        ("", "", "pay-eu:env=prod", denied()),
        ("", "", "pay-eu:env=lab", passes()),
        // The manifest of a Namespace counts alone, also where it lacks the label.
        (prod, "env: lab", "", passes()),
        (prod, "team: a", "", passes()),
        (lab, "env: prod", "", denied()),
        (prod, "", "pay-eu:env=lab", passes()),
        (lab, "", "pay-eu:env=prod", denied()),
        ("", "env: lab", "pay-eu:env=prod", denied()),
        (lab, "env: lab", "pay-eu:env=prod", denied()),
        (prod, "env: prod", "pay-eu:env=lab", passes()),
        // A label of another kind leaves the one of the pattern.
        (prod, "", "pay-eu:team=a", denied()),
        // A pattern that does not fit says nothing.
        ("namespaces: {\"billing-*\": {env: prod}}", "", "", ("warn".to_owned(), [Some(0), Some(1)], 1)),
        // Of several patterns later labels win, one by one.
        ("namespaces: {\"pay-*\": {env: prod}, pay-eu: {env: lab}}", "", "", passes()),
        ("namespaces: {pay-eu: {env: lab}, \"*\": {env: prod}}", "", "", denied()),
        ("namespaces: {\"*\": {env: prod}, \"pay-??\": {team: a}}", "", "", denied()),
        // A known Namespace without the label is not unknown.
        ("namespaces: {\"pay-*\": {}}", "", "", passes()),
    ] {
        let state = if manifest.is_empty() { String::new() } else { namespace(manifest) };
        let found = outcome(POLICY, project, &state, flag);
        assert_eq!(found, expected, "{project} | {manifest} | {flag}");
    }
}

/// What depends on an unknown Namespace fails a strict run, unless it could not refuse or warn anyway.
#[test]
fn what_needs_an_unknown_namespace_fails_a_strict_run() {
    let selector = "match: {namespaceSelector: {matchLabels: {env: prod}}}";
    let negative = "match: {namespaceSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}}";
    let own_name = "match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: pay-eu}}}";
    let everything = "match: {namespaceSelector: {}}";
    let durable = "backends: {durable: true}";
    let tenant = "tenancy: {from: {namespaceLabel: team}, required: true}";
    for (matching, rule, severity, strict, assumed) in [
        (selector, durable, "warn", 1, 1),
        (negative, durable, "warn", 1, 1),
        (own_name, durable, "deny", 1, 0),
        (everything, durable, "deny", 1, 0),
        (selector, &format!("{durable}, action: {{ci: warn}}"), "warn", 1, 1),
        (selector, &format!("{durable}, action: {{ci: report}}"), "note", 0, 0),
        (selector, &format!("{durable}, action: {{ci: none}}"), "none", 0, 0),
        (everything, tenant, "note", 1, 1),
        (everything, &format!("{tenant}, onUnknown: warn"), "warn", 1, 1),
        (everything, &format!("{tenant}, action: {{ci: report}}"), "note", 0, 0),
        (everything, "retention: {max: 30d}", "none", 0, 0),
    ] {
        let policy = format!(
            "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {{name: p}}\nspec:\n  {matching}\n  \
             rules:\n    - {{id: a, {rule}, hint: a}}\n"
        );
        let found = outcome(&policy, "", "", "");
        let denied = i32::from(severity == "deny");
        assert_eq!(found, (severity.to_owned(), [Some(denied), Some(strict)], assumed), "{matching} {rule}");
    }
}

/// An audit only reports: there the action at admission counts.
#[test]
fn a_strict_audit_looks_at_the_action_of_admission() {
    for (action, strict) in [("warn", 1), ("deny", 1), ("report", 0), ("none", 0)] {
        let policy = POLICY.replace("  rules:", &format!("  actions: {{admission: {action}}}\n  rules:"));
        for (project, expected) in [("", strict), ("namespaces: {\"pay-*\": {env: prod}}", 0)] {
            let scratch = Scratch::with(&[
                (".memgate.yaml", project),
                ("policy.yaml", &policy),
                ("memory.yaml", MEMORY),
            ]);
            let output = scratch.run(&["audit", "memory.yaml", "--policy", "policy.yaml", "--strict"]);
            assert_eq!(output.status.code(), Some(expected), "{action} {project}");
        }
    }
}

/// An exempt finding does not fail a strict run.
#[test]
fn what_is_exempt_is_not_assumed() {
    let exempted =
        POLICY.replace("  rules:", "  exemptions: {namespaces: [platform], maxAge: 90d}\n  rules:");
    let exemption = "---\napiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicyExemption\n\
                     metadata: {name: pay, namespace: platform}\nspec:\n  policy: prod\n  rules: [durable]\n  \
                     target: {namespaces: [pay-eu]}\n  reason: moves with the next release\n  \
                     from: \"2027-01-01T00:00:00Z\"\n  expiresAt: \"2027-03-01T00:00:00Z\"\n";
    let policy = format!("{exempted}{exemption}");
    let scratch = Scratch::with(&[("policy.yaml", &policy), ("memory.yaml", MEMORY)]);
    let at = ["--at", "2027-02-01T00:00:00Z", "--strict"];
    let output = scratch.run(&[&["check", "memory.yaml", "--policy", "policy.yaml"][..], &at].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("1 note"), "{said}");
}
