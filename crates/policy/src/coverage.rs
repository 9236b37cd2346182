//! Which platforms a rule covers: on some it has nothing to judge.

use memgate_model::family::Family;
use memgate_model::memory_view::{Role, USERS, ViewPath};
use memgate_model::policy::Rule;
use memgate_model::possible::{OTHER_BACKEND, Possible};
use memgate_model::typed_rule::Conditions;
use memgate_model::view_table::ViewTable;

/// Whether a rule judges something on a platform under these conditions, of these kinds; of all kinds when `None`.
pub(super) fn judges(
    rule: &Rule,
    when: Option<&dyn Conditions>,
    kinds: Option<&[String]>,
    family: &'static Family,
) -> bool {
    // Whether objects of the platform can refer to one of the kinds of the rule, which are in small letters.
    let knows =
        |kinds: &[String]| family.kinds.related().any(|known| kinds.contains(&known.kind.to_lowercase()));
    if rule.check.kinds().is_some_and(|kinds| !knows(kinds)) {
        return false;
    }
    let paths = rule.check.paths();
    let reads = |met: Possible| paths.iter().any(|path| met.at(path).is_some());
    met(rule, when, kinds, family).into_iter().any(reads) || !unseen(rule, when, kinds, family).is_empty()
}

/// The views that a rule about memory meets in objects of these kinds, which use the memory: what it reads from objects that no
/// apiserver sends is judged with those.
pub(super) fn unseen(
    rule: &Rule,
    when: Option<&dyn Conditions>,
    kinds: Option<&[String]>,
    family: &'static Family,
) -> Vec<Possible> {
    if !family.reads_unseen() || !rule.own.contains(&Role::Memory) {
        return Vec::new();
    }
    let (judged, read) = (rule.check.paths(), rule.paths());
    let is_judged = |it: &Possible| {
        // `anyOf` reads there what it asks of the object itself.
        if it.is_own {
            return rule.about.type_name == "anyOf";
        }
        let is_of_memory = |path: &&str| !ViewPath::is_of_every_object(path) && it.at(path).is_some();
        let may_be_unknown = |path: &&str| it.table.is_some_and(|table| table.may_be_unknown(path));
        let may_be_unseen = |path: &&str| is_of_memory(path) && may_be_unknown(path);
        judged.iter().any(is_of_memory) && read.iter().any(may_be_unseen)
    };
    let mut all = views(rule, &[Role::Referrer, Role::Pod], &is_judged, (when, kinds), family);
    if all.iter().all(|it| it.is_own) {
        all.clear();
    }
    all
}

fn is_among(kinds: Option<&[String]>, kind: &str) -> bool {
    kinds.is_none_or(|kinds| kinds.iter().any(|matched| matched == kind))
}

/// The views that a rule with these conditions meets on a platform, of objects of these kinds; of all kinds when `None`.
fn met(
    rule: &Rule,
    when: Option<&dyn Conditions>,
    kinds: Option<&[String]>,
    family: &'static Family,
) -> Vec<Possible> {
    let is_judged = |it: &Possible| {
        let roles = if it.is_own { &rule.own } else { &rule.by_sources };
        roles.contains(&it.user)
    };
    views(rule, &rule.roles, &is_judged, (when, kinds), family)
}

/// The views of the objects of these roles, and of the memory that they use, which are judged where the conditions hold.
fn views(
    rule: &Rule,
    roles: &[Role],
    is_judged: &dyn Fn(&Possible) -> bool,
    (when, kinds): (Option<&dyn Conditions>, Option<&[String]>),
    family: &'static Family,
) -> Vec<Possible> {
    let is_matched = |kind: &str| is_among(kinds, kind);
    let mut all = Vec::new();
    for role in roles.iter().copied() {
        let own = own_views(role, &is_matched, family);
        if own.is_empty() {
            continue;
        }
        let of_sources = memories(family).map(|table| of_table(family, table, role, false, &|_| true));
        let of_sources: Vec<Possible> = of_sources.collect();
        let holds = |it: &Possible| when.is_none_or(|when| when.can_hold(it, &own));
        // `anyOf` judges an object together with each memory, and reads there what it asks of memory.
        let is_joined = rule.about.type_name == "anyOf" && of_sources.iter().any(is_judged);
        let fits = |it: &Possible| holds(it) || is_joined && it.is_own && of_sources.iter().any(holds);
        let judged = own.iter().chain(&of_sources).filter(|it| is_judged(it) && fits(it));
        let judged = judged.cloned().map(|it| if holds(&it) { narrowed(when, it, &own) } else { it });
        let is_left =
            |it: &Possible| !it.kinds.is_empty() && it.backends.as_ref().is_none_or(|all| !all.is_empty());
        all.extend(judged.filter(is_left));
    }
    all
}

/// The views of the objects of a role.
fn own_views(role: Role, is_matched: &dyn Fn(&str) -> bool, family: &'static Family) -> Vec<Possible> {
    let tables = family.views.tables.iter().filter(|table| table.role == role);
    let mut all: Vec<Possible> =
        tables.map(|table| of_table(family, table, role, true, is_matched)).collect();
    all.retain(|it| !it.kinds.is_empty());
    // Kinds without a table, and pods.
    let known: Vec<&str> =
        family.views.tables.iter().flat_map(|table| table.kinds).map(|it| it.kind).collect();
    let of_role = family.views.kinds.iter().filter(|(kind, known_role)| {
        *known_role == role && is_matched(kind.kind) && !known.contains(&kind.kind)
    });
    let has_pods = role == Role::Pod && !family.pods.selectors.is_empty() && is_matched("Pod");
    let kinds: Vec<&str> = of_role.map(|(kind, _)| kind.kind).chain(has_pods.then_some("Pod")).collect();
    if !kinds.is_empty() {
        let of_pods = [
            ("containers", has_pods && family.pods.adds_containers),
            ("environment", has_pods && !family.pods.selectors.is_empty()),
        ];
        let others = of_pods.into_iter().filter_map(|(list, has)| has.then_some(list)).collect();
        let (family, backends) = (family.name, None);
        all.push(Possible { family, user: role, is_own: true, role, kinds, table: None, backends, others });
    }
    all
}

/// The tables of the memory that objects use.
fn memories(family: &'static Family) -> impl Iterator<Item = &'static ViewTable> {
    family.views.tables.iter().filter(|table| table.role == Role::Memory && !table.unused)
}

fn of_table(
    family: &'static Family,
    table: &'static ViewTable,
    user: Role,
    is_own: bool,
    is_matched: &dyn Fn(&str) -> bool,
) -> Possible {
    let kinds = table.kinds.iter().map(|kind| kind.kind).filter(|kind| is_matched(kind)).collect();
    // The users of each memory are counted.
    let others = (table.role == Role::Memory).then_some(USERS).into_iter().collect();
    let backends = only_backend(family).filter(|_| user == Role::Pod).map(|it| vec![it]);
    let (family, role, table) = (family.name, table.role, Some(table));
    Possible { family, user, is_own, role, kinds, table, backends, others }
}

/// The backend of all memory of a platform, which no variable changes, if it has only one.
fn only_backend(family: &'static Family) -> Option<&'static str> {
    let mut all = memories(family).map(|table| table.words("backend", |_| true).unwrap_or_default());
    let first = all.next()?;
    let [only] = *first.as_slice() else { return None };
    all.all(|it| it == first).then_some(only)
}

/// Without the kinds and the backends that the conditions leave out.
fn narrowed(when: Option<&dyn Conditions>, mut possible: Possible, own: &[Possible]) -> Possible {
    let Some(when) = when else { return possible };
    let mut kinds = std::mem::take(&mut possible.kinds);
    kinds.retain(|kind| when.can_hold(&Possible { kinds: vec![*kind], ..possible.clone() }, own));
    possible.kinds = kinds;
    // A pod may have another backend than its memory, or the only one.
    let has_backend = |table: &&ViewTable| possible.user != Role::Pod && table.has("backend");
    let Some(table) = possible.table.filter(has_backend) else { return possible };
    let mut backends = table.words("backend", |_| true).unwrap_or_else(|| {
        let named = table.named_backends();
        let other = (!when.need_one_of(&named)).then_some(OTHER_BACKEND);
        named.into_iter().chain(other).collect()
    });
    backends.retain(|it| when.can_hold(&Possible { backends: Some(vec![*it]), ..possible.clone() }, own));
    Possible { backends: Some(backends), ..possible }
}
