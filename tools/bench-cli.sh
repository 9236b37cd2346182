#!/usr/bin/env bash
# How long `memgate check` takes on 1, 1,000 and 10,000 manifests, a file each, without policies and with 20 of them,
# beside kubeconform on the same tree with the same JSON Schemas. Results belong in stress/PERFORMANCE.md.
#
#   tools/bench-cli.sh [MEMGATE] [RUNS]     default: target/release/memgate, 7 runs
#
# Needs Go for kubeconform; without it memgate is measured alone, and the table says so. Nothing is checked against a
# network: kubeconform reads schemas that `memgate schema` prints.
set -euo pipefail
cd "$(dirname "$0")/.."

# Pinned here and nowhere else.
kubeconform=v0.7.0

memgate="$(realpath "${1:-target/release/memgate}")"
runs="${2:-7}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

if command -v go > /dev/null; then
    GOBIN="$work/bin" go install "github.com/yannh/kubeconform/cmd/kubeconform@$kubeconform"
fi

# A good manifest of one of three kinds that differ from each other, by its number.
manifest() {
    case $(($1 % 3)) in
        0) cat << END ;;
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes-$1, namespace: team-$(($1 / 3 % 20))}
spec:
  backend: redis
  redis:
    secretRef: {name: redis}
    ttlSeconds: 3600
    maxEntries: 100
END
        1) cat << END ;;
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: agent-$1, namespace: team-$(($1 / 3 % 20))}
spec:
  model: m
  systemPrompt: You take notes.
  memoryRef: {name: notes-$(($1 - 1))}
END
        *) cat << END ;;
apiVersion: sympozium.ai/v1alpha1
kind: SkillPack
metadata: {name: skills-$1, namespace: team-$(($1 / 3 % 20))}
spec:
  skills:
    - name: reading
      description: reads
      content: |
        Read the notes.
        Then say what they mean.
END
    esac
}

# A policy that all of these manifests meet, by its number: seven rules, one of which looks at other objects.
policy() {
    cat << END
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: policy-$1}
spec:
  match: {namespaces: ["team-*"]}
  rules:
    - {id: durable, backends: {allow: [redis, vector-store, sqlite], durable: true}, hint: use redis}
    - {id: secret, secrets: {inline: forbid, required: true, namespaces: same}, when: {backends: [redis]}, hint: use a Secret}
    - {id: expiry, retention: {min: 1m, max: 30d}, hint: set ttlSeconds}
    - {id: bounded, capacity: {maxEntries: {max: 1000}}, hint: set maxEntries}
    - {id: found, references: {mustExist: [ArkMemory], crossNamespace: forbid}, hint: make the memory first}
    - {id: team, labels: {values: {team: ["*-$1"]}}, hint: label it}
    - {id: fixed, immutable: [backend], hint: make a new one}
END
}

mkdir "$work/schemas" "$work/policies"
for number in {1..20}; do
    policy "$number" > "$work/policies/$number.yaml"
done
for kind in ArkMemory ArkAgent SkillPack; do
    "$memgate" schema "$kind" > "$work/schemas/${kind,,}.json"
done
for count in 1 1000 10000; do
    mkdir "$work/$count"
    for ((number = 0; number < count; number++)); do
        manifest "$number" > "$work/$count/$number.yaml"
    done
done

# The least, the middle and the most milliseconds of the runs.
measure() {
    local times=() start end
    for ((run = 0; run < runs; run++)); do
        start="$EPOCHREALTIME"
        "$@" > "$work/out" 2>&1 || { cat "$work/out" >&2; exit 1; }
        end="$EPOCHREALTIME"
        times+=("$(((${end/[.,]/} - ${start/[.,]/}) / 100))")
    done
    mapfile -t times < <(printf '%s\n' "${times[@]}" | sort -n)
    for at in 0 $((runs / 2)) $((runs - 1)); do
        printf ' %d.%d' $((times[at] / 10)) $((times[at] % 10))
    done
}

printf '%-12s %-12s %s\n' manifests command 'ms: least, median, most'
for count in 1 1000 10000; do
    printf '%-12s %-12s%s\n' "$count" memgate "$(measure "$memgate" check --no-policies "$work/$count")"
    printf '%-12s %-12s%s\n' "$count" '20 policies' \
        "$(measure "$memgate" check --policy "$work/policies" "$work/$count")"
    if [ -x "$work/bin/kubeconform" ]; then
        printf '%-12s %-12s%s\n' "$count" kubeconform "$(measure "$work/bin/kubeconform" \
            -schema-location "$work/schemas/{{ .ResourceKind }}.json" "$work/$count")"
    else
        printf '%-12s %-12s %s\n' "$count" kubeconform 'not measured: Go is missing'
    fi
done
