#!/usr/bin/env bash
# `memgate check --policy` beside `kyverno apply` and `gator test`: five rules that mean the same (stress/benches/peers/policies)
# over the same manifests, a file each. It fails when one of the three finds another pair of object and rule than it
# should. Results belong in docs/performance.md.
#
#   tools/bench-policies.sh [MEMGATE] [RUNS] [MANIFESTS]     default: target/release/memgate, 5 runs, 1000 manifests
#
# Needs python3 and GNU time, and Go for the other two, which it builds once, in some ten minutes and 5 GB of Go's
# caches, into ~/.cache/memgate/peers. Without Go memgate is measured alone.
set -euo pipefail
cd "$(dirname "$0")/.."

# Pinned here and nowhere else.
kyverno=v1.19.1
gatekeeper=v3.23.1

memgate="$(realpath "${1:-target/release/memgate}")"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/memgate/peers"

# A program of a module in this version, by its package. Not with `go install`, which refuses modules that replace others.
peer() {
    local program="$cache/$1-$3" source
    if ! [ -x "$program" ]; then
        mkdir -p "$cache"
        cp -r "$(go mod download -json "$2@$3" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')" "$cache/source"
        source="$cache/source"
        chmod -R u+w "$source"
        (cd "$source" && go build -o "$program" "./$4") >&2
        rm -rf "$source"
    fi
    echo "$program"
}

programs=("" "")
if command -v go > /dev/null; then
    programs=("$(peer kyverno github.com/kyverno/kyverno "$kyverno" cmd/cli/kubectl-kyverno)"
        "$(peer gator github.com/open-policy-agent/gatekeeper/v3 "$gatekeeper" cmd/gator)")
    echo "kyverno $kyverno, gator of Gatekeeper $gatekeeper, $("$memgate" --version)"
fi
exec python3 stress/benches/peers/policies/compare.py "${3:-1000}" "${2:-5}" "$memgate" "${programs[@]}"
