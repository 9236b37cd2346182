#!/usr/bin/env bash
# `memgate check --policy` beside `kyverno apply`, `gator test` and ValidatingAdmissionPolicies in an apiserver's own
# libraries: ten intents in the language of each (stress/benches/peers/policies), a hundred cases with known answers, and
# what 10,000 objects cost. It fails when memgate judges a case wrong. Results belong in stress/PERFORMANCE.md.
#
#   tools/bench-policies.sh [MEMGATE] [RUNS] [OBJECTS]     default: target/release/memgate, 3 runs, 10000 objects
#
# Needs python3 with PyYAML and GNU time, and Go for the other three, which it builds once, in some twenty minutes and 6 GB
# of Go's caches, into ~/.cache/memgate/peers. Without Go memgate is measured alone.
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

programs=("" "" "")
if command -v go > /dev/null; then
    programs=("$(peer kyverno github.com/kyverno/kyverno "$kyverno" cmd/cli/kubectl-kyverno)"
        "$(peer gator github.com/open-policy-agent/gatekeeper/v3 "$gatekeeper" cmd/gator)" "$cache/vap")
    (cd stress/benches/peers/vap && go build -o "$cache/vap" .)
    echo "kyverno $kyverno, gator of Gatekeeper $gatekeeper, $("$memgate" --version)"
fi
exec python3 stress/benches/peers/policies/compare.py "${3:-10000}" "${2:-3}" "$memgate" "${programs[@]}"
