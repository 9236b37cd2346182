//! That each rule is either one of a policy or known not to be, and that docs/admission-policies.md says so.
//! What policies do is shown in `tests/apiserver`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use memgate_core::admission;
use memgate_core::casefile::request;
use memgate_core::family;
use memgate_model::cel::NotInCel;
use memgate_model::family::Family;
use memgate_model::finding::Severity;
use memgate_server::deploy::cel_policies;

use super::cases::cases;

/// The page.
const PAGE: &str = "docs/admission-policies.md";

#[test]
fn each_code_that_refuses_is_classified() {
    let refusing = refusing();
    for family in family::ALL {
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let rules: BTreeSet<&str> = codes_in_cel(family).collect();
        let without = family.in_cel.missing.iter().map(|(code, _)| code.name);
        for code in rules.into_iter().chain(without) {
            *known.entry(code).or_default() += 1;
        }
        let twice: Vec<_> = known.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "in a table and in none: {twice:?}");
        let known: BTreeSet<String> = known.into_keys().map(str::to_owned).collect();
        let refusing = refusing.get(family.name).expect("a family refuses something");
        assert_eq!(&known, refusing, "{}", family.name);
    }
}

#[test]
fn names_are_unique() {
    let objects: Vec<_> = cel_policies::validating("memgate", &family::ALL).collect();
    let mut names = BTreeSet::new();
    for pair in objects.chunks(2) {
        let (policy, binding) = pair.first().zip(pair.get(1)).expect("a policy and its binding");
        let name = policy.pointer("/metadata/name").expect("a name").to_string();
        assert_eq!(binding.pointer("/spec/policyName").expect("a name").to_string(), name);
        assert!(names.insert(name), "a name comes twice");
        let variables = policy.pointer("/spec/variables").and_then(|all| all.as_array()).expect("variables");
        let names: BTreeSet<_> =
            variables.iter().map(|one| one.get("name").expect("a name").to_string()).collect();
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
        "{PAGE} is out of date; write it anew with BLESS=1 cargo test --test documents admission_policies"
    );
}

fn codes_in_cel(family: &'static Family) -> impl Iterator<Item = &'static str> {
    family.in_cel.tables.iter().flat_map(|table| table.rules).map(|rule| rule.code.name)
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
    for family in family::ALL {
        section(&mut page, family).expect("a text can be written to");
    }
    page.push_str(MUTATING);
    for family in family::ALL {
        let about = family.in_cel.about_defaults;
        writeln!(page, "- **{}**: {about}.", family.name).expect("a text can be written to");
    }
    page
}

fn section(page: &mut String, family: &'static Family) -> std::fmt::Result {
    let policy = if family.validation.fails_open { "Ignore" } else { "Fail" };
    writeln!(page, "\n## {}\n\n`failurePolicy: {policy}`.\n", family.name)?;
    writeln!(page, "| policy | kinds | codes |\n|---|---|---|")?;
    for table in family.in_cel.tables {
        let kinds: Vec<_> = table.kinds.iter().map(|kind| kind.kind).collect();
        let mut codes: Vec<_> = table.rules.iter().map(|rule| format!("`{}`", rule.code.name)).collect();
        let mut seen = BTreeSet::new();
        codes.retain(|code| seen.insert(code.clone()));
        writeln!(page, "| `memgate-{}` | {} | {} |", table.name, kinds.join(", "), codes.join(", "))?;
    }
    let without = family.in_cel.missing;
    let by_schema: Vec<_> = without
        .iter()
        .filter(|(_, why)| *why == NotInCel::Schema)
        .map(|(code, _)| format!("`{}`", code.name))
        .collect();
    if !by_schema.is_empty() {
        writeln!(page, "\nRefused by the schema already: {}.", by_schema.join(", "))?;
    }
    for (code, why) in without {
        if let NotInCel::NotExpressible(reason) = why {
            writeln!(page, "\nNot covered: `{}`, because {reason}.", code.name)?;
        }
    }
    Ok(())
}

const INTRODUCTION: &str = "\
# ValidatingAdmissionPolicies

These policies repeat memgate's own rules in the apiserver. An organisation's own rules are MemoryPolicies: see [Policies](policy.md).

`memgate manifests --component vap` adds ValidatingAdmissionPolicies with the rules of memgate that do not depend
on other objects. The apiserver itself evaluates them, so it refuses objects that cannot work even while no replica
of memgate runs. They use CEL functions of Kubernetes 1.31 or newer, and are tested on 1.33 and 1.37.

- A policy only refuses. The webhook handles warnings, rules about other objects, and pods.
- A refusal starts as memgate's own message does and ends with its code, `(memgate CODE)`;
  `memgate explain CODE` explains what to do. The apiserver names the first fault, memgate names all.
- An update may keep a fault that the stored object already has, as long as it does not change the fields that
  cause it. Updates of an object that is being deleted are refused only when they change its spec; subresources are skipped.
- If a policy and the webhook are both installed, the apiserver evaluates the policy first, and the refusal comes
  from the policy.
- The cost of an evaluation is bounded: policies leave lists with more than 128 entries, text with more than
  4,096 characters and list entries with more than 256 characters to the webhook.
- Policies are less strict in two cases. They recognise an IPv4 address in IPv6 only in its usual form
  `::ffff:127.0.0.1`. A duration with more than 20 characters, or with a number of more than six digits, only has
  to be well-formed.
- A policy never refuses an object that memgate admits, and never admits an object that memgate refuses by a rule
  of the policy. The tests send each case of `tests/cases`, and some 16,000 variants of their objects with missing,
  empty, null or odd parts, to a real apiserver and to memgate (`just apiserver cel_rules::`).

`BLESS=1 cargo test --test documents admission_policies` generates this page from the rules, and the same test fails when it is out of date.
";

const MUTATING: &str = "
## Defaults

`memgate manifests --component map` adds MutatingAdmissionPolicies (`admissionregistration.k8s.io/v1`,
Kubernetes 1.36 or newer; an older apiserver refuses them with `no matches for kind \"MutatingAdmissionPolicy\"`). They write the defaults that depend on at most one other object, with a fixed name:

";
