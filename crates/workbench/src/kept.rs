//! What an editor keeps of the files around the open ones: all that was made of them at the last load.
//!
//! ```text
//! plan ──load──▶ the other files, read and added ──settle──▶ Others ──(copy, open texts behind them)──▶ Inputs
//! plan again: the same Kept ─────────────────────────────────▶ Others
//! ```
//!
//! A copy is cheap, since copies share all parts that are large. Objects are added in any order with the same outcome, unless
//! they have one name, or change what is made of others; the inputs are loaded as a whole then.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::exclude::Exclude;
use crate::inputs::Inputs;
use crate::notices::Notices;

/// What was last loaded for one directory. It holds until the editor begins another one: when other files
/// are open, or one has changed on disk.
#[derive(Debug, Clone, Default)]
pub struct Kept(Rc<RefCell<Option<Rc<Base>>>>);

/// What was read once.
#[derive(Debug)]
pub(crate) struct Base {
    /// What is left out, with what it has left out.
    pub(crate) exclude: Arc<Exclude>,
    /// `None` if it depends on the texts of the open files what the others are.
    pub(crate) others: Option<Others>,
}

/// What was made of the files that are not open.
#[derive(Debug)]
pub(crate) struct Others {
    inputs: Inputs,
    pub(crate) notices: Notices,
    /// The open files among the inputs, in their order.
    pub(crate) open: Vec<String>,
}

impl Kept {
    /// What is kept, which is loaded if nothing is.
    pub(crate) fn get_or_load<E>(&self, load: impl FnOnce() -> Result<Base, E>) -> Result<Rc<Base>, E> {
        if let Some(base) = &*self.0.borrow() {
            return Ok(Rc::clone(base));
        }
        let base = Rc::new(load()?);
        *self.0.borrow_mut() = Some(Rc::clone(&base));
        Ok(base)
    }
}

impl Others {
    /// Keeps the inputs of the files that are not open, of which no error is shown, to be copied.
    pub(crate) fn new(mut inputs: Inputs, notices: Notices, open: Vec<String>) -> Self {
        inputs.places.settle();
        Self { inputs, notices: notices.settled(), open }
    }

    /// A copy of the inputs.
    pub(crate) fn inputs(&self) -> Inputs {
        let Inputs { empty, skipped, .. } = &self.inputs;
        Inputs { empty: empty.clone(), skipped: skipped.clone(), state_paths: Vec::new(), ..self.inputs.given() }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::place::report;
    use crate::plan::{OpenFile, Plan};
    use crate::run::{Run, judged_without_ignored};
    use memgate_model::request::{Occasion, Point};

    const MEMORY: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: team-a}\n\
                          spec: {backend: redis, redis: {secretRef: {name: keys}, ttlSeconds: 5}}\n";
    const AGENT: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: team-a}\n\
                         spec: {model: m, systemPrompt: p, memoryRef: {name: notes}}\n";
    const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: team-a}\n\
                          stringData: {url: redis://r, team: b}\n";
    const SEALED: &str =
        "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: keys, namespace: team-a}\n";
    const OTHER_SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: others, namespace: team-a}\n";
    const NAMESPACE: &str =
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a, labels: {memgate.dev/inject: disabled}}\n";
    const POLICY: &str = "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: short}\n\
                          spec: {rules: [{code: short, severity: warn, ttl: {max: 1s}}]}\n";
    const EXEMPTION: &str = "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicyExemption\n\
                             metadata: {name: late, namespace: team-a}\nspec: {policy: short, reason: r}\n";
    const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
         metadata: {name: arkmemories.arkonis.dev}\nspec: {group: arkonis.dev, names: {kind: ArkMemory}, versions: \
         [{name: v1alpha1, served: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}]}\n";
    const KUSTOMIZATION: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
         metadata: {name: all, namespace: flux}\nspec: {path: ./, sourceRef: {kind: GitRepository, name: g}, \
         targetNamespace: team-b, postBuild: {substituteFrom: [{kind: ConfigMap, name: values}]}}\n";
    const VALUES: &str =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values, namespace: flux}\ndata: {memory: notes}\n";
    const VARIABLE: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: late, namespace: team-a}\n\
                            spec: {model: m, systemPrompt: p, memoryRef: {name: \"${memory}\"}}\n";
    const LATE_NAME: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: \"${memory}\", namespace: team-a}\n\
                             spec: {backend: in-context}\n";
    const RELEASE: &str = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n\
         metadata: {name: r, namespace: team-a}\nspec: {chart: {spec: {chart: c}}}\n";
    const APPLICATION: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a, namespace: argocd}\n\
         spec: {source: {repoURL: 'https://h.example/r', path: elsewhere}, destination: {namespace: team-a}}\n";
    const GENERATED: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {generateName: notes-, namespace: team-a}\n\
                             spec: {backend: in-context}\n";
    const NO_NAME: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: 1, namespace: team-a}\nspec: {}\n";
    const UNREADABLE: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: no, namespace: team-a}\n";
    const BROKEN: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: [\n";
    const TEMPLATE: &str = "{{ if .Values.a }}\na: {{ b }}: c\n{{ end }}\n";
    const NEXT_LINE: &str = "apiVersion: kubeswarm.io/v1alpha1\nkind: SwarmMemory\nmetadata: {name: n, namespace: team-a}\n\
                             spec: {backend: in-context}\n";
    const ALL: [&str; 21] = [
        MEMORY, AGENT, SECRET, SEALED, OTHER_SECRET, NAMESPACE, POLICY, EXEMPTION, DEFINITION, KUSTOMIZATION,
        VALUES, VARIABLE, LATE_NAME, RELEASE, APPLICATION, GENERATED, NO_NAME, UNREADABLE, BROKEN, TEMPLATE,
        NEXT_LINE,
    ];

    /// What an editor shows of the open files of a directory.
    fn shown(root: &Path, open: &[(&str, &str)], kept: Option<&Kept>) -> String {
        let open = open.iter().map(|(name, text)| OpenFile {
            path: root.join(name),
            text: Some((*text).into()),
            is_checked_outside: false,
            is_judged: true,
        });
        let plan = Plan {
            checked: vec![root.to_string_lossy().into_owned(), "-".to_owned()],
            open: open.collect(),
            kept: kept.cloned(),
            checks_only_open: true,
            ..Plan::default()
        };
        let names: Vec<_> = plan.open.iter().map(|it| it.path.to_string_lossy().into_owned()).collect();
        let run = Run { plan, occasion: Occasion::new(Point::Ci, jiff::Timestamp::UNIX_EPOCH) };
        let checked = judged_without_ignored(&run).expect("is judged");
        let (report, mut shown) = (report(&checked), String::new());
        for error in &report.errors {
            let _infallible = writeln!(shown, "{}", error.line);
        }
        for located in report.causes().filter(|it| names.iter().any(|name| name == it.location.file)) {
            let (finding, at) = (located.finding, &located.location);
            let related: Vec<_> = located
                .related
                .iter()
                .map(|it| format!("{}:{} {}", it.location.file, it.location.line, it.label))
                .collect();
            let _infallible = writeln!(
                shown,
                "{}:{}:{} {:?} {} {} {related:?}",
                at.file,
                at.line,
                at.column,
                finding.severity,
                finding.code_name(),
                finding.message()
            );
        }
        shown.replace(&*root.to_string_lossy(), "")
    }

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }

    /// Whatever is in the open file and in the other ones, before and behind it.
    #[test]
    fn what_is_kept_changes_nothing_that_is_shown() {
        let mut different = 0;
        for (number, other) in ALL.iter().enumerate() {
            let root = tempfile::tempdir().expect("a directory");
            let root = root.path();
            let next = ALL[(number + 1) % ALL.len()];
            write(root, "a.yaml", other);
            write(root, "b.yaml", "");
            write(root, "c.yaml", next);
            write(
                root,
                "d/kustomization.yaml",
                "resources: [d.yaml, ../b.yaml]\npatches: [{path: p.yaml}, {patch: \"{\"}]\n",
            );
            write(root, "d/d.yaml", ALL[(number + 7) % ALL.len()]);
            write(root, "d/p.yaml", ALL[(number + 3) % ALL.len()]);
            let kept = Kept::default();
            for text in ALL {
                let open = [("b.yaml", text)];
                let (expected, found) = (shown(root, &open, None), shown(root, &open, Some(&kept)));
                assert_eq!(found, expected, "{other}---\n{next}---\n{text}");
                different += usize::from(!found.is_empty());
            }
        }
        assert!(different > ALL.len(), "{different}");
    }

    #[test]
    fn others_are_read_once() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        write(root, "a.yaml", MEMORY);
        write(root, "b.yaml", "");
        let kept = Kept::default();
        let base = |text: &str| {
            let found = shown(root, &[("b.yaml", text)], Some(&kept));
            (found, kept.0.borrow().as_ref().map(Rc::clone))
        };
        let (found, first) = base(AGENT);
        let first = first.expect("is kept");
        assert_eq!(found, "");
        for text in [AGENT, POLICY, MEMORY, BROKEN, AGENT] {
            assert!(base(text).1.is_some_and(|it| Rc::ptr_eq(&it, &first)), "{text}");
        }
    }
}
