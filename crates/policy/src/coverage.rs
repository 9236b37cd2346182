//! Which platforms a rule covers: on some it has nothing to judge, and on some a value may be unknown.

use memgate_model::cel_view::CelView;
use memgate_model::family::Family;
use memgate_model::memory_view::{Role, USERS, ViewPath};
use memgate_model::policy::Rule;

/// What a rule judges on a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    /// The platform has no such thing.
    Nothing,
    /// The rule judges its objects, all but those in these cases.
    Judged(Vec<&'static str>),
}

/// What a rule judges on a platform, of these kinds; of all kinds when `None`.
pub fn coverage(rule: &Rule, kinds: Option<&[String]>, family: &'static Family) -> Coverage {
    let is_matched = |kind: &str| kinds.is_none_or(|kinds| kinds.iter().any(|matched| matched == kind));
    let of_role = |role: Role| {
        let kinds = family.views.kinds.iter().filter(move |(_, known)| *known == role);
        let has_pods = role == Role::Pod && !family.pods.selectors.is_empty();
        kinds.map(|(kind, _)| kind.kind).chain(has_pods.then_some("Pod"))
    };
    let tables = |role: Role| family.in_cel.views.iter().filter(move |table| table.role == role);
    let asked = rule.when.iter().flat_map(|when| {
        let (backend, provider) = (when.backends.as_ref(), when.providers.as_ref());
        [backend.map(|_| "backend"), provider.map(|_| "provider")].into_iter().flatten()
    });
    let asked: Vec<&str> = asked.collect();
    let fits = |table: &CelView| asked.iter().all(|path| table.has(path));
    if rule.check.kinds().is_some_and(|kinds| !knows(family, kinds)) {
        return Coverage::Nothing;
    }
    let paths = rule.check.paths();
    let (mut is_judged, mut cases) = (false, Vec::new());
    let mut add = |case: &'static str| {
        if !cases.contains(&case) {
            cases.push(case);
        }
    };
    let mut judge_by = |table: &'static CelView, role: Role| {
        let is_own = rule.own.contains(&role) && table.role == role;
        let can_have = |path: &&&str| table.kinds_with(path, |kind| !is_own || is_matched(kind));
        for path in paths.iter().filter(|_| fits(table)).filter(can_have) {
            is_judged = true;
            table.unknown_cases(path).into_iter().flat_map(|cases| cases.split("; ")).for_each(&mut add);
            if role == Role::Pod {
                add("the pod sets the variable itself");
            }
        }
    };
    let mut has_role = false;
    for role in rule.roles.iter().copied().filter(|role| of_role(*role).any(is_matched)) {
        if rule.own.contains(&role) {
            let matched = |table: &&CelView| table.kinds.iter().any(|kind| is_matched(kind.kind));
            tables(role).filter(matched).for_each(|table| judge_by(table, role));
            has_role |= (asked.is_empty() || tables(role).filter(matched).any(fits))
                && paths
                    .iter()
                    .any(|path| is_without_table(path, role, family) || ViewPath::is_of_every_object(path));
        }
        if rule.by_sources.contains(&role) {
            tables(Role::Memory).filter(|table| !table.unused).for_each(|table| judge_by(table, role));
        }
    }
    if rule.check.reads_namespaces() {
        add("its Namespace is not known");
    }
    if paths.contains(&"environment") {
        add("envFrom may set a variable that is left out");
    }
    if is_judged || has_role { Coverage::Judged(cases) } else { Coverage::Nothing }
}

/// Whether objects of a platform can refer to one of these kinds, in small letters.
fn knows(family: &Family, kinds: &[String]) -> bool {
    family.kinds.related().any(|known| kinds.contains(&known.kind.to_lowercase()))
}

/// Whether pods, or memories, of a platform have a path that no table of resources has.
fn is_without_table(path: &str, role: Role, family: &Family) -> bool {
    role == Role::Pod
        && match path.split('[').next() {
            Some("containers") => family.pods.adds_containers,
            Some("environment") => !family.pods.selectors.is_empty(),
            _ => false,
        }
        // The table of references has them, and no table of resources.
        || role == Role::Memory && path == USERS && family.edges.iter().any(|edge| edge.uses_memory)
}
