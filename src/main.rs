//! The `memgate` binary.

use std::process::ExitCode;

/// musl's own allocator makes all threads wait for each other; docs/performance.md has the numbers.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Two parts of the process speak TLS, and both take the provider of the process. It can only be
    // there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    memgate::cli::main(std::env::args_os()).into()
}
