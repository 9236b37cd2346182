//! Environment variables: what a container shall have, and how that compares with what it has.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::model::edit::{Edit, EnvSource, EnvVar, KeyRef, Op, Origin, Value};
use crate::model::pod::{self, Container};
use crate::model::pointer::Pointer;

/// A variable that a container shall have.
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
    /// Whether it is added only together with another variable.
    pub(super) companion: bool,
}

/// When an entry that is there says the same as what is wanted.
#[derive(Clone)]
enum Equality<'w> {
    /// The same literal, or the same key of the same object, just as optional.
    Exact,
    /// The same, or an empty literal.
    OrEmpty,
    /// The same key of the same object, optional or not.
    SameKey,
    /// A literal that the program in the container takes for the same.
    As(Rc<dyn Fn(&str) -> bool + 'w>),
}

impl<'w> Variable<'w> {
    /// A variable that an equal entry satisfies, and any other one contradicts.
    pub fn new(name: impl Into<Cow<'static, str>>, source: EnvSource, origin: Origin) -> Self {
        let name = name.into();
        Self { name, source, origin, equality: Equality::Exact, replaces: false, companion: false }
    }

    /// The same with a literal.
    pub fn literal(name: impl Into<Cow<'static, str>>, value: impl Into<String>, origin: Origin) -> Self {
        Self::new(name, EnvSource::Value(value.into()), origin)
    }

    /// An empty literal is as good.
    #[must_use]
    pub fn or_empty(self) -> Self {
        Self { equality: Equality::OrEmpty, ..self }
    }

    /// Of a reference, whether it is optional makes no difference.
    #[must_use]
    pub fn optional_or_not(self) -> Self {
        Self { equality: Equality::SameKey, ..self }
    }

    /// A literal is as good when this says so.
    #[must_use]
    pub fn read_as(self, equal: impl Fn(&str) -> bool + 'w) -> Self {
        Self { equality: Equality::As(Rc::new(equal)), ..self }
    }

    /// The variable is of use only beside others: alone it is not added.
    #[must_use]
    pub fn companion(self) -> Self {
        Self { companion: true, ..self }
    }

    /// Whether an entry says the same.
    #[must_use]
    pub fn equals(&self, entry: &pod::EnvVarView<'_>) -> bool {
        match (&self.source, entry.literal()) {
            (EnvSource::Value(wanted), Some(literal)) => match &self.equality {
                Equality::As(equal) => equal(literal),
                Equality::OrEmpty if literal.is_empty() => true,
                _ => literal == wanted,
            },
            (EnvSource::ValueFrom(wanted), None) => {
                let there = pod::read::<pod::ValueFromView<'_>>(entry.value_from);
                self.same_key(&wanted.secret_key_ref, there.and_then(|there| there.secret_key_ref))
            }
            (EnvSource::ConfigMap(wanted), None) => {
                let there = pod::read::<pod::ValueFromView<'_>>(entry.value_from);
                self.same_key(&wanted.config_map_key_ref, there.and_then(|there| there.config_map_key_ref))
            }
            _ => false,
        }
    }

    /// An absent `optional` means no.
    fn same_key(&self, wanted: &KeyRef, there: Option<pod::KeyRefView<'_>>) -> bool {
        there.is_some_and(|there| {
            there.name.as_deref() == Some(&wanted.name)
                && there.key.as_deref() == Some(&wanted.key)
                && (matches!(self.equality, Equality::SameKey)
                    || there.optional.unwrap_or(false) == wanted.optional.unwrap_or(false))
        })
    }

    pub(super) fn into_entry(self) -> (EnvVar, Origin) {
        (EnvVar { name: self.name, source: self.source }, self.origin)
    }
}

/// The entries of a container's `env` that can be about memory. Of several of one name the last counts,
/// as for the kubelet.
pub struct Existing<'p>(BTreeMap<&'p str, (usize, &'p pod::EnvVarView<'p>)>);

impl<'p> Existing<'p> {
    /// The entries whose names start with one of these; one look at each entry, however many there are.
    #[must_use]
    pub fn of(container: &'p Container<'p>, prefixes: &[&str]) -> Self {
        let entries = container.env.as_deref().unwrap_or_default().iter().enumerate();
        let ours = entries.filter_map(|(index, entry)| {
            let name = entry.name.as_deref()?;
            prefixes.iter().any(|prefix| name.starts_with(prefix)).then_some((name, (index, entry)))
        });
        Self(ours.collect())
    }

    /// The entry of this name, with its index.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<(usize, &'p pod::EnvVarView<'p>)> {
        self.0.get(name).copied()
    }
}

/// Where a block of variables goes in a container's `env`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before all others, so that these can refer to it and later duplicates win.
    Front,
    /// Behind all others, so that it can refer to them.
    End,
}

/// What a container lacks, and what it says otherwise.
pub(super) struct Comparison<'w> {
    /// Not there.
    pub(super) missing: Vec<Variable<'w>>,
    /// There with another value, at this index.
    pub(super) different: Vec<(usize, Variable<'w>)>,
}

pub(super) fn compare<'w>(existing: &Existing<'_>, wanted: Vec<Variable<'w>>) -> Comparison<'w> {
    let mut comparison = Comparison { missing: Vec::new(), different: Vec::new() };
    for variable in wanted {
        match existing.get(&variable.name) {
            None => comparison.missing.push(variable),
            Some((_, entry)) if variable.equals(entry) => {}
            Some((index, _)) => comparison.different.push((index, variable)),
        }
    }
    if comparison.missing.iter().all(|variable| variable.companion) {
        comparison.missing.clear();
    }
    comparison
}

/// The edits that insert a block of variables into the container of this index: one `add` each, or
/// one for the whole list where the container has none.
pub(super) fn insert(
    container: usize,
    existing: Option<&[pod::EnvVarView<'_>]>,
    block: impl IntoIterator<Item = (EnvVar, Origin)>,
    place: Place,
) -> Vec<Edit> {
    let list = list(container);
    let Some(existing) = existing else {
        let (variables, origins): (Vec<_>, Vec<_>) = block.into_iter().unzip();
        let whole = Edit { op: Op::Add, pointer: list, value: Value::EnvList(variables), origins };
        return if whole.origins.is_empty() { Vec::new() } else { vec![whole] };
    };
    let start = match place {
        Place::Front => 0,
        Place::End => existing.len(),
    };
    let add = |(index, (variable, origin))| Edit {
        op: Op::Add,
        pointer: list.index(index),
        value: Value::Env(variable),
        origins: vec![origin],
    };
    (start..).zip(block).map(add).collect()
}

/// The pointer to the `env` of the container of this index.
#[must_use]
pub fn list(container: usize) -> Pointer {
    Pointer::new(format!("/spec/containers/{container}/env"))
}

/// A text that the kubelet does not expand: it takes `$(NAME)` for a reference and `$$` for `$`.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::edit::ValueFrom;

    fn origin() -> Origin {
        Origin { resource: "".into(), field: "".into(), rule: "" }
    }

    fn equals(variable: &Variable<'_>, entry: &str) -> bool {
        variable.equals(&serde_json::from_str(entry).expect("an entry"))
    }

    #[test]
    fn takes_what_is_left_out_of_a_reference_for_its_default() {
        let key = |optional| KeyRef { name: "a".to_owned(), key: "k".into(), optional };
        let secret = |optional| EnvSource::ValueFrom(ValueFrom { secret_key_ref: key(optional) });
        let full =
            r#"{"valueFrom":{"secretKeyRef":{"name":"a","key":"k","optional":false},"fieldRef":null}}"#;
        let optional = r#"{"valueFrom":{"secretKeyRef":{"name":"a","key":"k","optional":true}}}"#;
        let plain = Variable::new("V", secret(None), origin());
        assert!(equals(&plain, full) && !equals(&plain, optional));
        assert!(equals(&Variable::new("V", secret(Some(true)), origin()), optional));
        assert!(equals(&plain.optional_or_not(), optional));
    }

    #[test]
    fn compares_literals_as_they_are_read() {
        let wanted = || Variable::literal("V", "8", origin());
        assert!(equals(&wanted(), r#"{"value":"8"}"#) && !equals(&wanted(), r#"{"value":""}"#));
        assert!(!equals(&wanted(), r#"{"value":"8","valueFrom":{}}"#));
        assert!(equals(&wanted().or_empty(), "{}"));
        assert!(equals(&wanted().read_as(|text| text.parse() == Ok(8)), r#"{"value":"08"}"#));
    }
}
