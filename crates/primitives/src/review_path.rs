//! The address of the webhook: the host names of its Service, and the paths to which an apiserver sends reviews.

use crate::named::named;

named! {
    /// One of the two webhook calls, in the order in which an apiserver makes them. Each finding is reported by one of them.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum Phase {
        /// The mutating call: all that concerns pods, and findings about an edit.
        #[default]
        Mutate = "mutate",
        /// The validating call: what concerns a family's own resources.
        Validate = "validate",
    }
}

/// The name of the webhook configuration for a call, in metrics and the log.
pub const fn config_name(call: Phase) -> &'static str {
    match call {
        Phase::Mutate => "mutating",
        Phase::Validate => "validating",
    }
}

/// The path of a call.
pub const fn path(call: Phase) -> &'static str {
    match call {
        Phase::Mutate => "/mutate",
        Phase::Validate => "/validate",
    }
}

/// A URL without the path of a call at its end.
pub fn without_path(url: &str) -> &str {
    Phase::ALL.iter().find_map(|call| url.strip_suffix(path(*call))).unwrap_or(url)
}

/// The call that goes to a path.
pub fn call(to: &str) -> Option<Phase> {
    Phase::ALL.into_iter().find(|call| to == path(*call))
}

/// The names by which a Service is called from within a cluster.
pub fn service_names(service: &str, namespace: &str) -> Vec<String> {
    ["", ".svc", ".svc.cluster.local"].map(|end| format!("{service}.{namespace}{end}")).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_one_path() {
        for phase in Phase::ALL {
            assert_eq!(call(path(phase)), Some(phase));
        }
        for other in ["", "/", "/mutate/", "/MUTATE", "mutate", "/mutate/t", "/metrics"] {
            assert_eq!(call(other), None, "{other}");
        }
    }
}
