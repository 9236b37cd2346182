//! The rows of a view: for each path its value or the reason why it is unknown, and its place in the object.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{ENDPOINTS, MemoryView, ViewValue, Why, qualified};
use crate::kind::Kind;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

/// What is known of one path. The values of the endpoint and of lists are in fields of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    path: &'static str,
    /// The value; `None` when it is absent. Beside a reason why it is unknown, what is known of it all the same.
    value: Option<ViewValue<'static>>,
    unknown: Option<Why>,
    /// The place in the object. The object may lack it.
    place: Option<Pointer>,
    remark: Option<Box<Remark>>,
    /// The other object that the value is read from.
    origin: Option<Box<Origin>>,
}

/// The field of another object that a value is read from. A place in the object itself only names that other one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The kind of that object.
    pub kind: &'static Kind,
    /// Its field.
    pub field: Pointer,
}

/// Where a value comes from that is not in the object itself. Messages about the value end in it; no rule decides by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The object that it comes from, if it has a name to show: kind, namespace and name.
    pub object: Option<(&'static str, String, String)>,
    /// The words, behind the object if there is one.
    pub words: &'static str,
}

impl MemoryView {
    fn row(&self, path: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.path == path)
    }

    /// Changes the row of a path, which is added if there is none.
    fn change(&mut self, path: &'static str, change: impl FnOnce(&mut Row)) {
        match self.rows.iter_mut().find(|row| row.path == path) {
            Some(row) => change(row),
            None => {
                let (value, unknown, place, remark, origin) = (None, None, None, None, None);
                let mut row = Row { path, value, unknown, place, remark, origin };
                change(&mut row);
                self.rows.push(row);
            }
        }
    }

    /// Sets the value at a path, or that there is none.
    pub fn set<T: Into<ViewValue<'static>>>(&mut self, path: &'static str, value: Option<T>) {
        self.change(path, |row| row.value = value.map(Into::into));
    }

    /// Sets the place of a path.
    pub fn at(&mut self, path: &'static str, place: impl Into<Pointer>) {
        let place = place.into();
        self.change(path, |row| row.place = Some(place));
    }

    /// Sets the place of a path and its value, or that there is none.
    pub fn put<T: Into<ViewValue<'static>>>(
        &mut self,
        path: &'static str,
        place: impl Into<Pointer>,
        value: Option<T>,
    ) {
        self.at(path, place);
        self.set(path, value);
    }

    /// Sets the places of several paths.
    pub fn at_all<const N: usize>(&mut self, places: [(&'static str, &'static str); N]) {
        for (path, place) in places {
            self.at(path, place);
        }
    }

    /// Notes that the value at a path is unknown. The first reason counts.
    pub fn set_unknown(&mut self, path: &'static str, why: Why) {
        self.change(path, |row| {
            row.unknown.get_or_insert(why);
        });
    }

    /// Notes that the values at these places of the object are unknown, since a later step fills them in.
    pub fn set_later(&mut self, places: &BTreeSet<Pointer>) {
        let is_later = |place: &Pointer| places.contains(place);
        for row in self.rows.iter_mut().filter(|row| row.place.as_ref().is_some_and(is_later)) {
            (row.value, row.unknown) = (None, Some(Why::FilledInLater));
        }
        for path in ENDPOINTS {
            let place = self.pointer(path);
            if let Some(endpoint) = self.endpoint_at_mut(path).as_mut().filter(|_| is_later(&place)) {
                endpoint.unknown = Some(Why::FilledInLater);
                // They would be parts of the placeholder.
                (endpoint.hosts, endpoint.path) = (Vec::new(), None);
            }
        }
        for reference in self.references.iter_mut().filter(|reference| is_later(&reference.field)) {
            reference.found = None;
        }
    }

    /// Notes where the value at a path comes from.
    pub fn set_remark(&mut self, path: &'static str, remark: Remark) {
        self.change(path, |row| row.remark = Some(Box::new(remark)));
    }

    /// Notes that the value at a path, with all parts of it, is read from this field of an object of another kind.
    pub fn set_origin(&mut self, path: &'static str, kind: &'static Kind, field: impl Into<Pointer>) {
        let field = field.into();
        self.change(path, |row| row.origin = Some(Box::new(Origin { kind, field })));
    }

    /// The kinds of the other objects that the value at a path, a part of it, or what it is a part of, is read from.
    pub fn origins<'v>(&'v self, path: &'v str) -> impl Iterator<Item = &'static Kind> + use<'v> {
        let is_part = |whole: &str, part: &str| {
            part.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let meets = move |known: &str| is_part(known, path) || is_part(path, known);
        let of_rows =
            self.rows.iter().filter(move |row| meets(row.path)).filter_map(|row| row.origin.as_deref());
        let of_lists = self.elements_with_origin().filter(move |(list, ..)| meets(list));
        of_rows.chain(of_lists.map(|(_, _, origin)| origin)).map(|origin| origin.kind)
    }

    /// Whether a value is read from an object of this kind.
    pub fn has_origin(&self, kind: &Kind) -> bool {
        let mut origins = self.rows.iter().filter_map(|row| row.origin.as_deref());
        origins.any(|origin| origin.kind == kind)
    }

    /// The kinds of the other objects from which the values at a place of this one are read.
    pub fn read_at<'v>(&'v self, place: &'v Pointer) -> impl Iterator<Item = &'static Kind> + use<'v> {
        let rows = self.rows.iter().filter_map(|row| Some((row, row.origin.as_deref()?)));
        let of_rows = rows.filter(|(row, _)| self.pointer(row.path) == *place).map(|(_, origin)| origin);
        let of_lists = self.elements_with_origin().filter(move |(_, field, _)| *field == place);
        of_rows.chain(of_lists.map(|(_, _, origin)| origin)).map(|origin| origin.kind)
    }

    /// The Secrets and credentials that are read from another object: their list, their place and their origin.
    fn elements_with_origin(&self) -> impl Iterator<Item = (&'static str, &Pointer, &Origin)> {
        let secrets = self.secrets.iter().map(|it| ("secrets", &it.field, it.origin.as_ref()));
        let inline = self.inline.iter().map(|it| ("inline", &it.field, it.origin.as_ref()));
        secrets.chain(inline).filter_map(|(list, field, origin)| Some((list, field, origin?)))
    }

    /// Puts the fields of an object of this kind in the place of those that name it. Returns these fields.
    pub fn place_in_origin(&mut self, kind: &Kind) -> BTreeSet<Pointer> {
        let mut fields = BTreeSet::new();
        let mut field_of = |origin: Option<&Origin>| {
            let field = origin.filter(|origin| origin.kind == kind)?.field.clone();
            fields.insert(field.clone());
            Some(field)
        };
        for row in &mut self.rows {
            if let Some(field) = field_of(row.origin.as_deref()) {
                row.place = Some(field);
            }
        }
        let secrets = self.secrets.iter_mut().map(|it| (&mut it.field, it.origin.as_ref()));
        let inline = self.inline.iter_mut().map(|it| (&mut it.field, it.origin.as_ref()));
        for (place, origin) in secrets.chain(inline) {
            if let Some(field) = field_of(origin) {
                *place = field;
            }
        }
        fields
    }

    /// Removes all that is known of some paths, besides their places.
    pub fn clear(&mut self, paths: &[&str]) {
        for row in self.rows.iter_mut().filter(|row| paths.contains(&row.path)) {
            (row.value, row.unknown, row.remark) = (None, None, None);
        }
    }

    /// The text at a path; of a quantity, as it is written.
    pub fn text(&self, path: &str) -> Option<&str> {
        match self.row(path)?.value.as_ref()? {
            ViewValue::Text(text) | ViewValue::Bytes(_, text) => Some(text),
            _ => None,
        }
    }

    /// The number at a path.
    pub fn integer(&self, path: &str) -> Option<i64> {
        if let Some(ViewValue::Integer(number)) = self.row(path)?.value { Some(number) } else { None }
    }

    /// Whether the value at a path is true.
    pub fn flag(&self, path: &str) -> Option<bool> {
        if let Some(ViewValue::Flag(flag)) = self.row(path)?.value { Some(flag) } else { None }
    }

    /// The value at a path that has a row.
    pub(super) fn held(&self, path: &str) -> Option<ViewValue<'_>> {
        Some(match self.row(path)?.value.as_ref()? {
            ViewValue::Text(text) => ViewValue::Text(Cow::Borrowed(text)),
            ViewValue::Bytes(bytes, text) => ViewValue::Bytes(*bytes, Cow::Borrowed(text)),
            other => other.clone(),
        })
    }

    /// Whether an object like this has a place for the path.
    pub fn has_place(&self, path: &str) -> bool {
        self.row(path).is_some_and(|row| row.place.is_some())
    }

    /// The place of a path, or of its nearest parent with a place, else the whole spec. The object may lack it.
    pub fn pointer(&self, path: &str) -> Pointer {
        let mut here = path;
        loop {
            if let Some(place) = self.row(here).and_then(|row| row.place.as_ref()) {
                return place.clone();
            }
            match (here.rsplit_once('.'), here) {
                (Some((parent, _)), _) => here = parent,
                (None, "name" | "namespace" | "labels" | "annotations") => {
                    return Pointer::new("/metadata").key(here);
                }
                (None, "kind") => return Pointer::new("/kind"),
                (None, "family" | "role") => return Pointer::root(),
                (None, _) => return Pointer::new("/spec"),
            }
        }
    }

    /// The paths whose value is unknown, each with the reason. Those of the endpoint are in the endpoint.
    pub fn unknown(&self) -> impl Iterator<Item = (&'static str, &Why)> {
        self.rows.iter().filter_map(|row| Some((row.path, row.unknown.as_ref()?)))
    }

    /// Why the value at a path, or all that it is part of, is unknown; `None` for a known or absent one.
    pub fn unknown_at(&self, path: &str) -> Option<&Why> {
        let covers = |unknown: &str| {
            path.strip_prefix(unknown).is_some_and(|below| below.is_empty() || below.starts_with('.'))
        };
        self.unknown().find(|(unknown, _)| covers(unknown)).map(|(_, why)| why)
    }

    /// The paths whose value comes from elsewhere.
    pub fn remarked(&self) -> impl Iterator<Item = &'static str> {
        self.rows.iter().filter(|row| row.remark.is_some()).map(|row| row.path)
    }

    /// Where the value at a path comes from, for a reader of this namespace: ` (WORDS)`, or nothing.
    pub fn remark(&self, path: &str, reader: &str) -> String {
        let Some(Remark { object, words }) = self.row(path).and_then(|row| row.remark.as_deref()) else {
            return String::new();
        };
        match object {
            None => format!(" ({words})"),
            Some((kind, namespace, _)) if namespace != reader => format!(" ({kind} \"…\" {words})"),
            Some((kind, namespace, name)) => {
                format!(" ({kind} {} {words})", quoted(&qualified(namespace, name)))
            }
        }
    }
}
