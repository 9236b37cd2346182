//! What memgate added to a pod, for people.

use std::fmt::Write as _;

use crate::report::{ObjectRef, plain};

/// A pod, or the pod template of a workload, and what memgate added to it.
#[derive(Debug)]
pub struct InjectedPod {
    /// The pod or the workload.
    pub object_ref: ObjectRef,
    /// What was added.
    pub state: InjectionState,
}

/// Whether memgate added anything.
#[derive(Debug)]
pub enum InjectionState {
    /// Nothing was added.
    Nothing,
    /// The annotation was written by another program.
    Unreadable {
        /// The key of the annotation.
        annotation: &'static str,
    },
    /// What was added.
    Injected(InjectionRecord),
}

/// What the annotation of a pod records.
#[derive(Debug)]
pub struct InjectionRecord {
    /// The memory resources.
    pub memories: Vec<String>,
    /// The version of memgate that added it.
    pub version: Option<String>,
    /// The family that the pod belongs to.
    pub family: Option<String>,
    /// The containers with the environment that was added to them.
    pub containers: Vec<InjectedContainer>,
}

/// A container and what was added to it.
#[derive(Debug)]
pub struct InjectedContainer {
    /// The name.
    pub name: String,
    /// The environment variables.
    pub variables: Vec<InjectedVariable>,
}

/// An environment variable that was added.
#[derive(Debug)]
pub struct InjectedVariable {
    /// The name.
    pub name: String,
    /// What it is now.
    pub value: VariableValue,
}

/// What an environment variable is now.
#[derive(Debug)]
pub enum VariableValue {
    /// Taken out since.
    Removed,
    /// A text.
    Literal(String),
    /// A key of a Secret.
    SecretKey {
        /// The name of the Secret.
        secret: String,
        /// The key in it.
        key: String,
    },
}

/// The pods with what was added to them.
#[must_use]
pub fn text(pods: &[InjectedPod]) -> String {
    let mut text = String::new();
    for pod in pods {
        let _infallible = write!(text, "{}: ", plain(&pod.object_ref.title()));
        match &pod.state {
            InjectionState::Nothing => text.push_str("memgate added nothing\n"),
            InjectionState::Unreadable { annotation } => {
                let _infallible =
                    writeln!(text, "the annotation {annotation} was not written by memgate: it is no JSON");
            }
            InjectionState::Injected(injection) => write_injection(injection, &mut text),
        }
    }
    text
}

fn write_injection(injection: &InjectionRecord, text: &mut String) {
    let memories = injection.memories.join(", ");
    let word = |word: &Option<String>| plain(word.as_deref().unwrap_or("unknown")).into_owned();
    let _infallible = writeln!(
        text,
        "memory of {}, added by memgate {} (family {})",
        if injection.memories.is_empty() { "unknown".to_owned() } else { plain(&memories).into_owned() },
        word(&injection.version),
        word(&injection.family)
    );
    for container in &injection.containers {
        let _infallible = writeln!(text, "  container {}:", plain(&container.name));
        for variable in &container.variables {
            let value = match &variable.value {
                VariableValue::Removed => " is no longer there".to_owned(),
                VariableValue::Literal(value) => format!("={}", plain(value)),
                VariableValue::SecretKey { secret, key } => {
                    format!(" from key {} of Secret {}", plain(key), plain(secret))
                }
            };
            let _infallible = writeln!(text, "    {}{value}", plain(&variable.name));
        }
    }
}
