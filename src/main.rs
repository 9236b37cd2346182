//! The `memgate` binary.

fn main() {}
