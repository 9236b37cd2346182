//! Decides to which Secrets an object may give pods access.
//!
//! A job namespace holds Orloj's own Secrets and those of every team. A user who writes a Memory in another namespace
//! may not have access to them. So a pod gets a reference to a Secret only from an object of its own namespace,
//! unless the settings share the Secret.

use memgate_model::finding::Finding;
use memgate_model::platform_settings::Orloj;
use memgate_primitives::budget::Budget;
use memgate_primitives::glob::Glob;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::codes::POD_SECRET_FOREIGN;
use super::message::fit_names;
use super::namespace::NamespacedName;

/// Whether an object of this Kubernetes namespace may give pods of the Secret's namespace access to the Secret.
pub(super) fn may_hand_out(secret: NamespacedName<'_>, from: &str, settings: &Orloj) -> bool {
    let budget = Budget::default();
    let fits = |pattern: &String| Glob::new(pattern.as_str()).matches(secret.name, &budget);
    from == secret.namespace
        || is_in_job_namespace(secret, settings) && settings.shared_secrets.iter().any(fits)
}

/// Whether the Secret is in a namespace in which Orloj runs its Jobs.
pub(super) fn is_in_job_namespace(secret: NamespacedName<'_>, settings: &Orloj) -> bool {
    settings.job_namespaces.iter().any(|namespace| namespace == secret.namespace)
}

/// The finding about a Secret that an object may not give to pods. `resource` is the object's kind, Kubernetes
/// namespace and name.
pub(super) fn not_shared(
    secret: NamespacedName<'_>,
    resource: [&str; 3],
    at: Pointer,
    settings: &Orloj,
) -> Finding {
    let [kind, namespace, name] = resource;
    let message = fit_names(
        [secret.namespace, secret.name, namespace, name],
        |[secret_in, secret, namespace, name]| {
            let (secret, object) =
                (quoted(&format!("{secret_in}/{secret}")), quoted(&format!("{namespace}/{name}")));
            format!("Secret {secret} is not shared with {kind} {object}; add it to orloj.sharedSecrets")
        },
    );
    let finding = Finding::warn(&POD_SECRET_FOREIGN, at, message);
    if is_in_job_namespace(secret, settings) {
        return finding
            .help("orloj.sharedSecrets is a setting of memgate, in .memgate.yaml or the file of --config");
    }
    finding
        .help(format!("only Secrets of job namespaces can be shared; create the {kind} where the pod runs"))
}
