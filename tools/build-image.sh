#!/usr/bin/env bash
# Puts what tools/build-static.sh --image has made into an image, without a container engine: an OCI layout with an index
# of one image for each architecture. The same binaries give the same digest, whenever and wherever this runs.
#
#   tools/build-image.sh [--out DIRECTORY] [ARCHITECTURE]...
#
# Architectures are x86_64 and aarch64, by default this machine's; the directory is target/image, made anew.
# What is printed last is the digest of the index, by which a cluster names the image.
#
# Needs umoci, and gets it itself where it may (as root, with apt-get). SOURCE_DATE_EPOCH is the time of the image,
# and of the files in it; 0 by default. MEMGATE_SOURCE is the address of the repository, for a label; without it there is
# no such label.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'tools/build-image.sh: %s\n' "$*" >&2; exit 1; }

out=target/image
if [ "${1:-}" = --out ]; then
    out="${2:?a directory}"
    shift 2
fi
[ $# -gt 0 ] || set -- "$(uname -m)"

if ! command -v umoci > /dev/null && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    { apt-get update && apt-get install --yes --no-install-recommends umoci; } >&2
fi
command -v umoci > /dev/null || fail "found no umoci; install it (Debian, Ubuntu: umoci)"

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
revision=$(cat "target/static/image/$1-unknown-linux-musl/revision" 2> /dev/null || true)
epoch="${SOURCE_DATE_EPOCH:-0}"
created=$(date --utc --date="@$epoch" +%Y-%m-%dT%H:%M:%SZ)

# What the Containerfile says too; tests/image compares them.
labels=(
    'org.opencontainers.image.title=memgate'
    'org.opencontainers.image.description=Admission webhook that gives AI agents on Kubernetes their memory, or says why not'
    'org.opencontainers.image.licenses=Apache-2.0'
    "org.opencontainers.image.version=$version"
    "org.opencontainers.image.revision=$revision"
)
case ${MEMGATE_SOURCE:-} in *[!a-zA-Z0-9:/._~-]*) fail "MEMGATE_SOURCE is not an address: $MEMGATE_SOURCE" ;; esac
[ -z "${MEMGATE_SOURCE:-}" ] || labels+=("org.opencontainers.image.source=$MEMGATE_SOURCE")
configuration=(
    --created "$created" --os linux --config.user 65532:65532 --config.entrypoint /memgate --config.cmd serve
    --config.exposedports 10250/tcp --config.exposedports 8081/tcp
)
for label in "${labels[@]}"; do configuration+=(--config.label "$label" --manifest.annotation "$label"); done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The archive of the image's only layer: two read-only files that belong to root.
layer() {
    rm -rf "$scratch/root"
    install -D -m 0555 "$1/memgate" "$scratch/root/memgate"
    install -D -m 0444 "$1/memgate.cdx.json" "$scratch/root/memgate.cdx.json"
    tar --create --file "$scratch/layer.tar" --directory "$scratch/root" --format ustar --sort name \
        --owner 0 --group 0 --numeric-owner --mtime "@$epoch" memgate memgate.cdx.json
}

joined() { local IFS=,; printf '%s' "$*"; }

# The labels as JSON; none holds a character that JSON escapes, and an address with one is refused above.
annotations() {
    local label members=()
    for label in "${labels[@]}"; do members+=("\"${label%%=*}\":\"${label#*=}\""); done
    joined "${members[@]}"
}

rm -rf "$out"
mkdir -p "$out/blobs/sha256"
images=()
tags=()
for architecture in "$@"; do
    built="target/static/image/$architecture-unknown-linux-musl"
    [ -e "$built/revision" ] || fail "$built is not there; run tools/build-static.sh --image $architecture-unknown-linux-musl"
    [ "$(cat "$built/revision")" = "$revision" ] || fail "$built is of another commit than $revision"
    case $architecture in
        x86_64) platform=amd64 ;;
        aarch64) platform=arm64 ;;
        *) fail "$architecture has no name in images" ;;
    esac
    layer "$built"
    layout="$scratch/$platform"
    umoci init --layout "$layout"
    umoci new --image "$layout:$platform"
    umoci raw add-layer --image "$layout:$platform" --history.created "$created" \
        --history.created_by tools/build-image.sh "$scratch/layer.tar"
    umoci config --image "$layout:$platform" --no-history --architecture "$platform" "${configuration[@]}"
    umoci gc --layout "$layout"
    install -m 0644 -t "$out" "$layout/oci-layout"
    install -m 0644 -t "$out/blobs/sha256" "$layout"/blobs/sha256/*
    described=$(sed 's/.*\("mediaType":"[^"]*","digest":"[^"]*","size":[0-9]*\).*/\1/' "$layout/index.json")
    images+=("{$described,\"platform\":{\"architecture\":\"$platform\",\"os\":\"linux\"}}")
    tags+=("{$described,\"annotations\":{\"org.opencontainers.image.ref.name\":\"$version-$platform\"}}")
done

# umoci writes no index of platforms, so this does. The layout names it by the version, and the images in it by
# version and platform as well, for programs that know no index.
kind='"mediaType":"application/vnd.oci.image.index.v1+json"'
printf '{"schemaVersion":2,%s,"manifests":[%s],"annotations":{%s}}' \
    "$kind" "$(joined "${images[@]}")" "$(annotations)" > "$scratch/index"
digest=$(sha256sum < "$scratch/index" | cut -d ' ' -f 1)
install -m 0644 "$scratch/index" "$out/blobs/sha256/$digest"
tags=("{$kind,\"digest\":\"sha256:$digest\",\"size\":$(stat --format %s "$scratch/index"),\
\"annotations\":{\"org.opencontainers.image.ref.name\":\"$version\"}}" "${tags[@]}")
printf '{"schemaVersion":2,%s,"manifests":[%s]}' "$kind" "$(joined "${tags[@]}")" > "$out/index.json"
chmod 0644 "$out/index.json"
printf '%s: memgate %s of %s for %s\nsha256:%s\n' "$out" "$version" "$revision" "$*" "$digest"
