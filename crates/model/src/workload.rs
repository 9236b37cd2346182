//! Workloads: core objects whose controllers make pods from a template. This module knows the path to the
//! template, not the content of pods.

use serde_json::value::RawValue;

use crate::view::{self, Text, view};

/// A kind of workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// The API group.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The path to its pod template, as a JSON pointer.
    pub template: &'static str,
}

/// Every kind of workload.
pub const ALL: [Workload; 6] = [
    Workload { group: "apps", kind: "Deployment", template: "/spec/template" },
    Workload { group: "apps", kind: "StatefulSet", template: "/spec/template" },
    Workload { group: "apps", kind: "DaemonSet", template: "/spec/template" },
    Workload { group: "apps", kind: "ReplicaSet", template: "/spec/template" },
    Workload { group: "batch", kind: "Job", template: "/spec/template" },
    Workload { group: "batch", kind: "CronJob", template: "/spec/jobTemplate/spec/template" },
];

/// The kinds that select pods by labels: group, kind, and the path to the labels, as a JSON pointer.
pub const SELECTORS: [(&str, &str, &str); 5] = [
    ("apps", "Deployment", "/spec/selector/matchLabels"),
    ("apps", "StatefulSet", "/spec/selector/matchLabels"),
    ("apps", "DaemonSet", "/spec/selector/matchLabels"),
    ("apps", "ReplicaSet", "/spec/selector/matchLabels"),
    ("", "Service", "/spec/selector"),
];

/// The workload of this group and kind.
pub fn find(group: &str, kind: &str) -> Option<&'static Workload> {
    ALL.iter().find(|workload| workload.group == group && workload.kind == kind)
}

/// The fields of a workload that are read.
#[derive(Debug)]
pub struct WorkloadFields<'a> {
    /// Its own namespace, if it names one.
    pub namespace: Option<Text<'a>>,
    /// The name; empty if the apiserver generates it.
    pub name: Text<'a>,
    /// The pod template, unread. It can be read as a pod without a status.
    pub template: Option<&'a RawValue>,
    /// The templates of the claims that each pod of a StatefulSet has, unread.
    pub claim_templates: Option<&'a RawValue>,
}

view! {
    /// A workload.
    WorkloadView {
        /// The metadata.
        metadata: WorkloadMetadata<'a> = "metadata",
        /// The spec.
        spec: WorkloadSpec<'a> = "spec",
    }

    /// The metadata of a workload.
    WorkloadMetadata {
        /// The namespace.
        namespace: Text<'a> = "namespace",
        /// The name.
        name: Text<'a> = "name",
    }

    /// The spec of a workload.
    WorkloadSpec {
        /// The pod template.
        template: &'a RawValue = "template",
        /// The claim templates of a StatefulSet.
        claim_templates: &'a RawValue = "volumeClaimTemplates",
        /// The Job template of a CronJob.
        job_template: JobTemplate<'a> = "jobTemplate",
    }

    /// The Job template of a CronJob.
    JobTemplate {
        /// The spec of each Job.
        spec: JobSpec<'a> = "spec",
    }

    /// The spec of a Job.
    JobSpec {
        /// The pod template.
        template: &'a RawValue = "template",
    }
}

impl Workload {
    /// Whether its pods have claims besides the volumes of the template.
    pub fn has_claims(&self) -> bool {
        self.kind == "StatefulSet"
    }

    /// Reads the parts of a workload of this kind.
    ///
    /// # Errors
    /// When it is not of the form that its kind asks for.
    pub fn read<'a>(&self, text: &'a str) -> serde_json::Result<WorkloadFields<'a>> {
        let WorkloadView { metadata, spec } = view::read(text)?;
        let (metadata, spec) = (metadata.unwrap_or_default(), spec.unwrap_or_default());
        let of_job = || spec.job_template.and_then(|jobs| jobs.spec).and_then(|spec| spec.template);
        let template = if self.kind == "CronJob" { of_job() } else { spec.template };
        let claim_templates = spec.claim_templates.filter(|_| self.has_claims());
        let (namespace, name) = (metadata.namespace, metadata.name.unwrap_or_default());
        Ok(WorkloadFields { namespace, name, template, claim_templates })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_template_where_the_pointer_says() {
        for workload in ALL {
            let mut value = serde_json::json!({"kind": "Pod"});
            for key in workload.template.split('/').skip(1).collect::<Vec<_>>().into_iter().rev() {
                value = serde_json::json!({ key: value });
            }
            let text = value.to_string();
            let parts = workload.read(&text).expect("an object");
            let template = parts.template.expect("a template");
            assert_eq!(template.get(), r#"{"kind":"Pod"}"#, "{}", workload.kind);
        }
    }
}
