//! Rules for the findings of memgate itself: what a platform only warns of, an organisation may want to deny.

use serde_json::{Value, json};

use super::samples::{Example, State, Surroundings, of_page};
use super::{MOST_TRIED, NewPolicy, PolicyWish, Refusal, RuleDraft, Sample, Trial};
use crate::load::load;
use crate::objects::UndecidedObject;
use crate::plan::Plan;
use crate::report::json::without_nulls;
use crate::rules::nearest_code;
use memgate_core::admission::admit;
use memgate_core::decide::codes;
use memgate_model::finding::Code;
use memgate_primitives::plain_text::quoted_text;
use memgate_primitives::suggest::did_you_mean;

/// A rule that denies what some codes report.
struct CodeRule {
    /// The codes. Behind each are the words that stand for `$` in the rule.
    codes: &'static [(&'static str, &'static str)],
    id: &'static str,
    type_name: &'static str,
    /// The content of the type, as JSON.
    body: &'static str,
    /// The roles, unless they are those of the type.
    roles: &'static [&'static str],
    /// The conditions, as JSON.
    when: &'static str,
    /// The kinds that the policy matches; empty for all.
    kinds: &'static [&'static str],
    message: &'static str,
    hint: &'static str,
}

/// A rule of this type, with what may be left out.
const fn rule(
    id: &'static str,
    type_name: &'static str,
    body: &'static str,
    (message, hint): (&'static str, &'static str),
    codes: &'static [(&'static str, &'static str)],
) -> CodeRule {
    CodeRule { codes, id, type_name, body, roles: &[], when: "null", kinds: &[], message, hint }
}

/// The label by which pods ask for their memory, in a condition.
const HAS_INJECT_LABEL: &str = r#"{"fields": [{"path": "labels[\"memgate.dev/inject\"]", "exists": true}]}"#;

/// Every rule. Each code occurs once.
static RULES: [CodeRule; 17] = [
    rule(
        "no-literal-credentials",
        "secrets",
        r#"{"inline": "forbid"}"#,
        ("a credential stands in a manifest", "put it into a Secret, and refer to that"),
        &[
            ("ark/header-inline-secret", ""),
            ("ark/memory-address-credentials", ""),
            ("arkonis/endpoint-credentials", ""),
            ("kagent/endpoint-credentials", ""),
            ("orka/env-literal-token", ""),
            ("orloj/inline-credential", ""),
        ],
    ),
    rule(
        "credentials-required",
        "secrets",
        r#"{"required": true}"#,
        ("memory is reached without a credential", "refer to a Secret that holds one"),
        &[("arkonis/hosted-without-secret", "")],
    ),
    rule(
        "encrypted",
        "endpoint",
        r#"{"tls": "require"}"#,
        ("memory is reached without encryption", "use an address with TLS, such as https://"),
        &[
            ("ark/memory-address-plain-http", ""),
            ("orka/backend-endpoint", ""),
            ("orloj/cleartext-token", ""),
        ],
    ),
    rule(
        "no-loopback",
        "endpoint",
        r#"{"loopback": "forbid"}"#,
        ("the address of memory leads back into the pod", "use the address of a Service"),
        &[
            ("ark/memory-address-local", ""),
            ("orloj/http-endpoint-blocked", ""),
            ("orloj/pgvector-loopback", ""),
        ],
    ),
    rule(
        "public-endpoint",
        "endpoint",
        r#"{"loopback": "forbid", "private": "forbid", "inCluster": "forbid"}"#,
        ("the address of memory is a private one", "use the public address of the service"),
        &[("orka/backend-endpoint-private", "")],
    ),
    rule(
        "endpoint-source",
        "fields",
        r#"[{"path": "endpoint.from", "notIn": ["query"]}]"#,
        (
            "the address of memory comes from a query",
            "write it as a value, or take it from a Service or Secret",
        ),
        &[("ark/memory-address-query-parameter", "")],
    ),
    rule(
        "endpoint-required",
        "fields",
        r#"[{"path": "endpoint", "exists": true}]"#,
        ("memory has no address", "write the address of the database or service"),
        &[
            ("ark/memory-address-required", ""),
            ("arkonis/endpoint-required", ""),
            ("orloj/custom-endpoint-missing", ""),
            ("orloj/http-endpoint-required", ""),
            ("orloj/pgvector-endpoint-required", ""),
        ],
    ),
    rule(
        "embedding-required",
        "fields",
        r#"[{"path": "embedding.model", "exists": true}]"#,
        ("memory has no embedding model", "name the model that computes its vectors"),
        &[
            ("arkonis/embedding-missing", ""),
            ("orloj/custom-embedding-missing", ""),
            ("orloj/pgvector-embedding-required", ""),
        ],
    ),
    rule(
        "same-namespace",
        "references",
        r#"{"crossNamespace": "forbid"}"#,
        ("the reference leads into another namespace", "use an object of the same namespace"),
        &[
            ("ark/memory-service-cross-namespace", ""),
            ("ark/query-memory-cross-namespace", ""),
            ("orka/agent-cross-namespace", ""),
        ],
    ),
    rule(
        "reference-exists",
        "references",
        r#"{"mustExist": [$]}"#,
        ("the object that is named does not exist", "apply it first, or correct the name"),
        &[
            ("ark/memory-service-missing", "Service"),
            ("ark/query-memory-missing", "Memory"),
            ("arkonis/memory-not-found", "ArkMemory"),
            ("arkonis/settings-not-found", "ArkSettings,SwarmSettings"),
            ("kagent/embedder-not-found", "ModelConfig"),
            ("kagent/harness-not-found", "Harness"),
            ("kagent/summarizer-not-found", "ModelConfig"),
            ("orka/agent-missing", "Agent"),
            ("orloj/agent-memory-missing", "Memory"),
            ("orloj/embedding-missing", "ModelEndpoint"),
            ("sympozium/agent-missing", "Agent"),
        ],
    ),
    rule(
        "operations-required",
        "fields",
        r#"[{"path": "operations", "exists": true}]"#,
        ("an agent with memory may do nothing with it", "grant the operations that it needs"),
        &[("orloj/agent-allow-empty", "")],
    ),
    rule(
        "no-overrides",
        "environment",
        r#"{"overrides": "forbid"}"#,
        ("the pod sets a variable of its memory itself", "leave the variable out; memgate adds it"),
        &[
            ("ark/pod-env-exists", ""),
            ("arkonis/pod-env-conflict", ""),
            ("orka/pod-env-conflict", ""),
            ("orloj/pod-env-kept", ""),
            ("sympozium/pod-env-conflict", ""),
            ("sympozium/pod-token-literal", ""),
        ],
    ),
    rule(
        "known-provider",
        "providers",
        r#"{"allow": [$]}"#,
        ("the provider of memory is not one of ours", "use one of the providers in the policy"),
        &[
            ("arkonis/swarm-older-value", "qdrant,pgvector"),
            ("orloj/provider-unknown", "in-memory,pgvector,http"),
        ],
    ),
    rule(
        "no-legacy-memory",
        "backends",
        r#"{"deny": ["configmap"]}"#,
        ("memory in a ConfigMap is not supported any more", "give the agent the skill memory"),
        &[("sympozium/legacy-memory", "")],
    ),
    rule(
        "immutable",
        "immutable",
        "[$]",
        ("stored memory would be lost or left behind", "create new memory, and move what is worth keeping"),
        &[
            ("arkonis/in-use-changed", "backend,provider,collection,ttlSeconds"),
            ("kagent/embedder-changed", "provider,embedding.model"),
            ("orka/backend-store-immutable", "collection"),
            ("sympozium/storage-size-changed", "storageBytes"),
        ],
    ),
    CodeRule {
        roles: &["pod"],
        when: HAS_INJECT_LABEL,
        ..rule(
            "inject-label",
            "fields",
            r#"[{"path": "labels[\"memgate.dev/inject\"]", "in": ["disabled", "required"]}]"#,
            (
                "the label memgate.dev/inject has an unknown value",
                "write disabled or required, or leave it out",
            ),
            &[
                ("ark/inject-label-unknown", ""),
                ("arkonis/inject-label-unknown", ""),
                ("orka/inject-label-unknown", ""),
                ("orloj/inject-label-unknown", ""),
                ("sympozium/inject-label-unknown", ""),
            ],
        )
    },
    CodeRule {
        kinds: &["$"],
        ..rule(
            "name-default",
            "fields",
            r#"[{"path": "name", "in": ["default"]}]"#,
            ("the platform reads the object named default only", "name it default"),
            &[("orka/backend-name", "MemoryBackend")],
        )
    },
];

/// The rule for a code, and the words in the place of `$` in it.
fn find(code: &str) -> Option<(&'static CodeRule, &'static str)> {
    RULES.iter().find_map(|rule| {
        let (_, argument) = rule.codes.iter().find(|(known, _)| *known == code)?;
        Some((rule, *argument))
    })
}

/// Every code for which there is a rule.
pub fn codes_with_rule() -> impl Iterator<Item = &'static str> {
    RULES.iter().flat_map(|rule| rule.codes).map(|(code, _)| *code)
}

/// Makes the policy for a code.
///
/// # Errors
/// When there is no rule for it, or no object in the files has the finding.
pub(super) fn new(wish: &PolicyWish<'_>) -> Result<NewPolicy, Refusal> {
    let code = known_code(wish.about)?;
    let (rule, argument) = find(code.name).ok_or_else(|| without_rule(code.name))?;
    let trial = Trial::new(wish.name, rule.draft(code, argument));
    let trial = trial.ok_or_else(|| {
        format!("the rule for {} cannot be proved; report this as a fault of memgate", code.name)
    })?;
    let (failing, passing) = match wish.paths {
        [] => (of_page(code, Example::Failing)?, Vec::new()),
        paths => in_files(code, paths)?,
    };
    let passing = passing.into_iter().chain(of_page(code, Example::Passing)?);
    let denied = failing.into_iter().find(|sample| trial.codes_if_denied(&sample.case).is_some());
    let denied = denied.ok_or_else(|| {
        format!(
            "a rule of the type {} does not deny the objects with {}; use --for FILE:LINE",
            rule.type_name, code.name
        )
    })?;
    let kind = kind_of(&denied);
    let mut passing = passing.filter(|sample| kind_of(sample) == kind);
    let passes = passing
        .find(|sample| trial.codes_if_passed(&sample.case).is_some_and(|codes| !codes.contains(code.name)));
    let made = passes.and_then(|passes| trial.into_texts(wish, &passes, &denied));
    made.ok_or_else(|| {
        format!("no object of this kind passes the rule for {}; use --for FILE:LINE", code.name).into()
    })
}

fn kind_of(sample: &Sample) -> String {
    let object = sample.case.object.as_ref().or(sample.case.old_object.as_ref());
    object.and_then(|it| it.get("kind")).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn known_code(text: &str) -> Result<&'static Code, String> {
    if let Some(code) = codes::all(&memgate_platforms::ALL).find(|code| code.name == text) {
        return Ok(code);
    }
    Err(match nearest_code(text) {
        None => format!(
            "{} is neither a finding code nor FILE:LINE; `memgate explain` lists all codes",
            quoted_text(text)
        ),
        near => format!("{} is not a finding code{}", quoted_text(text), did_you_mean(near)),
    })
}

fn without_rule(code: &str) -> String {
    format!(
        "a typed rule cannot say {code}; name a line of an object that must pass, as in --for memory.yaml:7"
    )
}

/// The objects in files that have a finding, and those of the same kinds that do not.
fn in_files(code: &'static Code, paths: &[String]) -> Result<(Vec<Sample>, Vec<Sample>), Refusal> {
    let inputs = load(&Plan { checked: paths.to_vec(), ..Plan::default() })?;
    if !inputs.errors.is_empty() {
        return Err(Refusal::Unread(inputs.errors));
    }
    let has_it = |undecided: &&UndecidedObject| {
        let admitted = admit(&undecided.request(), &inputs.snapshot);
        admitted.is_ok_and(|it| it.decision.findings.iter().any(|finding| finding.code == code))
    };
    let objects = inputs.objects.iter().filter(|it| !it.object.is_part);
    let (mut failing, mut passing): (Vec<_>, Vec<_>) = objects.partition(has_it);
    if failing.is_empty() {
        let message = format!(
            "none of the objects in {} has {}; without PATH its examples are used",
            paths.join(", "),
            code.name
        );
        return Err(message.into());
    }
    failing.truncate(MOST_TRIED);
    passing.truncate(MOST_TRIED);
    let surroundings = &Surroundings::of(&inputs);
    // First those with only what is around them in their state.
    let samples = |objects: &[&UndecidedObject]| {
        let of_state = |state| objects.iter().filter_map(move |it| surroundings.sample(it, state));
        of_state(State::Named).chain(of_state(State::Whole)).collect::<Vec<_>>()
    };
    Ok((samples(&failing), samples(&passing)))
}

impl CodeRule {
    fn draft(&self, code: &Code, argument: &str) -> RuleDraft {
        let words: Vec<String> = argument.split(',').map(|word| format!("\"{word}\"")).collect();
        // The table is tested as a whole.
        let json =
            |text: &str| serde_json::from_str(&text.replace('$', &words.join(", "))).unwrap_or_default();
        let family = code.name.split('/').next().unwrap_or_default();
        let kinds: Vec<String> = self.kinds.iter().map(|kind| kind.replace('$', argument)).collect();
        let kinds = Some(kinds).filter(|kinds| !kinds.is_empty());
        let matching = without_nulls(json!({"families": [family], "kinds": kinds}));
        RuleDraft {
            id: self.id.to_owned(),
            typed: (self.type_name, json(self.body)),
            roles: if self.roles.is_empty() { Value::Null } else { json!(self.roles) },
            when: json(self.when),
            matching,
            message: self.message.to_owned(),
            hint: self.hint.to_owned(),
        }
    }
}
