#!/usr/bin/env bash
# Builds the binary of the container image: static, and the same bytes wherever and whenever the same
# commit is built with the same toolchain. Beside it goes a bill of materials (CycloneDX, JSON).
#
#   tools/build-static.sh [TARGET]     default: the musl target of this machine's architecture
#
# Results: target/static/TARGET/memgate and target/static/TARGET/memgate.cdx.json
#
# Needs a C compiler for musl, and gets it itself where it may (as root, with apt-get). For another
# architecture than this machine's, name a cross compiler as for any Rust build: CC_<target> and
# CARGO_TARGET_<TARGET>_LINKER.
set -euo pipefail
cd "$(dirname "$0")/.."

# Pinned here and nowhere else.
cyclonedx=0.5.9

own="$(uname -m)-unknown-linux-musl"
target="${1:-$own}"
variable="${target//-/_}"

fail() { printf 'tools/build-static.sh: %s\n' "$*" >&2; exit 1; }

if ! rustc --print target-libdir --target "$target" > /dev/null 2>&1 \
    || ! [ -d "$(rustc --print target-libdir --target "$target")" ]; then
    command -v rustup > /dev/null || fail "the Rust target $target is missing, and so is rustup to add it"
    rustup target add "$target"
fi

# Two libraries (ring, mimalloc) hold C, which needs a compiler that knows the headers of musl.
compiler="CC_$variable"
if [ -z "${!compiler:-}" ]; then
    [ "$target" = "$own" ] || fail "set $compiler to a C compiler for $target"
    if cc -dumpmachine 2> /dev/null | grep -q musl; then
        export "$compiler=cc"
    else
        if ! command -v musl-gcc > /dev/null && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
            { apt-get update && apt-get install --yes --no-install-recommends musl-tools; } >&2
        fi
        command -v musl-gcc > /dev/null \
            || fail "found no musl-gcc; install it (Debian, Ubuntu: musl-tools), or set $compiler"
        export "$compiler=musl-gcc"
    fi
fi

# Paths of this machine are part of panic messages; they are replaced by ones that are always the same.
cargo_home="${CARGO_HOME:-$HOME/.cargo}"
export "CFLAGS_$variable=-ffile-prefix-map=$PWD=/memgate -ffile-prefix-map=$cargo_home=/cargo"
export RUSTFLAGS="--remap-path-prefix=$PWD=/memgate --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$(rustc --print sysroot)=/rust"
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-0}" CARGO_INCREMENTAL=0

cargo build --release --locked --target "$target"

if ! [ -x "target/tools/bin/cargo-cyclonedx" ] \
    || ! target/tools/bin/cargo-cyclonedx cyclonedx --version | grep -qF " $cyclonedx"; then
    env -u RUSTFLAGS cargo install --quiet --locked --root target/tools "cargo-cyclonedx@$cyclonedx"
fi
target/tools/bin/cargo-cyclonedx cyclonedx --format json --spec-version 1.5 --target "$target" \
    --no-build-deps --override-filename memgate.cdx --quiet
# One for each crate of the workspace; that of the root has all of them in it.
rm -f crates/*/memgate.cdx.json

out="target/static/$target"
mkdir -p "$out"
cp "target/$target/release/memgate" "$out/memgate"
mv memgate.cdx.json "$out/memgate.cdx.json"
(cd "$out" && sha256sum memgate)
