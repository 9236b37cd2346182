//! An object with every field of its schema, from the schema.

use serde_json::{Map, Value, json};

use super::{definitions::Definition, mutation};

const IMAGE: &str = "example.com/a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// What satisfies the patterns of the bundled schemas; other patterns do not need an entry.
const MATCHING: [(&str, &str); 13] = [
    ("^[^[:space:]@]+@sha256:", IMAGE),
    ("^([0-9a-fA-F]{40}|", "0123456789abcdef0123456789abcdef01234567"),
    ("^https?://", "https://example.com"),
    ("^s3://", "s3://skills/one"),
    ("^gs://", "gs://snapshots/one"),
    ("^[0-9a-f]{64}$", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
    ("^(0(\\.[0-9]+)?|1(", "0.5"),
    ("^([a-f0-9]{40}|", "0123456789abcdef0123456789abcdef01234567"),
    ("^[a-z][a-z0-9_]*$", "look_up"),
    ("^https://[^\\s@?#]+$", "https://memory.example.com/oms"),
    ("^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", "store-1"),
    ("^(\\+|-)?(([0-9]+(", "1Gi"),
    ("^[0-9]+([.][0-9]+)?(", "1Gi"),
];

/// Fields that cannot stand beside the others, or that say more than a type when they have any text.
const LEFT_OUT: &[(&str, &str)] = &[
    // One of two, by rules of the schemas.
    ("Agent", "/spec/runtime/runtimeRef"),
    ("SwarmMemory", "/spec/redis"),
    ("Agent", "/spec/systemPrompt/configMapRef"),
    ("SwarmAgent", "/spec/prompt/from"),
    ("SwarmAgent", "/spec/agents/0/capabilityRef"),
    ("SwarmAgent", "/spec/tools/mcp/0/capabilityRef"),
    ("SwarmAgent", "/spec/tools/mcp/0/auth/mtls"),
    ("SwarmAgent", "/spec/tools/mcp/0/headers/0/secretKeyRef"),
    ("ModelConfig", "/spec/azureOpenAI"),
    ("ModelConfig", "/spec/ollama"),
    ("ModelConfig", "/spec/gemini"),
    ("ModelConfig", "/spec/anthropic"),
    ("ModelConfig", "/spec/geminiVertexAI"),
    ("ModelConfig", "/spec/anthropicVertexAI"),
    ("ModelConfig", "/spec/bedrock"),
    ("ModelConfig", "/spec/sapAICore"),
    ("ModelConfig", "/spec/foundry"),
    // Not for an Agent, not for a Task that runs a container, or no longer for any.
    ("Agent", "/spec/execution/workspace/classRef"),
    ("Task", "/spec/execution/workspace/classRef"),
    ("Task", "/spec/agentRuntime/workspace"),
    ("Task", "/spec/workspace/allowedPaths"),
    ("Task", "/spec/workspace/createPR"),
    ("Task", "/spec/workspace/denyRepositoryControlPaths"),
    ("Task", "/spec/workspace/expectedRemoteSHA"),
    ("Task", "/spec/workspace/maxChangedFiles"),
    ("Task", "/spec/workspace/pushBranch"),
    ("Task", "/spec/workspace/rejectBinaryFiles"),
    ("Task", "/spec/workspace/rejectSecretLikeContent"),
    // One of two, and a Memory has at most one place, by memgate's rules.
    ("Memory", "/spec/address/valueFrom/secretKeyRef"),
    ("Memory", "/spec/address/valueFrom/configMapKeyRef"),
    ("Memory", "/spec/address/valueFrom/queryParameterRef"),
    ("Memory", "/spec/address/value"),
    ("Agent", "/spec/memory/allow"),
    ("ArkConfig", "/spec/defaultMemory/namespace"),
    // Of sympozium.
    ("AgentRun", "/spec/celln"),
    ("AgentRun", "/spec/cellnSelection"),
    ("AgentRun", "/spec/enduring"),
    ("AgentRun", "/spec/conversation"),
    ("AgentRun", "/spec/executionLifecycle"),
    // Of kagent.
    ("Agent api.kagent.dev", "/spec/templateRef"),
    ("Agent api.kagent.dev", "/spec/harness"),
    ("Agent api.kagent.dev", "/spec/template/systemPromptFrom"),
    ("Agent api.kagent.dev", "/spec/template/outputSchemaFrom"),
    ("Agent api.kagent.dev", "/spec/template/plugins/0/source/git"),
    ("Agent api.kagent.dev", "/spec/template/plugins/0/source/bucket"),
    ("Agent api.kagent.dev", "/spec/template/skills/0/source/git"),
    ("Agent api.kagent.dev", "/spec/template/skills/0/source/bucket"),
    ("AgentTemplate", "/spec/systemPromptFrom"),
    ("AgentTemplate", "/spec/outputSchemaFrom"),
    ("AgentTemplate", "/spec/plugins/0/source/git"),
    ("AgentTemplate", "/spec/plugins/0/source/bucket"),
    ("AgentTemplate", "/spec/skills/0/source/git"),
    ("AgentTemplate", "/spec/skills/0/source/bucket"),
    ("Harness", "/spec/codex"),
    ("Harness", "/spec/claude"),
    ("Harness", "/spec/byo"),
    ("ModelConfig", "/spec/mistral"),
    ("ModelConfig", "/spec/apiKeyPassthrough"),
    ("ModelConfig", "/spec/openAI/maxTokens"),
    ("Agent api.kagent.dev", "/spec/template/tools/0/subAgent"),
    ("Agent api.kagent.dev", "/spec/template/tools/0/mcp/server/apiGroup"),
    ("AgentTemplate", "/spec/tools/0/subAgent"),
    ("AgentTemplate", "/spec/tools/0/mcp/server/apiGroup"),
    ("SandboxAgent", "/spec/skills"),
    ("Agent kagent.dev", "/spec/declarative/tools/0/isolateSessions"),
    ("SandboxAgent", "/spec/declarative/tools/0/isolateSessions"),
    ("Agent kagent.dev", "/spec/byo"),
    ("SandboxAgent", "/spec/byo"),
    ("Agent kagent.dev", "/spec/declarative/systemMessageFrom"),
    ("SandboxAgent", "/spec/declarative/systemMessageFrom"),
    ("Agent kagent.dev", "/spec/declarative/tools/0/agent"),
    ("SandboxAgent", "/spec/declarative/tools/0/agent"),
    ("Agent kagent.dev", "/spec/declarative/tools/0/headersFrom/0/valueFrom"),
    ("SandboxAgent", "/spec/declarative/tools/0/headersFrom/0/valueFrom"),
    ("Agent kagent.dev", "/spec/declarative/deployment/serviceAccountConfig"),
    ("SandboxAgent", "/spec/declarative/deployment/serviceAccountConfig"),
];

/// Texts that memgate's rules ask for, or the schema where it knows no way to say so. A kind that several groups have may
/// be given with its group.
const TEXTS: [(&str, &str, &str); 22] = [
    ("Agent", "/spec/workspace/idleTTL", "720h"),
    ("Harness", "/spec/substrate/workerPoolRef/name", "pool"),
    ("Agent api.kagent.dev", "/spec/template/tools/0/mcp/server/kind", "RemoteMCPServer"),
    ("AgentTemplate", "/spec/tools/0/mcp/server/kind", "RemoteMCPServer"),
    ("Agent kagent.dev", "/spec/declarative/tools/0/type", "McpServer"),
    ("SandboxAgent", "/spec/declarative/tools/0/type", "McpServer"),
    ("SwarmMemory", "/spec/backend", "vector-store"),
    ("ArkConfig", "/metadata/name", "default"),
    ("MemoryBackend", "/metadata/name", "default"),
    ("Memory orloj.dev", "/spec/provider", "http"),
    ("Memory", "/spec/endpoint", "https://memory.example.com"),
    ("Ensemble", "/spec/sharedMemory/storageSize", "2Gi"),
    ("Ensemble", "/spec/sharedMemory/membrane/timeDecay/ttl", "168h"),
    ("AgentRun", "/spec/volumes/0/name", "scratch"),
    ("Query", "/spec/ttl", "720h"),
    ("Query", "/spec/timeout", "5m"),
    ("ArkConfig", "/spec/queryTTL", "720h"),
    ("WorkspaceSession", "/spec/idleTTL", "720h"),
    ("HarnessSession", "/spec/idleTimeout", "1h"),
    ("Harness", "/spec/kagent/compaction/summarizer/promptTemplate", "{conversation_history}"),
    ("Agent", "/spec/harness/kagent/compaction/summarizer/promptTemplate", "{conversation_history}"),
    ("Agent", "/spec/harness/inline/kagent/compaction/summarizer/promptTemplate", "{conversation_history}"),
];

/// The object, with a name.
pub(crate) fn object(definition: &Definition) -> Value {
    let mut object = sample(&definition.schema);
    object["apiVersion"] = json!(definition.api_version);
    object["kind"] = json!(definition.kind);
    object["metadata"] = json!({
        "name": "maximal",
        "labels": {"app.kubernetes.io/name": "maximal"},
        "annotations": {"example.com/Note": "any text at all"},
    });
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("status");
    }
    let is_of_kind = |kind: &str| match kind.split_once(' ') {
        Some((kind, group)) => kind == definition.kind && definition.api_version.starts_with(group),
        None => kind == definition.kind,
    };
    for (_, pointer) in LEFT_OUT.iter().filter(|(kind, _)| is_of_kind(kind)) {
        mutation::remove(&mut object, pointer);
    }
    for (_, pointer, text) in TEXTS.iter().filter(|(kind, ..)| is_of_kind(kind)) {
        if let Some(value) = object.pointer_mut(pointer) {
            *value = json!(text);
        }
    }
    object
}

/// A value that a schema allows, as full as it can be.
fn sample(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => sample_object(schema),
        Some("array") => json!([sample(&schema["items"])]),
        Some("boolean") => json!(true),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("string") => sample_text(schema),
        _ if schema["x-kubernetes-int-or-string"] == true => sample_text(schema),
        _ => json!({"any": "thing"}),
    }
}

fn sample_object(schema: &Value) -> Value {
    let mut fields = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        fields.insert(name.clone(), sample(field));
    }
    if let Some(values) = schema.get("additionalProperties") {
        fields.insert("key".to_owned(), sample(values));
    }
    Value::Object(fields)
}

fn sample_text(schema: &Value) -> Value {
    match schema["format"].as_str() {
        Some("date-time") => return json!("2026-01-02T03:04:05Z"),
        Some("uri") => return json!("https://example.com"),
        _ => {}
    }
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    let matching = MATCHING.iter().find(|(start, _)| !pattern.is_empty() && pattern.starts_with(start));
    json!(matching.map_or("some-text", |(_, text)| *text))
}
