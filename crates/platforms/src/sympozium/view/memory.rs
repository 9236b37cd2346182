//! The views of the kinds that declare memory: Agent, Ensemble and SkillPack.

use crate::sympozium::prelude::*;
use crate::{container_view, endpoint_view};
use memgate_model::memory_view::{SharingConfigView, SharingView, qualified};
use memgate_primitives::quantity;

use super::{new_view, subject_of};
use crate::sympozium::lookup::{self, PackMode};
use crate::sympozium::variables::access;

/// The backend of a memory server.
const SERVER: &str = "sqlite";

/// The backend of the older memory.
const LEGACY: &str = "configmap";

/// The number of billionths, the smallest unit of a quantity, in a byte.
const BILLION: i128 = 1_000_000_000;

/// The view of an Agent; `None` if it has no memory. `private` can be true although the Agent's own skills do not
/// include memory: a run can have skills of its own.
pub(super) fn of_agent(
    agent: &Subject<'_>,
    private: bool,
    state: &mut StateReader<'_>,
) -> Option<MemoryView> {
    if !private && !has_legacy_memory(agent.object) {
        return None;
    }
    let mut view = new_view(agent, Role::Memory);
    let field = if private { skill_pointer(agent.object) } else { Pointer::new("/spec/memory/enabled") };
    view.put("backend", &field, Some(if private { SERVER } else { LEGACY }));
    view.put("durable", &field, Some(true));
    view.at("endpoint", field);
    view.endpoint = if private { private_endpoint(agent, state) } else { None };
    view.references = ensemble_reference(agent, state).into_iter().collect();
    Some(view)
}

fn skill_pointer(agent: &Tree) -> Pointer {
    let list = Pointer::new("/spec/skills");
    match memory_skill(skills(agent)) {
        Some(index) => list.index(index).key("skillPackRef"),
        None => list,
    }
}

/// The endpoint of private memory that is a Service. Memory in a sidecar is reachable only in its pod.
fn private_endpoint(agent: &Subject<'_>, state: &mut StateReader<'_>) -> Option<EndpointView> {
    match pack_mode(agent, state) {
        PackMode::Sidecar(_) => None,
        PackMode::Service => service(agent, state, &private_url(agent.name, agent.namespace)),
        PackMode::Unknown => {
            let pack = format!("{} \"{}\"", SKILL_PACK.kind, qualified(agent.namespace, MEMORY_SKILL));
            Some(EndpointView::unknown(EndpointSource::Derived, Why::Object(pack)))
        }
    }
}

/// Where the private memory of an Agent runs, unless its pods set that.
pub(super) fn pack_mode<'s>(agent: &Subject<'_>, state: &mut StateReader<'s>) -> PackMode<'s> {
    let asked =
        agent.object.text_at(&["metadata", "annotations", MODE_ANNOTATION]).and_then(lookup::asked_mode);
    let chosen = asked.unwrap_or_else(|| state.settings().sympozium.memory_mode);
    lookup::pack_mode(chosen, agent.namespace, state)
}

/// The endpoint of a Service that is named after an object; `None` for an object without a name.
fn service(object: &Subject<'_>, state: &mut StateReader<'_>, url: &str) -> Option<EndpointView> {
    let parse = || endpoint_view::parse(EndpointSource::Derived, url, object.namespace, state);
    (!object.name.is_empty()).then(parse)
}

/// The Ensemble that an Agent names by a label.
fn ensemble_reference(agent: &Subject<'_>, state: &mut StateReader<'_>) -> Option<ReferenceView> {
    let (label, name) = ensemble_label(agent.object)?;
    let lookup = lookup::ensemble(agent.namespace, name, state);
    let field = Pointer::new("/metadata/labels").key(label);
    Some(ReferenceView::new(&ENSEMBLE, (agent.namespace, name), field, lookup))
}

/// The view of an Ensemble; `None` if it shares no memory.
pub(super) fn of_ensemble(object: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let ensemble = Ensemble::read(object.object);
    let shared = ensemble.shared.as_ref().filter(|shared| shared.enabled)?;
    let mut view = new_view(object, Role::Memory);
    view.put("backend", "/spec/sharedMemory/enabled", Some(SERVER));
    view.put("durable", "/spec/sharedMemory/enabled", Some(true));
    view.put("storageBytes", "/spec/sharedMemory/storageSize", storage(shared.storage_size));
    view.at("endpoint", "/spec/sharedMemory/enabled");
    view.at("sharing", "/spec/sharedMemory/accessRules");
    view.endpoint = service(object, state, &shared_url(object.name, object.namespace));
    view.sharing = Some(sharing(&ensemble, shared));
    Some(view)
}

/// The size of the volume; an empty string counts as absent.
pub(super) fn storage(size: &str) -> Option<ViewValue<'static>> {
    let text = Some(size).filter(|size| !size.is_empty()).unwrap_or(STORAGE_SIZE_DEFAULT);
    let billionths = quantity::billionths(text)?;
    // Division rounds towards 0, which rounds negative values up.
    let bytes = billionths / BILLION + i128::from(billionths % BILLION > 0);
    Some(ViewValue::Bytes(bytes, text.to_owned().into()))
}

fn sharing<'t>(ensemble: &Ensemble<'t>, shared: &SharedMemory<'t>) -> SharingView {
    let rules = Pointer::new("/spec/sharedMemory/accessRules");
    let configs = ensemble.configs_place().pointer();
    let at = |list: &Pointer, index: Option<usize>, below: &str| match index {
        Some(index) => list.index(index).key(below),
        None => list.clone(),
    };
    let config = |name: &str| {
        let (visibility, field) = visibility(ensemble, shared, name);
        SharingConfigView {
            name: name.to_owned(),
            access: Some(access(shared, Some(name)).to_owned()),
            visibility: Some(visibility.to_owned()),
            field,
            name_field: at(&configs, ensemble.configs.first(name).map(|config| config.index), "name"),
            access_field: at(&rules, shared.rules.first(name).map(|rule| rule.index), "access"),
        }
    };
    let names = ensemble.named_configs().filter(|config| !ensemble.excluded.contains(config));
    SharingView { configs: names.map(config).collect(), field: rules.clone() }
}

/// The visibility of the entries of a config, and the field that decides it. Without a membrane, entries are public.
fn visibility<'t>(ensemble: &Ensemble<'t>, shared: &SharedMemory<'t>, config: &str) -> (&'t str, Pointer) {
    let membrane = Pointer::new("/spec/sharedMemory/membrane");
    let Some(found) = shared.membrane.as_ref().map(|it| effective_visibility(ensemble, it, Some(config)))
    else {
        return (VISIBILITIES[0], membrane.key("defaultVisibility"));
    };
    let field = match found.1 {
        VisibilitySource::Rule(index) => membrane.key("permeability").index(index).key("defaultVisibility"),
        VisibilitySource::Relationships => Pointer::new("/spec/relationships"),
        VisibilitySource::Default => membrane.key("defaultVisibility"),
    };
    (found.0, field)
}

/// The view of the SkillPack `memory`, with the container that serves the private memory of its users.
pub(super) fn of_pack(pack: &Subject<'_>) -> MemoryView {
    let mut view = new_view(pack, Role::Memory);
    view.has_fixed_name = true;
    let sidecar = Pointer::new("/spec/sidecar");
    view.put("backend", &sidecar, Some(SERVER));
    view.put("durable", &sidecar, Some(true));
    let Some(image) = sidecar_image(pack.object) else { return view };
    let secret = sidecar.key("secretRef");
    view.at("secrets", &secret);
    let name = pack.object.filled_at(&["spec", "sidecar", "secretRef"]);
    view.secrets.extend(name.map(|name| SecretView::new((pack.namespace, name), None, secret)));
    let variables = pack.object.list_at(&["spec", "sidecar", "env"]).iter().enumerate();
    view.secrets.extend(variables.filter_map(|(index, variable)| {
        let name = variable.filled_at(&["valueFrom", "secretKeyRef", "name"])?;
        let at = sidecar.key("env").index(index).key("valueFrom").key("secretKeyRef").key("name");
        Some(SecretView::new((pack.namespace, name), None, at))
    }));
    view.containers.push(container_view::of_image(MEMORY_SERVER, image, sidecar));
    view
}

/// The memories that a run or a pod uses.
#[derive(Default)]
pub(super) struct Usage<'s> {
    /// Its Agent, or the one that its Ensemble will make.
    pub(super) agent: Option<Cow<'s, Object>>,
    /// Whether the Agent's private memory is used.
    pub(super) private: bool,
    /// The Ensemble, if it shares memory.
    pub(super) ensemble: Option<&'s Object>,
}

impl Usage<'_> {
    /// The views of these memories.
    pub(super) fn memories(&self, state: &mut StateReader<'_>) -> Vec<MemoryView> {
        let mut views = Vec::new();
        if let Some(agent) = self.agent.as_deref().map(subject_of) {
            views.extend(of_agent(&agent, self.private, state));
            if self.private
                && let PackMode::Sidecar(Some(pack)) = pack_mode(&agent, state)
            {
                views.push(of_pack(&subject_of(pack)));
            }
        }
        views.extend(self.ensemble.and_then(|ensemble| of_ensemble(&subject_of(ensemble), state)));
        views
    }
}

/// The view of an AgentRun.
pub(super) fn of_run(run: &Subject<'_>, state: &mut StateReader<'_>) -> MemoryView {
    let mut view = new_view(run, Role::Referrer);
    let Some(name) = agent_ref(run.object) else { return view };
    let field = agent_ref_pointer(run.object);
    let (lookup, usage) = look_up(run, name, state);
    // A run of Celln uses none of the memories of its Agent.
    let usage = if is_celln(run.object) { Usage::default() } else { usage };
    let memories = usage.memories(state).into_iter();
    view.sources = memories.map(|view| SourceView { view, field: field.clone() }).collect();
    view.references.push(ReferenceView::new(&AGENT, (run.namespace, name), field, lookup));
    view
}

/// Whether a run uses the private memory of its Agent.
fn uses_private_memory(run: &Tree, agent: &Tree) -> bool {
    has_memory(if inherits_skills(Some(run)) { agent } else { run })
}

/// The Agent that an Ensemble will make of a config, as far as memory goes.
pub(super) fn made_agent(
    (namespace, name): (&str, &str),
    ensemble: &Object,
    config: AgentConfig<'_>,
) -> Option<Object> {
    let (kind, of_ensemble, of_config) = if *ensemble.kind == ENSEMBLE {
        (&AGENT, ENSEMBLE_LABEL, CONFIG_LABEL)
    } else {
        (&AGENT_OLD, PACK_LABEL, PERSONA_LABEL)
    };
    let labels = json!({of_ensemble: &*ensemble.name, of_config: config.name});
    let agent = json!({
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "skills": [{"skillPackRef": MEMORY_SKILL}],
            "memory": {"enabled": !config.memory_disabled()},
        },
    });
    Object::read(kind, agent).ok()?
}

/// The Agent of a run, or the Ensemble that will make it, and the memories that the run uses.
fn look_up<'s>(run: &Subject<'_>, name: &str, state: &mut StateReader<'s>) -> (Lookup<'s>, Usage<'s>) {
    let (lookup, agent, ensemble) = match lookup::agent_or_maker(run.namespace, name, state) {
        (Lookup::Found(agent), _) => {
            let ensemble = lookup::ensemble_of(Some(agent.tree()), Some(run.object), run.namespace, state);
            (Lookup::Found(agent), Some(Cow::Borrowed(agent)), ensemble)
        }
        (_, Some((ensemble, config))) => {
            let made = made_agent((run.namespace, name), ensemble, config);
            (Lookup::Found(ensemble), made.map(Cow::Owned), Some(ensemble))
        }
        (unknown_or_absent, None) => return (unknown_or_absent, Usage::default()),
    };
    let private = agent.as_ref().is_some_and(|agent| uses_private_memory(run.object, agent.tree()));
    let ensemble = ensemble.filter(|ensemble| shares_memory(ensemble.tree()));
    (lookup, Usage { agent, private, ensemble })
}
