#!/usr/bin/env bash
# Compiles the packages of the programs that tests build with Go (tests/support/build.rs), into Go's own cache: from nothing
# a quarter of an hour of two cores, after which the tests only link. Does nothing where the tests' cache exists, or
# without Go.
#
#   tools/go-packages.sh MODULE…      folders below tools/, in the order in which they are needed
set -euo pipefail
cd "$(dirname "$0")"

if [ -d "${XDG_CACHE_HOME:-$HOME/.cache}/memgate/envtest" ] || ! command -v go > /dev/null; then
    exit 0
fi
export GOWORK=off
for module in "$@"; do
    start=$SECONDS
    # The tag is promtool's, and no package of the others knows it.
    (cd "$module" && go build -o /dev/null -buildvcs=false -tags remove_all_sd tool)
    printf '== %s s: packages of tools/%s\n' "$((SECONDS - start))" "$module" >&2
done
