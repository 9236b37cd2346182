//! The containers of a pod that serve memory, and the parts of an image name.
//!
//! A pod is looked at as it was sent and with memgate's additions. Other containers are skipped.

use crate::prelude::*;
use serde_json::Value;

use memgate_model::memory_view::ContainerView;
use memgate_model::platform_settings::quantity;
use memgate_model::pod;

/// The containers that serve memory or wait for it, whether memgate added them or not.
const MEMORY_CONTAINERS: [&str; 4] =
    ["memory-server", "skill-memory", "wait-for-memory", "wait-for-shared-memory"];

/// The registry of image names without a registry.
const DEFAULT_REGISTRY: &str = "docker.io";

/// The containers that memgate adds to a pod, and those of `MEMORY_CONTAINERS`, of the pod as it was sent and with the
/// additions.
pub fn containers([sent, stored]: [&Pod<'_>; 2]) -> Vec<ContainerView> {
    let mut known = Members::default();
    visit(sent, |_, _, container| known.extend(container.name.as_deref().map(str::to_owned)));
    let mut views = Vec::new();
    visit(stored, |list, index, container| {
        let Some(name) = container.name.as_deref() else { return };
        let added = !known.contains(name);
        if added || MEMORY_CONTAINERS.contains(&name) {
            let place = Path::Index(&Path::Key(&pod::SPEC, list), index).pointer();
            let image = pod::read::<Text<'_>>(container.image);
            views.push(ContainerView {
                init: list == INIT,
                native: list == INIT && container.is_native_sidecar(),
                added,
                limits: limits(container.resources),
                ..of_image(name, image.as_deref().unwrap_or_default(), place)
            });
        }
    });
    views
}

/// A container of which only the name and the image are known.
pub(crate) fn of_image(name: &str, image: &str, field: Pointer) -> ContainerView {
    let parts = ImageName::parse(image);
    ContainerView {
        name: name.to_owned(),
        image: image.to_owned(),
        repository: parts.repository,
        tag: parts.tag.map(str::to_owned),
        digest: parts.digest.map(str::to_owned),
        init: false,
        native: false,
        added: false,
        limits: BTreeMap::new(),
        field,
    }
}

/// The list of init containers.
const INIT: &str = "initContainers";

/// Calls `each` with every container that can be read, after its list and its index in it. The list of init containers is unread, so that one malformed
/// element does not hide the others.
fn visit(pod: &Pod<'_>, mut each: impl FnMut(&'static str, usize, &Container<'_>)) {
    for (index, container) in pod.containers().iter().enumerate() {
        each("containers", index, container);
    }
    let mut index = 0;
    pod::visit_elements(pod.spec.as_ref().and_then(|spec| spec.init_containers), |element: &RawValue| {
        if let Some(container) = pod::read(Some(element)) {
            each(INIT, index, &container);
        }
        index += 1;
    });
}

/// The limits as they are written, numbers included, since YAML also allows `cpu: 1`.
fn limits(resources: Option<&RawValue>) -> BTreeMap<String, String> {
    let resources: Value = resources.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let limits = resources.get("limits").and_then(Value::as_object).into_iter().flatten();
    limits.filter_map(|(name, value)| Some((name.clone(), quantity(value)?))).collect()
}

/// The parts of an image name.
/// Source: distribution/reference, `normalize.go`.
#[derive(Debug, PartialEq, Eq)]
struct ImageName<'i> {
    repository: String,
    tag: Option<&'i str>,
    digest: Option<&'i str>,
}

impl<'i> ImageName<'i> {
    fn parse(image: &'i str) -> Self {
        let (named, digest) = split_last(image, '@');
        // A colon before the last part belongs to the port of the registry.
        let last_part = named.rfind('/').map_or(0, |slash| slash + 1);
        let has_tag = named.rfind(':').is_some_and(|colon| colon > last_part);
        let (name, tag) = if has_tag { split_last(named, ':') } else { (named, None) };
        Self { repository: repository(name), tag, digest }
    }
}

/// The text before the last separator, and the text after it.
fn split_last(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.rsplit_once(separator) {
        Some((before, behind)) => (before, Some(behind).filter(|behind| !behind.is_empty())),
        None => (text, None),
    }
}

/// Registry and path, with the parts that a short name leaves out; empty for an empty name.
fn repository(name: &str) -> String {
    let (registry, path) = match name.split_once('/') {
        Some((first, rest)) if is_registry(first) => (first.to_ascii_lowercase(), rest),
        _ => (DEFAULT_REGISTRY.to_owned(), name),
    };
    match registry.as_str() {
        _ if name.is_empty() => String::new(),
        "docker.io" | "index.docker.io" if path.contains('/') => format!("{DEFAULT_REGISTRY}/{path}"),
        "docker.io" | "index.docker.io" => format!("{DEFAULT_REGISTRY}/library/{path}"),
        registry => format!("{registry}/{path}"),
    }
}

/// Whether the first part of a name is a registry. The first part of a repository has neither dots nor a port, and
/// repositories have no capital letters.
fn is_registry(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost" || first.bytes().any(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_of_images() {
        const DIGEST: &str = "sha256:4bcff63911fcb4448bd4fdacec207030997caf25e9bea4045fa6c8c44de311d1";
        let pinned = format!("registry.example:5000/mem/server:2.1@{DIGEST}");
        for (image, repository, tag, digest) in [
            ("busybox", "docker.io/library/busybox", None, None),
            ("busybox:1.36", "docker.io/library/busybox", Some("1.36"), None),
            ("a/b", "docker.io/a/b", None, None),
            ("a/b/c:x", "docker.io/a/b/c", Some("x"), None),
            ("docker.io/busybox", "docker.io/library/busybox", None, None),
            ("index.docker.io/a/b", "docker.io/a/b", None, None),
            ("ghcr.io/a/b:1", "ghcr.io/a/b", Some("1"), None),
            ("GHCR.io/a", "ghcr.io/a", None, None),
            ("Host/a", "host/a", None, None),
            ("localhost/a", "localhost/a", None, None),
            ("localhost:5000/a", "localhost:5000/a", None, None),
            ("localhost:5000", "docker.io/library/localhost", Some("5000"), None),
            ("busybox:", "docker.io/library/busybox", None, None),
            ("busybox@", "docker.io/library/busybox", None, None),
            (pinned.as_str(), "registry.example:5000/mem/server", Some("2.1"), Some(DIGEST)),
            ("", "", None, None),
            (":x", "docker.io/library/:x", None, None),
        ] {
            let expected = ImageName { repository: repository.to_owned(), tag, digest };
            assert_eq!(ImageName::parse(image), expected, "{image}");
        }
    }

    fn of_texts(after: &str, before: &str) -> Vec<ContainerView> {
        let [sent, stored] = [before, after].map(|text| Pod::parse(text).expect("a pod"));
        containers([&sent, &stored])
    }

    /// Names with their marks: where, `a` for added, `n` for a native sidecar.
    fn seen(after: &str, before: &str) -> Vec<String> {
        let mark = |is, mark| if is { mark } else { "" };
        let shown = |view: ContainerView| {
            let marks = [mark(view.added, "a"), mark(view.native, "n"), mark(view.init, "i")].concat();
            format!("{} {} {marks}", view.field.as_str(), view.name)
        };
        of_texts(after, before).into_iter().map(shown).collect()
    }

    #[test]
    fn sees_what_was_added_and_what_is_memory_by_its_name() {
        let before = r#"{"spec": {"containers": [{"name": "agent"}, {"name": "skill-memory"}]}}"#;
        let after = r#"{"spec": {
            "containers": [{"name": "agent"}, {"name": "skill-memory"}],
            "initContainers": [{"name": "memory-server", "restartPolicy": "Always"}, {"name": "new"}]
        }}"#;
        assert_eq!(
            seen(after, before),
            [
                "/spec/containers/1 skill-memory ",
                "/spec/initContainers/0 memory-server ani",
                "/spec/initContainers/1 new ai",
            ]
        );
        assert_eq!(seen(before, before), ["/spec/containers/1 skill-memory "]);
    }

    #[test]
    fn takes_limits_as_they_are_written() {
        let pod = r#"{"spec": {"containers": [{"name": "memory-server", "image": "a", "resources": {
            "requests": {"cpu": "1m"}, "limits": {"cpu": 1, "memory": "128Mi", "gpu": null, "x": [], "y": 0.5}
        }}]}}"#;
        let views = of_texts(pod, pod);
        let limits: Vec<_> = views[0].limits.iter().map(|(name, text)| format!("{name} {text}")).collect();
        assert_eq!(limits, ["cpu 1", "memory 128Mi", "y 0.5"]);
    }

    #[test]
    fn passes_over_what_has_another_form() {
        let pod = r#"{"spec": {"containers": [{}, {"name": null}], "initContainers": [
            null, 1, [], {"name": 1}, {}, {"name": null},
            {"name": "skill-memory", "image": 1, "resources": {"limits": []}}
        ]}}"#;
        assert_eq!(seen(pod, pod), ["/spec/initContainers/6 skill-memory i"]);
        assert_eq!(of_texts(pod, pod)[0].image, "");
        for odd in ["{}", r#"{"spec": null}"#, r#"{"spec": {"initContainers": {"name": "memory-server"}}}"#] {
            assert_eq!(seen(odd, odd), Vec::<String>::new(), "{odd}");
        }
    }

    #[test]
    fn reads_ten_thousand_containers() {
        let list: Vec<String> = (0..10_000).map(|index| format!(r#"{{"name": "c{index}"}}"#)).collect();
        let pod = format!(r#"{{"spec": {{"containers": [{}]}}}}"#, list.join(","));
        assert_eq!(of_texts(&pod, "{}").len(), 10_000);
        assert!(of_texts(&pod, &pod).is_empty());
    }
}
