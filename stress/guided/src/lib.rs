//! The readers of `stress/tests/fuzz` for a fuzzer with coverage: a wrong result ends the run, as a panic does.

#[path = "../../tests/fuzz/invariants.rs"]
mod invariants;
#[path = "../../tests/fuzz/pointers.rs"]
mod pointers;
#[path = "../../tests/fuzz/readers.rs"]
mod readers;

/// Reads an input as a review without a state.
///
/// # Panics
/// When the answer breaks an invariant; so do the other functions.
pub fn review(input: &[u8]) {
    must_hold(&readers::review(input));
}

/// Reads an input as manifests.
pub fn yaml(input: &[u8]) {
    must_hold(&readers::yaml(input));
}

/// Reads an input as a file of policies and objects.
pub fn policy(input: &[u8]) {
    must_hold(&readers::policy(input));
}

/// Reads an input as a file of definitions and objects.
pub fn crd(input: &[u8]) {
    must_hold(&readers::crd(input));
}

fn must_hold(result: &Result<(), String>) {
    assert_eq!(result, &Ok(()));
}
