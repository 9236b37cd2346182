//! Environment variables: compares the wanted variables with those of a container.

use crate::prelude::*;
use std::rc::Rc;

use memgate_model::edit::{EnvVar, Value};
use memgate_model::pod;

/// A variable that a container should have.
#[derive(Clone)]
pub struct Variable<'w> {
    /// The name.
    pub name: Cow<'static, str>,
    /// The literal or the reference.
    pub source: EnvSource,
    /// Where it comes from.
    pub origin: Origin,
    equality: Equality<'w>,
    /// Whether an entry with another value is replaced rather than kept.
    pub replaces: bool,
    /// Whether it is added only together with other variables.
    pub(super) only_with_others: bool,
    /// Whether it says where memory is reached.
    pub(super) is_address: bool,
}

/// When an existing entry counts as equal to the wanted one.
#[derive(Clone)]
enum Equality<'w> {
    /// The same literal, or the same key of the same object with the same `optional`.
    Exact,
    /// The same key of the same object, optional or not.
    IgnoringOptional,
    /// A literal that satisfies this predicate: the program in the container reads it as the same value.
    If(Rc<dyn Fn(&str) -> bool + 'w>),
}

impl<'w> Variable<'w> {
    /// A variable that only an exactly equal entry satisfies.
    pub fn new(name: impl Into<Cow<'static, str>>, source: EnvSource, origin: Origin) -> Self {
        let (name, equality) = (name.into(), Equality::Exact);
        Self { name, source, origin, equality, replaces: false, only_with_others: false, is_address: false }
    }

    /// A variable with a literal value.
    pub fn literal(name: impl Into<Cow<'static, str>>, value: impl Into<String>, origin: Origin) -> Self {
        Self::new(name, EnvSource::Value(value.into()), origin)
    }

    /// Accepts a reference whether it is optional or not.
    pub(crate) fn ignoring_optional(self) -> Self {
        Self { equality: Equality::IgnoringOptional, ..self }
    }

    /// Accepts the literals for which `equal` returns true.
    pub(crate) fn equal_if(self, equal: impl Fn(&str) -> bool + 'w) -> Self {
        Self { equality: Equality::If(Rc::new(equal)), ..self }
    }

    /// Adds the variable only together with others.
    pub(crate) fn only_with_others(self) -> Self {
        Self { only_with_others: true, ..self }
    }

    /// Marks a variable that says where memory is reached: the pod must find its hosts.
    pub(crate) fn address(self) -> Self {
        Self { is_address: true, ..self }
    }

    /// Its value, if that is known.
    pub(crate) fn literal_value(&self) -> Option<&str> {
        if let EnvSource::Value(text) = &self.source { Some(text) } else { None }
    }

    /// Whether an existing entry satisfies this variable.
    pub(crate) fn equals(&self, entry: &pod::EnvVarView<'_>) -> bool {
        match (&self.source, entry.literal()) {
            (EnvSource::Value(wanted), Some(literal)) => match &self.equality {
                Equality::If(equal) => equal(literal),
                _ => literal == wanted,
            },
            (EnvSource::Secret(wanted), None) => self.is_same_key(wanted, entry.reference().secret_key_ref),
            (EnvSource::ConfigMap(wanted), None) => {
                self.is_same_key(wanted, entry.reference().config_map_key_ref)
            }
            _ => false,
        }
    }

    /// Whether its value comes from a Secret.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self.source, EnvSource::Secret(_))
    }

    /// An absent `optional` means false.
    fn is_same_key(&self, wanted: &KeyRef, there: Option<pod::KeyRefView<'_>>) -> bool {
        there.is_some_and(|there| {
            there.name.as_deref() == Some(&wanted.name)
                && there.key.as_deref() == Some(&wanted.key)
                && (matches!(self.equality, Equality::IgnoringOptional)
                    || there.optional.unwrap_or(false) == wanted.optional.unwrap_or(false))
        })
    }

    pub(super) fn into_entry(self) -> (EnvVar, Origin) {
        (EnvVar { name: self.name, source: self.source }, self.origin)
    }
}

/// The entries of a container's `env` that can concern memory. The last of several entries with one name
/// counts, as for the kubelet.
pub struct ExistingEnv<'p> {
    of_memory: Entries<'p>,
    /// Those that name proxies, and the hosts without one.
    pub(super) proxies: Entries<'p>,
}

/// Entries by name, with their index.
type Entries<'p> = BTreeMap<&'p str, (usize, &'p pod::EnvVarView<'p>)>;

impl<'p> ExistingEnv<'p> {
    /// Reads the entries whose names start with one of these prefixes, in one pass.
    pub fn read(container: &'p Container<'p>, prefixes: &[&str]) -> Self {
        let mut read = Self { of_memory: Entries::new(), proxies: Entries::new() };
        for (index, entry) in container.env.iter().flatten().enumerate() {
            let Some(name) = entry.name.as_deref() else { continue };
            // Most names differ in the first byte.
            let first = name.as_bytes().first();
            if prefixes.iter().any(|it| it.as_bytes().first() == first && name.starts_with(it)) {
                read.of_memory.insert(name, (index, entry));
            } else if name.ends_with("_PROXY") || name.ends_with("_proxy") {
                read.proxies.insert(name, (index, entry));
            }
        }
        read
    }

    /// Whether no entry can concern memory.
    pub(crate) fn is_empty(&self) -> bool {
        self.of_memory.is_empty()
    }

    /// The entries by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'p str, &'p pod::EnvVarView<'p>)> {
        self.of_memory.iter().map(|(name, (_, entry))| (*name, *entry))
    }

    /// The entry of this name, with its index.
    pub(crate) fn get(&self, name: &str) -> Option<(usize, &'p pod::EnvVarView<'p>)> {
        self.of_memory.get(name).copied()
    }
}

/// Where a block of variables is inserted into a container's `env`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Before all others, so that they can refer to it and later duplicates win.
    Front,
    /// After all others, so that it can refer to them.
    End,
}

/// The difference between the wanted variables and those of a container.
pub(super) struct Comparison<'w> {
    /// Variables that the container lacks.
    pub(super) missing: Vec<Variable<'w>>,
    /// Variables that the container sets to another value, at this index.
    pub(super) different: Vec<(usize, Variable<'w>)>,
}

pub(super) fn compare<'w>(existing: &ExistingEnv<'_>, wanted: Cow<'_, [Variable<'w>]>) -> Comparison<'w> {
    let differs = |variable: &Variable<'_>| {
        existing.get(&variable.name).is_none_or(|(_, entry)| !variable.equals(entry))
    };
    // Several containers may share the wanted variables, so only the differing ones are copied.
    let open: Vec<Variable<'w>> = match wanted {
        Cow::Owned(wanted) => wanted.into_iter().filter(differs).collect(),
        Cow::Borrowed(wanted) => wanted.iter().filter(|variable| differs(variable)).cloned().collect(),
    };
    let mut comparison = Comparison { missing: Vec::new(), different: Vec::new() };
    for variable in open {
        match existing.get(&variable.name) {
            None => comparison.missing.push(variable),
            Some((index, _)) => comparison.different.push((index, variable)),
        }
    }
    if comparison.missing.iter().all(|variable| variable.only_with_others) {
        comparison.missing.clear();
    }
    comparison
}

/// The edits that insert a block of variables into the container of this index: one `add` each, or
/// one for the whole list where the container has none.
pub(super) fn insert(
    index: usize,
    existing: Option<&[pod::EnvVarView<'_>]>,
    block: impl IntoIterator<Item = (EnvVar, Origin)>,
    position: Position,
) -> Vec<Edit> {
    let list = pointer(index);
    let Some(existing) = existing else {
        let (variables, origins): (Vec<_>, Vec<_>) = block.into_iter().unzip();
        let whole = Edit { op: Op::Add, pointer: list, value: Value::EnvList(variables), origins };
        return if whole.origins.is_empty() { Vec::new() } else { vec![whole] };
    };
    let start = match position {
        Position::Front => 0,
        Position::End => existing.len(),
    };
    let add = |(at, (variable, origin))| Edit::add(list.index(at), Value::Env(variable), origin);
    (start..).zip(block).map(add).collect()
}

/// The pointer to the container of this index.
pub(crate) fn container(index: usize) -> Pointer {
    Pointer::new("/spec/containers").index(index)
}

/// The pointer to the `env` of the container of this index.
pub(crate) fn pointer(index: usize) -> Pointer {
    container(index).key("env")
}

/// Escapes a text so that the kubelet does not expand it: the kubelet replaces `$(NAME)` by the value of a
/// variable and `$$` by `$`.
pub(crate) fn escape_references(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> Origin {
        Origin { resource: "".into(), field: "".into(), rule: "" }
    }

    fn equals(variable: &Variable<'_>, entry: &str) -> bool {
        variable.equals(&memgate_model::view::read(entry).expect("an entry"))
    }

    #[test]
    fn takes_what_is_left_out_of_a_reference_for_its_default() {
        let key = |optional| KeyRef { name: "a".to_owned(), key: "k".into(), optional };
        let secret = |optional| EnvSource::Secret(key(optional));
        let full =
            r#"{"valueFrom":{"secretKeyRef":{"name":"a","key":"k","optional":false},"fieldRef":null}}"#;
        let optional = r#"{"valueFrom":{"secretKeyRef":{"name":"a","key":"k","optional":true}}}"#;
        let plain = Variable::new("V", secret(None), origin());
        assert!(equals(&plain, full) && !equals(&plain, optional));
        assert!(equals(&Variable::new("V", secret(Some(true)), origin()), optional));
        assert!(equals(&plain.ignoring_optional(), optional));
    }

    #[test]
    fn compares_literals_as_they_are_read() {
        let wanted = || Variable::literal("V", "8", origin());
        assert!(equals(&wanted(), r#"{"value":"8"}"#) && !equals(&wanted(), r#"{"value":""}"#));
        assert!(!equals(&wanted(), r#"{"value":"8","valueFrom":{}}"#));
        assert!(equals(&wanted().equal_if(|text| text.parse() == Ok(8)), r#"{"value":"08"}"#));
    }
}
