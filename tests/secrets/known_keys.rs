//! Keys that are known by their form: in values that messages quote, in labels, in references, in texts of policies.

use crate::fields::Field;

/// The forms, with the marker; one knows capitals alone.
const FORMS: [&str; 8] = [
    "sk-MARK", "ghp_MARK", "AIzaMARKMARK", "xoxb-MARK", "eyJMARK.MARK.MARK", "AccountKey=MARK", "AKIAUPPER",
    "github_pat_MARK",
];

/// Each text, once for each form that it may begin with.
pub(crate) fn fields() -> impl Iterator<Item = Field> {
    let firsts = |(name, objects)| (0..FORMS.len()).map(move |first| Field::anywhere(name, objects, first));
    TEXTS.into_iter().flat_map(firsts)
}

/// The characters before a key that is cut in the middle: a name is shown up to its 253rd character.
const BEFORE_THE_CUT: usize = 230;

/// A text in which each `FORM` is a key, of one form after the other, and `LONG` a word of [`BEFORE_THE_CUT`].
pub(crate) fn written(text: &str, first: Option<usize>) -> String {
    let text = text.replace("LONG", &"x".repeat(BEFORE_THE_CUT));
    let mut forms = FORMS.iter().cycle().skip(first.unwrap_or_default());
    let mut parts = text.split("FORM");
    let start = parts.next().unwrap_or_default().to_owned();
    parts.fold(start, |text, part| text + forms.next().unwrap_or(&"") + part)
}

/// The texts about names, with this key in each place.
pub(crate) fn pasted(key: &str) -> Vec<String> {
    let texts = TEXTS.into_iter().filter(|(_, text)| *text != LONG_NAMES);
    // Within another text it does not stand in the place of a name.
    let written = |text: &str| text.replace("\"FORM\"", &format!("\"{key}\"")).replace("FORM", "x");
    texts.map(|(_, text)| written(text.trim_start())).collect()
}

/// What is tried: `FORM` stands for a key.
const TEXTS: [(&str, &str); 9] = [
    ("values of arkonis", ARKONIS),
    ("a pod of arkonis", ARKONIS_POD),
    ("values of ark", ARK),
    ("values of orloj", ORLOJ),
    ("values of orka", ORKA),
    ("values of sympozium", SYMPOZIUM),
    ("texts of a policy", POLICY),
    ("names and keys", NAMES),
    ("long names and keys", LONG_NAMES),
];

const ARKONIS: &str = r#"
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: other, namespace: team-a, labels: {team: "FORM"}, annotations: {note: "FORM"}}
spec: {backend: "FORM", redis: {secretRef: {name: "FORM"}, ttl: "FORM"}}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec: {backend: vector-store, vectorStore: {provider: "FORM", endpoint: "https://FORM/x", collection: "FORM"}}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: stored, namespace: team-a, finalizers: ["FORM"], ownerReferences: [{name: "FORM"}]}
spec: {backend: vector-store, vectorStore: {provider: pinecone, endpoint: "FORM"}}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: scout, namespace: team-a}
spec: {model: "FORM", systemPrompt: "FORM", memoryRef: {name: "FORM"}}
"#;

const ARKONIS_POD: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: other
  namespace: team-a
  labels: {arkonis.dev/deployment: "FORM", memgate.dev/inject: "FORM"}
spec: {containers: [{name: "FORM", image: "FORM"}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: scout
  namespace: team-a
  labels: {arkonis.dev/deployment: scout, memgate.dev/inject: required}
spec: {containers: [{name: agent, image: "h/FORM:FORM", env: [{name: AGENT_MEMORY_BACKEND, value: "FORM"}, {name: "FORM", value: x}]}]}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec: {backend: redis, redis: {secretRef: {name: notes-redis}}}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: scout, namespace: team-a}
spec: {model: m, systemPrompt: x, memoryRef: {name: notes}}
"#;

const ARK: &str = r#"
apiVersion: ark.mckinsey.com/v1alpha1
kind: Memory
metadata: {name: notes, namespace: team-a}
spec:
  address: {value: "ftp://FORM"}
  headers: [{name: "FORM", value: {valueFrom: {secretKeyRef: {name: "FORM", key: "FORM"}}}}]
---
apiVersion: ark.mckinsey.com/v1alpha1
kind: Memory
metadata: {name: other, namespace: team-a}
spec: {address: {valueFrom: {serviceRef: {name: "FORM", namespace: "FORM", port: "FORM"}}}}
---
apiVersion: ark.mckinsey.com/v1alpha1
kind: Query
metadata: {name: ask, namespace: team-a}
spec: {input: "FORM", target: {type: "FORM", name: "FORM"}, memory: {name: "FORM", namespace: "FORM"}, ttl: "FORM"}
---
apiVersion: v1
kind: Pod
metadata: {name: engine, namespace: team-a, annotations: {memgate.dev/ark-memory: "FORM/FORM"}}
spec: {containers: [{name: engine}]}
"#;

const ORLOJ: &str = r#"
apiVersion: orloj.dev/v1
kind: Memory
metadata: {name: notes, namespace: acme}
spec: {provider: "FORM", endpoint: "FORM", embedding_model: "FORM", auth: {secretRef: "FORM"}, type: "FORM"}
---
apiVersion: orloj.dev/v1
kind: Memory
metadata: {name: other, namespace: acme}
spec: {provider: http, endpoint: "http://FORM:x/FORM"}
---
apiVersion: orloj.dev/v1
kind: Agent
metadata: {name: scribe, namespace: acme}
spec: {model_ref: "FORM", prompt: x, memory: {ref: "FORM", allow: ["FORM", "read"]}}
---
apiVersion: v1
kind: Pod
metadata:
  name: scribe
  namespace: orloj
  labels: {orloj.dev/component: agent-job, orloj.dev/agent: "FORM", orloj.dev/namespace: "FORM"}
spec: {containers: [{name: agent}]}
"#;

const ORKA: &str = r#"
apiVersion: core.orka.ai/v1alpha1
kind: Task
metadata: {name: cut, namespace: team-a, annotations: {memgate.dev/orka-memory-context: "FORM", memgate.dev/orka-memory-context-limit: "FORM"}}
spec: {type: ai, prompt: x, agentRef: {name: "FORM"}, env: [{name: ORKA_MEMORY_CONTEXT_LIMIT, value: "FORM"}]}
---
apiVersion: core.orka.ai/v1alpha1
kind: Agent
metadata: {name: helper, namespace: team-a}
spec: {coordination: {enabled: true, autonomous: true, approvalRequiredTools: ["FORM", remember]}, secretRef: {name: "FORM"}}
---
apiVersion: core.orka.ai/v1alpha1
kind: MemoryBackend
metadata: {name: default, namespace: team-a}
spec: {protocol: {profile: "FORM"}, deployment: {mode: "FORM", endpoint: "http://FORM"}, store: {name: "FORM"}}
---
apiVersion: v1
kind: Pod
metadata: {name: cut, namespace: team-a, labels: {orka.ai/task: "FORM", orka.ai/task-type: ai}}
spec: {containers: [{name: worker}]}
"#;

const SYMPOZIUM: &str = r#"
apiVersion: sympozium.ai/v1alpha1
kind: Ensemble
metadata: {name: newsroom, namespace: media}
spec:
  agentConfigs: [{name: "FORM", systemPrompt: x}, {name: "FORM", systemPrompt: y}]
  relationships: [{source: "FORM", target: scout, type: "FORM"}]
  sharedMemory: {enabled: true, storageSize: "FORM", accessRules: [{agentConfig: "FORM", access: "FORM"}]}
---
apiVersion: sympozium.ai/v1alpha1
kind: Agent
metadata: {name: triage, namespace: media}
spec: {memory: {enabled: "FORM"}, skills: [{skillPackRef: "FORM"}], agents: {default: {model: "FORM"}}}
---
apiVersion: sympozium.ai/v1alpha1
kind: AgentRun
metadata: {name: run, namespace: media}
spec: {agentRef: "FORM", agentId: "FORM", sessionKey: s, model: {provider: "FORM", model: m}}
---
apiVersion: v1
kind: Pod
metadata: {name: run, namespace: media, labels: {sympozium.ai/component: agent-run, sympozium.ai/instance: "FORM"}}
spec: {containers: [{name: agent}]}
"#;

const POLICY: &str = r#"
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: good}
spec:
  actions: {admission: deny, ci: deny}
  rules:
    - {id: b, backends: {allow: ["FORM"]}, message: "see FORM", hint: "use FORM", docs: "https://docs.example.com/FORM?x=FORM#FORM"}
    - {id: e, labels: {required: ["FORM"], values: {team: ["FORM"]}}}
    - {id: f, endpoint: {hosts: ["FORM.example.com"], schemes: ["https"]}}
---
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicyExemption
metadata: {name: some, namespace: granting}
spec: {policy: "FORM", rules: ["FORM"], target: {namespaces: ["FORM"]}, reason: "because of FORM", ticket: "FORM", approvedBy: "FORM", from: "FORM", expiresAt: "FORM"}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec: {backend: redis, redis: {secretRef: {name: notes-redis}}}
"#;

/// Wherever a finding stands, and whatever it is about.
const NAMES: &str = r#"
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: "FORM", namespace: "FORM", labels: {"FORM": x, "FORM.example.com/FORM": "FORM"}, annotations: {"FORM": "FORM"}}
spec: {backend: redis, "FORM": 1, redis: {"FORM": {"FORM": 1}}}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: "FORM", namespace: team-a}
spec: {model: m, systemPrompt: x, memoryRef: {name: notes}, "FORM": x}
---
apiVersion: ark.mckinsey.com/v1alpha1
kind: Memory
metadata: {name: "FORM", namespace: "FORM"}
spec: {address: {value: "ftp://x"}, "FORM": {}}
---
apiVersion: orloj.dev/v1
kind: Memory
metadata: {name: "FORM", namespace: "FORM"}
spec: {provider: none-such}
---
apiVersion: core.orka.ai/v1alpha1
kind: Agent
metadata: {name: "FORM", namespace: "FORM"}
spec: {coordination: {enabled: true, autonomous: true, approvalRequiredTools: [remember]}}
---
apiVersion: sympozium.ai/v1alpha1
kind: Ensemble
metadata: {name: "FORM", namespace: "FORM"}
spec: {agentConfigs: [{name: a, systemPrompt: x}, {name: a, systemPrompt: y}], sharedMemory: {enabled: true, storageSize: x}}
---
apiVersion: v1
kind: Pod
metadata: {name: "FORM", namespace: "FORM", labels: {arkonis.dev/deployment: scout, memgate.dev/inject: required, "FORM": "FORM"}, annotations: {"FORM": x}}
spec: {containers: [{name: "FORM", image: x, env: [{name: "FORM", value: x}], volumeMounts: [{name: "FORM", mountPath: "/FORM"}]}], volumes: [{name: "FORM"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "FORM", namespace: "FORM"}
spec: {template: {metadata: {labels: {arkonis.dev/deployment: "FORM", memgate.dev/inject: "FORM", "FORM": x}}, spec: {containers: [{name: "FORM"}]}}}
---
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: "FORM", labels: {"FORM": x}}
spec:
  actions: {admission: deny, ci: deny}
  rules:
    - {id: "FORM", backends: {allow: [none], "FORM": 1}}
    - {id: l, labels: {required: ["FORM.example.com/x"], values: {"FORM": [x]}}}
  "FORM": 1
"#;

/// Names and keys of which only the start is shown: a field of a cause has 1024 characters.
const LONG_NAMES: &str = r#"
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: "LONG.FORM", namespace: "LONG.FORM", labels: {"LONG.FORM": x}}
spec: {backend: none, "LONG.FORM": 1}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: scout, namespace: team-a}
spec: {model: m, systemPrompt: x, memoryRef: {name: "LONG.FORM"}}
---
apiVersion: v1
kind: Pod
metadata: {name: "LONG.FORM", namespace: team-a, labels: {arkonis.dev/deployment: scout, memgate.dev/inject: required}}
spec: {containers: [{name: agent, env: [{name: "LONG.FORM", value: x}]}]}
---
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: good}
spec:
  rules:
    - {id: b, backends: {allow: [none], "LONGLONGLONGLONGxxxxxxxxxxxxxxxxxxxx.FORM": 1}}
"#;
