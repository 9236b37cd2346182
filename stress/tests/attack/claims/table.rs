//! What answers hold of other namespaces, and why: rules of the platforms, of which none may be added to.

/// Marked parts, by family.
pub(crate) const MARKS: [(&str, &str); 2] = [
    (
        "orloj: Query: zq7markquery",
        "ORLOJ_MEMORY_DSN in a job namespace: the string for Postgres is passed as it is, and a password never stands in it",
    ),
    ("orloj: User: zq7markuser", "the same: the kubelet puts the password behind the user"),
];

/// Fields, by family and kind; of URLs without what is marked in [`MARKS`].
pub(crate) const FIELDS: [(&str, &str); 24] = [
    // ark: a pod's annotation names a Memory as NAMESPACE/NAME, and is given its address without userinfo and query.
    ("ark: Memory /spec/address/value", "ARK_MEMORY_URL of the Memory that the pod names"),
    ("ark: Memory /spec/address/valueFrom/serviceRef/path", "the same, of a Service"),
    (
        "ark: Memory /status/lastResolvedAddress",
        "the same, where the address comes from a ConfigMap or an unknown Service",
    ),
    ("ark: Memory /spec/headers/*/name", "the warning that a header of that Memory is left out"),
    (
        "ark: Service /spec/ports/*/name",
        "the port to use of the Service that a Memory names in another namespace",
    ),
    ("ark: Query /metadata/name", "who uses a Memory that is deleted, as NAMESPACE/NAME"),
    // orka: a Task may name an Agent of another namespace.
    (
        "orka: Agent /metadata/annotations/memgate.dev~1orka-memory-context-limit",
        "the warning that the setting of the Agent in the Task is not a number",
    ),
    // orloj: all its Jobs run in one namespace, and a pod there names task and Agent of any; names count in Orloj's own
    // namespaces, which an annotation may change.
    (
        "orloj: Agent /spec/memory/ref",
        "the Memory of the Agent that a pod of a job namespace names, when it is missing",
    ),
    ("orloj: Memory /spec/provider", "ORLOJ_MEMORY_PROVIDER in a job namespace"),
    ("orloj: Memory /spec/type", "ORLOJ_MEMORY_TYPE in a job namespace"),
    ("orloj: Memory /spec/endpoint", "ORLOJ_MEMORY_DSN and ORLOJ_MEMORY_ENDPOINT in a job namespace"),
    (
        "orloj: Memory /spec/endpoint_secret_ref",
        "the name of a Secret that a pod of a job namespace cannot have",
    ),
    ("orloj: Memory /spec/auth/secretRef", "the same"),
    ("orloj: ModelEndpoint /spec/auth/secretRef", "the same"),
    ("orloj: ModelEndpoint /spec/base_url", "ORLOJ_MEMORY_EMBEDDING_URL in a job namespace"),
    ("orloj: ModelEndpoint /spec/default_model", "ORLOJ_MEMORY_EMBEDDING_MODEL in a job namespace"),
    // kagent: its settings are in its own namespace, and are read from files only.
    ("kagent: ConfigMap /metadata/name", "which settings turn vectors off"),
    // sympozium: the pack of sympozium-system serves all namespaces without one of their own.
    ("sympozium: Agent /metadata/name", "who misses the pack of all namespaces when it is deleted"),
    ("sympozium: SkillPack /spec/sidecar/image", "the sidecar of the pack of all namespaces"),
    ("sympozium: SkillPack /spec/sidecar/command/*", "the same"),
    ("sympozium: SkillPack /spec/sidecar/env/*/name", "the same"),
    ("sympozium: SkillPack /spec/sidecar/env/*/value", "the same, unless it is a credential"),
    (
        "sympozium: SkillPack /spec/sidecar/env/*/valueFrom/secretKeyRef/name",
        "the same: a Secret of the pod's namespace",
    ),
    ("sympozium: SkillPack /spec/sidecar/env/*/valueFrom/secretKeyRef/key", "the same"),
];

/// Kinds of which an answer says that a name exists, by family and the kind that is reviewed.
pub(crate) const KINDS: [(&str, &str); 29] = [
    ("ark: Pod of Memory", "the annotation names a namespace"),
    ("ark: Pod of Service", "the address of that Memory comes from it"),
    ("ark: Query of Memory", "spec.memory names a namespace"),
    ("ark: Memory of Service", "the reference or the host of the address names a namespace"),
    ("ark: Memory of Query", "who uses a Memory that is deleted"),
    ("ark: ArkConfig of Memory", "whether any namespace has the default Memory; files only"),
    (
        "policy: Memory of ConfigMap",
        "whether memory lasts, of the Service that a Memory names elsewhere: the variables of its workload",
    ),
    ("policy: ArkMemory of Service", "whether the host of the endpoint is a Service that leads elsewhere"),
    ("policy: Memory of Service", "as for ark"),
    ("policy: Pod of Service", "as for ark"),
    ("kagent: Agent of ConfigMap", "the settings of kagent are in its own namespace; files only"),
    ("kagent: Harness of ConfigMap", "the same"),
    ("memgate: Job of RuntimeClass", "a class that its pods name says on which nodes they run"),
    ("memgate: Job of SkillPack", "as for sympozium"),
    ("memgate: Pod of RuntimeClass", "a class that the pod names says on which nodes it runs"),
    ("memgate: Pod of SkillPack", "as for sympozium"),
    ("orka: Pod of Agent", "the Task names a namespace"),
    ("orka: Task of Agent", "spec.agentRef names a namespace"),
    ("orloj: Memory of ModelEndpoint", "spec.embedding_model names an Orloj namespace"),
    ("orloj: Pod of Agent", "the task's name has an Orloj namespace"),
    ("orloj: Pod of Memory", "the Agent names it, in a job namespace"),
    ("orloj: Pod of ModelEndpoint", "the Memory names it, in a job namespace"),
    ("policy: Pod of SkillPack", "as for sympozium"),
    ("policy: Query of Memory", "as for ark"),
    (
        "policy: SkillPack of SkillPack",
        "as for sympozium: the users of the pack of all namespaces are counted",
    ),
    ("sympozium: Agent of SkillPack", "one pack of sympozium-system serves all namespaces"),
    ("sympozium: Pod of SkillPack", "the same"),
    ("sympozium: SkillPack of Agent", "who misses the pack of all namespaces when it is deleted"),
    ("sympozium: SkillPack of SkillPack", "the same: those without one of their own"),
];
