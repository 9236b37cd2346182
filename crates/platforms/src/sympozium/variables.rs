//! The variables of an agent, with the fields that they come from.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::inject::env::Variable;
use crate::inject::{field_origin, resource_name};
use crate::workloads::WRITER_TOKEN;
use memgate_model::object::Object;
use memgate_model::tree::Tree;

use super::api::ensemble::{Ensemble, effective_visibility, peers};
use super::api::shared_memory::{Membrane, SharedMemory};
use super::api::{ACCESSES, BUDGET_ACTIONS, shared_url};

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
/// variables do not depend on the config.
pub(crate) fn shared_variables(
    ensemble: &Object,
    namespace: &str,
    config: Option<&str>,
) -> Vec<Variable<'static>> {
    let spec = Ensemble::read(ensemble.tree());
    let Some(shared) = spec.shared.as_ref().filter(|shared| shared.enabled) else { return Vec::new() };
    let resource = resource_name("Ensemble", ensemble);
    let url = shared_url(&ensemble.name, namespace);
    let access = access(shared, config);
    let mut variables = SharedVariables { resource, list: Vec::new() };
    variables.add_literal(SHARED_URL, url, "spec.sharedMemory.enabled");
    variables.add_literal(ACCESS, access, "spec.sharedMemory.accessRules");
    if let Some(membrane) = &shared.membrane {
        variables.membrane(&spec, membrane, &ensemble.name, config);
    }
    variables.list
}

/// The access of a config's agent to the shared memory. If there are rules, an agent whose config is not known
/// may only read, since a rule could forbid it to write.
pub(crate) fn access<'t>(shared: &SharedMemory<'t>, config: Option<&str>) -> &'t str {
    match config {
        Some(config) => shared.rule(config).map_or(ACCESSES[0], |rule| rule.access()),
        None if shared.rules.is_empty() => ACCESSES[0],
        None => ACCESSES[1],
    }
}

struct SharedVariables {
    resource: Arc<str>,
    list: Vec<Variable<'static>>,
}

impl SharedVariables {
    fn add_literal(&mut self, name: &'static str, value: impl Into<String>, of: &'static str) {
        self.list.push(Variable::literal(name, value, field_origin(&self.resource, of)));
    }

    /// Adds the variables of the membrane. The first five are always added together, empty or not.
    fn membrane<'t>(
        &mut self,
        ensemble: &Ensemble<'t>,
        membrane: &Membrane<'t>,
        ensemble_name: &str,
        config: Option<&str>,
    ) {
        let (visibility, _) = effective_visibility(ensemble, membrane, config);
        let rule = config.and_then(|config| membrane.rule(config));
        let peers = config.map(|config| peers(ensemble, membrane, config)).unwrap_or_default();
        let mut peers: Vec<String> = peers.iter().map(|peer| format!("{ensemble_name}-{peer}")).collect();
        peers.sort_unstable();
        let ttl = membrane.section("timeDecay").and_then(|decay| decay.text_at(&["ttl"])).unwrap_or_default();
        let field = "spec.sharedMemory.membrane.permeability";
        self.add_literal(VISIBILITY, visibility, field);
        let origin = field_origin(&self.resource, "spec.sharedMemory.membrane.trustGroups");
        let peers = peers.join(",");
        let variable = Variable::literal(TRUST_PEERS, peers.as_str(), origin);
        self.list.push(variable.equal_if(names_peers(peers, ensemble_name)));
        self.add_literal(ACCEPT_TAGS, rule.map(|rule| rule.accept_tags.join(",")).unwrap_or_default(), field);
        self.add_literal(EXPOSE_TAGS, rule.map(|rule| rule.expose_tags.join(",")).unwrap_or_default(), field);
        self.add_literal(MAX_AGE, ttl, "spec.sharedMemory.membrane.timeDecay.ttl");
        if let Some(budget) = membrane.section("tokenBudget") {
            self.budget(budget);
        }
        let evidence = membrane.section("evidencePolicy");
        if let Some(kind) = evidence.and_then(|policy| policy.filled_at(&["minKind"])) {
            let field = "spec.sharedMemory.membrane.evidencePolicy.minKind";
            self.add_literal(MIN_EVIDENCE_KIND, kind, field);
        }
    }

    fn budget(&mut self, budget: &Tree) {
        let tokens = budget.get("maxTokensPerRun").and_then(Tree::integer);
        if let Some(tokens) = tokens.filter(|tokens| *tokens > 0) {
            let field = "spec.sharedMemory.membrane.tokenBudget.maxTokensPerRun";
            self.add_literal(MAX_TOKENS_PER_RUN, tokens.to_string(), field);
        }
        let action = budget.filled_at(&["action"]);
        let field = "spec.sharedMemory.membrane.tokenBudget.action";
        self.add_literal(TOKEN_BUDGET_ACTION, action.unwrap_or(BUDGET_ACTIONS[0]), field);
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
