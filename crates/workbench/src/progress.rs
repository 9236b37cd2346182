//! How far a run is, for the user who waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a run does to many things, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// Charts and overlays are rendered.
    Render,
    /// Files are parsed.
    Parse,
}

/// How far a run is. All clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<[Count; 2]>);

#[derive(Debug, Default)]
struct Count {
    done: AtomicUsize,
    all: AtomicUsize,
}

impl Progress {
    /// So many more are to be done.
    pub(crate) fn begin(&self, step: Step, count: usize) {
        self.count(step).all.fetch_add(count, Ordering::Relaxed);
    }

    /// One more is done.
    pub(crate) fn done(&self, step: Step) {
        self.count(step).done.fetch_add(1, Ordering::Relaxed);
    }

    /// What the run does now, in a few words.
    pub fn words(&self) -> String {
        let words = |step, what| {
            let Count { done, all } = self.count(step);
            let (done, all) = (done.load(Ordering::Relaxed), all.load(Ordering::Relaxed));
            (done < all).then(|| format!("{done} of {all} {what}"))
        };
        words(Step::Render, "charts and overlays rendered")
            .or_else(|| words(Step::Parse, "files read"))
            .unwrap_or_else(|| "reading and judging".to_owned())
    }

    fn count(&self, step: Step) -> &Count {
        let [render, parse] = &*self.0;
        match step {
            Step::Render => render,
            Step::Parse => parse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_much_is_done() {
        let progress = Progress::default();
        assert_eq!(progress.words(), "reading and judging");
        progress.begin(Step::Render, 2);
        progress.begin(Step::Parse, 3);
        progress.clone().done(Step::Render);
        assert_eq!(progress.words(), "1 of 2 charts and overlays rendered");
        progress.done(Step::Render);
        assert_eq!(progress.words(), "0 of 3 files read");
    }
}
