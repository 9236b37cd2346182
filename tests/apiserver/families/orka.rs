//! Orka: one Job for each Task of type `ai`. Nothing declares memory but annotations, here one on
//! each of Agent, Task and Namespace.
//! Source: orka-agents/orka, internal/controller/job_builder.go.

use serde_json::{Value, json};

use super::{RESTRICTED, Scene, literal, namespace};

pub(super) fn scene(home: &str) -> Scene {
    let object = |kind: &str, name: &str, annotations: Value, spec: Value| {
        json!({
            "apiVersion": "core.orka.ai/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": home, "annotations": annotations}, "spec": spec,
        })
    };
    let objects = vec![
        namespace(
            home,
            &[RESTRICTED],
            &json!({
                "memgate.dev/orka-memory-context-limit": "4",
                "memgate.dev/orka-memory-context-max-chars": "3000",
            }),
        ),
        object(
            "Agent",
            "release-helper",
            json!({"memgate.dev/orka-memory-context": "true"}),
            json!({
                "providerRef": {"name": "anthropic-main"},
                "systemPrompt": {"inline": "You prepare releases."},
                "tools": [{"name": "recall_memory"}, {"name": "web_fetch"}],
                "coordination": {"enabled": true},
            }),
        ),
        object(
            "Task",
            "cut-release",
            json!({"memgate.dev/orka-memory-context-limit": "7"}),
            json!({
                "type": "ai", "agentRef": {"name": "release-helper"},
                "prompt": "Prepare the release notes.", "ai": {"tools": ["remember"]},
            }),
        ),
    ];
    Scene {
        objects,
        workload: job(home),
        container: "worker",
        env: vec![
            literal("ORKA_MEMORY_CONTEXT_ENABLED", "true"),
            literal("ORKA_MEMORY_CONTEXT_LIMIT", "7"),
            literal("ORKA_MEMORY_CONTEXT_MAX_CHARS", "3000"),
        ],
        init_containers: vec!["fetch-session"],
        volumes: vec!["tmp", "session-data"],
        mounts: vec!["/tmp", "/session"],
    }
}

fn job(home: &str) -> Value {
    let labels = json!({"orka.ai/task": "cut-release", "orka.ai/task-type": "ai"});
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "cut-release-job-1f2e3d4c-0", "namespace": home, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never", "serviceAccountName": "orka-ai-worker",
                    "automountServiceAccountToken": true,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "initContainers": [{
                        "name": "fetch-session", "image": "busybox:1.37", "securityContext": confined(),
                        "volumeMounts": [{"name": "session-data", "mountPath": "/session"}],
                    }],
                    "containers": [worker(home)],
                    "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "session-data", "emptyDir": {}}],
                },
            },
        },
    })
}

fn worker(home: &str) -> Value {
    let controller = format!("http://orka.{home}.svc:8080");
    json!({
        "name": "worker", "image": "ghcr.io/orka-agents/orka/ai-worker:latest",
        "imagePullPolicy": "IfNotPresent", "command": ["/worker"], "args": ["--mode=ai"],
        "env": [
            literal("ORKA_TASK_NAME", "cut-release"),
            literal("ORKA_TASK_NAMESPACE", home),
            literal("ORKA_RESULT_ENDPOINT", &format!("{controller}/internal/v1/results/{home}/cut-release")),
            literal("ORKA_CONTROLLER_URL", &controller),
            literal("ORKA_TASK_UID", "1f2e3d4c-0000-4000-8000-000000000002"),
            literal("ORKA_AGENT_NAME", "release-helper"),
            literal("ORKA_AI_TOOLS", "recall_memory,web_fetch,remember"),
            literal("ORKA_AI_PROVIDER", "anthropic"),
            literal("ORKA_AI_MODEL", "claude-sonnet-4-5"),
            literal("ORKA_AI_PROMPT", "Prepare the release notes."),
            {"name": "ANTHROPIC_API_KEY", "valueFrom": {"secretKeyRef": {"name": "anthropic-main", "key": "api-key"}}},
        ],
        "resources": {
            "requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"cpu": "1", "memory": "2Gi"},
        },
        "securityContext": confined(),
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"}, {"name": "session-data", "mountPath": "/session"},
        ],
    })
}

fn confined() -> Value {
    json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
        "runAsUser": 1000, "capabilities": {"drop": ["ALL"]},
    })
}
