//! An object with every field of its schema, from the schema.

use serde_json::{Map, Value, json};

use super::{definitions::Definition, mutation};

/// What satisfies the patterns of the bundled schemas; other patterns do not need an entry.
const MATCHING: [(&str, &str); 7] = [
    ("^(0(\\.[0-9]+)?|1(", "0.5"),
    ("^([a-f0-9]{40}|", "0123456789abcdef0123456789abcdef01234567"),
    ("^[a-z][a-z0-9_]*$", "look_up"),
    ("^https://[^\\s@?#]+$", "https://memory.example.com/oms"),
    ("^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", "store-1"),
    ("^(\\+|-)?(([0-9]+(", "1Gi"),
    ("^[0-9]+([.][0-9]+)?(", "1Gi"),
];

/// Fields that cannot stand beside the others, or that say more than a type when they have any text.
const LEFT_OUT: [(&str, &str); 33] = [
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
];

/// Texts that memgate's rules ask for, or the schema where it knows no way to say so. A kind that several groups have may
/// be given with its group.
const TEXTS: [(&str, &str, &str); 16] = [
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
pub(super) fn object(definition: &Definition) -> Value {
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
    for (_, pointer) in LEFT_OUT.iter().filter(|(kind, _)| *kind == definition.kind) {
        mutation::remove(&mut object, pointer);
    }
    let is_of_kind = |kind: &str| match kind.split_once(' ') {
        Some((kind, group)) => kind == definition.kind && definition.api_version.starts_with(group),
        None => kind == definition.kind,
    };
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
    if schema["format"] == "date-time" {
        return json!("2026-01-02T03:04:05Z");
    }
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    let matching = MATCHING.iter().find(|(start, _)| !pattern.is_empty() && pattern.starts_with(start));
    json!(matching.map_or("some-text", |(_, text)| *text))
}
