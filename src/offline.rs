//! The inputs of commands: files, directories, globs and stdin.

pub mod collect;
