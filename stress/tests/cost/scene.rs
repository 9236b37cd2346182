//! The objects to begin with, and the state they belong to: cases of `tests/cases`, each in a namespace of
//! its own, so that all of them are in one state.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use memgate_model::edge::Edge;
use memgate_model::kind::{Kind, POLICY_GROUP};
use memgate_model::request::Operation;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::files::casefile::Case;
use serde_json::{Value, json};

use crate::policies::policies;
use crate::shape;
use crate::support::cases;

/// The kind of a base that is a review itself.
pub(crate) const REVIEW: &str = "AdmissionReview";

/// A good object, to be filled.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    /// The family and the case that it comes from.
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) object: Value,
    pub(crate) namespace: String,
    pub(crate) schema: Value,
    /// For an object of the state, the one that it is there for.
    pub(crate) referrer: Option<Box<Self>>,
}

/// All bases and the state of all of them, with policies that judge them.
pub(crate) struct Scene {
    pub(crate) bases: Vec<Base>,
    pub(crate) state: Vec<Value>,
}

/// Takes so many bases of each kind and family: those that show most of what a kind can hold. The wanted ones
/// are taken too.
pub(crate) fn scene(per_kind: usize, wanted: &BTreeSet<String>) -> Result<Scene> {
    let mut groups: BTreeMap<(String, String, String), Vec<(String, Case)>> = BTreeMap::new();
    for (file, case) in cases::cases()? {
        let Some(object) = case.object.as_ref().filter(|_| is_usable(&case)) else { continue };
        let family = file.split('/').next().unwrap_or_default().to_owned();
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let key = (family.clone(), text("apiVersion"), text("kind"));
        let name = format!("{family}/{}", case.name);
        groups.entry(key).or_default().push((name, case));
    }
    let mut scene = Scene { bases: Vec::new(), state: Vec::new() };
    let mut known = BTreeSet::new();
    for ((_, api_version, kind), cases) in groups {
        let Some(schema) = shape::schema(&api_version, &kind)? else { continue };
        let count = if kind == "Pod" { per_kind * 2 } else { per_kind };
        for (name, case) in most_telling(cases, count, wanted) {
            scene.add(&name, &kind, &case, &schema, &mut known);
        }
    }
    scene.add_crowds();
    scene.add_reviews();
    scene.state.extend(policies());
    Ok(scene)
}

fn is_usable(case: &Case) -> bool {
    let is_definition = |object: &Value| object["kind"] == "CustomResourceDefinition";
    case.operation == Operation::Create
        && case.subresource.is_empty()
        && case.expect.allowed != Some(false)
        && !case.state.iter().any(is_definition)
}

/// Those that together have the most different places and short values.
fn most_telling(cases: Vec<(String, Case)>, count: usize, wanted: &BTreeSet<String>) -> Vec<(String, Case)> {
    let (mut chosen, mut cases): (Vec<_>, Vec<_>) =
        cases.into_iter().partition(|(name, _)| wanted.contains(name));
    let mut seen: BTreeSet<_> = chosen.iter().flat_map(|(_, case)| tells(case)).collect();
    while chosen.len() < count && !cases.is_empty() {
        let news = |case: &Case| {
            let told = tells(case);
            told.difference(&seen).count()
        };
        let best = cases.iter().enumerate().max_by_key(|(index, (_, case))| (news(case), usize::MAX - index));
        let Some(best) = best.map(|(index, _)| index) else { break };
        let (name, case) = cases.remove(best);
        seen.extend(tells(&case));
        chosen.push((name, case));
    }
    chosen
}

fn tells(case: &Case) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    tell(case.object.as_ref().unwrap_or(&Value::Null), "", &mut told);
    told.extend(case.expect.codes.iter().flatten().map(|code| format!("code {code}")));
    told
}

fn tell(value: &Value, path: &str, told: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| tell(value, &format!("{path}/{key}"), told));
        }
        Value::Array(items) => items.iter().for_each(|item| tell(item, &format!("{path}/*"), told)),
        Value::String(text) if text.len() < 12 => drop(told.insert(format!("{path} {text}"))),
        _ => drop(told.insert(path.to_owned())),
    }
}

impl Scene {
    fn add(&mut self, name: &str, kind: &str, case: &Case, schema: &Value, known: &mut BTreeSet<String>) {
        let Some(mut object) = case.object.clone() else { return };
        let own = case.namespace.clone().or_else(|| text(&object, "/metadata/namespace"));
        let old = own.unwrap_or_else(|| "default".to_owned());
        // Namespaces with a meaning of their own stay.
        let new =
            if old == "team-a" || old == "ops" { format!("n{}", self.bases.len()) } else { old.clone() };
        move_to(&mut object, &old, &new);
        // A policy is for all objects.
        let is_policy =
            |object: &&Value| object["apiVersion"].as_str().is_some_and(|it| it.starts_with(POLICY_GROUP));
        for object in case.state.iter().filter(|object| !is_policy(object)) {
            let mut object = object.clone();
            move_to(&mut object, &old, &new);
            let key = ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"];
            let key = key.map(|pointer| text(&object, pointer).unwrap_or_default()).join(" ");
            if known.insert(key) && memgate_core::state::add(&mut empty(), &object).is_ok() {
                self.state.push(object);
            }
        }
        let (name, kind, namespace, schema) = (name.to_owned(), kind.to_owned(), new, schema.clone());
        self.bases.push(Base { name, kind, object, namespace, schema, referrer: None });
    }

    /// Takes one base of each kind a second time, in a namespace that has very many objects of each kind to which it
    /// refers. Their names are as long as can be, and nearly those that are missing.
    fn add_crowds(&mut self) {
        let mut kinds = BTreeSet::new();
        let bases: Vec<Base> =
            self.bases.iter().filter(|base| kinds.insert(kind_of(&base.object))).cloned().collect();
        for base in bases {
            let namespace = format!("crowd{}", self.bases.len());
            let mut object = base.object.clone();
            move_to(&mut object, &base.namespace, &namespace);
            let mut crowd: Vec<&'static Kind> = Vec::new();
            for edge in edges(&kind_of(&object)) {
                let places: Vec<Pointer> = edge.sites(&object).into_iter().map(|site| site.pointer).collect();
                for place in &places {
                    if let Some(name) = object.pointer_mut(place.as_str()) {
                        *name = "a".repeat(NAME_BYTES).into();
                    }
                }
                crowd.extend(edge.to.iter().filter(|_| !places.is_empty()));
            }
            crowd.sort_unstable();
            crowd.dedup();
            if crowd.is_empty() {
                continue;
            }
            for kind in crowd {
                self.state.extend((0..CROWD).map(|number| {
                    let name = format!("{}{number:03}", "a".repeat(NAME_BYTES - 3));
                    json!({"apiVersion": kind.api_version(), "kind": kind.kind,
                           "metadata": {"name": name, "namespace": namespace}, "spec": {}})
                }));
            }
            let name = format!("{} in a crowd", base.name);
            // It is the object itself that costs, so few of its places are filled.
            let texts = json!({"type": "array", "items": {"type": "string"}});
            let metadata = json!({"type": "object", "properties": {"finalizers": texts}});
            let schema = json!({"type": "object", "properties": {"metadata": metadata}});
            self.bases.push(Base { name, object, namespace, schema, ..base });
        }
    }

    /// Takes the review of one pod of each family as a base of its own.
    fn add_reviews(&mut self) {
        let mut families = BTreeSet::new();
        let family = |base: &Base| base.name.split('/').next().unwrap_or_default().to_owned();
        let pods = self.bases.iter().filter(|base| base.kind == "Pod");
        let first: Vec<_> = pods.filter(|base| families.insert(family(base))).cloned().collect();
        for base in first {
            let pod = json!({"group": "", "version": "v1", "kind": "Pod"});
            let object = json!({"apiVersion": "admission.k8s.io/v1", "kind": REVIEW, "request": {
                "uid": "u-1", "kind": pod, "resource": {"group": "", "version": "v1", "resource": "pods"},
                "namespace": base.namespace, "operation": "CREATE", "object": base.object,
            }});
            let name = format!("{}/a-review", family(&base));
            self.bases.push(Base { name, kind: REVIEW.to_owned(), object, schema: shape::review(), ..base });
        }
    }

    /// The same state with its objects as bases, each for all objects of its namespace.
    pub(crate) fn of_state(&self) -> Result<Self> {
        let mut bases = Vec::new();
        for base in self.bases.iter().filter(|base| base.kind != REVIEW) {
            for object in self.state.iter().filter(|object| object["metadata"]["namespace"] == base.namespace)
            {
                let field = |key: &str| object[key].as_str().unwrap_or_default();
                let Some(schema) = shape::schema(field("apiVersion"), field("kind"))? else { continue };
                let (name, kind) = (format!("{} with it", base.name), field("kind").to_owned());
                let (object, namespace) = (object.clone(), base.namespace.clone());
                bases.push(Base {
                    name,
                    kind,
                    object,
                    namespace,
                    schema,
                    referrer: Some(Box::new(base.clone())),
                });
            }
        }
        Ok(Self { bases, state: self.state.clone() })
    }

    /// The state as a manifest.
    pub(crate) fn manifest(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "List", "items": self.state})
    }
}

/// How many objects of a kind a crowded namespace has, and how long their names are.
const CROWD: usize = 1_000;
const NAME_BYTES: usize = 252;

/// The group and the kind of an object.
fn kind_of(object: &Value) -> (String, String) {
    let (group, kind) = memgate_core::state::group_and_kind(object);
    (group.to_owned(), kind.to_owned())
}

/// The references of a kind of which something is said when they lead nowhere.
fn edges((group, kind): &(String, String)) -> impl Iterator<Item = &'static Edge> {
    let all = memgate_platforms::ALL.iter().flat_map(|family| family.edges);
    all.filter(move |edge| edge.missing.is_some() && edge.from.iter().any(|from| from.is(group, kind)))
}

fn empty() -> memgate_model::snapshot::Snapshot {
    memgate_core::state::empty(memgate_platforms::default_settings())
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

/// Replaces the name of a namespace wherever it stands, also before a name.
fn move_to(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) if text == old => new.clone_into(text),
        Value::String(text) => {
            if let Some(rest) = text.strip_prefix(old).filter(|rest| rest.starts_with('/')) {
                *text = format!("{new}{rest}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_to(item, old, new)),
        Value::Object(fields) => fields.values_mut().for_each(|value| move_to(value, old, new)),
        _ => {}
    }
}
