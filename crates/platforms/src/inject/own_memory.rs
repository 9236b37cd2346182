//! What the variables that a pod sets itself change in the views of its memory.
//!
//! Where the platforms are alike, each variable is one row; a family does the rest in its `view.rs`.

use super::own::{OwnReading, OwnVariable, OwnVariables, distinct};
use crate::endpoint_view;
use crate::prelude::*;

/// What a variable that a container sets itself changes: its name, the path in the view, and how its value is read.
pub(crate) type OwnRow = (&'static str, &'static str, Reads);

/// How the value of a variable is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reads {
    /// As it is.
    Text,
    /// As it is, or this where it is blank.
    TextOr(&'static str),
    /// A number of which 0 means "without limit", as does a negative one.
    Limit,
    /// Not at all: whatever it is, what it means is unknown.
    Nothing,
    /// As a credential, in place of the Secret that the memory names here.
    CredentialFor(&'static str),
}

/// How a family reads the variables of a memory that is reached at one address.
pub(crate) struct OwnRules<'r> {
    /// Puts what a container sets in the place of what its memory declares. Returns the variables that may name the
    /// endpoint.
    pub(crate) use_own:
        &'r dyn Fn(&mut MemoryView, OwnReading<'_>, &mut StateReader<'_>) -> &'static [&'static str],
    /// Whether the text of an endpoint contains a credential.
    pub(crate) has_credential: fn(&str) -> bool,
    /// Sets the other paths that the variable of this name, which holds the endpoint, decides.
    pub(crate) also: fn(&str, &OwnVariable, &mut MemoryView),
}

/// The view of a pod with at most one declared memory: that memory as the agent's container and each other one reads it.
pub(crate) fn view_of_pod(
    (family, namespace): (&'static str, &str),
    declared: Option<&MemoryView>,
    (own, others): (OwnVariables, &[OwnVariables]),
    rules: &OwnRules<'_>,
    state: &mut StateReader<'_>,
) -> MemoryView {
    let of_agent = own.readings().filter(|_| declared.is_some()).map(|reading| (&own, reading));
    let of_others = distinct(others, declared, state.budget());
    let mut sources = Vec::new();
    for (own, reading) in of_agent.chain(of_others) {
        let mut source = declared.cloned().unwrap_or_else(|| own.undeclared_view(family, namespace));
        let addresses = (rules.use_own)(&mut source, reading, state);
        sources.extend(reading.reached_at(source, addresses, rules, state));
    }
    let mut view = MemoryView::of_pod(family, namespace, sources);
    own.add_to(&mut view);
    view
}

/// Whether the URL of an endpoint contains a credential.
pub(crate) fn has_credential(text: &str) -> bool {
    inline_credential(text, Pointer::root()).is_some()
}

impl OwnReading<'_> {
    /// Puts what the container sets in the place of what its memory declares, row by row.
    pub(crate) fn set_rows(self, view: &mut MemoryView, rows: &[OwnRow]) {
        for (name, path, reads) in rows {
            if let Some(own) = self.get(name) {
                own.set_row(view, path, *reads);
            }
        }
    }

    /// The views of a memory that is reached at one of these variables, as the pod sets them: one for each that names an
    /// endpoint, since a program may use any of them.
    fn reached_at(
        self,
        view: MemoryView,
        names: &[&str],
        rules: &OwnRules<'_>,
        state: &mut StateReader<'_>,
    ) -> Vec<MemoryView> {
        let mut views = vec![view; names.len().max(1)];
        for (name, of_this) in names.iter().zip(&mut views) {
            if let Some(set) = self.get(name) {
                set.set_endpoint(of_this, "endpoint", rules.has_credential, state);
                (rules.also)(name, set, of_this);
            }
        }
        if views.iter().any(|view| view.endpoint.is_some()) {
            views.retain(|view| view.endpoint.is_some());
        }
        views
    }
}

impl OwnVariable {
    /// Makes it the value at a path of the view, which is unknown where it cannot be read.
    pub(crate) fn set_value<T: Into<ViewValue<'static>>>(
        &self,
        view: &mut MemoryView,
        path: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) {
        let value = self.text.as_deref().and_then(read);
        view.clear(&[path]);
        if value.is_none() {
            view.set_unknown(path, self.why());
        }
        view.put(path, &self.field, value);
    }

    /// Makes its place that of a path whose value it decides, and which is unknown if its text is.
    pub(crate) fn decide(&self, view: &mut MemoryView, path: &'static str) {
        view.at(path, &self.field);
        if self.text.is_none() {
            view.set_unknown(path, self.why());
        }
    }

    /// Makes it the endpoint at this path of the view.
    pub(crate) fn set_endpoint(
        &self,
        view: &mut MemoryView,
        path: &'static str,
        has_credential: fn(&str) -> bool,
        state: &mut StateReader<'_>,
    ) {
        view.at(path, &self.field);
        let endpoint = match &self.text {
            None => Some(EndpointView::unknown(self.from, self.why())),
            Some(text) if text.trim().is_empty() => None,
            Some(text) => Some(endpoint_view::parse(EndpointSource::Literal, text, &view.namespace, state)),
        };
        *view.endpoint_at_mut(path) = endpoint;
        let inline = self.text.as_ref().filter(|text| has_credential(text));
        view.inline.extend(inline.map(|text| InlineView::new(self.field.clone(), text)));
    }

    /// Makes it the value at a path, read in this way.
    pub(crate) fn set_row(&self, view: &mut MemoryView, path: &'static str, reads: Reads) {
        if let Some((parent, _)) = path.split_once('.') {
            view.set(parent, Some(ViewValue::Object));
        }
        match reads {
            Reads::Text => self.set_value(view, path, |text| Some(text.to_owned())),
            Reads::TextOr(default) => {
                let text = |text: &str| if text.trim().is_empty() { default } else { text }.to_owned();
                self.set_value(view, path, |it| Some(text(it)));
            }
            Reads::Limit => {
                self.set_value(view, path, |text| text.trim().parse().ok().map(|limit: i64| limit.max(0)));
            }
            Reads::Nothing => self.set_value(view, path, |_| None::<bool>),
            Reads::CredentialFor(secret) => {
                view.secrets.retain(|it| it.field.as_str() != secret);
                self.decide(view, path);
                let text = self.text.as_ref().filter(|text| !text.is_empty());
                view.inline.extend(text.map(|text| InlineView::new(self.field.clone(), text)));
            }
        }
    }
}
