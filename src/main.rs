//! The `memgate` binary.

use std::process::ExitCode;

/// The allocators of libc keep much more memory when callers do not read their answers, and musl's makes all threads wait
/// for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    memgate::cli::main(std::env::args_os()).into()
}
