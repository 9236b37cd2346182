#!/usr/bin/env bash
# Prints the path of a program of crates.io in one version, which it installs on the first call: without optimizations, as
# each runs for seconds and takes minutes to compile. Builds stay in the user's cache directory.
#
#   tools/cargo-tool.sh NAME VERSION
set -euo pipefail

root="${XDG_CACHE_HOME:-$HOME/.cache}/memgate/tools/$1-$2"
if ! [ -x "$root/bin/$1" ]; then
    env -u RUSTFLAGS -u CARGO_TARGET_DIR cargo install --quiet --locked --debug --root "$root" "$1@$2" >&2
fi
printf '%s\n' "$root/bin/$1"
