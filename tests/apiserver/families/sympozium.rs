//! Sympozium: one Job for each AgentRun, here as a controller makes it that leaves memory to others.
//! Source: sympozium-ai/sympozium, internal/controller/agentrun_controller.go.

use serde_json::{Value, json};

use super::{RESTRICTED, Scene, literal, namespace};

/// Private memory as a service, shared memory with a membrane, and the old ConfigMap.
pub(crate) fn team(home: &str) -> Scene {
    let labels = json!({"sympozium.ai/ensemble": "newsroom", "sympozium.ai/agent-config": "scout"});
    let objects = vec![
        namespace(home, &[RESTRICTED], &json!({})),
        pack(home, &Value::Null),
        object(home, "Ensemble", "newsroom", &json!({}), &newsroom()),
        object(
            home,
            "Agent",
            "newsroom-scout",
            &labels,
            &json!({
                "agents": {"default": {"model": "gpt-4o"}},
                "skills": [{"skillPackRef": "memory"}],
                "memory": {"enabled": true, "maxSizeKB": 256},
            }),
        ),
        run(home, "newsroom-scout"),
    ];
    Scene {
        objects,
        workload: job(home, "newsroom-scout"),
        container: "agent",
        env: vec![
            literal("INSTANCE_NAME", "newsroom-scout"),
            literal("MEMORY_ENABLED", "true"),
            literal("MEMORY_SERVER_URL", &format!("http://newsroom-scout-memory.{home}.svc:8080")),
            literal("WORKFLOW_MEMORY_SERVER_URL", &format!("http://newsroom-shared-memory.{home}.svc:8080")),
            literal("WORKFLOW_MEMORY_ACCESS", "read-write"),
            literal("WORKFLOW_MEMBRANE_VISIBILITY", "trusted"),
            literal("WORKFLOW_MEMBRANE_TRUST_PEERS", "newsroom-author"),
            literal("WORKFLOW_MEMBRANE_ACCEPT_TAGS", "summary,brief"),
            literal("WORKFLOW_MEMBRANE_EXPOSE_TAGS", "findings"),
            literal("WORKFLOW_MEMBRANE_MAX_AGE", "168h"),
            literal("WORKFLOW_MEMBRANE_MAX_TOKENS_PER_RUN", "20000"),
            literal("WORKFLOW_MEMBRANE_TOKEN_BUDGET_ACTION", "halt"),
            literal("WORKFLOW_MEMBRANE_MIN_EVIDENCE_KIND", "external_source"),
            token("MEMORY_WRITER_TOKEN", "newsroom-scout-memory-writer-token"),
            token("WORKFLOW_MEMORY_WRITER_TOKEN", "newsroom-shared-memory-writer-token"),
        ],
        init_containers: vec!["wait-for-memory", "mcp-discover", "wait-for-shared-memory"],
        volumes: vec!["workspace", "ipc", "tmp", "skills", "memory"],
        mounts: vec!["/workspace", "/skills", "/ipc", "/tmp", "/memory"],
    }
}

/// Private memory as a native sidecar.
pub(super) fn sidecar(home: &str) -> Scene {
    let objects = vec![
        namespace(home, &[RESTRICTED], &json!({})),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "triage-memory-db", "namespace": home},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }),
        pack(home, &json!({"image": "registry.example/memory-server:2.1"})),
        object(
            home,
            "Agent",
            "triage",
            &json!({}),
            &json!({
                "agents": {"default": {"model": "gpt-4o"}},
                "skills": [{"skillPackRef": "k8s-ops"}, {"skillPackRef": "memory"}],
                "memory": {"enabled": false, "autoStore": false},
            }),
        ),
        run(home, "triage"),
    ];
    Scene {
        objects,
        workload: job(home, "triage"),
        container: "agent",
        env: vec![
            literal("INSTANCE_NAME", "triage"),
            literal("MEMORY_SERVER_URL", "http://127.0.0.1:8080"),
            literal("MEMORY_AUTO_STORE", "false"),
            token("MEMORY_WRITER_TOKEN", "triage-memory-writer-token"),
        ],
        init_containers: vec!["memory-server", "mcp-discover"],
        volumes: vec!["workspace", "ipc", "tmp", "skills", "memory-db"],
        mounts: vec!["/workspace", "/skills", "/ipc", "/tmp"],
    }
}

/// The reference to a writer token; without its Secret the pod starts too.
fn token(name: &str, secret: &str) -> Value {
    json!({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": "token", "optional": true}}})
}

fn object(home: &str, kind: &str, name: &str, labels: &Value, spec: &Value) -> Value {
    json!({
        "apiVersion": "sympozium.ai/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": home, "labels": labels}, "spec": spec,
    })
}

/// The pack `memory`; without a sidecar of its own, memory is a service.
fn pack(home: &str, sidecar: &Value) -> Value {
    let skills = json!([{"name": "memory", "content": "Use memory_search before you start."}]);
    let spec = json!({"skills": skills, "sidecar": sidecar});
    object(home, "SkillPack", "memory", &json!({}), &spec)
}

fn run(home: &str, agent: &str) -> Value {
    object(
        home,
        "AgentRun",
        &run_of(agent),
        &json!({}),
        &json!({
            "agentRef": agent, "agentId": "default", "sessionKey": "s-7f3",
            "task": "Look at the failing nodes",
            "model": {"provider": "openai", "model": "gpt-4o", "authSecretRef": "openai-key"},
        }),
    )
}

fn run_of(agent: &str) -> String {
    format!("{agent}-7f3")
}

fn newsroom() -> Value {
    json!({
        "enabled": true,
        "agentConfigs": [
            {"name": "scout", "systemPrompt": "Find stories.", "skills": ["memory"]},
            {"name": "author", "systemPrompt": "Write.", "skills": ["memory"]},
            {"name": "editor", "systemPrompt": "Review.", "skills": ["memory"]},
        ],
        "relationships": [{"source": "scout", "target": "author", "type": "sequential"}],
        "sharedMemory": {
            "enabled": true, "storageSize": "2Gi",
            "accessRules": [
                {"agentConfig": "scout", "access": "read-write"},
                {"agentConfig": "author", "access": "read-write"},
                {"agentConfig": "editor", "access": "read-only"},
            ],
            "membrane": {
                "defaultVisibility": "public",
                "permeability": [{
                    "agentConfig": "scout", "defaultVisibility": "trusted",
                    "exposeTags": ["findings"], "acceptTags": ["summary", "brief"],
                }],
                "trustGroups": [{"name": "writers", "agentConfigs": ["scout", "author"]}],
                "tokenBudget": {"maxTokens": 100_000, "maxTokensPerRun": 20_000, "action": "halt"},
                "circuitBreaker": {"consecutiveFailures": 3},
                "timeDecay": {"ttl": "168h"},
                "evidencePolicy": {"minKind": "external_source"},
            },
        },
    })
}

fn job(home: &str, agent: &str) -> Value {
    let labels = json!({
        "sympozium.ai/component": "agent-run", "sympozium.ai/role": "agent",
        "sympozium.ai/instance": agent, "sympozium.ai/agent-run": run_of(agent),
        "app.kubernetes.io/part-of": "sympozium", "app.kubernetes.io/managed-by": "sympozium-controller",
    });
    let image = |name: &str| format!("ghcr.io/sympozium-ai/sympozium/{name}:latest");
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": run_of(agent), "namespace": home, "labels": labels},
        "spec": {
            "backoffLimit": 0, "activeDeadlineSeconds": 660, "ttlSecondsAfterFinished": 300,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never", "serviceAccountName": "sympozium-agent",
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "initContainers": [{
                        "name": "mcp-discover", "image": image("mcp-bridge"), "securityContext": confined(),
                    }],
                    "containers": [
                        {
                            "name": "agent", "image": image("agent-runner"), "securityContext": confined(),
                            "env": [
                                literal("AGENT_NAMESPACE", home), literal("AGENT_RUN_ID", &run_of(agent)),
                            ],
                            "volumeMounts": [
                                {"name": "workspace", "mountPath": "/workspace"},
                                {"name": "skills", "mountPath": "/skills", "readOnly": true},
                                {"name": "ipc", "mountPath": "/ipc"},
                                {"name": "tmp", "mountPath": "/tmp"},
                            ],
                        },
                        {
                            "name": "ipc-bridge", "image": image("ipc-bridge"), "securityContext": confined(),
                            "volumeMounts": [{"name": "ipc", "mountPath": "/ipc"}],
                        },
                    ],
                    "volumes": [
                        {"name": "workspace", "emptyDir": {"sizeLimit": "1Gi"}},
                        {"name": "ipc", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
                        {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}},
                        {"name": "skills", "emptyDir": {}},
                    ],
                },
            },
        },
    })
}

fn confined() -> Value {
    json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    })
}
