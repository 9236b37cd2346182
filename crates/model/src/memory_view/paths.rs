//! The paths of views: their types, the roles whose objects have them, and how each is read.
//!
//! `memgate view` prints these paths in this order, and rules of policies name them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter;

use serde_json::{Value, json};

use self::Holds::{Flag, Integer, List, Map, Object, Quantity, Text, Texts};
use super::element::Element;
use super::{
    ContainerView, EndpointView, HostView, MemoryView, ReferenceView, Role, SecretView, SharingConfigView,
    SharingView, Why, below_endpoint,
};
use memgate_primitives::pointer::Pointer;

/// One path of views.
#[derive(Debug, Clone, Copy)]
pub struct ViewPath {
    /// The path. `[]` stands for each element of a list.
    pub path: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// The roles whose objects have it in their own view.
    pub own: &'static [Role],
    /// The roles whose objects have it in the views of the memory that they use.
    pub by_sources: &'static [Role],
    read: Read,
}

/// The type of the value at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A text.
    Text,
    /// An integer.
    Integer,
    /// A quantity, as an integer of bytes.
    Quantity,
    /// `true` or `false`.
    Flag,
    /// A list of texts.
    Texts,
    /// A list of objects.
    List,
    /// A map from text to text.
    Map,
    /// An object with paths of its own.
    Object,
}

/// A value of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewValue<'v> {
    /// A text.
    Text(Cow<'v, str>),
    /// An integer.
    Integer(i64),
    /// A number of bytes, with the quantity as it is written.
    Bytes(i128, Cow<'v, str>),
    /// `true` or `false`.
    Flag(bool),
    /// A map from text to text.
    Map(&'v BTreeMap<String, String>),
    /// A list, whose elements have paths of their own.
    List,
    /// An object, whose fields have paths of their own.
    Object,
    /// The views of memory resources.
    Views(&'v MemoryView),
}

/// The value at a path, of the view itself or of one element of a list.
#[derive(Debug)]
pub struct ViewPart<'v> {
    /// The value; `None` when it is absent.
    pub value: Option<ViewValue<'v>>,
    /// The element of a list.
    pub element: Option<&'v dyn Element>,
}

type ReadOne = for<'v> fn(&'v MemoryView) -> Option<ViewValue<'v>>;
type ReadEach = for<'v> fn(&'v MemoryView) -> Vec<ViewPart<'v>>;
type ReadEndpoint = for<'v> fn(&'v EndpointView) -> Option<ViewValue<'v>>;
type ReadHost = for<'v> fn(&'v EndpointView, &'v HostView) -> Option<ViewValue<'v>>;

#[derive(Debug, Clone, Copy)]
enum Read {
    /// From the row of the path.
    Row,
    One(ReadOne),
    Each(ReadEach),
    /// Of the endpoint that the path begins with.
    Endpoint(ReadEndpoint),
    /// Of each host of it; JSON has the first.
    Host(ReadHost),
    /// The namespace in the platform's own sense; the path is the platform's.
    OwnNamespace,
}

/// The roles of objects that have a path in their own view, and of those that have it by the memory that they use.
type Whose = (&'static [Role], &'static [Role]);

const EVERY: Whose = (&Role::ALL, &[]);
const OF_MEMORY: Whose = (&[Role::Memory], &[Role::Referrer, Role::Pod]);
const OF_CLAIMS: Whose = (&[Role::Memory, Role::Referrer], &[Role::Pod]);
const OF_BOTH: Whose = (&[Role::Memory, Role::Referrer], &[Role::Referrer, Role::Pod]);
const OF_USED: Whose = (&[Role::Memory], &[Role::Referrer]);
const OF_REFERRERS: Whose = (&[Role::Referrer], &[]);
const OF_CONTAINERS: Whose = (&[Role::Memory, Role::Pod], &[]);
/// Not for rules.
const OF_NONE: Whose = (&[], &[]);

const fn row(path: &'static str, holds: Holds, (own, by_sources): Whose, read: Read) -> ViewPath {
    ViewPath { path, holds, own, by_sources, read }
}

const fn held(path: &'static str, holds: Holds, whose: Whose) -> ViewPath {
    row(path, holds, whose, Read::Row)
}

const fn one(path: &'static str, holds: Holds, whose: Whose, read: ReadOne) -> ViewPath {
    row(path, holds, whose, Read::One(read))
}

const fn each(path: &'static str, holds: Holds, whose: Whose, read: ReadEach) -> ViewPath {
    row(path, holds, whose, Read::Each(read))
}

const fn endpoint(path: &'static str, holds: Holds, read: ReadEndpoint) -> ViewPath {
    row(path, holds, OF_MEMORY, Read::Endpoint(read))
}

const fn host(path: &'static str, holds: Holds, read: ReadHost) -> ViewPath {
    row(path, holds, OF_MEMORY, Read::Host(read))
}

const fn own_namespace(path: &'static str) -> ViewPath {
    row(path, Text, EVERY, Read::OwnNamespace)
}

/// The path of the number of agents that use a memory. No family makes it: it is counted where a rule reads it.
pub const USERS: &str = "users";

/// The paths of the views of every platform.
static PATHS: [ViewPath; 80] = [
    one("family", Text, EVERY, |view| text(view.family)),
    one("role", Text, EVERY, |view| text(view.role.name())),
    one("kind", Text, EVERY, |view| text(view.kind)),
    one("name", Text, EVERY, |view| text(&view.name)),
    one("namespace", Text, EVERY, |view| text(&view.namespace)),
    one("labels", Map, EVERY, |view| Some(ViewValue::Map(&view.labels))),
    one("annotations", Map, EVERY, |view| Some(ViewValue::Map(&view.annotations))),
    held("backend", Text, OF_MEMORY),
    held("durable", Flag, OF_MEMORY),
    held("provider", Text, OF_MEMORY),
    endpoint("endpoint", Object, is_there),
    endpoint("endpoint.from", Text, |endpoint| text(endpoint.from.name())),
    host("endpoint.url", Text, url),
    endpoint("endpoint.scheme", Text, |endpoint| opt(endpoint.scheme.as_ref())),
    host("endpoint.host", Text, |_, host| Some(ViewValue::Text((&*host.host).into()))),
    host("endpoint.port", Integer, |_, host| Some(ViewValue::Integer(host.port?.into()))),
    endpoint("endpoint.path", Text, |endpoint| opt(endpoint.path.as_ref())),
    endpoint("endpoint.tls", Flag, tls),
    host("endpoint.loopback", Flag, |_, host| flag(host.loopback)),
    host("endpoint.private", Flag, |_, host| flag(host.private)),
    host("endpoint.linkLocal", Flag, |_, host| flag(host.link_local)),
    host("endpoint.inCluster", Flag, |_, host| flag(host.in_cluster)),
    held("ttlSeconds", Integer, OF_BOTH),
    held("maxEntries", Integer, OF_MEMORY),
    held(USERS, Integer, OF_USED),
    held("storageBytes", Quantity, OF_MEMORY),
    held("storageClass", Text, OF_MEMORY),
    held("workspace", Object, OF_MEMORY),
    held("workspace.durable", Flag, OF_MEMORY),
    held("workspace.ttlSeconds", Integer, OF_MEMORY),
    held("workspace.storageBytes", Quantity, OF_MEMORY),
    held("workspace.storageClass", Text, OF_MEMORY),
    held("embedding", Object, OF_MEMORY),
    held("embedding.model", Text, OF_MEMORY),
    held("embedding.provider", Text, OF_MEMORY),
    endpoint("embedding.endpoint", Object, is_there),
    endpoint("embedding.endpoint.from", Text, |endpoint| text(endpoint.from.name())),
    host("embedding.endpoint.url", Text, url),
    endpoint("embedding.endpoint.scheme", Text, |endpoint| opt(endpoint.scheme.as_ref())),
    host("embedding.endpoint.host", Text, |_, host| Some(ViewValue::Text((&*host.host).into()))),
    host("embedding.endpoint.port", Integer, |_, host| Some(ViewValue::Integer(host.port?.into()))),
    endpoint("embedding.endpoint.path", Text, |endpoint| opt(endpoint.path.as_ref())),
    endpoint("embedding.endpoint.tls", Flag, tls),
    host("embedding.endpoint.loopback", Flag, |_, host| flag(host.loopback)),
    host("embedding.endpoint.private", Flag, |_, host| flag(host.private)),
    host("embedding.endpoint.linkLocal", Flag, |_, host| flag(host.link_local)),
    host("embedding.endpoint.inCluster", Flag, |_, host| flag(host.in_cluster)),
    held("collection", Text, OF_MEMORY),
    one("secrets", List, OF_CLAIMS, |view| list(&view.secrets)),
    each("secrets[].name", Text, OF_CLAIMS, |view| secrets(view, |it| text(&it.name))),
    each("secrets[].namespace", Text, OF_CLAIMS, |view| secrets(view, |it| text(&it.namespace))),
    each("secrets[].key", Text, OF_CLAIMS, |view| secrets(view, |it| opt(it.key.as_ref()))),
    each("secrets[].field", Text, OF_CLAIMS, |view| secrets(view, |it| text(it.field.as_str()))),
    one("inline", List, OF_CLAIMS, |view| list(&view.inline)),
    each("inline[].field", Text, OF_CLAIMS, |view| parts(&view.inline, |it| text(it.field.as_str()))),
    one("references", List, OF_CLAIMS, |view| list(&view.references)),
    each("references[].kind", Text, OF_CLAIMS, |view| references(view, |it| text(it.kind))),
    each("references[].namespace", Text, OF_CLAIMS, |view| references(view, |it| text(&it.namespace))),
    each("references[].name", Text, OF_CLAIMS, |view| references(view, |it| text(&it.name))),
    each("references[].field", Text, OF_CLAIMS, |view| references(view, |it| text(it.field.as_str()))),
    each("references[].found", Flag, OF_CLAIMS, |view| references(view, |it| it.found.map(ViewValue::Flag))),
    one("operations", Texts, OF_REFERRERS, |view| view.operations.as_ref().map(|_| ViewValue::List)),
    each("operations[]", Text, OF_REFERRERS, |view| {
        parts(view.operations.as_deref().unwrap_or_default(), |it| text(&it.name))
    }),
    one("sharing", Object, OF_MEMORY, |view| view.sharing.as_ref().map(|_| ViewValue::Object)),
    one("sharing.configs", List, OF_MEMORY, |view| view.sharing.as_ref().map(|_| ViewValue::List)),
    each("sharing.configs[].name", Text, OF_MEMORY, |view| configs(view, |it| text(&it.name))),
    each("sharing.configs[].access", Text, OF_MEMORY, |view| configs(view, |it| opt(it.access.as_ref()))),
    each("sharing.configs[].visibility", Text, OF_MEMORY, |view| {
        configs(view, |it| opt(it.visibility.as_ref()))
    }),
    one("sources", List, OF_NONE, |view| list(&view.sources)),
    each("sources[]", Object, OF_NONE, |view| parts(&view.sources, |it| Some(ViewValue::Views(&it.view)))),
    one("containers", List, OF_CONTAINERS, |view| list(&view.containers)),
    each("containers[].name", Text, OF_CONTAINERS, |view| containers(view, |it| text(&it.name))),
    each("containers[].image", Text, OF_CONTAINERS, |view| containers(view, |it| text(&it.image))),
    each("containers[].repository", Text, OF_CONTAINERS, |view| containers(view, |it| text(&it.repository))),
    each("containers[].tag", Text, OF_CONTAINERS, |view| containers(view, |it| opt(it.tag.as_ref()))),
    each("containers[].digest", Text, OF_CONTAINERS, |view| containers(view, |it| opt(it.digest.as_ref()))),
    each("containers[].init", Flag, OF_CONTAINERS, |view| containers(view, |it| flag(it.init))),
    each("containers[].native", Flag, OF_CONTAINERS, |view| containers(view, |it| flag(it.native))),
    each("containers[].added", Flag, OF_CONTAINERS, |view| containers(view, |it| flag(it.added))),
    each("containers[].limits", Map, OF_CONTAINERS, |view| {
        containers(view, |it| Some(ViewValue::Map(&it.limits)))
    }),
];

/// How many configurations write. It is not in the view, and rules count it.
const WRITERS: ViewPath = each("sharing.writers", Integer, OF_MEMORY, |view| {
    let writes = |config: &&SharingConfigView| config.access.as_deref() != Some("read-only");
    let count = |sharing: &SharingView| {
        let count = sharing.configs.iter().filter(writes).count();
        i64::try_from(count).ok().map(ViewValue::Integer)
    };
    view.sharing.iter().map(|it| ViewPart { value: count(it), element: Some(it) }).collect()
});

#[expect(clippy::unnecessary_wraps, reason = "a cell of the table")]
const fn is_there(_endpoint: &EndpointView) -> Option<ViewValue<'_>> {
    Some(ViewValue::Object)
}

fn url<'v>(endpoint: &'v EndpointView, host: &'v HostView) -> Option<ViewValue<'v>> {
    Some(ViewValue::Text(endpoint.url(host)?.into()))
}

fn tls(endpoint: &EndpointView) -> Option<ViewValue<'_>> {
    flag(endpoint.tls.filter(|_| endpoint.unknown.is_none())?)
}

fn text(text: &str) -> Option<ViewValue<'_>> {
    (!text.is_empty()).then_some(ViewValue::Text(text.into()))
}

/// A text that may be empty.
fn opt(text: Option<&String>) -> Option<ViewValue<'_>> {
    text.map(|text| ViewValue::Text(text.as_str().into()))
}

#[expect(clippy::unnecessary_wraps, reason = "a cell of the table")]
const fn flag<'v>(flag: bool) -> Option<ViewValue<'v>> {
    Some(ViewValue::Flag(flag))
}

/// A list that is absent when it is empty.
fn list<'v, T>(elements: &[T]) -> Option<ViewValue<'v>> {
    (!elements.is_empty()).then_some(ViewValue::List)
}

fn parts<'v, T: Element>(
    elements: &'v [T],
    read: impl Fn(&'v T) -> Option<ViewValue<'v>>,
) -> Vec<ViewPart<'v>> {
    elements.iter().map(|it| ViewPart { value: read(it), element: Some(it) }).collect()
}

fn secrets(view: &MemoryView, read: fn(&SecretView) -> Option<ViewValue<'_>>) -> Vec<ViewPart<'_>> {
    parts(&view.secrets, read)
}

fn references(view: &MemoryView, read: fn(&ReferenceView) -> Option<ViewValue<'_>>) -> Vec<ViewPart<'_>> {
    parts(&view.references, read)
}

fn configs(view: &MemoryView, read: fn(&SharingConfigView) -> Option<ViewValue<'_>>) -> Vec<ViewPart<'_>> {
    let configs = view.sharing.as_ref().map(|sharing| sharing.configs.as_slice());
    parts(configs.unwrap_or_default(), read)
}

fn containers(view: &MemoryView, read: fn(&ContainerView) -> Option<ViewValue<'_>>) -> Vec<ViewPart<'_>> {
    parts(&view.containers, read)
}

impl ViewPath {
    /// The paths that rules can name; `own_namespaces` are the platforms' paths of their own namespaces.
    pub fn all(own_namespaces: impl IntoIterator<Item = &'static str>) -> Vec<Self> {
        let own = own_namespaces.into_iter().map(own_namespace);
        PATHS.iter().copied().filter(|row| !row.own.is_empty()).chain(own).collect()
    }

    /// The path of this name, which the views of all platforms have.
    pub fn known(path: &'static str) -> Self {
        let row = PATHS.iter().chain([&WRITERS]).find(|row| row.path == path);
        row.copied().unwrap_or(Self { path, ..WRITERS })
    }

    /// The same path in the object's own view only.
    #[must_use]
    pub const fn own_only(self) -> Self {
        Self { by_sources: &[], ..self }
    }

    /// Whether every view has this path, whatever its platform and role.
    pub fn is_of_every_object(path: &str) -> bool {
        PATHS.iter().any(|row| row.path == path && row.own.len() == Role::ALL.len())
    }

    /// Whether the path leads to elements of a list or into them.
    pub const fn is_each(&self) -> bool {
        matches!(self.read, Read::Each(_))
    }

    /// Whether a view may hold several values at the path: of the elements of a list, or of the hosts of an endpoint.
    pub const fn holds_several(&self) -> bool {
        matches!(self.read, Read::Each(_) | Read::Host(_))
    }

    /// The values at the path: one of the view, or one for each element of a list or host of an endpoint. Each is made
    /// when it is asked for: the URL of every host has the whole path, which may be long.
    pub fn parts<'v>(&self, view: &'v MemoryView) -> Box<dyn Iterator<Item = ViewPart<'v>> + 'v> {
        let alone = |value| ViewPart { value, element: None };
        match self.read {
            Read::Row => Box::new(iter::once(alone(view.held(self.path)))),
            Read::One(read) => Box::new(iter::once(alone(read(view)))),
            Read::Each(read) => Box::new(read(view).into_iter()),
            Read::Endpoint(read) => Box::new(iter::once(alone(view.endpoint_at(self.path).and_then(read)))),
            Read::Host(read) => {
                let of = move |endpoint: &'v EndpointView| {
                    endpoint.hosts.iter().map(move |host| alone(read(endpoint, host)))
                };
                Box::new(view.endpoint_at(self.path).into_iter().flat_map(of))
            }
            Read::OwnNamespace => {
                let own = view.own_namespace.as_ref().filter(|(path, _)| *path == self.path);
                Box::new(iter::once(alone(own.and_then(|(_, own)| text(own)))))
            }
        }
    }

    /// The place of an element, or of the part of it that the path names.
    pub fn place(&self, element: &dyn Element) -> Pointer {
        let (_, below) = self.path.rsplit_once("[].").unwrap_or_default();
        let element = element.field_of(below);
        match below {
            "image" | "repository" | "tag" | "digest" => element.key("image"),
            "limits" => element.key("resources").key(below),
            _ => element.clone(),
        }
    }

    /// Adds the values at the path to an object.
    fn write(&self, view: &MemoryView, object: &mut serde_json::Map<String, Value>) {
        let is_unknown = view.endpoint_at(self.path).is_some_and(|endpoint| endpoint.unknown.is_some());
        // Of a host that is read in two ways the text is shown, and nothing else is known.
        let most = match self.read {
            Read::Host(_) => usize::from(!is_unknown || below_endpoint(self.path) == Some(".host")),
            _ => usize::MAX,
        };
        let parts: Vec<ViewPart<'_>> = self.parts(view).take(most).collect();
        let (list, below) = self.path.split_once("[]").unwrap_or((self.path, ""));
        let mut keys = list.split('.');
        let key = keys.next_back().unwrap_or_default();
        let Some(parent) = keys.try_fold(object, |here, parent| here.get_mut(parent)?.as_object_mut()) else {
            return;
        };
        if !self.is_each() {
            let values = parts.into_iter().filter_map(|part| part.value);
            parent.extend(values.map(|value| (key.to_owned(), value.to_json())));
            return;
        }
        let Some(Value::Array(elements)) = parent.get_mut(key) else { return };
        if elements.is_empty() {
            elements.resize_with(parts.len(), || json!({}));
        }
        for (element, value) in elements.iter_mut().zip(parts.into_iter().map(|part| part.value)) {
            match (below.strip_prefix('.'), value) {
                (None, Some(value)) => *element = value.to_json(),
                (Some(key), Some(value)) => element[key] = value.to_json(),
                (_, None) => {}
            }
        }
    }
}

impl From<bool> for ViewValue<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i64> for ViewValue<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for ViewValue<'_> {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for ViewValue<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl ViewValue<'_> {
    /// The value as JSON, lists and objects without their content.
    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Integer(number) => json!(number),
            // A number of bytes that does not fit counts as the largest.
            Self::Bytes(bytes, _) => {
                json!(i64::try_from(*bytes).unwrap_or(if *bytes < 0 { i64::MIN } else { i64::MAX }))
            }
            Self::Flag(flag) => json!(flag),
            Self::Map(map) => json!(map),
            Self::List => json!([]),
            Self::Object => json!({}),
            // The state does not keep the annotations of other objects.
            Self::Views(view) => view.json_where(|path| path != "annotations"),
        }
    }
}

impl MemoryView {
    /// The whole view, without absent fields.
    pub fn to_json(&self) -> Value {
        self.json_where(|_| true)
    }

    /// The value at a path such as `endpoint.host`; `None` when it is absent.
    pub fn value(&self, path: &str) -> Option<Value> {
        let (top, _) = path.split_once('.').unwrap_or((path, ""));
        let whole = self.json_where(|row| {
            row == path
                || row
                    .strip_prefix(top)
                    .is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
        });
        path.split('.').try_fold(whole, |mut value, key| value.get_mut(key).map(Value::take))
    }

    /// Whether it has a value at a path, or an element on the way.
    pub fn has_value(&self, path: &str) -> bool {
        let path = path.split_once('[').map_or(path, |(list, _)| list);
        let own = self.own_namespace.iter().map(|(path, _)| own_namespace(path));
        let row = PATHS.iter().copied().chain(own).find(|row| row.path == path);
        row.is_some_and(|row| row.parts(self).any(|part| part.value.is_some()))
    }

    fn json_where(&self, is_wanted: impl Fn(&str) -> bool) -> Value {
        let mut object = serde_json::Map::new();
        for row in &PATHS {
            if is_wanted(row.path) {
                row.write(self, &mut object);
            }
            if let Some((path, _)) = self.own_namespace.as_ref().filter(|_| row.path == "namespace")
                && is_wanted(path)
            {
                own_namespace(path).write(self, &mut object);
            }
        }
        Value::Object(object)
    }

    /// Why the value at a path cannot be known, though there is one.
    pub fn why_unknown(&self, path: &str) -> Option<Why> {
        let (list, _) = path.split_once("[]").unwrap_or((path, ""));
        if let Some(why) = self.unknown_at(path).or_else(|| self.unknown_at(list)) {
            return Some(why.clone());
        }
        let below = below_endpoint(path).filter(|below| *below != ".from")?;
        let endpoint = self.endpoint_at(path)?;
        let of_port = || endpoint.port_unknown.clone().filter(|_| matches!(below, "" | ".port" | ".url"));
        endpoint.unknown.clone().or_else(of_port)
    }
}
