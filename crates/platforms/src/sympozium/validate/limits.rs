//! Validates the numbers and durations of the membrane.

use memgate_model::finding::{Finding, excerpt};
use memgate_model::tree::Tree;
use memgate_primitives::duration::nanoseconds;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::shared_memory::Membrane;
use super::super::api::{BUDGET_ACTIONS, DECAYS, EVIDENCE_KINDS};
use super::super::codes::{
    BREAKER_COOLDOWN_IGNORED, BREAKER_COOLDOWN_INVALID, BREAKER_FAILURES_LOW, DECAY_IGNORED,
    DECAY_UNSUPPORTED, EVIDENCE_KIND_UNSUPPORTED, TOKEN_ACTION_UNSUPPORTED, TOKEN_NEGATIVE, TOKEN_NO_EFFECT,
    TOKEN_PER_RUN_ABOVE_TOTAL, TTL_INVALID,
};
use super::{Report, membrane};

pub(super) fn findings(membrane: &Membrane<'_>, report: Report<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let section = |name| membrane.section(name).map(|tree| (tree, membrane::pointer().key(name)));
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
    if let Some((policy, here)) = section("evidencePolicy") {
        let kind = policy.text_at(&["minKind"]);
        let at = || here.key("minKind");
        findings.extend(report.unsupported(&EVIDENCE_KIND_UNSUPPORTED, at, kind, &EVIDENCE_KINDS));
    }
    findings
}

fn integer(tree: &Tree, field: &str) -> Option<i64> {
    tree.get(field).and_then(Tree::integer)
}

fn token_budget(budget: &Tree, here: &Pointer, report: Report<'_>) -> Vec<Finding> {
    let (action, at) = (budget.text_at(&["action"]), || here.key("action"));
    let unsupported = report.unsupported(&TOKEN_ACTION_UNSUPPORTED, at, action, &BUDGET_ACTIONS);
    let mut findings: Vec<Finding> = unsupported.into_iter().collect();
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
        report.warn_of(&BREAKER_COOLDOWN_INVALID, at, [text], |[text]| {
            format!("Invalid value: {}: must be a Go duration, e.g. \"24h\"", quoted(text))
        })
    }
}

fn ttl(decay: &Tree, here: &Pointer, report: Report<'_>) -> Option<Finding> {
    let text = decay.text_at(&["ttl"]).filter(|text| !text.is_empty() && !is_positive(text))?;
    let shown = excerpt(text);
    let finding = report.deny(&TTL_INVALID, || here.key("ttl"), move || invalid(&shown))?;
    Some(finding.fingerprint_value(text))
}

fn is_positive(text: &str) -> bool {
    nanoseconds(text).is_some_and(|nanoseconds| nanoseconds > 0)
}

fn invalid(text: &str) -> String {
    format!("Invalid value: {}: must be a Go duration greater than 0, e.g. \"168h\"", quoted(text))
}

fn decay_function(decay: &Tree, here: &Pointer, report: Report<'_>) -> Option<Finding> {
    let function = decay.text_at(&["decayFunction"]);
    let at = || here.key("decayFunction");
    if function == Some(DECAYS[1]) {
        let text = || "\"exponential\" is never read: entries are filtered by ttl only";
        return report.warn(&DECAY_IGNORED, at, text);
    }
    report.unsupported(&DECAY_UNSUPPORTED, at, function, &DECAYS)
}
