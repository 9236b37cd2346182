#!/usr/bin/env bash
# What a release offers beside the image: for each architecture an archive with the static binary, its bill of
# materials, the licence and the changelog; install.sh; and the sums of all, which are what is signed. The same binaries give the
# same archives.
#
#   tools/build-archives.sh [--out DIRECTORY] [ARCHITECTURE]...
#
# Architectures are x86_64 and aarch64, by default this machine's; tools/build-static.sh comes first. The directory is
# target/archives, made anew. SOURCE_DATE_EPOCH is the time of all files; 0 by default.
set -euo pipefail
cd "$(dirname "$0")/.."

out=target/archives
if [ "${1:-}" = --out ]; then
    out="${2:?a directory}"
    shift 2
fi
[ $# -gt 0 ] || set -- "$(uname -m)"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

rm -rf "$out"
mkdir -p "$out"
for architecture in "$@"; do
    built="target/static/$architecture-unknown-linux-musl"
    name="memgate-$version-linux-$architecture"
    install -d -m 0755 "$scratch/$name"
    install -m 0755 "$built/memgate" "$scratch/$name/memgate"
    install -m 0644 -t "$scratch/$name" "$built/memgate.cdx.json" LICENSE CHANGELOG.md
    tar --create --directory "$scratch" --format ustar --sort name --owner 0 --group 0 --numeric-owner \
        --mtime "@${SOURCE_DATE_EPOCH:-0}" "$name" | gzip --no-name -9 > "$out/$name.tar.gz"
done
install -m 0755 install.sh "$out/install.sh"
(cd "$out" && sha256sum ./*.tar.gz ./install.sh | sed 's|\./||' | tee SHA256SUMS)
