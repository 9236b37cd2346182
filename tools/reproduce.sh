#!/usr/bin/env bash
# Builds the image of the last commit twice, in two directories of different length, and compares binary, bill of materials
# and image. Takes two full release builds. What was the same is left in target/reproduced, to be compared with
# what others built.
#
#   tools/reproduce.sh [TARGET]     default: the musl target of this machine's architecture
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
target="${1:-$(uname -m)-unknown-linux-musl}"
REVISION=$(git rev-parse HEAD)
export REVISION
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# In the directory $1; what is compared goes to $2.
build() {
    mkdir -p "$1/target" "$root/target/tools" "$2"
    git archive "$REVISION" | tar -x -C "$1"
    ln -s "$root/target/tools" "$1/target/tools"
    (cd "$1" && tools/build-static.sh --image "$target" && tools/build-image.sh "${target%%-*}")
    mv "$1/target/image" "$1/target/static/image/$target"/* "$2"
    rm -rf "$1"
}

build "$scratch/one" "$scratch/first"
build "$scratch/another/place" "$scratch/second"
(cd "$scratch" && sha256sum {first,second}/memgate{,.cdx.json} {first,second}/image/index.json)
diff --recursive "$scratch/first" "$scratch/second"
rm -rf target/reproduced
mv "$scratch/first" target/reproduced
printf 'the same, twice: %s\n' "$REVISION"
