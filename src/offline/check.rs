//! Decides about every object of the inputs, as both webhook calls together would.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::admission::{Admitted, admit};
use crate::manifest::error::Error;
use crate::manifest::source::Source;
use crate::offline::collect::Unread;
use crate::offline::errors::error_at;
use crate::offline::load::{CheckedObject, Inputs};

/// The inputs with what was decided about their objects.
#[derive(Debug)]
pub struct Checked {
    /// The texts that hold the objects, in the order of the paths.
    pub sources: Vec<Arc<Source>>,
    /// The objects with their decisions, in document order.
    pub decided: Vec<(CheckedObject, Admitted)>,
    /// What is not checked, and how often it occurs: kinds, and why a document is not an object.
    pub passed_over: BTreeMap<String, usize>,
    /// What could not be read or decided.
    pub errors: Vec<Error>,
    /// What was passed by in directories and globs.
    pub unread: Unread,
}

/// Decides about every object. One that cannot be decided becomes an error and does not hide the others.
#[must_use]
pub fn check(inputs: Inputs) -> Checked {
    let Inputs { sources, objects, snapshot, passed_over, mut errors, unread } = inputs;
    let mut decided = Vec::with_capacity(objects.len());
    for object in objects {
        let result = admit(&object.request(), &snapshot);
        match result {
            Ok(mut admitted) => {
                for finding in &mut admitted.decision.findings {
                    finding.message = finding.message_at(&object.in_document(&finding.pointer));
                }
                decided.push((object, admitted));
            }
            Err(fault) => {
                let message = format!("{}: {fault}", object.object_ref.title());
                errors.push(error_at(&object.document, &object.template, message));
            }
        }
    }
    Checked { sources, decided, passed_over, errors, unread }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::settings::Settings;
    use crate::offline::findings::report;
    use crate::offline::load::load;

    const TEXT: &str = "\
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec: {backend: redis}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
a: [
";

    #[test]
    fn reports_what_was_denied_passed_over_and_unreadable() {
        let inputs = load(&["-".to_owned()], &[], Settings::default(), &mut TEXT.as_bytes()).expect("loads");
        let checked = check(inputs);
        let report = report(&checked);
        assert_eq!((report.files, report.objects, report.denied, report.passed_over), (1, 1, 1, 1));
        assert_eq!(report.errors.len(), 1);
        let finding = report.findings.first().expect("one");
        assert_eq!(finding.finding.code.name, "arkonis/redis-required");
        assert_eq!((finding.location.file, finding.location.line), ("<stdin>", 4));
        assert_eq!(finding.object_ref.title(), "ArkMemory team-a/notes");
    }

    const WORKLOAD: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine, namespace: team-a}
spec:
  template:
    metadata:
      annotations: {memgate.dev/orka-memory-context: x}
      labels: {orka.ai/task: t, orka.ai/task-type: ai}
    spec:
      automountServiceAccountToken: false
      containers:
        - name: worker
          env:
            - {name: ORKA_TASK_NAME, value: t}
            - {name: ORKA_TASK_NAMESPACE, value: team-a}
            - {name: ORKA_CONTROLLER_URL, value: http://orka.team-a.svc}
            - {name: ORKA_MEMORY_CONTEXT_LIMIT, value: many}
";

    #[test]
    fn names_fields_from_the_root_of_a_workload() {
        let inputs =
            load(&["-".to_owned()], &[], Settings::default(), &mut WORKLOAD.as_bytes()).expect("loads");
        let checked = check(inputs);
        let messages: Vec<&str> = checked
            .decided
            .iter()
            .flat_map(|(_, admitted)| &admitted.decision.findings)
            .map(|finding| finding.message.as_str())
            .collect();
        let field = "spec.template.spec.containers[0].env[3].value: ";
        assert!(messages.iter().any(|message| message.starts_with(field)), "{messages:?}");
    }

    #[test]
    fn reads_standard_input_once() {
        let paths = ["-".to_owned(), "-".to_owned()];
        assert!(load(&paths, &[], Settings::default(), &mut std::io::empty()).is_err());
    }
}
