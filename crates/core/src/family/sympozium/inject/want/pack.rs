//! What a SkillPack says about the sidecar. One pack serves many namespaces, and everybody who may read pods there
//! would read the credentials that somebody wrote into it.

use serde_json::Value;

use super::super::super::api::agent::{sidecar_command, sidecar_env};
use super::super::super::codes::POD_PACK_CREDENTIAL;
use super::super::recognise::instance_label;
use super::WantedBuilder;
use crate::family::message::fit_names;
use crate::model::credential::{is_credential_name, value_spans};
use crate::model::finding::{Finding, quoted};
use crate::model::object::Object;
use crate::model::pointer::Pointer;

impl<'s> WantedBuilder<'_, 's> {
    /// The variables of the sidecar, without those whose literal value is a credential.
    pub(super) fn pack_env(&mut self, pack: &'s Object) -> Vec<(&'s str, Value)> {
        let (withheld, env): (Vec<_>, Vec<_>) = sidecar_env(&pack.tree).partition(|(name, variable)| {
            variable["value"].as_str().is_some_and(|value| is_credential(name, value))
        });
        for (name, _) in withheld {
            let message = fit_names([&pack.namespace, &pack.name, name], |[namespace, pack, name]| {
                let pack = quoted(&format!("{namespace}/{pack}"));
                format!("SkillPack {pack} holds a literal credential: {name} is not set")
            });
            self.withhold(pack, "env", message);
        }
        env
    }

    /// The program of the sidecar, unless one of its words is a credential.
    pub(super) fn pack_command(&mut self, pack: &'s Object) -> Vec<&'s str> {
        let command = sidecar_command(&pack.tree);
        if value_spans(&command.join(" ")).is_empty() {
            return command;
        }
        let message = fit_names([&pack.namespace, &pack.name], |[namespace, pack]| {
            let pack = quoted(&format!("{namespace}/{pack}"));
            format!("SkillPack {pack} holds a literal credential: its command is left out")
        });
        self.withhold(pack, "command", message);
        Vec::new()
    }

    fn withhold(&mut self, pack: &'s Object, field: &str, message: String) {
        let at = Pointer::new("/spec/sidecar").key(field);
        let finding = Finding::warn(&POD_PACK_CREDENTIAL, instance_label(), message);
        self.warnings.push(finding.elsewhere(pack, at, "not copied into the pod"));
    }
}

/// Whether the literal value of a variable is a credential. What the kubelet fills in is none yet.
fn is_credential(name: &str, value: &str) -> bool {
    let named = is_credential_name(name) && !value.is_empty() && !value.starts_with("$(");
    named || !value_spans(value).is_empty()
}
