#!/usr/bin/env bash
# Long runs with numbers; results belong in stress/FAULTS.md and stress/PERFORMANCE.md.
#
#   tools/soak.sh                     lists the scenarios
#   tools/soak.sh rotations           leaves and CAs replaced under load
#   tools/soak.sh rotate              a new CA on request, and one that revokes the others, under load
#   tools/soak.sh wipes               caBundle wiped, over and over
#   tools/soak.sh overload            more reviews than can be decided
#   tools/soak.sh worst               the reviews that take the most time for their size, beside ordinary ones
#   tools/soak.sh NAME KEY=VALUE…     one of stress/tests/soak: restarts, kills, outage, races, scale, state, audit, day, hostile, greedy,
#                                     upgrade (tools/upgrade.sh builds what it needs)
#
# MEMGATE_SOAK_SECONDS is how long rotations and wipes go on.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
    rotations | rotate | wipes) exec cargo test --locked --release --test apiserver -- --ignored --nocapture --exact "certs::soak_$1" ;;
    overload | worst) exec cargo bench --locked --package memgate-stress --bench overload -- "$@" ;;
    "") sed -n '2,13s/^# \{0,1\}//p' "$0" && exec cargo test --locked --release --package memgate-stress --test soak ;;
    *) exec cargo test --locked --release --package memgate-stress --test soak -- "$@" ;;
esac
