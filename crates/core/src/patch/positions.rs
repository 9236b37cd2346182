//! Where the elements of a list are while others are inserted.
//!
//! A list is kept as runs of neighbours, and the runs in chunks: an insert or a look-up goes over the chunks and
//! one of them, so that many inserts into a long list stay cheap wherever they are.

/// How many runs a chunk holds before it is split.
const MAX_RUNS: usize = 256;

/// More elements than a list can have.
const ENDLESS: usize = usize::MAX / 4;

/// An element of a list, by what it was before any insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element {
    /// The element that had this index.
    Original(usize),
    /// The element of this insert, counted from 0.
    Inserted(usize),
}

/// Which element is where. Without inserts nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Positions {
    inserts: usize,
    chunks: Vec<Chunk>,
}

#[derive(Debug)]
struct Chunk {
    len: usize,
    runs: Vec<Run>,
}

/// Elements that stand side by side, as they did or in the order of their inserts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) first: Element,
    pub(super) len: usize,
}

impl Element {
    const fn plus(self, count: usize) -> Self {
        match self {
            Self::Original(index) => Self::Original(index + count),
            Self::Inserted(number) => Self::Inserted(number + count),
        }
    }
}

impl Positions {
    /// Whether nothing was inserted.
    pub(super) const fn is_original(&self) -> bool {
        self.inserts == 0
    }

    /// The element that is at this index.
    pub(super) fn at(&self, index: usize) -> Element {
        let mut left = index;
        for chunk in &self.chunks {
            if left >= chunk.len {
                left -= chunk.len;
                continue;
            }
            for run in &chunk.runs {
                if left < run.len {
                    return run.first.plus(left);
                }
                left -= run.len;
            }
        }
        Element::Original(index)
    }

    /// Inserts an element before that of this index.
    pub(super) fn insert(&mut self, index: usize) -> Element {
        let new = Element::Inserted(self.inserts);
        self.inserts += 1;
        if self.chunks.is_empty() {
            let runs = vec![Run { first: Element::Original(0), len: ENDLESS }];
            self.chunks.push(Chunk { len: ENDLESS, runs });
        }
        let mut left = index;
        for at in 0..self.chunks.len() {
            let Some(chunk) = self.chunks.get_mut(at) else { break };
            if left > chunk.len {
                left -= chunk.len;
                continue;
            }
            chunk.insert(left, new);
            if chunk.runs.len() > MAX_RUNS {
                let behind = chunk.split();
                self.chunks.insert(at + 1, behind);
            }
            break;
        }
        new
    }

    /// The runs, from the front. The last one ends beyond any list.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        self.chunks.iter().flat_map(|chunk| chunk.runs.iter().copied())
    }
}

impl Chunk {
    fn insert(&mut self, index: usize, new: Element) {
        self.len += 1;
        let one = Run { first: new, len: 1 };
        let mut left = index;
        for at in 0..self.runs.len() {
            let Some(run) = self.runs.get_mut(at) else { return };
            if left > run.len {
                left -= run.len;
                continue;
            }
            let behind = Run { first: run.first.plus(left), len: run.len - left };
            if left == 0 {
                self.runs.insert(at, one);
            } else if behind.len == 0 && behind.first == new {
                run.len += 1;
            } else {
                run.len = left;
                let pieces = [one, behind];
                let kept = if behind.len == 0 { &pieces[..1] } else { &pieces[..] };
                self.runs.splice((at + 1)..=at, kept.iter().copied());
            }
            return;
        }
    }

    /// Takes the rear half away.
    fn split(&mut self) -> Self {
        let runs = self.runs.split_off(self.runs.len() / 2);
        let len = runs.iter().map(|run| run.len).sum();
        self.len -= len;
        Self { len, runs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a plain list, for inserts that an arithmetic sequence scatters.
    fn agrees(inserts: usize, index: impl Fn(usize) -> usize) {
        let mut list: Vec<Element> = (0..500).map(Element::Original).collect();
        let mut positions = Positions::default();
        for number in 0..inserts {
            let index = index(number) % (list.len() + 1);
            list.insert(index, Element::Inserted(number));
            assert_eq!(positions.insert(index), Element::Inserted(number));
        }
        for (index, element) in list.iter().enumerate() {
            assert_eq!(positions.at(index), *element, "at {index} of {inserts}");
        }
        let runs = positions.runs().flat_map(|run| (0..run.len.min(4_000)).map(move |at| run.first.plus(at)));
        let runs =
            runs.filter(|element| *element < Element::Original(500) || *element > Element::Original(ENDLESS));
        assert!(inserts == 0 || runs.eq(list));
        assert_eq!(positions.is_original(), inserts == 0);
    }

    #[test]
    fn agrees_with_a_plain_list() {
        for inserts in [0, 1, 2, 700, 3_000] {
            agrees(inserts, |_| 0);
            agrees(inserts, |number| number);
            agrees(inserts, |number| 500 + number);
            agrees(inserts, |number| 250 + number / 2);
            agrees(inserts, |number| number * 7_919 + 13);
            agrees(inserts, |number| number * number);
        }
    }
}
