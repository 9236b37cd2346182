//! Validates the membrane, which controls which entries agents see of each other, and its numbers and durations.

use crate::sympozium::prelude::*;
use crate::sympozium::report::{DUPLICATE, DUPLICATE_RULE, Report, UNKNOWN};
use memgate_model::finding::Severity::{Deny, Warn};
use memgate_primitives::duration::nanoseconds;
use memgate_primitives::pointer::Path::{self, Index, Key, Known};

const MEMBRANE: Path<'_> = Known("/spec/sharedMemory/membrane");
const RULES: Path<'_> = Key(&MEMBRANE, "permeability");
const GROUPS: Path<'_> = Key(&MEMBRANE, "trustGroups");

pub(super) fn findings<'t>(
    ensemble: &Ensemble<'t>,
    shared: &SharedMemory<'t>,
    membrane: &Membrane<'t>,
    out: &mut Report<'_>,
) {
    permeability(ensemble, shared, membrane, out);
    trust_groups(ensemble, membrane, out);
    trusted_without_peers(ensemble, membrane, out);
    limits(membrane, out);
}

fn permeability(
    ensemble: &Ensemble<'_>,
    shared: &SharedMemory<'_>,
    membrane: &Membrane<'_>,
    out: &mut Report<'_>,
) {
    for rule in membrane.permeability.iter() {
        let here = Index(&RULES, rule.index);
        for field in ["exposeTags", "acceptTags"] {
            tags(Key(&here, field), texts(rule.tree, &[field]), out);
        }
        let Some(name) = rule.name else { continue };
        out.not_found(&PERMEABILITY_CONFIG_UNKNOWN, Key(&here, "agentConfig"), (UNKNOWN, name), ensemble);
        if let Some(first) = membrane.permeability.before(rule) {
            let first = (Index(&RULES, first.index), "the rule that counts");
            out.duplicate(&PERMEABILITY_DUPLICATE, here, (DUPLICATE_RULE, name), first);
        }
        if shared.access(name) == Some(ACCESSES[1]) && texts(rule.tree, &["exposeTags"]).next().is_some() {
            let text = "{}: it cannot store, so exposeTags has no effect";
            let help = "its access rule says read-only";
            out.warn(&EXPOSE_READ_ONLY, Key(&here, "exposeTags"), (text, help), &[name]);
        }
    }
}

/// Checks tags, which the runner gets as one comma-separated value.
fn tags<'t>(list: Path<'_>, tags: impl Iterator<Item = &'t str>, out: &mut Report<'_>) {
    for (index, tag) in tags.enumerate() {
        let text = match tag {
            "" => "Invalid value: {text}: an empty tag matches everything or nothing",
            tag if tag.contains(',') => "Invalid value: {text}: a comma makes it several tags",
            _ => continue,
        };
        out.warn(&TAG_INVALID, Index(&list, index), text, &[tag]);
    }
}

fn trust_groups(ensemble: &Ensemble<'_>, membrane: &Membrane<'_>, out: &mut Report<'_>) {
    for group in membrane.groups.iter() {
        let here = Index(&GROUPS, group.index);
        let (at, list) = (Key(&here, "name"), Key(&here, "agentConfigs"));
        if group.name == Some("") {
            out.warn(&TRUST_GROUP_NAME_REQUIRED, at, "Required value", &[]);
        } else if let Some((first, name)) = membrane.groups.before(group).zip(group.name) {
            let first = Index(&GROUPS, first.index);
            let related = (Key(&first, "name"), "the first one of this name");
            out.duplicate(&TRUST_GROUP_DUPLICATE, at, (DUPLICATE, name), related);
        }
        for (index, member) in members(group).enumerate() {
            out.not_found(&TRUST_GROUP_MEMBER_UNKNOWN, Index(&list, index), (UNKNOWN, member), ensemble);
        }
        let first = members(group).next();
        if members(group).all(|member| Some(member) == first) {
            out.warn(&TRUST_GROUP_TOO_SMALL, list, "has no effect with fewer than two members", &[]);
        }
    }
}

/// Warns about an agent without peers, whose trusted entries only the agent itself sees.
fn trusted_without_peers(ensemble: &Ensemble<'_>, membrane: &Membrane<'_>, out: &mut Report<'_>) {
    let with_peers = with_peers(ensemble, membrane);
    let mut reported = Members::default();
    for name in ensemble.named_configs() {
        let (visibility, source) = effective_visibility(ensemble, membrane, Some(name));
        if visibility != "trusted" || with_peers.contains(name) || !reported.insert(source) {
            continue;
        }
        let at = match source {
            VisibilitySource::Rule(index) => Index(&RULES, index),
            VisibilitySource::Relationships => GROUPS,
            VisibilitySource::Default => Key(&MEMBRANE, "defaultVisibility"),
        };
        let text = "{} has no trust peers: only its author sees those entries";
        out.warn(&TRUSTED_WITHOUT_PEERS, at, text, &[name]);
    }
}

fn limits(membrane: &Membrane<'_>, out: &mut Report<'_>) {
    let integer = |tree: &Tree, field: &str| tree.get(field).and_then(Tree::integer);
    if let Some(budget) = membrane.section("tokenBudget") {
        token_budget(["maxTokens", "maxTokensPerRun"].map(|field| integer(budget, field).unwrap_or(0)), out);
    }
    if let Some(breaker) = membrane.section("circuitBreaker") {
        let here = Key(&MEMBRANE, "circuitBreaker");
        if let Some(number) = integer(breaker, "consecutiveFailures").filter(|number| *number <= 0) {
            let text = "{bare} counts as 3, the default; write 1 or more";
            out.warn(&BREAKER_FAILURES_LOW, Key(&here, "consecutiveFailures"), text, &[&number.to_string()]);
        }
        // An empty cooldown asks for a manual reset.
        let at = Key(&here, "cooldownDuration");
        match breaker.filled_at(&["cooldownDuration"]) {
            Some(cooldown) if is_positive(cooldown) => {
                let text = "is never read: an open breaker does not close by itself";
                out.warn(&BREAKER_COOLDOWN_IGNORED, at, text, &[]);
            }
            Some(cooldown) => {
                let text = "Invalid value: {text}: must be a Go duration, e.g. \"24h\"";
                out.duration(Warn, &BREAKER_COOLDOWN_INVALID, at, text, cooldown);
            }
            None => {}
        }
    }
    if let Some(decay) = membrane.section("timeDecay") {
        let here = Key(&MEMBRANE, "timeDecay");
        if let Some(ttl) = decay.filled_at(&["ttl"]).filter(|ttl| !is_positive(ttl)) {
            let text = "Invalid value: {text}: must be a Go duration greater than 0, e.g. \"168h\"";
            out.duration(Deny, &TTL_INVALID, Key(&here, "ttl"), text, ttl);
        }
        if decay.text_at(&["decayFunction"]) == Some("exponential") {
            let text = "\"exponential\" is never read: entries are filtered by ttl only";
            out.warn(&DECAY_IGNORED, Key(&here, "decayFunction"), text, &[]);
        }
    }
}

fn token_budget([total, per_run]: [i64; 2], out: &mut Report<'_>) {
    let here = Key(&MEMBRANE, "tokenBudget");
    let (of_all, of_run) = (Key(&here, "maxTokens"), Key(&here, "maxTokensPerRun"));
    for (at, number) in [(of_all, total), (of_run, per_run)] {
        if number < 0 {
            let text = "{bare} counts as 0, which means no limit; write 0";
            out.warn(&TOKEN_NEGATIVE, at, text, &[&number.to_string()]);
        }
    }
    if total <= 0 && per_run <= 0 {
        out.warn(&TOKEN_NO_EFFECT, here, "has no effect: neither limit is above 0", &[]);
    }
    if total > 0 && per_run > total {
        let values = [per_run, total].map(|number| number.to_string());
        let text = "{bare} is more than maxTokens, {bare}";
        let values = values.each_ref().map(String::as_str);
        let finding = out.finding(Warn, &TOKEN_PER_RUN_ABOVE_TOTAL, of_run, text, &values);
        out.extend(finding.map(|it| it.related(of_all.pointer(), "the limit for all runs")));
    }
}

fn is_positive(text: &str) -> bool {
    nanoseconds(text).is_some_and(|nanoseconds| nanoseconds > 0)
}
