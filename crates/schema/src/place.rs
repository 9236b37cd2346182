//! Where a check stands in an object, what it looks at there and what the stored object has in its place.

use std::cell::Cell;

use crate::cursor::Cursor;
use crate::equal::same;
use memgate_primitives::pointer::{push_escaped, push_index};

/// A value on the way from the root down, as a chain on the stack.
pub(super) struct Place<'p, 'd> {
    above: Option<&'p Self>,
    step: Step<'d>,
    /// The value.
    pub(super) value: Cursor<'d>,
    /// What the stored object has there.
    pub(super) old: Option<Cursor<'d>>,
    /// Whether both are the same, once that was asked.
    is_same: Cell<Option<bool>>,
    /// The entry among the ways, once there is one.
    way: Cell<Option<u32>>,
}

/// The last step of a way.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'d> {
    /// None: the whole object.
    Root,
    /// To a field.
    Key(&'d str),
    /// To an element.
    Index(usize),
}

impl<'p, 'd> Place<'p, 'd> {
    /// The whole object.
    pub(super) const fn root(value: Cursor<'d>, old: Option<Cursor<'d>>) -> Self {
        Self { above: None, step: Step::Root, value, old, is_same: Cell::new(None), way: Cell::new(None) }
    }

    /// A place below.
    pub(super) const fn below(&'p self, step: Step<'d>, value: Cursor<'d>, old: Option<Cursor<'d>>) -> Self {
        Self { above: Some(self), step, value, old, is_same: Cell::new(None), way: Cell::new(None) }
    }

    /// Whether the stored object has the same value here, or above.
    pub(super) fn is_stored(&self) -> bool {
        let is_same = self.is_same.get().unwrap_or_else(|| {
            self.old.is_some_and(|old| same(self.value, old)) || self.above.is_some_and(Self::is_stored)
        });
        self.is_same.set(Some(is_same));
        is_same
    }
}

/// The ways to all places where something is wrong. Places have the beginnings of their ways in common.
#[derive(Default)]
pub(super) struct Ways<'d> {
    steps: Vec<(u32, Step<'d>)>,
}

impl<'d> Ways<'d> {
    /// The way to a place.
    pub(super) fn to(&mut self, place: &Place<'_, 'd>) -> u32 {
        if let Some(way) = place.way.get() {
            return way;
        }
        let above = place.above.map_or(0, |above| self.to(above));
        let way = self.add(above, place.step);
        place.way.set(Some(way));
        way
    }

    /// A way with one more step.
    pub(super) fn add(&mut self, above: u32, step: Step<'d>) -> u32 {
        let way = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        self.steps.push((above, step));
        way
    }

    /// The steps of a way, the last one first.
    pub(super) fn steps(&self, way: u32) -> impl Iterator<Item = Step<'d>> {
        let mut next = self.steps.get(way as usize);
        std::iter::from_fn(move || {
            let (above, step) = *next?;
            next = self.steps.get(above as usize).filter(|_| !matches!(step, Step::Root));
            Some(step)
        })
    }

    /// Writes the pointer of a way in the place of the one that was written before.
    pub(super) fn write(&self, way: u32, written: &mut PointerText) {
        let Some((above, step)) = self.steps.get(way as usize).copied() else {
            *written = PointerText::default();
            return;
        };
        match written.above {
            Some((known, length)) if known == above && !matches!(step, Step::Root) => {
                written.text.truncate(length);
            }
            _ => {
                written.text.clear();
                written.above = None;
                if !matches!(step, Step::Root) {
                    self.write_steps(above, &mut written.text);
                    written.above = Some((above, written.text.len()));
                }
            }
        }
        push_step(step, &mut written.text);
    }

    fn write_steps(&self, way: u32, pointer: &mut String) {
        let Some((above, step)) = self.steps.get(way as usize).copied() else { return };
        if !matches!(step, Step::Root) {
            self.write_steps(above, pointer);
            push_step(step, pointer);
        }
    }
}

/// The pointer of a way. Those of one list begin alike, and the beginning is not written again.
#[derive(Debug, Default)]
pub struct PointerText {
    text: String,
    /// The way above, and how long its pointer is.
    above: Option<(u32, usize)>,
}

impl PointerText {
    /// The pointer.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn push_step(step: Step<'_>, pointer: &mut String) {
    match step {
        Step::Root => {}
        Step::Key(key) => {
            pointer.push('/');
            push_escaped(pointer, key);
        }
        Step::Index(index) => push_index(pointer, index),
    }
}
