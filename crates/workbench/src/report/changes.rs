//! Writes the objects whose verdict other policies would change: denials first, then by namespace and owner.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::report::{LocatedFinding, ObjectRef, Report, Shown, at_line_start, counted, notes, plain};
use memgate_primitives::named::named;

const HEADER: Style = Style::new().bold();

named! {
    /// The verdict about an object. Later variants are stricter.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum PolicyVerdict {
        /// No policy warns or denies.
        Allowed = "allowed",
        /// A rule of a policy warns.
        Warned = "warned",
        /// It is denied.
        Denied = "denied",
    }
}

impl PolicyVerdict {
    const fn style(self) -> Style {
        match self {
            Self::Allowed => AnsiColor::Green.on_default().bold(),
            Self::Warned => AnsiColor::Yellow.on_default().bold(),
            Self::Denied => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// An object whose verdict changes, or that is denied by more rules than before.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The object.
    pub object_ref: &'a ObjectRef,
    /// Its owner, as `Kind name`.
    pub owner: Option<&'a str>,
    /// The file.
    pub file: &'a str,
    /// The line at which it starts, from 1.
    pub line: usize,
    /// The current verdict.
    pub from: PolicyVerdict,
    /// The verdict under the new policies.
    pub to: PolicyVerdict,
}

/// What happens to an object, in the order in which it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    NewlyDenied,
    DeniedByMore,
    NewlyWarned,
    NoLongerDenied,
    NoLongerWarned,
}

impl Effect {
    const STRICTER: [Self; 3] = [Self::NewlyDenied, Self::DeniedByMore, Self::NewlyWarned];
    const WEAKER: [Self; 2] = [Self::NoLongerDenied, Self::NoLongerWarned];

    const fn words(self) -> &'static str {
        match self {
            Self::NewlyDenied => "newly denied",
            Self::DeniedByMore => "denied already, and by more rules",
            Self::NewlyWarned => "newly warned about",
            Self::NoLongerDenied => "no longer denied",
            Self::NoLongerWarned => "no longer warned about",
        }
    }
}

impl Change<'_> {
    fn effect(&self) -> Effect {
        match (self.from, self.to) {
            (PolicyVerdict::Denied, PolicyVerdict::Denied) => Effect::DeniedByMore,
            (_, PolicyVerdict::Denied) => Effect::NewlyDenied,
            (PolicyVerdict::Denied, _) => Effect::NoLongerDenied,
            (_, PolicyVerdict::Warned) => Effect::NewlyWarned,
            (_, PolicyVerdict::Allowed) => Effect::NoLongerWarned,
        }
    }

    /// Whether the object is denied under the new policies.
    pub fn is_denied(&self) -> bool {
        self.to == PolicyVerdict::Denied
    }
}

/// The changes in the order in which they are written: the strictest first, then by namespace and owner.
fn sorted<'c, 'r>(changes: &'c [Change<'r>]) -> Vec<&'c Change<'r>> {
    let mut sorted: Vec<&Change<'_>> = changes.iter().collect();
    sorted.sort_by_key(|it| {
        (
            it.effect(),
            &it.object_ref.namespace,
            it.owner,
            &it.object_ref.kind,
            &it.object_ref.name,
            it.file,
            it.line,
        )
    });
    sorted
}

/// Writes the objects in groups, each with the findings that make the difference.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, changes: &[Change<'_>], out: &mut impl Write) -> io::Result<()> {
    let mut findings: BTreeMap<*const ObjectRef, Vec<&LocatedFinding<'_>>> = BTreeMap::new();
    for located in report.causes() {
        findings.entry(std::ptr::from_ref(located.object_ref)).or_default().push(located);
    }
    let sorted = sorted(changes);
    for of_effect in sorted.chunk_by(|one, two| one.effect() == two.effect()) {
        if let Some(first) = of_effect.first() {
            let count = counted(of_effect.len(), "object");
            writeln!(out, "{HEADER}{}: {count}{HEADER:#}", first.effect().words())?;
        }
        let same_namespace =
            |one: &&Change<'_>, two: &&Change<'_>| one.object_ref.namespace == two.object_ref.namespace;
        for of_namespace in of_effect.chunk_by(same_namespace) {
            let namespace =
                of_namespace.first().map(|it| it.object_ref.shown()).map(|[_, namespace, _]| namespace);
            let title = namespace.filter(|it| !it.is_empty()).unwrap_or_else(|| "without a namespace".into());
            writeln!(out, "  {HEADER}{}{HEADER:#}", at_line_start(&title))?;
            for of_owner in of_namespace.chunk_by(|one, two| one.owner == two.owner) {
                let owner = of_owner.first().and_then(|it| it.owner);
                if let Some(owner) = owner {
                    writeln!(out, "    of {}", plain(owner))?;
                }
                let indent = if owner.is_some() { "      " } else { "    " };
                for change in of_owner {
                    let found = findings.get(&std::ptr::from_ref(change.object_ref)).map(Vec::as_slice);
                    write_change(change, found.unwrap_or_default(), indent, out)?;
                }
            }
        }
    }
    let of_changes: BTreeSet<_> = sorted.iter().map(|it| std::ptr::from_ref(it.object_ref)).collect();
    // An object whose verdict stays has notes about defaults.
    let is_other = |it: &&LocatedFinding<'_>| !of_changes.contains(&std::ptr::from_ref(it.object_ref));
    let others: Vec<&LocatedFinding<'_>> = report.causes().filter(is_other).collect();
    if report.shown != Shown::All {
        return notes::write(others.into_iter(), "; -v lists them", out);
    }
    let title = |it: &LocatedFinding<'_>| format!("{}: ", plain(&it.object_ref.title()));
    others.into_iter().try_for_each(|located| write_finding(located, &title(located), out))
}

fn write_change(
    change: &Change<'_>,
    findings: &[&LocatedFinding<'_>],
    indent: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let Change { object_ref, from, to, .. } = change;
    let style = to.style();
    let [kind, _, name] = object_ref.shown();
    let title = format!("{kind} {name}");
    writeln!(out, "{indent}{}: {} → {style}{}{style:#}", plain(&title), from.name(), to.name())?;
    for located in findings {
        write_finding(located, &format!("{indent}  "), out)?;
        let rule = located.finding.policy.as_deref().map(|policy| &policy.rule);
        if let Some(only_where) = rule.and_then(|rule| rule.only_where()) {
            writeln!(out, "{indent}    {}", plain(&only_where))?;
        }
    }
    Ok(())
}

fn write_finding(located: &LocatedFinding<'_>, start: &str, out: &mut impl Write) -> io::Result<()> {
    let LocatedFinding { finding, location, .. } = located;
    writeln!(out, "{start}{}: {}", at_line_start(&location.place()), plain(&finding.message()))
}

/// The numbers in one line.
pub fn summary(report: &Report<'_>, changes: &[Change<'_>]) -> String {
    let passed_over = match report.passed_over.len() {
        0 => String::new(),
        count => format!("; {count} passed over"),
    };
    verdict(report, changes) + &passed_over
}

/// The numbers of changes.
pub fn verdict(report: &Report<'_>, changes: &[Change<'_>]) -> String {
    let count = |effect: &Effect| changes.iter().filter(|change| change.effect() == *effect).count();
    // Most runs have none that is denied by more rules.
    let is_shown = |(effect, count): &(Effect, usize)| *effect != Effect::DeniedByMore || *count > 0;
    let words = |effects: &[Effect]| {
        let counts = effects.iter().map(|effect| (*effect, count(effect))).filter(is_shown);
        counts.map(|(effect, count)| format!("{count} {}", effect.words())).collect::<Vec<_>>().join(", ")
    };
    let (stricter, weaker) = (words(&Effect::STRICTER), words(&Effect::WEAKER));
    format!("{} judged: {stricter}; {weaker}", counted(report.objects.len(), "object"))
}
