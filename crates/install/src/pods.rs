//! What a cluster wants of memgate's pods: ports, pull secrets, tolerations and variables.

use serde_json::{Map, Value, json};

use crate::install_plan::{PodSettings, Toleration};
use crate::objects::Objects;
use crate::workload::{CONTAINER, POD, PORTS, WEBHOOK};

/// Serves the webhook or the probes on another port.
pub(super) fn set_port(objects: &mut Objects, name: &str, port: i32) {
    let ports = objects.list(PORTS).into_iter().flatten();
    let Some(known) = ports
        .filter(|port| port.get("name").is_some_and(|it| it == name))
        .find_map(|port| port.get_mut("containerPort"))
    else {
        return;
    };
    let usual = std::mem::replace(known, port.into());
    for argument in &mut objects.arguments {
        *argument = argument.replace(&format!("[::]:{usual}"), &format!("[::]:{port}"));
    }
}

/// Changes the pods as a cluster wants it.
pub(super) fn set_pods(objects: &mut Objects, pods: &PodSettings) {
    if let Some(port) = pods.webhook_port {
        set_port(objects, WEBHOOK, port.into());
    }
    let secrets = pods.pull_secrets.iter().map(|name| json!({"name": name}));
    let env = pods.env.iter().map(|(name, value)| json!({"name": name, "value": value}));
    let lists = [
        (POD, "imagePullSecrets", secrets.collect::<Vec<_>>()),
        (POD, "tolerations", pods.tolerations.iter().map(toleration).collect()),
        (CONTAINER, "env", env.collect()),
    ];
    for (parent, field, list) in lists.into_iter().filter(|(.., list)| !list.is_empty()) {
        objects.set(parent, field, list);
    }
}

fn toleration(toleration: &Toleration) -> Value {
    let Toleration { key, value, effect } = toleration;
    let operator = if value.is_some() { "Equal" } else { "Exists" };
    let fields = [
        ("key", Some(key.as_str())),
        ("operator", Some(operator)),
        ("value", value.as_deref()),
        ("effect", effect.as_deref()),
    ];
    let given = fields.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into())));
    Value::Object(given.collect::<Map<_, _>>())
}
