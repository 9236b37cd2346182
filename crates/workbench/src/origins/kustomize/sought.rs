//! What is sought: a field of a rendered object, as steps that lead to it in other texts about that object too.

use serde_json::Value;

use memgate_primitives::pointer::{Pointer, list_index};

/// The fields that identify an element of a list, in part or all together.
const IDENTITY: [&str; 10] =
    ["name", "containerPort", "mountPath", "devicePath", "port", "key", "ip", "topologyKey", "uid", "id"];

/// A field, and its value.
#[derive(Debug, Clone)]
pub(super) struct Sought<'v> {
    pub(super) steps: Vec<Step<'v>>,
    /// The value in the rendered object; `None` if it does not have the field.
    pub(super) value: Option<&'v Value>,
    /// Whether the value may be a part of that in the text, or the other way round.
    pub(super) is_part: bool,
    /// Whether a replacement copies it, which makes a number of one in quotes.
    pub(super) is_copied: bool,
}

/// A step on the way to a field.
#[derive(Debug, Clone)]
pub(super) enum Step<'v> {
    /// A key of an object, or an index.
    Key(String),
    /// An element of a rendered list.
    Element(&'v [Value], usize),
    /// The element of a list that has a key with this value: `[name=a]` for kustomize.
    With(String, String),
}

/// What a field is to the path of an operation.
pub(super) enum Behind<'s, 'v> {
    /// That of the path, or one below it by these steps.
    Field(&'s [Step<'v>]),
    /// The object or list in which that of the path is.
    Parent,
}

/// How far steps lead in a text.
pub(super) struct Reached<'t> {
    /// The pointer of all steps, of which the last ones may lead to nothing.
    pub(super) pointer: Pointer,
    /// The number of steps that lead to something.
    pub(super) depth: usize,
    /// The value, if all of them do.
    pub(super) value: Option<&'t Value>,
}

impl<'v> Sought<'v> {
    /// A field of a rendered object.
    pub(super) fn of(object: &'v Value, pointer: &Pointer) -> Self {
        let (mut steps, mut here) = (Vec::new(), Some(object));
        for token in pointer.tokens() {
            let index = list_index(&token);
            match (here, index) {
                (Some(Value::Array(list)), Some(index)) if index < list.len() => {
                    steps.push(Step::Element(list, index));
                    here = list.get(index);
                }
                _ => {
                    here = here.and_then(|value| value.get(&*token));
                    steps.push(Step::Key(token.into_owned()));
                }
            }
        }
        Self { steps, value: here, is_part: false, is_copied: false }
    }

    /// What it is to an operation of a JSON patch with this path, which may set a value there.
    pub(super) fn behind(&self, path: &Pointer, set: Option<&Value>) -> Option<Behind<'_, 'v>> {
        let tokens: Vec<_> = path.tokens().collect();
        let last = tokens.len().checked_sub(1)?;
        let mut pairs = tokens.iter().zip(&self.steps).enumerate();
        if last > self.steps.len()
            || !pairs.all(|(at, (token, step))| step.is_in_operation(token, set.filter(|_| at == last)))
        {
            return None;
        }
        Some(self.steps.get(tokens.len()..).map_or(Behind::Parent, Behind::Field))
    }

    /// The field that kustomize writes as `spec.containers.[name=a].image`, with a value.
    pub(super) fn at_path(path: &str, value: Option<&'v Value>, is_part: bool) -> Self {
        let steps = field_path(path).into_iter().map(Step::of_path).collect();
        Self { steps, value, is_part, is_copied: true }
    }
}

impl Step<'_> {
    fn of_path(token: String) -> Self {
        let inner = token.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        match inner.and_then(|inner| inner.split_once('=')) {
            Some((key, value)) => Self::With(key.to_owned(), value.to_owned()),
            None => Self::Key(token),
        }
    }

    /// The token of the same step in a text.
    fn in_text(&self, value: &Value) -> Option<String> {
        let Value::Array(list) = value else {
            let Self::Key(key) = self else { return None };
            return value.get(key).map(|_| key.clone());
        };
        let index = match self {
            Self::Key(index) => list_index(index).filter(|index| *index < list.len()),
            Self::With(key, wanted) => list.iter().position(|it| has(it, key, wanted)),
            Self::Element(rendered, index) => element(rendered, *index, list),
        };
        index.map(|index| index.to_string())
    }

    /// What it leads to in a text, with its token there.
    pub(super) fn within<'t>(&self, value: &'t Value) -> Option<(String, &'t Value)> {
        let token = self.in_text(value)?;
        let below = match value {
            Value::Array(list) => list.get(list_index(&token)?),
            value => value.get(&token),
        };
        Some((token, below?))
    }

    /// The key, if it is one.
    pub(super) fn key(&self) -> &str {
        if let Self::Key(key) = self { key } else { "" }
    }

    /// The token of the step if it leads to nothing.
    fn token(&self) -> String {
        match self {
            Self::Key(key) => key.clone(),
            Self::Element(_, index) => index.to_string(),
            Self::With(..) => "-".to_owned(),
        }
    }

    /// Whether a token of a path of kustomize is this step.
    pub(super) fn is_in_path(&self, token: &str) -> bool {
        match (self, Step::of_path(token.to_owned())) {
            (_, Step::Key(key)) if key == "*" => true,
            (Self::Element(list, index), Step::With(key, wanted)) => {
                list.get(*index).is_some_and(|it| has(it, &key, &wanted))
            }
            (Self::Element(list, index), Step::Key(key)) => {
                list_index(&key) == Some(*index) || key == "-" && index + 1 == list.len()
            }
            (Self::Key(own), Step::Key(key)) => *own == key,
            _ => false,
        }
    }

    /// Whether a token of the path of a JSON patch is this step; as the last one of a path, that of an element that `set` is.
    pub(super) fn is_in_operation(&self, token: &str, set: Option<&Value>) -> bool {
        match self {
            Self::Key(key) => key == token,
            Self::Element(list, index) => {
                let is_set = || set.is_some() && list.get(*index) == set;
                token == index.to_string() || token == "-" && set.is_none() || is_set()
            }
            Self::With(key, wanted) => set.is_some_and(|set| has(set, key, wanted)),
        }
    }
}

/// Walks the steps in a text.
pub(super) fn walk<'t>(text: &'t Value, at: &Pointer, steps: &[Step<'_>]) -> Reached<'t> {
    let (mut pointer, mut here, mut depth) = (at.clone(), Some(text), 0);
    for step in steps {
        let found = here.and_then(|value| step.within(value));
        depth += usize::from(found.is_some());
        pointer = pointer.key(&found.as_ref().map_or_else(|| step.token(), |(token, _)| token.clone()));
        here = found.map(|(_, below)| below);
    }
    Reached { pointer, depth, value: here }
}

/// The tokens of a path of kustomize: dots part them, except in brackets and behind a backslash.
pub(super) fn field_path(path: &str) -> Vec<String> {
    let (mut tokens, mut token, mut is_escaped, mut is_bracketed) = (Vec::new(), String::new(), false, false);
    for c in path.chars() {
        match c {
            _ if is_escaped => token.push(c),
            '\\' => {}
            '.' if !is_bracketed => tokens.push(std::mem::take(&mut token)),
            _ => token.push(c),
        }
        is_bracketed = match c {
            '[' => true,
            ']' => false,
            _ => is_bracketed,
        };
        is_escaped = c == '\\' && !is_escaped;
    }
    tokens.push(token);
    tokens
}

fn has(value: &Value, key: &str, wanted: &str) -> bool {
    let Some(own) = value.get(key) else { return false };
    own.as_str().map_or_else(|| own.to_string(), str::to_owned) == wanted
}

/// The element of a list in a text that became the one of a rendered list: that of the same identity, and among several
/// the one of the same number; else the one at the same place.
fn element(rendered: &[Value], index: usize, list: &[Value]) -> Option<usize> {
    let own = rendered.get(index)?;
    let is_same = |other: &&Value| is_one(own, other);
    let number = rendered.get(..index)?.iter().filter(is_same).count();
    let mut alike = list.iter().enumerate().filter(|(_, it)| is_one(own, it)).map(|(index, _)| index);
    let first = alike.next();
    let same = first.map(|first| if number == 0 { first } else { alike.nth(number - 1).unwrap_or(first) });
    let is_here = || rendered.len() == list.len() || !has_identity(own) && index < list.len();
    same.or_else(|| is_here().then_some(index))
}

/// Whether two elements of lists are about the same.
fn is_one(one: &Value, other: &Value) -> bool {
    if !has_identity(one) || !has_identity(other) {
        return one == other;
    }
    let pairs = IDENTITY.iter().filter_map(|key| Some((one.get(key)?, other.get(key)?)));
    let mut common = pairs.peekable();
    common.peek().is_some() && common.all(|(one, other)| one == other)
}

fn has_identity(value: &Value) -> bool {
    IDENTITY.iter().any(|key| value.get(key).is_some())
}
