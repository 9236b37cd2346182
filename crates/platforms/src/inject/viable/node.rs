//! The nodes on which a pod may run: what memgate adds exists for Linux only, and its images not for every architecture.

use crate::prelude::*;
use memgate_model::pod::{NamedView, read};
use memgate_model::schema::{Schema, schema};
use memgate_model::view::{Text, Texts, view};
use serde_json::value::RawValue;

use super::Surroundings;
use crate::inject::env;
use crate::inject::parts::init_containers_pointer;

/// A class of the programs that run containers: read for the nodes that it chooses, from files only.
pub(crate) static RUNTIME_CLASS: Kind =
    Kind::new(("node.k8s.io", "v1"), "RuntimeClass", "runtimeclasses", CLASS_SCHEMA).of_cluster();

const CLASS_SCHEMA: Schema = schema! { pruned {
    "metadata": pruned { "name": text, },
    "scheduling": pruned { "nodeSelector": texts, },
} };

view! {
    /// What chooses nodes, beside labels.
    Affinity {
        /// By their labels.
        nodes: NodeAffinity<'a> = "nodeAffinity",
    }

    /// The nodes of a pod.
    NodeAffinity {
        /// Those without which it does not run.
        required: NodeTerms<'a> = "requiredDuringSchedulingIgnoredDuringExecution",
    }

    /// Alternatives, of which a node fits one.
    NodeTerms {
        /// All of them.
        terms: Vec<NodeTerm<'a>> = "nodeSelectorTerms",
    }

    /// What a node must have.
    NodeTerm {
        /// All of its labels.
        labels: Vec<LabelTest<'a>> = "matchExpressions",
        /// All of its fields, unread.
        fields: &'a RawValue = "matchFields",
    }

    /// What is asked of one label.
    LabelTest {
        /// Its key.
        key: Text<'a> = "key",
        /// The question.
        operator: Text<'a> = "operator",
        /// The values that it is about.
        values: Vec<Text<'a>> = "values",
    }

    /// The security context of a pod or a container.
    Options {
        /// Its options for Windows.
        windows: &'a RawValue = "windowsOptions",
    }
}

/// The labels with the system of a node. Source: Kubernetes reference, well-known labels.
const SYSTEM: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];

/// The label that only nodes of Windows have. Source: the same.
const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";

/// The label with the architecture of a node. Source: the same.
const ARCHITECTURE: [&str; 1] = ["kubernetes.io/arch"];

/// The architectures for which upstream builds its memory server.
const BUILT: [&str; 2] = ["amd64", "arm64"];

const TERMS: &str =
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

impl Surroundings<'_> {
    /// The field that makes the pod one of Windows: the first that names a system decides.
    pub(crate) fn windows(&self) -> Option<Pointer> {
        let spec = self.pod.spec.as_ref()?;
        let os = read::<NamedView<'_>>(spec.os).and_then(|os| os.name);
        match os.as_deref() {
            Some("windows") => return Some(Pointer::new("/spec/os/name")),
            Some("linux") => return None,
            _ => {}
        }
        if let Some(context) = self.windows_options() {
            return Some(context.key("securityContext").key("windowsOptions"));
        }
        let selector = selector(self.pod);
        if let Some(found) = system(|key| selector.as_ref()?.get(key)) {
            return found.windows_by().map(node_selector);
        }
        let terms = terms(self.pod);
        let admits = |system| terms.iter().any(|term| term.admits(&SYSTEM, system));
        if !terms.is_empty() && !admits("windows") {
            return None;
        }
        if !terms.is_empty() && !admits("linux") {
            return Some(Pointer::new(TERMS));
        }
        let class = self.runtime_class?.tree().at(&["scheduling", "nodeSelector"])?;
        system(|key| class.entry(key))?.windows_by().map(|_| Pointer::new("/spec/runtimeClassName"))
    }

    /// The pod or the container with options for Windows.
    fn windows_options(&self) -> Option<Pointer> {
        fn has(context: Option<&RawValue>) -> bool {
            read::<Options<'_>>(context).is_some_and(|options| options.windows.is_some())
        }
        let of = |containers: &[Container<'_>]| containers.iter().position(|it| has(it.security_context));
        let inits = || of(self.parts.init_containers());
        if has(self.pod.spec.as_ref()?.security_context) {
            return Some(Pointer::new("/spec"));
        }
        let container = of(self.pod.containers()).map(env::container);
        container.or_else(|| Some(init_containers_pointer().index(inits()?)))
    }

    /// The field by which the pod runs only on nodes for which upstream's memory server may not be built, with the
    /// architecture.
    pub(crate) fn other_architecture(&self) -> Option<(Pointer, String)> {
        let [key] = ARCHITECTURE;
        if let Some(value) = selector(self.pod).as_ref().and_then(|selector| selector.get(key)) {
            return (is_label_value(value) && !BUILT.contains(&value))
                .then(|| (node_selector(key), value.to_owned()));
        }
        let terms = terms(self.pod);
        if terms.is_empty() || terms.iter().any(|term| BUILT.iter().any(|it| term.admits(&ARCHITECTURE, it)))
        {
            return None;
        }
        let tests = terms.iter().flat_map(|term| term.labels.iter().flatten());
        let asked = tests.filter(|test| test.is_of(&ARCHITECTURE) && test.operator.as_deref() == Some("In"));
        let mut named = asked.flat_map(|test| test.values.iter().flatten());
        let named = named.find(|value| is_label_value(value));
        let named = named.map_or_else(|| "these nodes".to_owned(), |value| value.to_string());
        Some((Pointer::new(TERMS), named))
    }
}

/// The system that labels choose.
enum System {
    /// Windows, by this label.
    Windows(&'static str),
    Other,
}

impl System {
    fn windows_by(self) -> Option<&'static str> {
        if let Self::Windows(key) = self { Some(key) } else { None }
    }
}

/// The system that labels choose, if they name one.
fn system<'t>(label: impl Fn(&str) -> Option<&'t str>) -> Option<System> {
    let named = SYSTEM.into_iter().find_map(|key| Some((key, label(key)?)));
    match named {
        Some((key, "windows")) => Some(System::Windows(key)),
        Some(_) => Some(System::Other),
        None => label(WINDOWS_BUILD).map(|_| System::Windows(WINDOWS_BUILD)),
    }
}

/// Whether a label may have this value.
fn is_label_value(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn node_selector(key: &str) -> Pointer {
    Pointer::new("/spec/nodeSelector").key(key)
}

fn selector<'p>(pod: &Pod<'p>) -> Option<Texts<'p>> {
    read(pod.spec.as_ref()?.node_selector)
}

/// The required alternatives, without those that no node fits.
fn terms<'p>(pod: &Pod<'p>) -> Vec<NodeTerm<'p>> {
    let affinity = pod.spec.as_ref().and_then(|spec| read::<Affinity<'_>>(spec.affinity));
    let terms = affinity.and_then(|affinity| affinity.nodes?.required?.terms);
    terms.unwrap_or_default().into_iter().filter(|term| !term.is_empty()).collect()
}

impl NodeTerm<'_> {
    fn is_empty(&self) -> bool {
        self.labels.as_ref().is_none_or(Vec::is_empty)
            && self.fields.is_none_or(|fields| fields.get() == "[]")
    }

    /// Whether a node fits on which the labels of these keys have this value.
    fn admits(&self, keys: &[&str], value: &str) -> bool {
        self.labels.iter().flatten().filter(|test| test.is_of(keys)).all(|test| test.admits(value))
    }
}

impl LabelTest<'_> {
    fn is_of(&self, keys: &[&str]) -> bool {
        self.key.as_deref().is_some_and(|key| keys.contains(&key))
    }

    /// Whether a label with this value passes. Source: Kubernetes reference, NodeSelectorRequirement.
    fn admits(&self, value: &str) -> bool {
        let is_listed = || self.values.iter().flatten().any(|listed| **listed == *value);
        match self.operator.as_deref() {
            Some("In") => is_listed(),
            Some("NotIn") => !is_listed(),
            Some("DoesNotExist" | "Gt" | "Lt") => false,
            _ => true,
        }
    }
}
