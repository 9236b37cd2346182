//! Validates the membrane, which controls which entries agents see of each other, and its numbers and durations.

use crate::prelude::*;
use crate::sympozium::api::ACCESSES;
use crate::sympozium::api::ensemble::{Ensemble, VisibilitySource, effective_visibility, with_peers};
use crate::sympozium::api::shared_memory::{Membrane, PermeabilityRule, SharedMemory, TrustGroup};
use crate::sympozium::codes::{
    BREAKER_COOLDOWN_IGNORED, BREAKER_COOLDOWN_INVALID, BREAKER_FAILURES_LOW, DECAY_IGNORED,
    EXPOSE_READ_ONLY, PERMEABILITY_CONFIG_UNKNOWN, PERMEABILITY_DUPLICATE, TAG_INVALID, TOKEN_NEGATIVE,
    TOKEN_NO_EFFECT, TOKEN_PER_RUN_ABOVE_TOTAL, TRUST_GROUP_DUPLICATE, TRUST_GROUP_MEMBER_UNKNOWN,
    TRUST_GROUP_NAME_REQUIRED, TRUST_GROUP_TOO_SMALL, TRUSTED_WITHOUT_PEERS, TTL_INVALID,
};
use memgate_model::finding::excerpt;
use memgate_primitives::duration::nanoseconds;
use memgate_primitives::members::Members;

use super::Report;
use super::report::in_hours;

/// The pointer to the membrane.
pub(super) fn pointer() -> Pointer {
    Pointer::new("/spec/sharedMemory/membrane")
}

pub(super) fn findings<'t>(
    ensemble: &Ensemble<'t>,
    shared: &SharedMemory<'t>,
    membrane: &Membrane<'t>,
    report: Report<'_>,
    findings: &mut Vec<Finding>,
) {
    let rules = Rules { ensemble, shared, membrane, report };
    let list = pointer().key("permeability");
    for rule in &membrane.permeability {
        rules.permeability(rule, &list, findings);
    }
    let list = pointer().key("trustGroups");
    for group in &membrane.groups {
        rules.trust_group(group, &list, findings);
    }
    if report.wants_warnings() {
        rules.trusted_without_peers(findings);
    }
}

/// The objects that the rules read.
struct Rules<'r, 't> {
    ensemble: &'r Ensemble<'t>,
    shared: &'r SharedMemory<'t>,
    membrane: &'r Membrane<'t>,
    report: Report<'r>,
}

impl Rules<'_, '_> {
    fn permeability(&self, rule: &PermeabilityRule<'_>, list: &Pointer, findings: &mut Vec<Finding>) {
        let report = self.report;
        let here = || list.index(rule.index);
        self.tags(|| here().key("exposeTags"), &rule.expose_tags, findings);
        self.tags(|| here().key("acceptTags"), &rule.accept_tags, findings);
        let at = || here().key("agentConfig");
        let Some(name) = rule.config.filter(|_| report.wants_warnings()) else { return };
        if !self.ensemble.has_config(name) {
            findings.extend(report.not_found(&PERMEABILITY_CONFIG_UNKNOWN, at, name, self.ensemble));
        }
        if let Some(first) = self.membrane.rule(name).filter(|first| first.index != rule.index) {
            let related = |finding: Finding| {
                let first = list.index(first.index);
                finding.help("the first rule wins").related(first, "the rule that counts")
            };
            let finding = report.duplicate_value(&PERMEABILITY_DUPLICATE, here, name);
            findings.extend(finding.map(related));
        }
        let is_read_only = || self.shared.rule(name).is_some_and(|rule| rule.access() == ACCESSES[1]);
        if !rule.expose_tags.is_empty() && is_read_only() {
            let at = || here().key("exposeTags");
            let finding = report.warn_of(&EXPOSE_READ_ONLY, at, [name], |[name]| {
                format!("{}: it cannot store, so exposeTags has no effect", quoted(name))
            });
            let help = |finding: Finding| finding.help("its access rule says read-only");
            findings.extend(finding.map(help));
        }
    }

    /// Checks tags, which the runner gets as one comma-separated value.
    fn tags(&self, list: impl Fn() -> Pointer, tags: &[&str], findings: &mut Vec<Finding>) {
        if !self.report.wants_warnings() {
            return;
        }
        let mut here = None;
        for (index, tag) in tags.iter().enumerate() {
            let why = match *tag {
                "" => "an empty tag matches everything or nothing",
                tag if tag.contains(',') => "a comma makes it several tags",
                _ => continue,
            };
            let list: &Pointer = here.get_or_insert_with(&list);
            findings.extend(self.report.warn_of(
                &TAG_INVALID,
                || list.index(index),
                [tag],
                move |[tag]| format!("Invalid value: {}: {why}", quoted_text(tag)),
            ));
        }
    }

    fn trust_group(&self, group: &TrustGroup<'_>, list: &Pointer, findings: &mut Vec<Finding>) {
        let report = self.report;
        let at = || list.index(group.index).key("name");
        match group.name {
            Some("") => findings.extend(report.warn(&TRUST_GROUP_NAME_REQUIRED, at, || "Required value")),
            Some(name) if report.wants_warnings() => {
                if let Some(first) = self.membrane.group(name).filter(|first| first.index != group.index) {
                    let related = |finding: Finding| {
                        let first = list.index(first.index).key("name");
                        finding.related(first, "the first one of this name")
                    };
                    let finding = report.duplicate_value(&TRUST_GROUP_DUPLICATE, at, name);
                    findings.extend(finding.map(related));
                }
            }
            _ => {}
        }
        if report.wants_warnings() {
            self.members(group, list, findings);
        }
    }

    fn members(&self, group: &TrustGroup<'_>, list: &Pointer, findings: &mut Vec<Finding>) {
        let at = || list.index(group.index).key("agentConfigs");
        let mut members = None;
        for (index, member) in group.members.iter().enumerate() {
            if !self.ensemble.has_config(member) {
                let members: &Pointer = members.get_or_insert_with(at);
                let at = || members.index(index);
                findings
                    .extend(self.report.not_found(&TRUST_GROUP_MEMBER_UNKNOWN, at, member, self.ensemble));
            }
        }
        let first = group.members.first();
        if group.members.iter().all(|member| Some(member) == first) {
            let text = || "has no effect with fewer than two members";
            findings.extend(self.report.warn(&TRUST_GROUP_TOO_SMALL, at, text));
        }
    }

    /// Warns about an agent without peers, whose trusted entries only the agent itself sees.
    fn trusted_without_peers(&self, findings: &mut Vec<Finding>) {
        let (ensemble, membrane) = (self.ensemble, self.membrane);
        let with_peers = with_peers(ensemble, membrane);
        let mut reported = Members::default();
        for name in ensemble.named_configs() {
            let (visibility, source) = effective_visibility(ensemble, membrane, Some(name));
            if visibility != "trusted" || with_peers.contains(name) || !reported.insert(source) {
                continue;
            }
            let at = || match source {
                VisibilitySource::Rule(index) => pointer().key("permeability").index(index),
                VisibilitySource::Relationships => pointer().key("trustGroups"),
                VisibilitySource::Default => pointer().key("defaultVisibility"),
            };
            findings.extend(self.report.warn_of(&TRUSTED_WITHOUT_PEERS, at, [name], |[name]| {
                format!("{} has no trust peers: only its author sees those entries", quoted(name))
            }));
        }
    }
}

pub(super) fn limit_findings(membrane: &Membrane<'_>, report: Report<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let section = |name| membrane.section(name).map(|tree| (tree, pointer().key(name)));
    if let Some((budget, here)) = section("tokenBudget") {
        findings.extend(token_budget(budget, &here, report));
    }
    if let Some((breaker, here)) = section("circuitBreaker") {
        findings.extend(failures(breaker, &here, report));
        findings.extend(cooldown(breaker, &here, report));
    }
    if let Some((decay, here)) = section("timeDecay") {
        findings.extend(ttl(decay, &here, report));
        findings.extend(decay_function(decay, &here, report));
    }
    findings
}

fn integer(tree: &Tree, field: &str) -> Option<i64> {
    tree.get(field).and_then(Tree::integer)
}

fn token_budget(budget: &Tree, here: &Pointer, report: Report<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let [total, per_run] = ["maxTokens", "maxTokensPerRun"].map(|field| {
        let number = integer(budget, field).unwrap_or(0);
        if number < 0 {
            let text = move || format!("{number} counts as 0, which means no limit; write 0");
            findings.extend(report.warn(&TOKEN_NEGATIVE, || here.key(field), text));
        }
        number
    });
    if total <= 0 && per_run <= 0 {
        let text = || "has no effect: neither limit is above 0";
        findings.extend(report.warn(&TOKEN_NO_EFFECT, || here.clone(), text));
    }
    if total > 0 && per_run > total {
        let (at, text) =
            (|| here.key("maxTokensPerRun"), move || format!("{per_run} is more than maxTokens, {total}"));
        let finding = report.warn(&TOKEN_PER_RUN_ABOVE_TOTAL, at, text);
        let related = |finding: Finding| finding.related(here.key("maxTokens"), "the limit for all runs");
        findings.extend(finding.map(related));
    }
    findings
}

fn failures(breaker: &Tree, here: &Pointer, report: Report<'_>) -> Option<Finding> {
    let number = integer(breaker, "consecutiveFailures").filter(|number| *number <= 0)?;
    let at = || here.key("consecutiveFailures");
    report.warn(&BREAKER_FAILURES_LOW, at, move || {
        format!("{number} counts as 3, the default; write 1 or more")
    })
}

/// Warns about a cooldown, which upstream never reads. An empty cooldown asks for a manual reset.
fn cooldown(breaker: &Tree, here: &Pointer, report: Report<'_>) -> Option<Finding> {
    let text = breaker.text_at(&["cooldownDuration"]).filter(|text| !text.is_empty())?;
    let at = || here.key("cooldownDuration");
    if is_positive(text) {
        let text = || "is never read: an open breaker does not close by itself";
        report.warn(&BREAKER_COOLDOWN_IGNORED, at, text)
    } else {
        report
            .warn_of(&BREAKER_COOLDOWN_INVALID, at, [text], |[text]| {
                format!("Invalid value: {}: must be a Go duration, e.g. \"24h\"", quoted_text(text))
            })
            .map(|finding| in_hours(finding, text))
    }
}

fn ttl(decay: &Tree, here: &Pointer, report: Report<'_>) -> Option<Finding> {
    let text = decay.text_at(&["ttl"]).filter(|text| !text.is_empty() && !is_positive(text))?;
    let shown = excerpt(text);
    let finding = report.deny(&TTL_INVALID, || here.key("ttl"), move || invalid(&shown))?;
    Some(in_hours(finding.fingerprint_value(text), text))
}

fn is_positive(text: &str) -> bool {
    nanoseconds(text).is_some_and(|nanoseconds| nanoseconds > 0)
}

fn invalid(text: &str) -> String {
    format!("Invalid value: {}: must be a Go duration greater than 0, e.g. \"168h\"", quoted_text(text))
}

fn decay_function(decay: &Tree, here: &Pointer, report: Report<'_>) -> Option<Finding> {
    decay.text_at(&["decayFunction"]).filter(|function| *function == "exponential")?;
    let text = || "\"exponential\" is never read: entries are filtered by ttl only";
    report.warn(&DECAY_IGNORED, || here.key("decayFunction"), text)
}
