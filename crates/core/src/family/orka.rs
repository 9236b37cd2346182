//! Durable memory of the Tasks of core.orka.ai.
//!
//! There is no memory resource: memories are rows behind the controller's API, and the worker of a
//! Task of type `ai` puts some of them into its prompt. Annotations on a Task, its scheduled
//! parent, its Agent and its Namespace say whether and how many; memgate writes that as up to three
//! plain variables into the container `worker`.
//!
//! ```text
//! pod ──ORKA_TASK_NAME──▶ Task ──label──▶ scheduled parent
//!                           └──agentRef──▶ Agent, then the Namespace of the pod
//! ```
//!
//! Memory is best effort there: no pod is ever refused.

pub mod api;
pub mod codes;
pub mod default;
pub mod inject;
pub mod setting;
pub mod twin;
pub mod validate;
