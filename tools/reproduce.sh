#!/usr/bin/env bash
# Builds the last commit twice, in two directories of different length, and compares the binaries.
# Takes two full release builds.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

build() {
    mkdir -p "$1/target" "$root/target/tools"
    git archive HEAD | tar -x -C "$1"
    ln -s "$root/target/tools" "$1/target/tools"
    (cd "$1" && tools/build-static.sh)
    cp "$1"/target/static/*/memgate "$2"
    rm -rf "$1"
}

build "$scratch/one" "$scratch/first"
build "$scratch/another/place" "$scratch/second"
sha256sum "$scratch/first" "$scratch/second"
cmp "$scratch/first" "$scratch/second"
