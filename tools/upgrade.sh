#!/usr/bin/env bash
# From the build of an older commit to this one and back, under calls of a real apiserver; results belong in
# stress/FAULTS.md and docs/compatibility.md.
#
#   tools/upgrade.sh BASE [KEY=VALUE]…     BASE is a commit; rate=20 calls a second, pause=20 seconds at each step
set -euo pipefail
cd "$(dirname "$0")/.."

base="$(git rev-parse --verify "${1:?which commit is the older one?}^{commit}")"
shift
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
work="$target/upgrade"
clean_up() {
    git worktree remove --force "$work/source" 2> /dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
clean_up
mkdir -p "$work"
git worktree add --quiet --detach "$work/source" "$base"
# From its own directory, so that its own toolchain and settings count.
(cd "$work/source" && CARGO_TARGET_DIR="$work/build" cargo build --locked --package memgate --bin memgate)
echo "old: $(git log -1 --format='%h %s' "$base"); new: $(git log -1 --format='%h %s')"
cargo test --locked --package memgate-stress --test soak -- upgrade "old=$work/build/debug/memgate" "$@"
