//! Inputs to sources: files, directories, globs and stdin.

use std::io::Read;

use crate::manifest::error::Error;
use crate::manifest::source::Source;

/// What the inputs led to.
#[derive(Debug, Default)]
pub struct Collected {
    /// The texts, in the order of the inputs, each file once; within a directory or glob by path.
    pub sources: Vec<Source>,
    /// What could not be read; one of them hides no other input.
    pub errors: Vec<Error>,
    /// The directories and globs in which no manifest was found.
    pub empty: Vec<String>,
}

/// Reads files, directories (`*.yaml`, `*.yml` and `*.json` at any depth, hidden ones aside), globs,
/// and `-` for `stdin`. A file that is named is read whatever its extension.
#[must_use]
pub fn collect(inputs: &[String], stdin: &mut dyn Read) -> Collected {
    let _ = (inputs, stdin);
    Collected::default()
}
