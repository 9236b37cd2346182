//! Ark: pods of execution engines that opt in, and what the platform's own objects go through.

use anyhow::{Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};

use super::{RESTRICTED, Scene, fresh_name, literal, namespace};
use crate::{
    fixture::{Fixture, Trial},
    request::{create, path, send},
    support::wait,
};

pub(super) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("families::ark::queries_get_the_default_memory", default_memory),
        Trial::new("families::ark::ports_may_be_written_as_numbers", integer_port),
        Trial::new("families::ark::deleting_a_memory_in_use_names_its_users", in_use),
        Trial::new("families::ark::pods_that_do_not_opt_in_are_let_be", not_opted_in),
    ]
}

/// An execution engine that opts in with one of its two containers.
pub(super) fn scene(home: &str) -> Scene {
    let memory = json!({
        "address": {"valueFrom": {"secretKeyRef": {"name": "memory-conn", "key": "url"}}},
        "headers": [
            {
                "name": "Authorization",
                "value": {"valueFrom": {"secretKeyRef": {"name": "memory-conn", "key": "token"}}},
            },
            {"name": "X-Tenant", "value": {"value": "team-$a"}},
        ],
    });
    let from = |variable: &str, key: &str| json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": "memory-conn", "key": key}}});
    Scene {
        objects: vec![namespace(home, &[RESTRICTED], &json!({})), object(home, "Memory", "vaulted", &memory)],
        workload: deployment(home),
        container: "engine",
        env: vec![
            literal("ARK_MEMORY_NAME", "vaulted"),
            literal("ARK_MEMORY_NAMESPACE", home),
            from("ARK_MEMORY_URL", "url"),
            literal("ARK_MEMORY_HTTP_TIMEOUT_SECONDS", "45"),
            literal("ARK_MEMORY_HEADERS", "Authorization,X-Tenant"),
            from("ARK_MEMORY_HEADER_AUTHORIZATION", "token"),
            literal("ARK_MEMORY_HEADER_X_TENANT", "team-$$a"),
        ],
        init_containers: vec![],
        volumes: vec![],
        mounts: vec![],
    }
}

fn object(home: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": home}, "spec": spec,
    })
}

fn query(home: &str, name: &str, memory: &Value) -> Value {
    let mut query = object(
        home,
        "Query",
        name,
        &json!({
            "input": "And now?", "target": {"type": "agent", "name": "my-agent"}, "memory": memory,
        }),
    );
    if memory.is_null() {
        query["spec"].as_object_mut().map(|spec| spec.remove("memory"));
    }
    query
}

fn deployment(home: &str) -> Value {
    let labels = json!({"app": "my-engine"});
    let confined = json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "my-engine", "namespace": home},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {
                    "memgate.dev/ark-memory": "vaulted", "memgate.dev/ark-containers": "engine",
                    "memgate.dev/ark-memory-timeout": "45",
                }},
                "spec": {
                    "serviceAccountName": "my-engine",
                    "containers": [
                        {
                            "name": "engine", "image": "registry.example.com/my-engine:1.4.0",
                            "ports": [{"containerPort": 8000}], "env": [literal("LOG_LEVEL", "info")],
                            "securityContext": confined,
                        },
                        {
                            "name": "metrics", "image": "registry.example.com/metrics:0.3.1",
                            "securityContext": confined,
                        },
                    ],
                },
            },
        },
    })
}

fn default_memory(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let client = cluster.client();
    let home = fixture.namespace("ark-default", &[])?;
    let add = |object: &Value, query| -> Result<Value> {
        cluster.block_on(create(&client, &home, object, query))?.object()
    };
    let lonely = add(&query(&home, "lonely", &Value::Null), "")?;
    ensure!(lonely["spec"]["memory"].is_null(), "{lonely}");

    // The watch of memgate cannot have shown it yet.
    let url = json!({"address": {"value": "http://ark-broker.team-a.svc.cluster.local:80"}});
    add(&object(&home, "Memory", "default", &url), "")?;
    let mut nameless = query(&home, "", &Value::Null);
    nameless["metadata"] = json!({"generateName": "chat-"});
    for (query, dry) in
        [(&nameless, "?dryRun=All"), (&nameless, ""), (&query(&home, "chat", &Value::Null), "")]
    {
        let stored = add(query, dry)?;
        ensure!(stored["spec"]["memory"] == json!({"name": "default"}), "{stored}");
    }
    let explicit = add(&query(&home, "explicit", &json!({"name": "other"})), "")?;
    ensure!(explicit["spec"]["memory"] == json!({"name": "other"}), "{explicit}");

    // A Query that ran without memory is not given one afterwards.
    let mut touched = lonely;
    touched["metadata"]["labels"] = json!({"seen": "1"});
    let path = path(&touched, &home, Some("lonely"))?;
    let touched = cluster.block_on(send(&client, Method::PUT, &path, Some(&touched)))?.object()?;
    ensure!(touched["spec"]["memory"].is_null(), "{touched}");
    Ok(())
}

/// The platform's documents show a number where its schema wants a name.
fn integer_port(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let home = fixture.namespace("ark-port", &[])?;
    let memory = |name: &str, service: &str| {
        let service = json!({"name": service, "port": 8080});
        object(&home, "Memory", name, &json!({"address": {"valueFrom": {"serviceRef": service}}}))
    };
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "ark-broker", "namespace": home},
        "spec": {"clusterIP": "None", "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    });
    let kubectl = cluster.admin();
    let apply = |objects: &[Value], flags: &[&str]| {
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        kubectl.run_with_input(&[&["apply", "-f", "-"], flags].concat(), &documents.join("\n---\n"))
    };
    let stderr =
        apply(&[service, memory("known", "ark-broker"), memory("unknown", "absent")], &[])?.ok()?.stderr;
    for text in ["8080 became \"http\"", "8080 became \"8080\""] {
        let warning = format!(
            "Warning: spec.address.valueFrom.serviceRef.port: serviceRef.port is a port name; {text} (memgate ark/memory-port-integer)\n"
        );
        ensure!(stderr.matches(&warning).count() == 1, "{text} is not there once: {stderr}");
    }
    let port = |name: &str| -> Result<String> {
        let path = "--output=jsonpath={.spec.address.valueFrom.serviceRef.port}";
        let get = ["get", "memories.ark.mckinsey.com", name, "-n", &home, path];
        Ok(kubectl.run(&get)?.ok()?.stdout)
    };
    ensure!(port("known")? == "http", "{}", port("known")?);
    ensure!(port("unknown")? == "8080", "{}", port("unknown")?);

    // An apply by the server fails over its types before any webhook.
    let refusal = apply(&[memory("merged", "ark-broker")], &["--server-side"])?.refusal()?;
    ensure!(!refusal.contains("admission webhook"), "{refusal}");
    Ok(())
}

fn in_use(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let client = cluster.client();
    let home = fixture.namespace("ark-in-use", &[])?;
    let url = json!({"address": {"value": "http://ark-broker:80"}});
    for name in ["default", "spare"] {
        cluster.block_on(create(&client, &home, &object(&home, "Memory", name, &url), ""))?.object()?;
    }
    for name in ["b", "a"] {
        let query = query(&home, name, &json!({"name": "default"}));
        cluster.block_on(create(&client, &home, &query, ""))?.object()?;
    }
    let delete = |name: &str, flags: &[&str]| -> Result<String> {
        let delete = ["delete", "memories.ark.mckinsey.com", name, "-n", &home];
        Ok(cluster.kubectl(&[&delete[..], flags].concat())?.ok()?.stderr)
    };
    let expected = "Warning: 2 queries use this Memory (a, b); their messages will not be cleaned up \
                    (memgate ark/memory-delete-referenced)\n";
    // Who uses a memory is known from a watch alone.
    wait::until("memgate to know the Queries", || {
        Ok((delete("default", &["--dry-run=server"])? == expected).then_some(()))
    })?;
    let spare = delete("spare", &[])?;
    ensure!(spare.is_empty(), "{spare}");
    let stderr = delete("default", &[])?;
    ensure!(stderr == expected, "{stderr}");
    Ok(())
}

/// The condition of the webhook keeps them away, whatever they are called.
fn not_opted_in(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let home = fresh_name("ark-foreign");
    let mut scene = scene(&home);
    for object in &scene.objects {
        cluster.admin().apply(&object.to_string())?;
    }
    let template = &mut scene.workload["spec"]["template"];
    template["metadata"]["annotations"] = json!({"memgate.dev/ark-containers": "engine"});
    template["apiVersion"] = json!("v1");
    template["kind"] = json!("Pod");
    template["metadata"]["name"] = json!("my-engine");
    let answer = cluster.block_on(create(&cluster.client(), &home, template, "?dryRun=All"))?;
    let annotations = cluster.annotations(&answer.audit_id)?;
    let asked = annotations.values().any(|value| value.contains("ark.pods.memgate.dev"));
    ensure!(!asked, "memgate was asked: {annotations:?}");
    let pod = answer.object()?;
    ensure!(pod["spec"]["containers"][0]["env"] == json!([literal("LOG_LEVEL", "info")]), "{pod}");
    Ok(())
}
