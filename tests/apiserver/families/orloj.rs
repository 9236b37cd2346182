//! Orloj: one Job for each turn of an agent, in the namespace where agents' Jobs run.
//! Source: OrlojHQ/orloj, runtime/agent_runtime_kubernetes.go, buildAgentJob.

use serde_json::{Value, json};

use super::{Scene, literal, namespace};
use crate::installed::JOBS;

/// Agents whose Jobs run beside them.
pub(super) fn scene(home: &str) -> Scene {
    of(home, home)
}

/// Agents whose Jobs run in the one namespace for Jobs.
pub(super) fn scene_elsewhere(home: &str) -> Scene {
    of(home, JOBS)
}

fn of(home: &str, jobs: &str) -> Scene {
    let object = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "orloj.dev/v1", "kind": kind,
            "metadata": {"name": name, "namespace": home}, "spec": spec,
        })
    };
    let secret = |name: &str| format!("{jobs}/{name}");
    let objects = vec![
        namespace(home, &[], &json!({})),
        object(
            "ModelEndpoint",
            "embed-small",
            json!({
                "provider": "openai", "default_model": "text-embedding-3-small",
                "auth": {"secretRef": secret("shared-openai")},
            }),
        ),
        object(
            "Memory",
            "acme-notes",
            json!({
                "type": "vector", "provider": "pgvector",
                "endpoint": format!("postgres://notes@pg.{home}.svc:5432/notes"),
                "embedding_model": "embed-small", "auth": {"secretRef": secret("shared-pg")},
            }),
        ),
        object(
            "Agent",
            "scribe",
            json!({
                "model_ref": "chat-main", "prompt": "Summarise what you ingest.",
                "memory": {"ref": "acme-notes", "allow": ["read", "search", "ingest"]},
            }),
        ),
    ];
    let from = |variable: &str, secret: &str| {
        let key = json!({"name": secret, "key": "value", "optional": true});
        json!({"name": variable, "valueFrom": {"secretKeyRef": key}})
    };
    let dsn = format!("postgres://notes:$(ORLOJ_MEMORY_PASSWORD)@pg.{home}.svc:5432/notes");
    Scene {
        objects,
        workload: job(home, jobs),
        container: "agent",
        env: vec![
            literal("ORLOJ_MEMORY_REF", "acme-notes"),
            literal("ORLOJ_MEMORY_NAMESPACE", home),
            literal("ORLOJ_MEMORY_PROVIDER", "pgvector"),
            literal("ORLOJ_MEMORY_TYPE", "vector"),
            literal("ORLOJ_MEMORY_ALLOW", "read,search,ingest"),
            from("ORLOJ_MEMORY_PASSWORD", "shared-pg"),
            literal("ORLOJ_MEMORY_DSN", &dsn),
            literal("ORLOJ_MEMORY_EMBEDDING_URL", "https://api.openai.com/v1"),
            literal("ORLOJ_MEMORY_EMBEDDING_MODEL", "text-embedding-3-small"),
            from("ORLOJ_MEMORY_EMBEDDING_API_KEY", "shared-openai"),
        ],
        init_containers: vec![],
        volumes: vec![],
        mounts: vec![],
    }
}

fn job(home: &str, jobs: &str) -> Value {
    let labels = json!({
        "orloj.dev/component": "agent-job", "orloj.dev/agent": "scribe",
        "orloj.dev/task": "digest-0611", "orloj.dev/namespace": home,
    });
    let resources = json!({"cpu": "500m", "memory": "512Mi"});
    let task = format!("{home}/digest-0611");
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": format!("orloj-agent-{home}-digest-0611-scribe-a1"),
            "namespace": jobs, "labels": labels,
        },
        "spec": {
            "backoffLimit": 0, "ttlSecondsAfterFinished": 600, "activeDeadlineSeconds": 600,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never", "serviceAccountName": "orloj-agent",
                    "containers": [{
                        "name": "agent", "image": "ghcr.io/orlojhq/orloj-orlojworker:0.17.0",
                        "args": [
                            "--single-agent", "--task-id", task, "--agent-name", "scribe",
                            "--attempt", "1", "--message-id", "m-77",
                        ],
                        "env": [literal("ORLOJ_POSTGRES_DSN", "postgres://orloj@orloj-postgresql:5432/orloj")],
                        "envFrom": [{"configMapRef": {"name": "orloj-runtime"}}],
                        "resources": {"requests": resources, "limits": resources},
                    }],
                },
            },
        },
    })
}
