//! Translates a rule to CEL, and lists the parts that CEL cannot express.

use std::collections::BTreeMap;

use jiff::Timestamp;

use memgate_model::cel_view::{CelFault, CelPath, CelSide, CelView, InCel, StoredFault};
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::memory_view::Role;
use memgate_model::policy::{Action, During, Policy, Rule};
use memgate_model::request::{Occasion, Point};
use memgate_policy::in_cel::WITHOUT_INDEXES;
use memgate_policy::judge::{action, promotion};

use super::{LeftOut, message};

/// Why rules about pods are not exported: pods are judged after injection.
const PODS: &str = "which pods are agents', and what memgate adds to them, depends on objects that a ValidatingAdmissionPolicy does \
     not see";

/// Why rules about other objects' memory are not exported.
const SOURCES: &str =
    "it is judged by the memory that it uses, and a ValidatingAdmissionPolicy sees no other object";

/// One way to break a rule, about the objects of one table.
#[derive(Debug, Clone)]
pub(super) struct Check {
    /// The action on a violation.
    pub(super) action: Action,
    /// The table of the objects.
    pub(super) view: &'static CelView,
    /// The kinds of the table that the policy matches.
    pub(super) kinds: Vec<&'static Kind>,
    /// The name of the variable that holds the faults.
    pub(super) name: String,
    /// The faults of the object, in CEL.
    pub(super) faults: String,
    /// The faults of the stored object, if they are compared.
    pub(super) stored: Option<String>,
    /// Whether those faults count that the stored object has, and not the others.
    pub(super) is_about_kept: bool,
    /// The kind of fault.
    pub(super) fault: CelFault,
    /// The message of the policy's author.
    pub(super) instead: Option<String>,
    /// The end of the message.
    pub(super) end: String,
    /// The policy and the rule, for people.
    pub(super) rule: String,
}

impl Check {
    /// The name of the variable with the counted faults, and its expression unless all faults count.
    pub(super) fn counted(&self) -> (String, Option<String>) {
        let name = &self.name;
        let is_stored = match &self.fault.stored {
            StoredFault::Equal if self.is_in_list() => {
                let texts = format!("variables.{name}_before.map(fault, {WITHOUT_INDEXES})");
                format!("{WITHOUT_INDEXES} in {texts}")
            }
            StoredFault::Never | StoredFault::Equal | StoredFault::Unsaid(_) => {
                format!("fault in variables.{name}_before")
            }
            StoredFault::AtLeast(excess) => {
                let of = |fault: &str| format!("[{fault}].map(it, {excess})[0]");
                let is_worse = format!("{} <= {}", of("fault"), of("stored"));
                let is_there = "stored.split(' ')[0] == fault.split(' ')[0]";
                format!("variables.{name}_before.exists(stored, {is_there} && {is_worse})")
            }
        };
        let among = |not: &str| format!("variables.{name}.filter(fault, {not}({is_stored}))");
        match &self.stored {
            None => (name.clone(), None),
            Some(_) if self.is_about_kept => (format!("{name}_kept"), Some(among(""))),
            Some(_) => (format!("{name}_new"), Some(among("!"))),
        }
    }

    /// Whether its faults may be in elements of a list, which may move.
    fn is_in_list(&self) -> bool {
        let is_read = |path: &&CelPath| self.fault.list.contains(&path.variable(self.view.name));
        self.view.paths.iter().filter(is_read).any(|path| path.entries.contains("string("))
    }

    /// The message about the counted faults.
    pub(super) fn message(&self) -> String {
        let (counted, _) = self.counted();
        message::expression(&self.fault, &format!("variables.{counted}"), self.instead.as_deref(), &self.end)
    }

    /// The check that warns about faults that an update keeps; this check denies the new faults.
    pub(super) fn kept(&self) -> Option<Self> {
        self.stored.is_some().then(|| Self { action: Action::Warn, is_about_kept: true, ..self.clone() })
    }
}

/// A rule of a policy.
struct Exporting<'r> {
    policy: &'r Policy,
    rule: &'r Rule,
    action: Action,
    end: String,
    left_out: BTreeMap<(String, String), Vec<String>>,
    notes: Vec<LeftOut>,
}

/// The checks of a rule, by family, and the parts that are not exported.
pub(super) fn export(
    policy: &Policy,
    rule: &Rule,
    families: &[&'static Family],
    now: Timestamp,
) -> (Vec<(&'static Family, Check)>, Vec<LeftOut>) {
    let promotion = promotion(policy, rule, now);
    let action = action(policy, rule, Occasion::new(Point::Admission, now));
    let promised = promotion.filter(|it| it.to == Action::Deny && action == Action::Warn);
    let end = rule.about.ending(promised.map(|it| it.at));
    let mut exporting = Exporting { policy, rule, action, end, left_out: BTreeMap::new(), notes: Vec::new() };
    if rule.during != During::default() {
        exporting.note(
            "",
            "a ValidatingAdmissionPolicy knows no date, and the rule applies for a time only",
            true,
        );
        return (Vec::new(), exporting.notes);
    }
    if let Some(promotion) = promotion {
        let reason = format!(
            "a ValidatingAdmissionPolicy knows no date; export it again when it is to {}",
            promotion.to.name()
        );
        exporting.note("its promotion: ", &reason, true);
    }
    if action == Action::None {
        exporting.note("", "its action at admission is none", false);
        return (Vec::new(), exporting.notes);
    }
    let checks = exporting.checks(families);
    if policy.exemptions.is_some() && rule.exemptable && !checks.is_empty() {
        exporting.note("exemptions from it: ", "a ValidatingAdmissionPolicy knows none that ends", true);
    }
    (checks, exporting.finish())
}

impl Exporting<'_> {
    fn note(&mut self, what: &str, reason: &str, is_loss: bool) {
        let left_out = self.left_out(what.to_owned(), reason.to_owned(), is_loss);
        self.notes.push(left_out);
    }

    fn left_out(&self, what: String, reason: String, is_loss: bool) -> LeftOut {
        let about = &self.rule.about;
        LeftOut {
            policy: about.policy.clone(),
            rule: Some(about.id.clone()),
            pointer: about.pointer.clone(),
            what,
            reason,
            is_loss,
        }
    }

    /// Records a part that is not exported for some objects.
    fn leave_out(&mut self, field: &str, reason: &str, of: &str) {
        self.left_out.entry((field.to_owned(), reason.to_owned())).or_default().push(of.to_owned());
    }

    fn finish(mut self) -> Vec<LeftOut> {
        let mut all = std::mem::take(&mut self.notes);
        for ((field, reason), mut of) in std::mem::take(&mut self.left_out) {
            of.dedup();
            let field = if field.is_empty() { field } else { format!("{field} ") };
            all.push(self.left_out(format!("{field}of {}: ", of.join(", ")), reason, true));
        }
        all
    }

    fn checks(&mut self, families: &[&'static Family]) -> Vec<(&'static Family, Check)> {
        let (policy, rule) = (self.policy, self.rule);
        let is_matched = |kind: &str| {
            policy.matching.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|known| known == kind))
        };
        let mut checks = Vec::new();
        for family in families.iter().copied() {
            for view in family.in_cel.views.iter().filter(|view| rule.roles.contains(&view.role)) {
                let kinds: Vec<_> = view.kinds.iter().copied().filter(|kind| is_matched(kind.kind)).collect();
                if !kinds.is_empty() {
                    let said = self.view(family, view, &kinds);
                    checks.extend(said.into_iter().map(|check| (family, check)));
                }
            }
            if rule.roles.contains(&Role::Pod) && is_matched("Pod") {
                self.leave_out("", PODS, &format!("{} Pod", family.name));
            }
        }
        if checks.is_empty() && self.left_out.is_empty() {
            self.note("", "nothing that it matches has what it is about", false);
        }
        checks
    }

    fn view(&mut self, family: &Family, view: &'static CelView, kinds: &[&'static Kind]) -> Vec<Check> {
        let names: Vec<_> = kinds.iter().map(|kind| format!("{} {}", family.name, kind.kind)).collect();
        let of = names.join(", ");
        if self.rule.by_sources.contains(&view.role) {
            self.leave_out("", SOURCES, &of);
            if !self.rule.own.contains(&view.role) {
                return Vec::new();
            }
        }
        let (new, old) = (CelSide::new(view), CelSide::new(view).before());
        let always = || Ok(Some(String::new()));
        let when = |side| self.rule.when.as_ref().map_or_else(always, |when| when.in_cel(side));
        let conditions = match (when(&new), when(&old)) {
            (Ok(Some(now)), Ok(Some(before))) => (now, before),
            (Err(reason), _) | (_, Err(reason)) => {
                self.leave_out("when", reason, &of);
                return Vec::new();
            }
            // The conditions never hold for these objects.
            _ => return Vec::new(),
        };
        let [InCel { faults, unsaid }, before] = [new, old].map(|side| {
            let mut said = InCel::default();
            self.rule.check.in_cel(&side, &mut said);
            said
        });
        for (field, reason) in unsaid {
            self.leave_out(&field, &reason, &of);
        }
        let mut faults: Vec<_> = faults.into_iter().zip(before.faults).collect();
        if let Some(reason) =
            faults.iter().find_map(|(fault, _)| fault.stored.unsaid()).filter(|_| self.ratchets())
        {
            self.leave_out("", reason, &of);
            faults.clear();
        }
        let numbered = faults.into_iter().enumerate();
        numbered.map(|(index, faults)| self.check(view, kinds, &conditions, index, faults)).collect()
    }

    /// Whether violations of the stored object only warn.
    fn ratchets(&self) -> bool {
        self.action == Action::Deny && !self.policy.enforces_existing
    }

    fn check(
        &self,
        view: &'static CelView,
        kinds: &[&'static Kind],
        (now, before): &(String, String),
        index: usize,
        (fault, stored): (CelFault, CelFault),
    ) -> Check {
        let id = self.rule.about.id.replace('-', "_");
        let is_transition = fault.stored == StoredFault::Never;
        let ratchets = self.ratchets() && !is_transition;
        let guarded = |list: &str, end: &str, condition: &str| {
            format!("variables.{}_viewed{end}{condition} ? ({list}) : []", view.name)
        };
        Check {
            action: self.action,
            view,
            kinds: kinds.to_vec(),
            name: format!("rule_{id}_{}_{}", view.name, index + 1),
            faults: if is_transition {
                guarded(&fault.list, &format!(" && variables.{}_viewed_before", view.name), now)
            } else {
                guarded(&fault.list, "", now)
            },
            stored: ratchets.then(|| guarded(&stored.list, "_before", before)),
            is_about_kept: false,
            fault,
            instead: self.rule.message.clone(),
            end: self.end.clone(),
            rule: format!("{}/{}", self.rule.about.policy, self.rule.about.id),
        }
    }
}
