//! That each rule is either one of a policy or known not to be, and that docs/policies.md says so.
//! What policies do is shown in `tests/apiserver`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use memgate::admission;
use memgate::casefile::request;
use memgate::cli::manifests::rules;
use memgate::deploy::twin;
use memgate::family;
use memgate::model::finding::Severity;
use memgate::model::settings::Family;
use memgate::model::twin::Without;

use super::cases::cases;

/// The page.
const PAGE: &str = "docs/policies.md";

#[test]
fn each_code_that_refuses_is_classified() {
    let refusing = refusing();
    for family in Family::ALL {
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let rules: BTreeSet<&str> = twinned(family).collect();
        let without = family::without_twin(family).iter().map(|(code, _)| code.name);
        for code in rules.into_iter().chain(without) {
            *known.entry(code).or_default() += 1;
        }
        let twice: Vec<_> = known.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "in a table and in none: {twice:?}");
        let known: BTreeSet<String> = known.into_keys().map(str::to_owned).collect();
        let refusing = refusing.get(family.name()).expect("a family refuses something");
        assert_eq!(&known, refusing, "{}", family.name());
    }
}

#[test]
fn names_are_unique() {
    let twins = Family::ALL.map(rules);
    let policies = twin::validating(&twins);
    let names: BTreeSet<_> = policies.iter().map(|(policy, _)| policy.metadata.name.clone()).collect();
    assert_eq!(names.len(), policies.len());
    for (policy, binding) in policies {
        assert_eq!(binding.spec.policy_name, policy.metadata.name.expect("a name"));
        let variables = policy.spec.and_then(|spec| spec.variables).expect("variables");
        let names: BTreeSet<_> = variables.iter().map(|variable| &variable.name).collect();
        assert_eq!(names.len(), variables.len());
    }
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "{PAGE} is out of date; write it anew with BLESS=1 cargo test --test documents policies"
    );
}

fn twinned(family: Family) -> impl Iterator<Item = &'static str> {
    family::twins(family).iter().flat_map(|table| table.rules).map(|rule| rule.code.name)
}

/// The codes under which cases refuse a family's own resources, by family.
fn refusing() -> BTreeMap<String, BTreeSet<String>> {
    let mut codes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, case) in cases().expect("the case files") {
        let body = request::review(&case).to_string();
        let review = admission::parse(&body).expect("a review");
        if review.request.is_pod() {
            continue;
        }
        let state = request::state(&case).expect("a state");
        let admitted = admission::admit(&review.request, &state).expect("an answer");
        let findings = admitted.decision.findings.iter();
        for finding in findings.filter(|finding| finding.severity == Severity::Deny) {
            let (family, _) = finding.code.name.split_once('/').expect("family/name");
            codes.entry(family.to_owned()).or_default().insert(finding.code.name.to_owned());
        }
    }
    codes
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for family in Family::ALL {
        section(&mut page, family).expect("a text can be written to");
    }
    page.push_str(MUTATING);
    for family in Family::ALL {
        let about = family::about_defaults(family);
        writeln!(page, "- **{}**: {about}.", family.name()).expect("a text can be written to");
    }
    page
}

fn section(page: &mut String, family: Family) -> std::fmt::Result {
    let policy = if family::resources_fail_open(family) { "Ignore" } else { "Fail" };
    writeln!(page, "\n## {}\n\n`failurePolicy: {policy}`.\n", family.name())?;
    writeln!(page, "| policy | kinds | codes |\n|---|---|---|")?;
    for table in family::twins(family) {
        let kinds: Vec<_> = table.kinds.iter().map(|kind| kind.kind).collect();
        let mut codes: Vec<_> = table.rules.iter().map(|rule| format!("`{}`", rule.code.name)).collect();
        let mut seen = BTreeSet::new();
        codes.retain(|code| seen.insert(code.clone()));
        writeln!(page, "| `memgate-{}` | {} | {} |", table.name, kinds.join(", "), codes.join(", "))?;
    }
    let without = family::without_twin(family);
    let by_schema: Vec<_> = without
        .iter()
        .filter(|(_, why)| *why == Without::Schema)
        .map(|(code, _)| format!("`{}`", code.name))
        .collect();
    if !by_schema.is_empty() {
        writeln!(page, "\nRefused by the schema already: {}.", by_schema.join(", "))?;
    }
    for (code, why) in without {
        if let Without::Beyond(reason) = why {
            writeln!(page, "\nNot covered: `{}`, since {reason}.", code.name)?;
        }
    }
    Ok(())
}

const INTRODUCTION: &str = "\
# Policies

`memgate manifests --component vap` adds ValidatingAdmissionPolicies with memgate's own rules, as far as
an object alone shows whether they hold. The apiserver evaluates them by itself, so what cannot work is
refused even while no replica of memgate runs. They use functions that CEL has from Kubernetes 1.31 on, and
are tested on 1.36.

- A policy only refuses. Warnings, everything about other objects, and pods are for the webhook.
- A refusal starts as memgate's own message does and ends with the code in square brackets;
  `memgate explain CODE` says what to do. The apiserver tells the first fault, memgate tells all.
- A fault that the stored object has already is no reason to refuse an update, as long as what it rests on
  stays as it is. Neither is one of an object that is being deleted. Subresources are not looked at.
- Where a policy and the webhook are both installed, the apiserver asks the policy first, and a refusal is
  the policy's.
- What an evaluation may cost is bounded: a list of more than 128 entries, a text of more than 4,096
  characters and an entry of a list of more than 256 are left to the webhook.
- Two things are read less closely: an IPv4 address mapped into IPv6 counts in its usual spelling
  `::ffff:127.0.0.1` only, and a duration of more than 20 characters, or with a number of more than six
  digits, only has to be well-formed.
- Nothing may be refused that memgate admits, and what a rule covers may not be admitted where memgate
  refuses it: each case of `tests/cases`, and some 16,000 variants of their objects with parts missing,
  empty, null or odd, go to a real apiserver and to memgate (`cargo test --test apiserver cel_rules::`).

This page is made from the rules by `BLESS=1 cargo test --test documents policies`, and that test holds it up to date.
";

const MUTATING: &str = "
## Defaults

`memgate manifests --component map` adds MutatingAdmissionPolicies (`admissionregistration.k8s.io/v1`,
Kubernetes 1.36) for the defaults that need no more than one object of a fixed name:

";
