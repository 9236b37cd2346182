//! What will be done to a pod.

use std::sync::Arc;

use crate::family::pod::env_pointer;
use crate::model::edit::Origin;
use crate::model::finding::{Finding, quoted};
use crate::model::pod::{Container, Pod};
use crate::model::pointer::Pointer;
use crate::model::settings::Sympozium;
use crate::model::snapshot::{Object, StateReader};
use serde_json::Value;

use super::super::api::CONFIG_LABEL;
use super::super::api::agent::auto_store_off;
use super::super::api::ensemble::Ensemble;
use super::super::codes::CONFIG_UNKNOWN;
use super::Unmet;
use super::env::{self, AUTO_STORE, Variable};
use super::find::Found;
use super::mode::{Mode, mode};
use super::seen::Seen;

/// A tree that is added, by name.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) tree: Value,
    pub(super) origin: Origin,
}

/// What will be done to a pod.
pub(super) struct Plan<'p, 's> {
    pub(super) pod: &'p Pod<'p>,
    pub(super) seen: &'p Seen<'p>,
    pub(super) container: usize,
    pub(super) agent: &'p Container<'p>,
    pub(super) namespace: &'p str,
    pub(super) found: Found<'s>,
    /// Whether the agent gets its private memory: nothing stands in its way.
    pub(super) private_on: bool,
    /// All variables that the memory wants, in order.
    pub(super) variables: Vec<Variable>,
    /// Init containers before all others, and behind them.
    pub(super) first: Option<Part>,
    pub(super) last: Option<Part>,
    pub(super) volumes: Vec<Part>,
    /// Mounts of the agent, named by their path.
    pub(super) mounts: Vec<Part>,
    pub(super) fs_group: bool,
    pub(super) unmet: Vec<Finding>,
    pub(super) warnings: Vec<Finding>,
    /// The images of what is added, as they were chosen.
    pub(super) wait_image: String,
    pub(super) memory_image: String,
}

impl<'p, 's> Plan<'p, 's> {
    pub(super) fn new(
        pod: &'p Pod<'p>,
        seen: &'p Seen<'p>,
        (container, agent): (usize, &'p Container<'p>),
        namespace: &'p str,
        mut found: Found<'s>,
        settings: &Sympozium,
    ) -> Self {
        let unmet = std::mem::take(&mut found.unmet);
        Self {
            pod,
            seen,
            container,
            agent,
            namespace,
            found,
            private_on: false,
            variables: Vec::new(),
            first: None,
            last: None,
            volumes: Vec::new(),
            mounts: Vec::new(),
            fs_group: false,
            unmet,
            warnings: Vec::new(),
            wait_image: settings.wait_image.clone(),
            memory_image: settings.memory_image.clone(),
        }
    }

    /// The memory of this agent alone.
    pub(super) fn private(&mut self, state: &mut StateReader<'s>) -> Result<(), Unmet> {
        let Some((object, field)) = self.found.private.clone() else { return Ok(()) };
        let origin = self.private_origin(object, &field);
        match mode(self, state)? {
            Mode::Service => self.private_service(&origin),
            Mode::SidecarPresent => self.private_sidecar_url(&origin),
            Mode::Sidecar(pack) => self.private_sidecar(pack, &origin, state),
        }
        Ok(())
    }

    fn private_origin(&self, object: &Object, field: &str) -> Origin {
        let is_agent = self.found.agent.is_some_and(|agent| std::ptr::eq(agent, object));
        let kind = if is_agent { "Agent" } else { "AgentRun" };
        Origin { resource: env::resource(kind, object), field: field.to_owned().into(), rule: "" }
    }

    /// The last variable of private memory, which comes behind those of the shared one.
    pub(super) fn auto_store(&self) -> Option<Variable> {
        let agent = self.found.agent.filter(|agent| auto_store_off(&agent.tree))?;
        self.private_on.then(|| Variable {
            name: AUTO_STORE,
            value: "false".to_owned(),
            resource: env::resource("Agent", agent),
            field: "spec.memory.autoStore".into(),
        })
    }

    /// What the Ensemble shares.
    pub(super) fn shared(&mut self) {
        let Some(ensemble) = self.found.ensemble.filter(|_| self.found.shared) else {
            self.variables.extend(self.auto_store());
            return;
        };
        self.variables.extend(env::shared(ensemble, self.namespace, self.found.config));
        self.variables.extend(self.auto_store());
        let rules = Ensemble::read(&ensemble.tree).shared.is_some_and(|shared| !shared.rules.is_empty());
        if rules && self.found.config.is_none() {
            let agent = quoted(&self.found.instance);
            let message =
                format!("Agent {agent} has no label {CONFIG_LABEL}: its shared memory is read-only");
            self.warnings.push(Finding::warn(&CONFIG_UNKNOWN, super::instance_label(), message));
        }
        self.shared_service(ensemble);
    }

    pub(super) fn want(&mut self, name: &'static str, value: impl Into<String>, origin: &Origin) {
        let (resource, field) = (Arc::clone(&origin.resource), origin.field.clone());
        self.variables.push(Variable { name, value: value.into(), resource, field });
    }

    /// The pointer to the agent's entry for a variable.
    pub(super) fn env_entry(&self, name: &str) -> Pointer {
        let list = env_pointer(self.container);
        self.seen.variable(name).map_or_else(|| list.clone(), |(index, _)| list.index(index))
    }
}
