#!/usr/bin/env bash
# Builds the binary of an archive, or that of the container image: static, and the same bytes wherever and whenever the
# same commit is built with the same toolchain. Beside it goes a bill of materials (CycloneDX, JSON).
#
#   tools/build-static.sh [--image] [TARGET]     default: the musl target of this machine's architecture
#
# Also x86_64-apple-darwin, aarch64-apple-darwin and x86_64-pc-windows-gnu, for the command line; these use libraries of
# their systems. --image makes the smaller program of the image (docs/image.md).
#
# Results in target/static/TARGET, with --image in target/static/image/TARGET: memgate (memgate.exe), memgate.cdx.json, and
# `revision`, the commit that they are of.
#
# Needs a C compiler for musl, and gets it itself where it may (as root, with apt-get). For another
# target than this machine's that is Zig, which goes below target/tools (python3 with venv and pip);
# or name a cross compiler as for any Rust build: CC_<target> and CARGO_TARGET_<TARGET>_LINKER.
set -euo pipefail
cd "$(dirname "$0")/.."
# Results and tools are where the tests and the other scripts look for them.
unset CARGO_TARGET_DIR CARGO_BUILD_TARGET_DIR

# Pinned here and nowhere else.
cyclonedx=0.5.9
zigbuild=0.24.1
zig='ziglang==0.17.1
    --hash=sha256:ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54
    --hash=sha256:b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e'

out=target/static
features=(--no-default-features) size=()
if [ "${1:-}" = --image ]; then
    out=target/static/image
    # The command line and its crates, through which no review passes: 0.6 MB less than with "s", and `check` takes 7 % more CPU time.
    # Of memgate-schema, the walk over definitions: 0.15 MB less than in archives, and `check` takes no more.
    for package in memgate memgate-certs memgate-cluster memgate-install memgate-manifest memgate-schema \
        memgate-workbench granit-parser serde-saphyr jiff tracing-subscriber; do
        size+=(--config "profile.release.package.$package.opt-level=\"z\"")
    done
    shift
fi
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
build=(cargo build)
if [ -z "${!compiler:-}" ]; then
    if [ "$target" != "$own" ]; then
        zigbuild=$(tools/cargo-tool.sh cargo-zigbuild "$zigbuild")
        [ -x target/tools/zig/bin/pip ] || python3 -m venv target/tools/zig || fail "found no python3 with venv"
        printf '%s\n' "${zig//$'\n'/ }" > target/tools/zig/requirements.txt
        target/tools/zig/bin/pip install --quiet --no-deps --require-hashes --only-binary :all: \
            --requirement target/tools/zig/requirements.txt
        CARGO_ZIGBUILD_ZIG_PATH="$PWD/target/tools/zig/zig"
        printf '#!/bin/sh\nexec "%s" -m ziglang "$@"\n' "$PWD/target/tools/zig/bin/python" > "$CARGO_ZIGBUILD_ZIG_PATH"
        chmod +x "$CARGO_ZIGBUILD_ZIG_PATH"
        export CARGO_ZIGBUILD_ZIG_PATH
        build=("$zigbuild" zigbuild)
    elif cc -dumpmachine 2> /dev/null | grep -q musl; then
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

# Paths of this machine are part of panic messages; they are replaced by ones that are always the same. With huge pages
# mimalloc would have a third more memory resident after some load.
cargo_home="${CARGO_HOME:-$HOME/.cargo}"
export "CFLAGS_$variable=-ffile-prefix-map=$PWD=/memgate -ffile-prefix-map=$cargo_home=/cargo -DMI_DEFAULT_ALLOW_THP=0"
export RUSTFLAGS="--remap-path-prefix=$PWD=/memgate --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$(rustc --print sysroot)=/rust"
# The paths of libraries without the name of the registry, which is 40 KB of the binary. The folder is there once they are.
cargo fetch --locked --quiet --target "$target"
for sources in "$cargo_home"/registry/src/*/; do RUSTFLAGS+=" --remap-path-prefix=${sources%/}=/cargo"; done
# Relocations of a position-independent program as a bitmap: 0.6 MB less of it. Zig makes no such program for Linux. The
# linker that comes with Rust also folds functions with the same code (0.1 MB); no code here compares their addresses.
if [ "${build[0]}" = cargo ] && [[ $target = *-linux-musl ]]; then
    RUSTFLAGS+=" -Clink-arg=-Wl,-z,pack-relative-relocs"
    lld="$(rustc --print sysroot)/lib/rustlib/$(rustc --version --verbose | sed -n 's/^host: //p')/bin/gcc-ld"
    [ ! -x "$lld/ld.lld" ] || RUSTFLAGS+=" -Clink-arg=-B$lld -Clink-arg=-fuse-ld=lld -Clink-arg=-Wl,-O2,--icf=all"
fi
# Zig has no frameworks of Apple. What the linker has to know of the two that are used is their names, and what is in them.
case $target in
    *-apple-darwin)
        [ "${build[0]}" = cargo ] || RUSTFLAGS+=" -Clink-arg=-F$PWD/tools/darwin"
        # The oldest macOS on both processors; without it Zig says the newest that it knows.
        export MACOSX_DEPLOYMENT_TARGET="${MACOSX_DEPLOYMENT_TARGET:-11.0}"
        ;;
esac
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-0}" CARGO_INCREMENTAL=0

"${build[@]}" --release --locked --target "$target" --package memgate "${features[@]}" "${size[@]}"

cyclonedx=$(tools/cargo-tool.sh cargo-cyclonedx "$cyclonedx")
"$cyclonedx" cyclonedx --format json --spec-version 1.5 --target "$target" \
    --no-build-deps --override-filename memgate.cdx --quiet "${features[@]}"
# One for each crate of the workspace; that of the root has all of them in it.
rm -f crates/*/memgate.cdx.json stress/memgate.cdx.json stress/counts/memgate.cdx.json

out+="/$target"
mkdir -p "$out"
program=memgate
[ -e "target/$target/release/memgate" ] || program=memgate.exe
cp "target/$target/release/$program" "$out/$program"
# On one line: the indentation was a quarter of it. No string of JSON has a line break of its own.
sed -e "s|$PWD|/memgate|g" -e 's/^ *//' memgate.cdx.json | tr -d '\n' > "$out/memgate.cdx.json"
rm memgate.cdx.json
printf '%s\n' "${REVISION:-$(git describe --always --dirty --abbrev=40 --exclude='*' 2> /dev/null || echo unknown)}" \
    > "$out/revision"
(cd "$out" && sha256sum "$program")
