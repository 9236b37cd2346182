//! Makes the report of decisions: findings with their places in the files.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::build::origins::FindingSpot;
use crate::build::unit::NotBuilt;
use crate::files::errors::{input_error, location, location_in};
use crate::files::judge::{Checked, Decided, InputOrder};
use crate::files::notices::{Notice, object_ref};
use crate::files::objects::CheckedObject;
use crate::files::passed_over::PassedOver;
use crate::report::fingerprint::{self, Counter};
use crate::report::table::{Numbers, Row, Table};
use crate::report::{self, FileLocation, JudgedObject, LocatedFinding, ObjectRef, Related, Report, Shown};
use memgate_manifest::place::LastSource;
use memgate_manifest::source::Span;
use memgate_model::decision::NotShown;
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::NAMESPACE;
use memgate_model::policy_rule::Counts;

/// The report of everything that was checked, in the order of the inputs.
pub fn report(checked: &Checked) -> Report<'_> {
    let decided = &checked.decided;
    let judged_once = once(decided.iter().filter(|decided| decided.is_judged));
    let mut unknown: Vec<String> = decided
        .iter()
        .flat_map(|decided| &decided.decision.unknown)
        .map(|it| (checked.inputs.makers.get(it), object_ref(it.clone()).title()))
        .map(|(maker, title)| {
            maker.map_or_else(|| title.clone(), |maker| format!("{title} ({maker} may make it)"))
        })
        .collect();
    unknown.sort();
    unknown.dedup();
    let refused = refused(checked);
    let others_denied = refused.values().filter(|(notice, _)| notice.finding.is_denial()).count();
    let not_shown = decided.iter().map(|decided| (&decided.object.object_ref, decided.decision.not_shown));
    Report {
        files: checked.inputs.files(),
        units: checked.places_of_units.keys().filter(|unit| !unit.is_empty()).count(),
        unreached: checked.inputs.unreached.len() + checked.inputs.unread,
        tools: checked.inputs.tools.iter().map(String::as_str).collect(),
        objects: judged_once
            .into_iter()
            .map(judged)
            .chain(refused.values().map(|(_, object)| *object))
            .collect(),
        denied: denied(decided) + others_denied,
        passed_over: checked
            .inputs
            .passed_over
            .iter()
            .filter(|it| it.object_ref.as_ref().is_none_or(|object_ref| !refused.contains_key(object_ref)))
            .map(passed_over)
            .chain(checked.inputs.not_built.iter().map(not_built))
            .collect(),
        errors: checked.inputs.errors.iter().map(input_error).collect(),
        findings: in_order(checked),
        policies: checked.policies.len(),
        rules: Some(&checked.rule_counts),
        not_shown: not_shown.filter(|(_, counts)| *counts != NotShown::default()).collect(),
        unknown,
        unreadable_state: checked.inputs.unreadable_state,
        assumed: decided.iter().map(assumed).sum(),
        left_out: checked.left_out,
        ..Report::default()
    }
}

/// The same with denials first, then warnings, and with the numbers by policy and namespace.
pub fn overview(checked: &Checked, shown: Shown) -> Report<'_> {
    let mut report = report(checked);
    report.findings.sort_by_key(|located| Reverse(located.effect()));
    report.table = Some(table(checked));
    report.shown = shown;
    report
}

/// The objects of kinds that memgate does not check, and that a cluster refuses for that.
fn refused(checked: &Checked) -> BTreeMap<&ObjectRef, (&Notice, JudgedObject<'_>)> {
    let refused = checked.inputs.notices.iter().filter(|notice| notice.refuses_object);
    let with_object = refused.map(|notice| {
        let Notice { object_ref, source, span, .. } = notice;
        let judged = JudgedObject { object_ref, file: source.name(), line: span.line };
        (object_ref, (notice, judged))
    });
    with_object.collect()
}

/// How many findings depend on labels of unknown Namespaces, without those that a comment or the base made notes.
fn assumed(decided: &Decided) -> usize {
    let decision = &decided.decision;
    if decision.not_shown != NotShown::default() {
        return decision.counts.values().map(|counts| counts.assumed).sum();
    }
    let of_policies = decision.findings.iter().filter_map(|finding| finding.policy.as_ref());
    of_policies.filter(|policy| policy.is_assumed).count()
}

/// The numbers by policy and namespace, with those that are not shown.
pub fn table(checked: &Checked) -> Table<'_> {
    let mut rows: BTreeMap<(Option<&str>, &str), Numbers> = BTreeMap::new();
    let mut total = Numbers::default();
    for decided in &checked.decided {
        let numbers = of_no_policy(decided);
        rows.entry((None, namespace(decided))).or_default().add(numbers);
        total.add(numbers);
        let decision = &decided.decision;
        for policy in &decision.policies {
            let Counts { violations, exempted, unknown, denials, warnings, .. } =
                decision.counts.get(policy).copied().unwrap_or_default();
            let numbers =
                Numbers { objects: 1, denials, warnings, exempted, all: violations + exempted + unknown };
            rows.entry((Some(policy), namespace(decided))).or_default().add(numbers);
            total.add(Numbers { objects: 0, ..numbers });
        }
    }
    let rows = rows.into_iter().filter(|(_, numbers)| numbers.all > 0);
    let row = |((policy, namespace), numbers)| Row { policy, namespace, numbers };
    Table { rows: rows.map(row).collect(), total }
}

/// The numbers of denials and warnings that are not of a policy.
fn of_no_policy(decided: &Decided) -> Numbers {
    let decision = &decided.decision;
    let shown = |severity, is_of_policy| {
        let is_it = |it: &&Finding| it.policy.is_some() == is_of_policy && it.severity == severity;
        decided.findings().filter(is_it).count()
    };
    // Of those that are not shown, the policies' own are known by their counts.
    let all = |severity, not_shown: usize, of_policies: fn(&Counts) -> usize| {
        let of_policies = decision.counts.values().map(of_policies).sum::<usize>();
        let hidden_of_policies = of_policies.saturating_sub(shown(severity, true));
        shown(severity, false) + not_shown.saturating_sub(hidden_of_policies)
    };
    let NotShown { denials, warnings } = decision.not_shown;
    let denials = all(Severity::Deny, denials, |it| it.denials);
    let warnings = all(Severity::Warn, warnings, |it| it.warnings);
    let objects = usize::from(decided.is_judged);
    Numbers { objects, denials, warnings, exempted: 0, all: denials + warnings }
}

/// The namespace by which policies match an object; of a Namespace its own name.
fn namespace(decided: &Decided) -> &str {
    let ObjectRef { kind, namespace, name, .. } = &decided.object.object_ref;
    if **kind == *NAMESPACE.kind { name } else { namespace }
}

/// The places in other objects that findings refer to.
type ElsewhereByFinding<'r> = BTreeMap<*const Finding, Vec<Related<'r>>>;

/// What has findings.
enum About<'c> {
    Object(&'c Decided),
    File(&'c Notice),
}

/// All findings in the order of the inputs: those of one object together, those about files between objects.
fn in_order(checked: &Checked) -> Vec<LocatedFinding<'_>> {
    let order = InputOrder::of(checked.inputs.sources.iter().chain(checked.inputs.origins.traced()));
    let mut elsewhere = ElsewhereByFinding::new();
    for of_unit in checked.decided.chunk_by(|one, next| unit_of(one) == unit_of(next)) {
        let places = of_unit.first().and_then(|first| checked.places_of_units.get(unit_of(first)));
        let all = of_unit.iter().flat_map(Decided::findings);
        elsewhere.extend(places.unwrap_or(&checked.inputs.places).elsewhere(all));
    }
    let objects = checked.decided.iter().filter(|decided| decided.findings().next().is_some());
    let objects = objects.map(|decided| {
        let place = &decided.object.place;
        let place = order.place(place.source(), place.start());
        (place, About::Object(decided))
    });
    let notices = checked.inputs.notices.iter();
    let notices = notices.map(|it| (order.place(&it.source, it.span.start), About::File(it)));
    let mut in_order: Vec<_> = objects.chain(notices).collect();
    in_order.sort_by_key(|(place, _)| *place);
    let counts = in_order.iter().map(|(_, about)| match about {
        About::Object(decided) => decided.findings().count(),
        About::File(_) => 1,
    });
    let (mut all, mut last) = (Vec::with_capacity(counts.sum()), LastSource::default());
    for (_, about) in in_order {
        match about {
            About::Object(decided) => {
                last.is_now(&decided.object.place);
                all.extend(findings(decided, &mut elsewhere));
            }
            About::File(notice) => all.push(of_file(notice)),
        }
    }
    if !checked.places_of_units.is_empty() || checked.decided.iter().any(|it| it.object.spots.is_some()) {
        all = once_at_each_place(all);
    }
    let mut counter = Counter::default();
    for located in &mut all {
        let LocatedFinding { finding, pointer, object_ref, .. } = &located;
        located.fingerprint = counter.number(fingerprint::of(finding.code_name(), object_ref, pointer));
    }
    all
}

fn unit_of(decided: &Decided) -> &str {
    &decided.object.object_ref.unit
}

/// The objects, each once: it may have several pod templates.
fn once<'c>(decided: impl Iterator<Item = &'c Decided>) -> Vec<&'c Decided> {
    let mut seen = BTreeSet::new();
    let place = |decided: &Decided| {
        let place = &decided.object.place;
        (Arc::as_ptr(place.source()), place.start())
    };
    decided.filter(|decided| seen.insert(place(decided))).collect()
}

/// How many are denied.
fn denied(all: &[Decided]) -> usize {
    once(all.iter().filter(|it| !it.allowed())).len()
}

/// The findings, each once, with the units that have it. Of objects that are made of one text, those with one code at one
/// place are one finding, the most severe one, with the namespaces of all.
fn once_at_each_place(all: Vec<LocatedFinding<'_>>) -> Vec<LocatedFinding<'_>> {
    let (mut numbers, mut merged) = (BTreeMap::new(), Vec::<LocatedFinding<'_>>::new());
    for mut located in all {
        let (finding, location) = (located.finding, located.location);
        let own = || (located.pointer.clone(), finding.severity, finding.message().into_owned());
        let own = (!located.shares_text).then(own);
        let key = (location.file, location.start, finding.code_name(), own);
        let number = *numbers.entry(key).or_insert(merged.len());
        let ObjectRef { unit, namespace, .. } = located.object_ref;
        located.units.extend(Some(&**unit).filter(|unit| !unit.is_empty()));
        located.namespaces.extend(Some(&**namespace).filter(|it| located.shares_text && !it.is_empty()));
        match merged.get_mut(number) {
            Some(known) => {
                if finding.severity > known.finding.severity {
                    std::mem::swap(known, &mut located);
                }
                known.units.append(&mut located.units);
                known.namespaces.append(&mut located.namespaces);
                known.in_others.append(&mut located.in_others);
                if located.shares_text && !std::ptr::eq(located.object_ref, known.object_ref) {
                    known.in_others.push(located);
                }
            }
            None => merged.push(located),
        }
    }
    for LocatedFinding { units, namespaces, .. } in &mut merged {
        let mut seen = BTreeSet::new();
        units.retain(|unit| seen.insert(*unit));
        namespaces.sort_unstable();
        namespaces.dedup();
        if namespaces.len() < 2 {
            namespaces.clear();
        }
    }
    merged
}

fn judged(decided: &Decided) -> JudgedObject<'_> {
    let (source, line) = decided.object.file_and_line();
    JudgedObject { object_ref: &decided.object.object_ref, file: source.name(), line }
}

/// The findings of one object, in the order of their places.
fn findings<'r>(decided: &'r Decided, elsewhere: &mut ElsewhereByFinding<'r>) -> Vec<LocatedFinding<'r>> {
    let object = &decided.object;
    let mut located: Vec<_> = decided
        .findings()
        .map(|finding| {
            let others = elsewhere.remove(&std::ptr::from_ref(finding)).unwrap_or_default();
            locate(object, finding, others)
        })
        .collect();
    located.sort_by_key(|located| (located.location.file, located.location.start));
    located
}

fn locate<'r>(
    object: &'r CheckedObject,
    finding: &'r Finding,
    others: Vec<Related<'r>>,
) -> LocatedFinding<'r> {
    let standing = object.standing(&finding.pointer);
    let (caret, anchor) = standing.carets(finding.at_key);
    let location = location_of(&standing, caret);
    let own = finding.related.as_ref().and_then(|(pointer, label)| {
        let standing = object.standing(pointer);
        let location = location_of(&standing, standing.carets(false).0);
        standing.is_exact().then(|| Related { location, label: (*label).to_owned() })
    });
    let anchor = anchor.map(|anchor| Related {
        location: location_of(&standing, anchor),
        label: "the value stands here".to_owned(),
    });
    // Of a rendered object several fields may stand at one place.
    let is_other =
        |it: &Related<'_>| (it.location.file, it.location.start) != (location.file, location.start);
    let related = own.into_iter().chain(others).chain(anchor);
    let related = related.filter(|it| object.spots.is_none() || is_other(it)).collect();
    let shares_text = object.spots.is_some();
    LocatedFinding { shares_text, related, ..LocatedFinding::new(finding, &object.object_ref, location) }
}

fn location_of<'r>(standing: &FindingSpot<'r>, span: Span) -> FileLocation<'r> {
    match standing {
        FindingSpot::Field(document, ..) => location_in(document, span),
        FindingSpot::Text(source, _) => location(source, span),
    }
}

fn of_file(notice: &Notice) -> LocatedFinding<'_> {
    let related = notice.related.as_ref().map(|(source, span, label)| Related {
        location: location(source, *span),
        label: (*label).to_owned(),
    });
    let located =
        LocatedFinding::new(&notice.finding, &notice.object_ref, location(&notice.source, notice.span));
    LocatedFinding { related: related.into_iter().collect(), ..located }
}

fn passed_over(passed_over: &PassedOver) -> report::PassedOver<'_> {
    let (why, reason) = passed_over.why.words();
    report::PassedOver {
        file: passed_over.source.name(),
        line: passed_over.span.line,
        column: passed_over.span.column,
        object_ref: passed_over.object_ref.as_ref(),
        why,
        reason,
    }
}

/// A unit that was not built.
fn not_built(NotBuilt { marker, is_chart, .. }: &NotBuilt) -> report::PassedOver<'_> {
    let (why, reason) = match is_chart {
        true => ("chart", "is a chart that was not built"),
        false => ("kustomization", "is a kustomization that was not built"),
    };
    let file = marker.to_str().unwrap_or_default();
    report::PassedOver { file, line: 1, column: 1, object_ref: None, why, reason }
}
