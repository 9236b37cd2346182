//! Finds what a valid policy never judges: a kind that it names and no rule judges, and a `when` that can never hold.
//!
//! Nothing is tried on objects. A table of each kind says what its views can hold ([`Possible`](memgate_model::possible)).

use memgate_model::family::Family;
use memgate_model::finding::Finding;
use memgate_model::memory_view::Role;
use memgate_model::policy::{Policy, Rule};
use memgate_model::possible::Possible;
use memgate_model::typed_rule::Conditions;
use memgate_model::view_table::ViewTable;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

use super::codes::NEVER_APPLIES;
use super::reader::{one_of, warning};

/// The warnings about what a policy never judges on these platforms.
pub fn never_applies(policy: &Policy, known: &[&'static Family]) -> Vec<Finding> {
    let (budget, mut findings, mut rules) = (Budget::default(), Vec::new(), Vec::new());
    for (rule, index) in policy.rules.iter().zip(0_usize..) {
        let found = of_when(policy, rule, known, &Pointer::new("/spec/rules").index(index), &budget);
        // What a rule would judge without a `when` that is warned about has no other warning.
        rules.push((rule, rule.when.as_deref().filter(|_| found.is_empty())));
        findings.extend(found);
    }
    findings.extend(unjudged_kinds(policy, &rules, known));
    findings
}

/// The warnings about the `when` of a rule, which stands at `place`.
fn of_when(
    policy: &Policy,
    rule: &Rule,
    known: &[&'static Family],
    place: &Pointer,
    budget: &Budget<'_>,
) -> Vec<Finding> {
    let Some(conditions) = &rule.when else { return Vec::new() };
    let when = place.key("when");
    let contradictions = conditions.contradictions(budget).into_iter();
    let findings: Vec<Finding> =
        contradictions.map(|(at, message)| warning(&NEVER_APPLIES, when.join(&at), &message)).collect();
    if !findings.is_empty() || !never_holds(policy, rule, known) {
        return findings;
    }
    let message = "holds for nothing that the rule judges, so the rule never applies";
    let is_able = |family: &&&'static Family| judges(rule, rule.when.as_deref(), None, family);
    let able: Vec<&str> = known.iter().filter(is_able).map(|family| family.name).collect();
    let help = match able.as_slice() {
        [] => "change the conditions, or leave them out".to_owned(),
        able => format!("objects of {} can meet it", able.join(", ")),
    };
    vec![warning(&NEVER_APPLIES, when, message).help(help)]
}

/// Whether a rule judges nothing with its conditions, and something without them.
fn never_holds(policy: &Policy, rule: &Rule, known: &[&'static Family]) -> bool {
    let kinds = policy.matching.kinds.as_deref();
    let is_judged = |when| matched(policy, known).any(|family| judges(rule, when, kinds, family));
    !is_judged(rule.when.as_deref()) && is_judged(None)
}

/// The warnings about kinds that the policy names and none of its rules judges.
fn unjudged_kinds(
    policy: &Policy,
    rules: &[(&Rule, Option<&dyn Conditions>)],
    known: &[&'static Family],
) -> Vec<Finding> {
    if rules.is_empty() {
        return Vec::new();
    }
    let families: Vec<&'static Family> = matched(policy, known).collect();
    let is_judged = |kind: &String| {
        let kind = std::slice::from_ref(kind);
        let of_rule = |(rule, when): &(&Rule, Option<&dyn Conditions>)| {
            families.iter().any(|family| judges(rule, *when, Some(kind), family))
        };
        rules.iter().any(of_rule) || policy.defaults.iter().any(|it| kind.contains(&it.kind))
    };
    let finding = |(kind, index): (&String, usize)| {
        let its_roles = roles_of(kind, &families);
        let has_role =
            |(rule, _): &(&Rule, _)| rule.roles.iter().any(|role| its_roles.contains(&role.name()));
        let (why, help) = if rules.iter().any(has_role) {
            ("it has nothing that they read".to_owned(), format!("leave {kind} out"))
        } else {
            let wanted = one_of(&its_roles);
            let help = format!("write roles: [{wanted}] in a rule, or leave {kind} out");
            (format!("none has the role {wanted}"), help)
        };
        let message = format!("no rule of the policy judges {kind}: {why}");
        warning(&NEVER_APPLIES, Pointer::new("/spec/match/kinds").index(index), &message).help(help)
    };
    let kinds = policy.matching.kinds.iter().flatten().zip(0_usize..);
    kinds.filter(|(kind, _)| !is_judged(kind)).map(finding).collect()
}

/// The roles of objects of a kind on these platforms.
fn roles_of(kind: &str, families: &[&'static Family]) -> Vec<&'static str> {
    let of_kind = families.iter().flat_map(|family| family.views.kinds);
    let mut roles: Vec<&str> =
        of_kind.filter(|(known, _)| known.kind == kind).map(|(_, role)| role.name()).collect();
    roles.extend((kind == "Pod").then_some(Role::Pod.name()));
    roles.sort_unstable();
    roles.dedup();
    roles
}

/// The families that a policy matches, of these.
fn matched<'f>(
    policy: &'f Policy,
    known: &'f [&'static Family],
) -> impl Iterator<Item = &'static Family> + use<'f> {
    let names = policy.matching.families.as_ref();
    let is_named = move |family: &&Family| names.is_none_or(|names| names.iter().any(|it| it == family.name));
    known.iter().copied().filter(move |family| is_named(family))
}

/// Whether a rule judges something on a platform under these conditions, of these kinds; of all kinds when `None`. Where it is
/// not known, it does.
fn judges(
    rule: &Rule,
    when: Option<&dyn Conditions>,
    kinds: Option<&[String]>,
    family: &'static Family,
) -> bool {
    let paths = rule.check.paths();
    Role::ALL.into_iter().any(|role| {
        let own = own_views(role, kinds, family);
        let judged = judged_views(rule, role, &own, family);
        let reads = |view: &Possible| paths.iter().any(|path| view.at(path).is_some());
        // `anyOf` judges an object together with each memory.
        let when = when.filter(|_| !is_any_of(rule));
        judged.iter().any(|view| reads(view) && when.is_none_or(|when| when.can_hold(view, &own)))
    })
}

fn is_any_of(rule: &Rule) -> bool {
    rule.about.type_name == "anyOf"
}

/// The views that a rule judges of objects of a role: their own, and those of the memory that they use.
fn judged_views(rule: &Rule, user: Role, own: &[Possible], family: &'static Family) -> Vec<Possible> {
    // What a rule about memory reads from objects that no apiserver sends is judged with those that use the memory.
    let is_unseen = family.reads_unseen() && user != Role::Memory && rule.own.contains(&Role::Memory);
    let is_own = rule.own.contains(&user) || is_unseen && is_any_of(rule);
    let is_by_sources = !own.is_empty() && (rule.by_sources.contains(&user) || is_unseen);
    let memories = family.views.tables.iter().filter(|table| is_by_sources && table.role == Role::Memory);
    let of_sources = memories.map(|table| of_table(family, table, (user, false), None));
    own.iter().filter(|_| is_own).cloned().chain(of_sources).collect()
}

/// The views of the objects of a role, of these kinds. Of pods no table says anything.
fn own_views(role: Role, kinds: Option<&[String]>, family: &'static Family) -> Vec<Possible> {
    let tables = &family.views.tables;
    let known: Vec<&str> = tables.iter().flat_map(|table| table.kinds).map(|it| it.kind).collect();
    let of_role = family.views.kinds.iter().filter(|(_, known_role)| *known_role == role);
    let has_pods = role == Role::Pod && !family.pods.selectors.is_empty();
    let others = of_role.map(|(kind, _)| kind.kind).chain(has_pods.then_some("Pod"));
    let others: Vec<&str> = others.filter(|kind| is_among(kinds, kind) && !known.contains(kind)).collect();
    let others = Possible { family: family.name, user: role, is_own: true, role, kinds: others, table: None };
    let of_role = tables.iter().filter(|table| table.role == role);
    let of_tables = of_role.map(|table| of_table(family, table, (role, true), kinds));
    of_tables.chain([others]).filter(|it| !it.kinds.is_empty()).collect()
}

fn of_table(
    family: &'static Family,
    table: &'static ViewTable,
    (user, is_own): (Role, bool),
    kinds: Option<&[String]>,
) -> Possible {
    let kinds = table.kinds.iter().map(|kind| kind.kind).filter(|kind| is_among(kinds, kind)).collect();
    Possible { family: family.name, user, is_own, role: table.role, kinds, table: Some(table) }
}

fn is_among(kinds: Option<&[String]>, kind: &str) -> bool {
    kinds.is_none_or(|kinds| kinds.iter().any(|matched| matched == kind))
}
