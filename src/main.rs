//! The `memgate` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    memgate::cli::main(std::env::args_os()).into()
}
