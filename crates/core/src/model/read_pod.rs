//! A new pod that was read when the review in which it came was.

use crate::model::budget::Budget;
use crate::model::pod::Pod;

/// A pod as far as decisions read it, and what it took to read it.
#[derive(Debug)]
pub struct ReadPod<'a> {
    /// The pod as JSON text.
    pub text: &'a str,
    /// What was read.
    pub pod: Pod<'a>,
    /// What was counted.
    pub work: Budget<'static>,
}

impl ReadPod<'_> {
    /// Whether it was read from this very text: a request may be made from another one, with another object.
    #[must_use]
    pub fn is_of(&self, text: &str) -> bool {
        std::ptr::eq(self.text, text)
    }
}
