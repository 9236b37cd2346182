//! The `memgate` binary.

use std::process::ExitCode;

/// musl's own allocator has one lock for all threads; docs/performance.md has the numbers.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The server and the Kubernetes client use the TLS provider of the process. To install it fails
    // only if another one was installed before, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    memgate::cli::main(std::env::args_os()).into()
}
