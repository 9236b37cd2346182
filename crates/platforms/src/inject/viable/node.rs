//! The nodes on which a pod may run: what memgate adds exists for Linux only, and its images not for every architecture.

use crate::prelude::*;
use memgate_model::schema::{Schema, schema};

use super::{Surroundings, at, elements, json};
use crate::inject::env;
use crate::inject::parts::init_containers_pointer;

/// A class of the programs that run containers: read for the nodes that it chooses, from files only.
pub(crate) static RUNTIME_CLASS: Kind =
    Kind::new(("node.k8s.io", "v1"), "RuntimeClass", "runtimeclasses", CLASS_SCHEMA).of_cluster();

const CLASS_SCHEMA: Schema = schema! { pruned {
    "metadata": pruned { "name": text, },
    "scheduling": pruned { "nodeSelector": texts, },
} };

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
        match at(&json(spec.os), "/name").as_str() {
            Some("windows") => return Some(Pointer::new("/spec/os/name")),
            Some("linux") => return None,
            _ => {}
        }
        if let Some(context) = self.windows_options() {
            return Some(context.key("securityContext").key("windowsOptions"));
        }
        let selector = json(spec.node_selector);
        if let Some(found) = system(|key| selector.get(key)?.as_str()) {
            return found.windows_by().map(node_selector);
        }
        let terms = terms(self.pod);
        let admits = |system| terms.iter().any(|term| admits(term, &SYSTEM, system));
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
            !at(&json(context), "/windowsOptions").is_null()
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
        let selector = json(self.pod.spec.as_ref()?.node_selector);
        if let Some(value) = selector.get(key).and_then(Json::as_str) {
            return (is_label_value(value) && !BUILT.contains(&value))
                .then(|| (node_selector(key), value.to_owned()));
        }
        let terms = terms(self.pod);
        if terms.is_empty() || terms.iter().any(|term| BUILT.iter().any(|it| admits(term, &ARCHITECTURE, it)))
        {
            return None;
        }
        let tests = terms.iter().flat_map(|term| tests(term, &ARCHITECTURE));
        let asked = tests.filter(|test| test["operator"] == "In");
        let mut named = asked.flat_map(|test| elements(&test["values"])).filter_map(Json::as_str);
        let named = named.find(|value| is_label_value(value));
        Some((Pointer::new(TERMS), named.unwrap_or("these nodes").to_owned()))
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

/// The required alternatives, without those that no node fits.
fn terms(pod: &Pod<'_>) -> Vec<Json> {
    let affinity = json(pod.spec.as_ref().and_then(|spec| spec.affinity));
    let terms =
        at(&affinity, "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    let asks = |term: &&Json| {
        ["/matchExpressions", "/matchFields"].into_iter().any(|list| !elements(at(term, list)).is_empty())
    };
    elements(terms).iter().filter(asks).cloned().collect()
}

/// What an alternative asks of the labels of these keys.
fn tests<'t>(term: &'t Json, keys: &[&str]) -> impl Iterator<Item = &'t Json> {
    let tests = elements(&term["matchExpressions"]).iter();
    tests.filter(|test| test["key"].as_str().is_some_and(|key| keys.contains(&key)))
}

/// Whether a node fits an alternative on which the labels of these keys have this value. Source: Kubernetes reference,
/// NodeSelectorRequirement.
fn admits(term: &Json, keys: &[&str], value: &str) -> bool {
    tests(term, keys).all(|test| {
        let is_listed = || elements(&test["values"]).iter().any(|listed| listed == value);
        match test["operator"].as_str() {
            Some("In") => is_listed(),
            Some("NotIn") => !is_listed(),
            Some("DoesNotExist" | "Gt" | "Lt") => false,
            _ => true,
        }
    })
}
