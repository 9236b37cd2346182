//! That each rule is either one of a policy or known not to be, and that docs/admission-policies.md says so.
//! What policies do is shown in `tests/apiserver`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use memgate_core::admission;
use memgate_install::cel_policies;
use memgate_install::install_plan::{InstallPlan, PodSettings, WebhookEndpoint};
use memgate_model::cel::NotInCel;
use memgate_model::family::Family;
use memgate_model::finding::Severity;
use memgate_workbench::casefile::request;

use super::cases::cases;

/// The page.
const PAGE: &str = "docs/admission-policies.md";

#[test]
fn each_code_that_refuses_is_classified() {
    let refusing = refusing();
    for family in memgate_platforms::ALL {
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
    let plan = InstallPlan {
        name: "memgate".to_owned(),
        namespace: "memgate-system".to_owned(),
        image: String::new(),
        endpoint: WebhookEndpoint::Service,
        runbooks: None,
        ca: None,
        families: memgate_platforms::ALL.to_vec(),
        elsewhere: Vec::new(),
        components: BTreeSet::new(),
        flags: Vec::new(),
        pods: PodSettings::default(),
    };
    let objects: Vec<_> = cel_policies::validating(&plan).collect();
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
    let open: Vec<&str> =
        memgate_platforms::ALL.iter().filter(|it| it.validation.fails_open).map(|it| it.name).collect();
    let mut page = INTRODUCTION.replace("OPEN", &format!("AgentRuns, {}", open.join(" and ")));
    for family in memgate_platforms::ALL {
        write_policies(&mut page, family).expect("a text can be written to");
    }
    page.push_str(LEFT_OUT);
    let missing = memgate_platforms::ALL.iter().flat_map(|family| family.in_cel.missing);
    let mut left_out: Vec<(&str, Vec<String>)> = Vec::new();
    for (code, why) in missing {
        if let NotInCel::NotExpressible(reason) = why {
            add(&mut left_out, reason, format!("`{}`", code.name));
        }
    }
    for (reason, codes) in left_out {
        writeln!(page, "- {}: {reason}", codes.join(", ")).expect("a text can be written to");
    }
    page.push_str(MUTATING);
    let mut defaults: Vec<(&str, Vec<&str>)> = Vec::new();
    for family in memgate_platforms::ALL {
        add(&mut defaults, family.in_cel.about_defaults, family.name);
    }
    for (about, families) in defaults {
        writeln!(page, "- {}: {about}.", families.join(", ")).expect("a text can be written to");
    }
    page
}

/// A row for each policy of a platform.
fn write_policies(page: &mut String, family: &'static Family) -> std::fmt::Result {
    for table in family.in_cel.tables {
        let kinds: Vec<_> = table.kinds.iter().map(|kind| kind.kind).collect();
        let mut codes: Vec<_> = table.rules.iter().map(|rule| format!("`{}`", rule.code.name)).collect();
        let mut seen = BTreeSet::new();
        codes.retain(|code| seen.insert(code.clone()));
        writeln!(page, "| `memgate-{}` | {} | {} |", table.name, kinds.join(", "), codes.join(", "))?;
    }
    Ok(())
}

/// Adds a name to those of a key.
fn add<'key, Name>(groups: &mut Vec<(&'key str, Vec<Name>)>, key: &'key str, name: Name) {
    match groups.iter_mut().find(|(other, _)| *other == key) {
        Some((_, names)) => names.push(name),
        None => groups.push((key, vec![name])),
    }
}

const INTRODUCTION: &str = "\
# ValidatingAdmissionPolicies

For platform engineers who want the apiserver to refuse objects that cannot work even while memgate is away: memgate's
rules as ValidatingAdmissionPolicies. Your own are [MemoryPolicies](policy.md).

`memgate manifests --component vap` adds the rules that do not depend on other objects (Kubernetes 1.31 or newer; tested on
1.33 and 1.37). Their `failurePolicy` is `Fail`, for OPEN `Ignore`.

- A refusal has memgate's message and ends with `(memgate CODE)`; `memgate explain CODE` says what to do. It precedes the
  webhook's, and has the first fault only.
- An update may keep a stored fault if it leaves its fields alone. Updates of an object that is being deleted are refused
  only if they change its spec or metadata that means something; subresources are skipped.
- Left to the webhook: warnings, rules about other objects, pods, lists with more than 128 entries, text with more than
  4,096 characters, and list entries with more than 256.
- Less strict than memgate: an IPv4 address in IPv6 is recognised only as `::ffff:127.0.0.1`; a duration with more than 20
  characters or a number of more than six digits only has to be well-formed.
- A policy never refuses an object that memgate admits.

| policy | kinds | codes |
|---|---|---|
";

const LEFT_OUT: &str = "
Schemas refuse the other faults of a single object, but these:

";

const MUTATING: &str = "
## Defaults

`memgate manifests --component map` adds MutatingAdmissionPolicies (Kubernetes 1.36 or newer; before: `no matches for kind
\"MutatingAdmissionPolicy\"`). They write defaults that depend on at most one other
object, with a fixed name:

";
