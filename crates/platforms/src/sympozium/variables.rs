//! The variables of an agent, with the fields that they come from.

use super::prelude::*;
use std::collections::BTreeSet;

use crate::inject::env::Variable;
use crate::workloads::WRITER_TOKEN;
use memgate_model::object::Object;

/// The name of the agent. The runner sends it with every request.
pub(crate) const INSTANCE: &str = "INSTANCE_NAME";
/// Whether the older memory in a ConfigMap is on.
pub(crate) const LEGACY: &str = "MEMORY_ENABLED";
/// The URL of the private memory.
pub(crate) const PRIVATE_URL: &str = "MEMORY_SERVER_URL";
/// The URL of the shared memory.
pub(crate) const SHARED_URL: &str = "WORKFLOW_MEMORY_SERVER_URL";
/// The agent's access to the shared memory.
pub(crate) const ACCESS: &str = "WORKFLOW_MEMORY_ACCESS";
/// The agents whose trusted entries the agent sees.
pub(crate) const TRUST_PEERS: &str = "WORKFLOW_MEMBRANE_TRUST_PEERS";
/// What the agent's entries are to others.
pub(crate) const VISIBILITY: &str = "WORKFLOW_MEMBRANE_VISIBILITY";
/// What it gets to see.
const ACCEPT_TAGS: &str = "WORKFLOW_MEMBRANE_ACCEPT_TAGS";
/// The tags of the agent's entries that others see.
const EXPOSE_TAGS: &str = "WORKFLOW_MEMBRANE_EXPOSE_TAGS";
/// The maximum age of entries.
const MAX_AGE: &str = "WORKFLOW_MEMBRANE_MAX_AGE";
/// The maximum number of tokens for one run.
const MAX_TOKENS_PER_RUN: &str = "WORKFLOW_MEMBRANE_MAX_TOKENS_PER_RUN";
/// The action when the budget is spent.
const TOKEN_BUDGET_ACTION: &str = "WORKFLOW_MEMBRANE_TOKEN_BUDGET_ACTION";
/// The lowest accepted kind of evidence.
const MIN_EVIDENCE_KIND: &str = "WORKFLOW_MEMBRANE_MIN_EVIDENCE_KIND";
/// Whether runs are stored automatically.
pub(crate) const AUTO_STORE: &str = "MEMORY_AUTO_STORE";

/// The writer token of the private memory, in the agent and in each memory server.
pub(crate) const PRIVATE_TOKEN: &str = WRITER_TOKEN;
/// The writer token of the shared memory.
pub(crate) const SHARED_TOKEN: &str = "WORKFLOW_MEMORY_WRITER_TOKEN";
/// The token of the administrator of a memory server. No agent may have it.
pub(crate) const ADMIN_TOKEN: &str = "MEMORY_ADMIN_TOKEN";

/// All variables but the name of the agent, which other programs use too.
pub(crate) const OF_MEMORY: [&str; 16] = [
    LEGACY, PRIVATE_URL, SHARED_URL, ACCESS, TRUST_PEERS, VISIBILITY, ACCEPT_TAGS, EXPOSE_TAGS, MAX_AGE,
    MAX_TOKENS_PER_RUN, TOKEN_BUDGET_ACTION, MIN_EVIDENCE_KIND, AUTO_STORE, PRIVATE_TOKEN, SHARED_TOKEN,
    ADMIN_TOKEN,
];

/// The most bytes of a task and of a response that are stored automatically. Users set them.
pub(crate) const MAX_STORED: [&str; 2] =
    ["MEMORY_AUTO_STORE_MAX_TASK_BYTES", "MEMORY_AUTO_STORE_MAX_RESPONSE_BYTES"];

/// What the Ensemble gives to the agent of a config, in order; nothing while its memory is off. The names of the
/// variables do not depend on the config. Those of a membrane are always added together, empty or not, but for its limits.
pub(crate) fn shared_variables(
    ensemble: &Object,
    namespace: &str,
    config: Option<&str>,
) -> Vec<Variable<'static>> {
    let spec = Ensemble::read(ensemble.tree());
    let Some(shared) = spec.shared.as_ref().filter(|shared| shared.enabled) else { return Vec::new() };
    let resource = resource_name("Ensemble", ensemble);
    let variable = |name, field: &'static str, value: String| {
        Variable::literal(name, value, field_origin(&resource, field))
    };
    let mut variables = vec![
        variable(SHARED_URL, "spec.sharedMemory.enabled", shared_url(&ensemble.name, namespace)),
        variable(ACCESS, "spec.sharedMemory.accessRules", access(shared, config).to_owned()),
    ];
    let Some(membrane) = &shared.membrane else { return variables };
    let rule = config.and_then(|config| membrane.permeability.first(config));
    let tags = |field| rule.map(|rule| texts(rule.tree, &[field]).collect::<Vec<_>>().join(","));
    let peers = config.map(|config| peers(&spec, membrane, config)).unwrap_or_default();
    let mut peers: Vec<String> = peers.iter().map(|peer| format!("{}-{peer}", ensemble.name)).collect();
    peers.sort_unstable();
    let section = |section, field| membrane.section(section).and_then(|it| it.filled_at(&[field]));
    let budget = membrane.section("tokenBudget");
    let per_run = budget.and_then(|budget| budget.get("maxTokensPerRun")?.integer());
    let action = budget.map(|budget| budget.filled_at(&["action"]).unwrap_or(BUDGET_ACTIONS[0]));
    let (visibility, _) = effective_visibility(&spec, membrane, config);
    let own = |text: Option<&str>| Some(text.unwrap_or_default().to_owned());
    let of_rule = "spec.sharedMemory.membrane.permeability";
    for (name, field, value) in [
        (VISIBILITY, of_rule, own(Some(visibility))),
        (TRUST_PEERS, "spec.sharedMemory.membrane.trustGroups", Some(peers.join(","))),
        (ACCEPT_TAGS, of_rule, own(tags("acceptTags").as_deref())),
        (EXPOSE_TAGS, of_rule, own(tags("exposeTags").as_deref())),
        (MAX_AGE, "spec.sharedMemory.membrane.timeDecay.ttl", own(section("timeDecay", "ttl"))),
        (
            MAX_TOKENS_PER_RUN,
            "spec.sharedMemory.membrane.tokenBudget.maxTokensPerRun",
            per_run.filter(|tokens| *tokens > 0).map(|tokens| tokens.to_string()),
        ),
        (TOKEN_BUDGET_ACTION, "spec.sharedMemory.membrane.tokenBudget.action", action.map(str::to_owned)),
        (
            MIN_EVIDENCE_KIND,
            "spec.sharedMemory.membrane.evidencePolicy.minKind",
            section("evidencePolicy", "minKind").map(str::to_owned),
        ),
    ] {
        let Some(value) = value else { continue };
        let equal = (name == TRUST_PEERS).then(|| names_peers(value.clone(), &ensemble.name));
        let variable = variable(name, field, value);
        variables.push(match equal {
            Some(equal) => variable.equal_if(equal),
            None => variable,
        });
    }
    variables
}

/// The access of a config's agent to the shared memory. If there are rules, an agent whose config is not known
/// may only read, since a rule could forbid it to write.
pub(crate) fn access<'t>(shared: &SharedMemory<'t>, config: Option<&str>) -> &'t str {
    match config {
        Some(config) => shared.access(config).unwrap_or(ACCESSES[0]),
        None if shared.rules.is_empty() => ACCESSES[0],
        None => ACCESSES[1],
    }
}

/// Whether a literal names at least these peers. Upstream itself adds more peers, and names peers by their
/// configs.
fn names_peers(peers: String, ensemble_name: &str) -> impl Fn(&str) -> bool + 'static {
    let prefix = format!("{ensemble_name}-");
    move |literal| {
        let theirs: BTreeSet<&str> = literal.split(',').map(str::trim).collect();
        let has = |ours: &str| {
            theirs.contains(ours) || ours.strip_prefix(&prefix).is_some_and(|config| theirs.contains(config))
        };
        literal == peers || peers.is_empty() || peers.split(',').all(has)
    }
}
