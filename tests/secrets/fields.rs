//! The fields that may hold a credential.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{MARKER, known_keys};

/// Objects with the marker in one place.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// The line of the credential.
    pub(crate) beside: &'static str,
    /// Whether a finding is about that very line; otherwise it is shown where the object is one line.
    pub(crate) here: bool,
    /// Whether the platform's own operator copies this value into pods, and memgate as well.
    pub(crate) copied: bool,
    /// YAML, with `MARK` or, in base64, `MARK64` for the marker.
    objects: &'static str,
    /// The first of the known forms that each `FORM` stands for in turn.
    pub(crate) first_form: Option<usize>,
}

impl Field {
    /// Keys of known forms in many places, some of them copied.
    pub(crate) const fn anywhere(name: &'static str, objects: &'static str, first: usize) -> Self {
        Self { here: false, first_form: Some(first), ..copied(name, "", objects) }
    }

    /// The objects as YAML.
    pub(crate) fn text(&self) -> String {
        let text = known_keys::written(self.objects.trim_start(), self.first_form);
        let text = text.replace("MARK64", &STANDARD.encode(MARKER)).replace("MARK", MARKER);
        text.replace("UPPER", &MARKER.to_ascii_uppercase())
    }
}

/// A credential on the line of a finding.
const fn here(name: &'static str, beside: &'static str, objects: &'static str) -> Field {
    Field { name, beside, here: true, copied: false, objects, first_form: None }
}

/// A credential elsewhere in an object that has a finding.
const fn elsewhere(name: &'static str, beside: &'static str, objects: &'static str) -> Field {
    Field { name, beside, here: false, copied: false, objects, first_form: None }
}

/// A value on the line of a finding that agents get as it is.
const fn copied(name: &'static str, beside: &'static str, objects: &'static str) -> Field {
    Field { name, beside, here: true, copied: true, objects, first_form: None }
}

/// An ArkMemory with this endpoint, its agent and a pod of it.
macro_rules! arkonis_endpoint {
    ($endpoint:literal) => {
        concat!(
            "
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec:
  backend: vector-store
  vectorStore:
    provider: qdrant
    endpoint: ",
            $endpoint,
            "
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: scout, namespace: team-a}
spec: {model: m, systemPrompt: x, memoryRef: {name: notes}}
---
apiVersion: v1
kind: Pod
metadata: {name: scout, namespace: team-a, labels: {arkonis.dev/deployment: scout}}
spec: {containers: [{name: agent}]}
"
        )
    };
}

/// An agent pod of arkonis with this variable, and its Redis memory.
macro_rules! arkonis_pod {
    ($variable:literal) => {
        concat!(
            "
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec: {backend: redis, redis: {secretRef: {name: notes-redis}}}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: scout, namespace: team-a}
spec: {model: m, systemPrompt: x, memoryRef: {name: notes}}
---
apiVersion: v1
kind: Pod
metadata: {name: scout, namespace: team-a, labels: {arkonis.dev/deployment: scout}}
spec:
  containers:
    - name: agent
      env:
        - ",
            $variable,
            "
"
        )
    };
}

/// An ark Memory with this spec, and a pod that opts in.
macro_rules! ark {
    ($spec:literal) => {
        concat!(
            "
apiVersion: ark.mckinsey.com/v1alpha1
kind: Memory
metadata: {name: notes, namespace: team-a}
spec:
",
            $spec,
            "
---
apiVersion: v1
kind: Pod
metadata: {name: engine, namespace: team-a, annotations: {memgate.dev/ark-memory: notes}}
spec: {containers: [{name: engine}]}
---
apiVersion: v1
kind: Pod
metadata: {name: engine, namespace: team-b, annotations: {memgate.dev/ark-memory: team-a/notes}}
spec: {containers: [{name: engine}]}
"
        )
    };
}

/// An Orloj Memory with this endpoint, its Agent and a pod of it.
macro_rules! orloj {
    ($provider:literal, $endpoint:literal) => {
        concat!(
            "
apiVersion: orloj.dev/v1
kind: Memory
metadata: {name: notes, namespace: acme}
spec:
  provider: ",
            $provider,
            "
  endpoint: ",
            $endpoint,
            "
---
apiVersion: orloj.dev/v1
kind: Agent
metadata: {name: scribe, namespace: acme}
spec: {model_ref: m, prompt: x, memory: {ref: notes}}
---
apiVersion: v1
kind: Pod
metadata:
  name: scribe
  namespace: orloj
  labels: {orloj.dev/component: agent-job, orloj.dev/agent: scribe, orloj.dev/namespace: acme}
spec: {containers: [{name: agent}]}
"
        )
    };
}

/// A ModelConfig of kagent with this spec, and an Agent that embeds with it.
macro_rules! kagent {
    ($spec:literal) => {
        concat!(
            "
apiVersion: kagent.dev/v1alpha2
kind: ModelConfig
metadata: {name: embed, namespace: ops}
spec:
",
            $spec,
            "
---
apiVersion: kagent.dev/v1alpha2
kind: Agent
metadata: {name: oncall, namespace: ops}
spec: {type: Declarative, declarative: {systemMessage: x, modelConfig: chat, memory: {modelConfig: embed}}}
"
        )
    };
}

/// A Secret with this in a List, and a memory with a finding on the same line where all is on one.
macro_rules! secret {
    ($data:literal) => {
        concat!(
            "
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Secret
    metadata: {name: notes-redis, namespace: team-a}
    ",
            $data,
            "
  - apiVersion: arkonis.dev/v1alpha1
    kind: ArkMemory
    metadata: {name: notes, namespace: team-a}
    spec: {backend: redis, redis: {secretRef: {name: notes-redis}, ttl: 5}}
"
        )
    };
}

/// A pod with this in its container, and a label that has no meaning.
macro_rules! pod {
    ($container:literal) => {
        concat!(
            "
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: scout, namespace: team-a}
spec: {model: m, systemPrompt: x}
---
apiVersion: v1
kind: Pod
metadata:
  name: scout
  namespace: team-a
  labels: {arkonis.dev/deployment: scout, memgate.dev/inject: maybe}
spec:
  containers:
    - name: agent
",
            $container,
            "
"
        )
    };
}

pub(crate) const FIELDS: &[Field] = &[
    // arkonis
    copied(
        "arkonis endpoint with userinfo",
        "endpoint",
        arkonis_endpoint!("https://bot:MARK@qdrant.data.svc:6333"),
    ),
    copied(
        "arkonis endpoint with a token only",
        "endpoint",
        arkonis_endpoint!("https://MARK@qdrant.data.svc"),
    ),
    copied("arkonis endpoint that is not a URL", "endpoint", arkonis_endpoint!("ftp://h/x?api_key=MARK")),
    copied(
        "arkonis endpoint of key=value pairs",
        "endpoint",
        arkonis_endpoint!("\"host=h password='a MARK' user=u\""),
    ),
    copied("arkonis endpoint of mysql", "endpoint", arkonis_endpoint!("root:MARK@tcp(db:3306)/m")),
    here("arkonis endpoint that is a mapping", "endpoint", arkonis_endpoint!("{url: \"https://u:MARK@h\"}")),
    here(
        "arkonis secretRef that is a URL",
        "secretRef",
        "
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec:
  backend: redis
  redis:
    secretRef: redis://:MARK@cache:6379
",
    ),
    here(
        "arkonis unknown field",
        "password",
        "
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec:
  backend: redis
  redis:
    secretRef: {name: notes-redis}
    password: MARK
",
    ),
    here(
        "arkonis endpoint of a section not in use",
        "endpoint",
        "
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec:
  backend: in-context
  vectorStore:
    provider: qdrant
    endpoint: https://bot:MARK@qdrant.data.svc:6333
",
    ),
    copied(
        "kubeswarm endpoint of pgvector",
        "endpoint",
        "
apiVersion: kubeswarm.io/v1alpha1
kind: SwarmMemory
metadata: {name: notes, namespace: team-a}
spec:
  backend: vector-store
  embedding: {model: text-embedding-3-small}
  vectorStore:
    provider: pgvector
    endpoint: postgres://u:MARK@db:5432/notes
---
apiVersion: kubeswarm.io/v1alpha1
kind: SwarmAgent
metadata: {name: scout, namespace: team-a}
spec: {model: m, prompt: {inline: x}, runtime: {loop: {memory: {ref: {name: notes}}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: scout, namespace: team-a, labels: {kubeswarm/deployment: scout}}
spec: {containers: [{name: agent}]}
",
    ),
    here(
        "arkonis pod with a URL",
        "AGENT_MEMORY_REDIS_URL",
        arkonis_pod!("{name: AGENT_MEMORY_REDIS_URL, value: \"redis://:MARK@h\"}"),
    ),
    here(
        "arkonis pod with a key",
        "API_KEY",
        arkonis_pod!("{name: AGENT_MEMORY_VECTOR_STORE_API_KEY, value: MARK}"),
    ),
    here(
        "arkonis pod with a URL for a backend",
        "AGENT_MEMORY_BACKEND",
        arkonis_pod!("{name: AGENT_MEMORY_BACKEND, value: \"redis://u:MARK@h\"}"),
    ),
    here(
        "arkonis label",
        "inject",
        "
apiVersion: v1
kind: Pod
metadata:
  name: scout
  namespace: team-a
  labels: {arkonis.dev/deployment: scout, memgate.dev/inject: \"password=MARK\"}
spec: {containers: [{name: agent}]}
",
    ),
    // ark
    copied(
        "ark address with userinfo",
        "value",
        ark!("  address:\n    value: http://bot:MARK@notes.team-a.svc"),
    ),
    copied(
        "ark address with a query",
        "value",
        ark!("  address:\n    value: http://notes.team-a.svc/?token=MARK"),
    ),
    copied("ark address that is not a URL", "value", ark!("  address:\n    value: \"notes:MARK@host\"")),
    here(
        "ark credential header",
        "value",
        ark!(
            "  address: {value: \"http://notes.team-a.svc\"}\n  headers:\n    - name: Authorization\n      value:\n        value: Bearer MARK"
        ),
    ),
    here(
        "ark header over several lines",
        "value",
        ark!(
            "  address: {value: \"http://notes.team-a.svc\"}\n  headers:\n    - name: X-Api-Key\n      value:\n        value: \"ab\\n\\\n          MARK\""
        ),
    ),
    Field {
        copied: true,
        ..elsewhere(
            "ark header of any name",
            "headers",
            ark!(
                "  address: {value: \"http://notes.team-a.svc#x\"}\n  headers:\n    - name: X-Tenant\n      value: {value: MARK}"
            ),
        )
    },
    here(
        "ark header that is not a mapping",
        "value",
        ark!(
            "  address: {value: \"http://notes.team-a.svc\"}\n  headers:\n    - name: X-Tenant\n      value: MARK"
        ),
    ),
    here(
        "ark header with a misspelt value",
        "vlaue",
        ark!(
            "  address: {value: \"http://notes.team-a.svc\"}\n  headers: [{name: X-Api-Key, vlaue: {value: MARK}}]"
        ),
    ),
    here(
        "ark header with a misspelt value in its value",
        "valu",
        ark!(
            "  address: {value: \"http://notes.team-a.svc\"}\n  headers:\n    - name: X-Tenant\n      value: {valu: MARK}"
        ),
    ),
    elsewhere(
        "ark resolved address",
        "lastResolvedAddress",
        "
apiVersion: ark.mckinsey.com/v1alpha1
kind: Memory
metadata: {name: notes, namespace: team-a}
spec: {address: {}}
status: {lastResolvedAddress: \"http://u:MARK@h\"}
---
apiVersion: v1
kind: Pod
metadata: {name: engine, namespace: team-b, annotations: {memgate.dev/ark-memory: team-a/notes}}
spec: {containers: [{name: engine}]}
",
    ),
    elsewhere(
        "ark Query parameter",
        "parameters",
        "
apiVersion: ark.mckinsey.com/v1alpha1
kind: Query
metadata: {name: ask, namespace: team-a}
spec:
  input: x
  target: [{type: agent, name: a}]
  parameters: [{name: API_TOKEN, value: MARK}]
",
    ),
    here(
        "ark pod that has the header",
        "ARK_MEMORY_HEADER_AUTHORIZATION",
        "
apiVersion: ark.mckinsey.com/v1alpha1
kind: Memory
metadata: {name: notes, namespace: team-a}
spec:
  address: {value: \"http://notes.team-a.svc\"}
  headers: [{name: Authorization, value: {valueFrom: {secretKeyRef: {name: s, key: k}}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: engine, namespace: team-a, annotations: {memgate.dev/ark-memory: notes}}
spec:
  containers:
    - name: engine
      env:
        - {name: ARK_MEMORY_HEADER_AUTHORIZATION, value: Bearer MARK}
",
    ),
    // orloj
    here(
        "orloj endpoint with userinfo",
        "endpoint",
        orloj!("pgvector", "postgres://notes:MARK@pg.acme.svc/notes"),
    ),
    here(
        "orloj endpoint without a user",
        "endpoint",
        orloj!("pgvector", "postgres://:MARK@pg.acme.svc/notes"),
    ),
    here(
        "orloj endpoint with a slash in its password",
        "endpoint",
        orloj!("pgvector", "postgres://u:a/MARK@pg/notes"),
    ),
    here(
        "orloj endpoint with a parameter",
        "endpoint",
        orloj!("pgvector", "postgres://u@pg/notes?password=MARK"),
    ),
    elsewhere(
        "orloj endpoint with sslpassword",
        "endpoint",
        orloj!("pgvector", "postgres://u@pg/notes?sslpassword=MARK"),
    ),
    here("orloj endpoint of libpq", "endpoint", orloj!("pgvector", "host=pg password=MARK user=u")),
    elsewhere(
        "orloj endpoint of libpq with blanks",
        "endpoint",
        orloj!("pgvector", "\"host=pg Password = 'it''s MARK' user=u\""),
    ),
    elsewhere("orloj endpoint of mysql", "endpoint", orloj!("pgvector", "root:MARK@tcp(db:3306)/m")),
    elsewhere("orloj endpoint of mysql for http", "endpoint", orloj!("http", "root:MARK@tcp(db:3306)/m")),
    here("orloj endpoint of http", "endpoint", orloj!("http", "https://kb:MARK@kb.acme.svc")),
    here("orloj endpoint of redis", "endpoint", orloj!("redis", "redis://:MARK@cache.acme.svc:6379")),
    elsewhere(
        "orloj endpoint as a block",
        "endpoint",
        orloj!("pgvector", ">-\n    host=pg\n    password='a\n    MARK' user=u"),
    ),
    elsewhere(
        "orloj Agent in one block",
        "API_TOKEN",
        "
apiVersion: v1
kind: Pod
metadata:
  name: scribe
  namespace: orloj
  labels: {orloj.dev/component: agent-job, orloj.dev/agent: unknown, orloj.dev/namespace: acme}
spec: {containers: [{name: agent, env: [{name: API_TOKEN, value: MARK}]}]}
---
apiVersion: orloj.dev/v1
kind: Agent
metadata: {name: scribe, namespace: acme}
spec: {model_ref: m, prompt: x, memory: {ref: gone}, env: {API_TOKEN: MARK}}
",
    ),
    here(
        "orloj ModelEndpoint",
        "base_url",
        "
apiVersion: orloj.dev/v1
kind: ModelEndpoint
metadata: {name: embed, namespace: acme}
spec:
  provider: ollama
  base_url: [\"https://u:MARK@models.acme.svc/v1\"]
",
    ),
    // kagent
    here(
        "kagent base URL",
        "baseUrl",
        kagent!("  model: text-embedding-3-small\n  openAI:\n    baseUrl: https://u:MARK@models.ops.svc/v1"),
    ),
    here(
        "kagent host of Ollama",
        "host",
        kagent!(
            "  provider: Ollama\n  model: nomic-embed-text\n  ollama:\n    host: u:MARK@ollama.ops.svc:11434"
        ),
    ),
    elsewhere(
        "kagent endpoint with a parameter",
        "endpoint",
        kagent!(
            "  provider: Foundry\n  model: gpt-4o\n  foundry: {deployment: x, endpoint: \"https://models.ops.svc?api_key=MARK\"}"
        ),
    ),
    elsewhere(
        "kagent token of Azure",
        "azureAdToken",
        kagent!(
            "  provider: AzureOpenAI\n  model: x\n  azureOpenAI: {azureEndpoint: \"https://models.ops.svc\", apiVersion: x, azureAdToken: MARK}"
        ),
    ),
    elsewhere(
        "kagent header",
        "Authorization",
        kagent!("  provider: Anthropic\n  model: x\n  defaultHeaders: {Authorization: Bearer MARK}"),
    ),
    // orka
    here(
        "orka literal token",
        "ORKA_SA_TOKEN",
        "
apiVersion: core.orka.ai/v1alpha1
kind: Task
metadata: {name: cut, namespace: team-a}
spec:
  type: ai
  prompt: x
  env:
    - {name: ORKA_SA_TOKEN, value: MARK}
",
    ),
    here(
        "orka literal token, name last",
        "value",
        "
apiVersion: core.orka.ai/v1alpha1
kind: Task
metadata: {name: cut, namespace: team-a}
spec:
  type: ai
  prompt: x
  env:
    - value: MARK
      name: ORKA_SA_TOKEN
",
    ),
    here(
        "orka setting that is a URL",
        "ORKA_MEMORY_CONTEXT_LIMIT",
        "
apiVersion: core.orka.ai/v1alpha1
kind: Task
metadata: {name: cut, namespace: team-a}
spec:
  type: ai
  prompt: x
  env:
    - {name: ORKA_MEMORY_CONTEXT_LIMIT, value: \"https://u:MARK@h\"}
",
    ),
    here(
        "orka endpoint with userinfo",
        "endpoint",
        "
apiVersion: core.orka.ai/v1alpha1
kind: MemoryBackend
metadata: {name: default, namespace: team-a}
spec:
  deployment:
    mode: external-endpoint
    endpoint: https://bot:MARK@memory.example.com
",
    ),
    here(
        "orka endpoint with a query",
        "endpoint",
        "
apiVersion: core.orka.ai/v1alpha1
kind: MemoryBackend
metadata: {name: default, namespace: team-a}
spec:
  deployment:
    mode: external-endpoint
    endpoint: https://memory.example.com/?key=MARK
",
    ),
    elsewhere(
        "orka worker",
        "ORKA_SA_TOKEN",
        "
apiVersion: v1
kind: Pod
metadata: {name: cut, namespace: team-a, labels: {orka.ai/task: cut, orka.ai/task-type: ai}}
spec:
  containers:
    - name: worker
      env:
        - {name: ORKA_SA_TOKEN, value: MARK}
        - {name: ORKA_MEMORY_CONTEXT_LIMIT, value: \"99\"}
",
    ),
    // sympozium
    elsewhere(
        "sympozium run",
        "API_TOKEN",
        "
apiVersion: sympozium.ai/v1alpha1
kind: AgentRun
metadata: {name: run, namespace: team-a}
spec:
  agentRef: gone
  agentId: default
  sessionKey: s
  model: {provider: openai, model: m, authSecretRef: key}
  env: {API_TOKEN: MARK}
",
    ),
    elsewhere(
        "sympozium agent",
        "DB_PASSWORD",
        "
apiVersion: sympozium.ai/v1alpha1
kind: Agent
metadata: {name: triage, namespace: team-a}
spec:
  memory: {enabled: maybe}
  agents: {default: {model: m, env: {DB_PASSWORD: MARK}}}
",
    ),
    here(
        "sympozium variable that is a mapping",
        "PASSWORD",
        "
apiVersion: sympozium.ai/v1alpha1
kind: Agent
metadata: {name: triage, namespace: team-a}
spec:
  memory: {enabled: true}
  agents: {default: {model: m, env: {PASSWORD: {a: MARK}}}}
",
    ),
    elsewhere(
        "sympozium pod",
        "WORKFLOW_MEMORY_WRITER_TOKEN",
        "
apiVersion: v1
kind: Pod
metadata:
  name: run
  namespace: team-a
  labels: {sympozium.ai/component: agent-run, sympozium.ai/instance: gone, memgate.dev/inject: maybe}
spec: {containers: [{name: agent, env: [{name: WORKFLOW_MEMORY_WRITER_TOKEN, value: MARK}]}]}
",
    ),
    // What any object may hold.
    elsewhere("Secret in clear text", "stringData", secret!("stringData: {REDIS_URL: MARK}")),
    elsewhere("Secret in base64", "data", secret!("data:\n      REDIS_URL: |\n        MARK64")),
    elsewhere("variable of a pod", "GITHUB_TOKEN", pod!("      env: [{name: GITHUB_TOKEN, value: MARK}]")),
    elsewhere("variable of an upper case word", "DB_PASS", pod!("      env: [{name: DB_PASS, value: MARK}]")),
    elsewhere("variable GITHUB_PAT", "GITHUB_PAT", pod!("      env: [{name: GITHUB_PAT, value: MARK}]")),
    elsewhere(
        "variable with a DSN",
        "DATABASE",
        pod!("      env: [{name: DATABASE, value: \"postgres://u:MARK@h/d\"}]"),
    ),
    elsewhere(
        "variable with JSON",
        "MCP",
        pod!("      env: [{name: MCP, value: '{\"headers\":{\"Authorization\":\"MARK\"}}'}]"),
    ),
    elsewhere(
        "variable as a block",
        "TLS_PRIVATE_KEY",
        pod!(
            "      env:\n        - name: TLS_PRIVATE_KEY\n          value: |\n            BEGIN\n            MARK\n            END"
        ),
    ),
    elsewhere("argument", "args", pod!("      args: [--verbose, --api-key=MARK]")),
    elsewhere("argument in two parts", "args", pod!("      args: [--password, MARK]")),
    elsewhere(
        "command line",
        "curl",
        pod!("      command: [sh, -c, \"curl -H 'Authorization: Bearer MARK' https://h\"]"),
    ),
    elsewhere(
        "header of a probe",
        "httpHeaders",
        pod!(
            "      livenessProbe: {httpGet: {path: /, port: 80, httpHeaders: [{name: X-Any, value: MARK}]}}"
        ),
    ),
    elsewhere(
        "last applied configuration",
        "last-applied-configuration",
        "
apiVersion: v1
kind: Pod
metadata:
  name: scout
  namespace: team-a
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{\"spec\":{\"x\":\"MARK\"}}'}
  labels: {arkonis.dev/deployment: scout, memgate.dev/inject: maybe}
spec: {containers: [{name: agent}]}
",
    ),
    elsewhere(
        "workload",
        "GITHUB_TOKEN",
        "
apiVersion: apps/v1
kind: Deployment
metadata: {name: scout, namespace: team-a}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {arkonis.dev/deployment: scout}}
    spec: {containers: [{name: agent, env: [{name: GITHUB_TOKEN, value: MARK}]}]}
",
    ),
];
