//! An object as it would be stored, in one flat list of small items, however deep it nests. Texts stay in the
//! sent text.
//!
//! ```text
//! {"a": [1, "x"]}      Map  Key a  List  Unsigned 1  Text x
//! ```

/// An object, or what of it a schema knows.
#[derive(Debug)]
pub struct Document<'d> {
    /// The text that was read.
    text: &'d str,
    /// Texts that the sent text does not hold literally: strings with escapes, and defaults.
    aside: String,
    items: Vec<Item>,
}

/// A value, its beginning or a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item {
    Null,
    /// A `null` that counts as a missing field.
    Absent,
    Boolean(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(Span),
    /// A value without a schema, as it was written.
    Raw(Span),
    /// The key of the value behind it.
    Key(Span),
    /// The same, where a later field of this name counts.
    Replaced(Span),
    List(Extent),
    /// The fields follow, each with its key in front.
    Map(Extent),
}

/// A range of the text, or behind its end a range of the texts kept aside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: u32,
    length: u32,
}

/// What a list or object holds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extent {
    /// How many elements, or fields that are there.
    pub(super) count: u32,
    /// The item behind the last one of it.
    pub(super) end: u32,
}

impl<'d> Document<'d> {
    /// The length of its text in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Nothing read yet; `None` if the text is too long to count its bytes.
    pub(super) fn new(text: &'d str) -> Option<Self> {
        // Texts kept aside are counted from the end of the text on.
        i32::try_from(text.len()).ok()?;
        Some(Self { text, aside: String::new(), items: Vec::new() })
    }

    /// How many items there are.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Adds an item.
    pub(super) fn push(&mut self, item: Item) {
        if self.items.len() == self.items.capacity() {
            // Doubling would take twice the memory of a large object for a moment.
            self.items.reserve_exact(64.max(self.items.len() / 4));
        }
        self.items.push(item);
    }

    /// The item at a place.
    pub(super) fn item(&self, at: usize) -> Item {
        self.items.get(at).copied().unwrap_or(Item::Null)
    }

    /// Puts another item in the place of one.
    pub(super) fn set(&mut self, at: usize, item: Item) {
        if let Some(place) = self.items.get_mut(at) {
            *place = item;
        }
    }

    /// Takes away everything from an item on.
    pub(super) fn truncate(&mut self, at: usize) {
        self.items.truncate(at);
    }

    /// Where a string stands; one from elsewhere is copied.
    pub(super) fn span(&mut self, text: &str) -> Span {
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let start = text.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        if start <= self.text.len() && text.len() <= self.text.len() - start {
            return Span { start: short(start), length: short(text.len()) };
        }
        let start = self.text.len() + self.aside.len();
        self.aside.push_str(text);
        Span { start: short(start), length: short(text.len()) }
    }

    /// The string that stands there.
    pub(super) fn string(&self, span: Span) -> &str {
        let (start, length) = (span.start as usize, span.length as usize);
        let found = match start.checked_sub(self.text.len()).filter(|_| length > 0) {
            Some(start) => self.aside.get(start..start + length),
            None => self.text.get(start..start + length),
        };
        found.unwrap_or_default()
    }

    /// The item behind a value and all that it holds.
    pub(super) fn behind(&self, at: usize) -> usize {
        match self.item(at) {
            Item::List(extent) | Item::Map(extent) => extent.end as usize,
            _ => at + 1,
        }
    }
}
