#!/usr/bin/env bash
# Prints in what the bundled definitions (deploy/crds) differ from others: types, bounds, values, defaults and the number
# of rules in CEL of each node, of the kinds and versions that both have. `-` is only in the bundle, `+` only there.
#
#   tools/upstream.sh FILE-OR-DIRECTORY…        CRD files of a platform, templates of a chart too
#   helm template CHART | tools/upstream.sh -   what a chart installs
#   tools/upstream.sh --context NAME            what a cluster has
set -euo pipefail
[[ $# -gt 0 ]] || { sed -n '2,7s/^# \{0,1\}//p' "$0" && exit 2; }

read_to=$(mktemp -d)
trap 'rm -rf "$read_to"' EXIT
files=()
while [[ $# -gt 0 ]]; do
    case "$1" in
        -) cat > "$read_to/stdin.yaml" && files+=("$read_to/stdin.yaml") ;;
        --context)
            shift
            kubectl get customresourcedefinitions --context "${1:?a context}" --output json > "$read_to/cluster.json"
            files+=("$read_to/cluster.json")
            ;;
        *)
            while IFS= read -r -d '' file; do files+=("$(realpath "$file")"); done \
                < <(find "$1" -type f \( -name '*.yaml' -o -name '*.yml' -o -name '*.json' \) -print0 | sort -z)
            ;;
    esac
    shift
done
cd "$(dirname "$0")/.."
UPSTREAM_FILES=$(printf '%s\n' "${files[@]}") cargo test --locked --quiet --test documents -- \
    --ignored --nocapture --exact shapes::show_differences
