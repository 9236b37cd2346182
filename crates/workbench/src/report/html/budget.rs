//! The shares of the parts of the page: a part is cut when its share is used up. Denials get what the others leave.

use maud::{Markup, PreEscaped, html};

/// The share of all parts. The others have less than four fifths of it.
pub(super) const ALL: usize = 4_800_000;

/// The share of the warnings.
pub(super) const WARNINGS: usize = 600_000;

/// The share of any other list or table.
pub(super) const OTHERS: usize = 300_000;

/// The share of the table of the map, in which a row has many objects.
pub(super) const MAP: usize = 700_000;

/// The share of the pages of codes, which all codes together do not reach.
pub(super) const PAGES: usize = 700_000;

/// The most elements of one chunk: a browser does not lay out a chunk before it is scrolled to.
const CHUNK: usize = 200;

/// The elements of a list that fit into its share.
pub(super) struct Fitting {
    /// The elements, in chunks.
    pub(super) chunks: Vec<Markup>,
    /// How many there are of them.
    pub(super) count: usize,
    /// How many do not fit.
    pub(super) more: usize,
}

/// Renders elements until their share is used up.
pub(super) fn fitting<T>(
    share: usize,
    elements: impl IntoIterator<Item = T>,
    render: impl Fn(T) -> Markup,
) -> Fitting {
    let (mut chunks, mut used) = (Vec::<String>::new(), 0);
    let (mut count, mut more) = (0, 0);
    for element in elements {
        if more > 0 {
            more += 1;
            continue;
        }
        let PreEscaped(rendered) = render(element);
        used += size(&rendered);
        if used > share {
            more = 1;
        } else {
            match chunks.last_mut().filter(|_| count % CHUNK > 0) {
                Some(chunk) => chunk.push_str(&rendered),
                None => chunks.push(rendered),
            }
            count += 1;
        }
    }
    Fitting { chunks: chunks.into_iter().map(PreEscaped).collect(), count, more }
}

/// The bytes of a part in a page. In a log of a CI system, a `#` may become five bytes.
pub(super) fn size(rendered: &str) -> usize {
    rendered.len() + 4 * rendered.bytes().filter(|byte| *byte == b'#').count()
}

impl Fitting {
    /// All elements.
    pub(super) fn all(&self) -> Markup {
        html! { @for chunk in &self.chunks { (chunk) } }
    }

    /// The sentence about the elements that are left out, with where they can be seen.
    pub(super) fn rest(&self, elsewhere: &str) -> Markup {
        html! {
            @if self.more > 0 { p { strong { (self.more) " more are not shown in this page" } "; " (elsewhere) "." } }
        }
    }

    /// Whether there is nothing to show or to mention.
    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0 && self.more == 0
    }
}
