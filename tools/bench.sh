#!/usr/bin/env bash
# The request path beside its limit and beside a webhook of the usual kind in Go: throughput, latency, handshakes, memory
# and growth over TLS, where the server that is measured has one core and the load another one; and what is added to the
# creation of pods through a real kube-apiserver (stress/benches/wire.rs).
#
#   tools/bench.sh              everything, in a quarter of an hour after the builds, on an otherwise idle machine; writes
#                               the tables of stress/PERFORMANCE.md, stress/pictures and stress/benches/results
#   tools/bench.sh write        measures nothing: the tables and pictures anew from stress/benches/results
#   tools/bench.sh short        a minute of it with unoptimized builds, to see that it runs and that answers are
#                               right; writes nothing, and no time makes it fail
#   tools/bench.sh compare BASE the same builds of another commit and of this one, in turn, without an apiserver
#
# Needs two cores, taskset and chrt, and the control plane of the tests (CONTRIBUTING.md). The peer
# (stress/benches/peers/controller-runtime) needs Go, and the static binary is measured when tools/build-static.sh --image has built it
# from this commit; without them their rows are missing.
set -euo pipefail
cd "$(dirname "$0")/.."

target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
mode="${1:-full}"
load_core=1
[ "$(nproc)" -ge 2 ] || { echo "tools/bench.sh: the server and the load need a core each" >&2; exit 1; }

# Builds the bench with this profile, and sets `wire` to its path. It comes before `cargo build`: with it Cargo builds
# memgate too, with what only tests ask of its dependencies.
build_bench() {
    local built
    built="$(cargo bench --locked --package memgate-stress --profile "$1" --bench wire --no-run --message-format json)"
    wire="$(sed -n 's/.*"executable":"\([^"]*\/wire-[^"]*\)".*/\1/p' <<< "$built")"
}

build_release() { cargo build --locked --release --package memgate --bin memgate; }

MEMGATE_BENCH_COMMIT="$(git describe --always --dirty --exclude '*')"
MEMGATE_BENCH_DATE="$(date -u +%Y-%m-%d)"
export MEMGATE_BENCH_COMMIT MEMGATE_BENCH_DATE
case "$mode" in
    full)
        build_bench bench
        build_release
        programs=("memgate=$target/release/memgate")
        static="target/static/image/$(uname -m)-unknown-linux-musl"
        if [ "$(cat "$static/revision" 2> /dev/null)" = "$(git rev-parse HEAD)" ]; then
            programs+=("static=$static/memgate")
        fi ;;
    short)
        # Built together with the bench.
        build_bench test
        programs=("memgate=$target/debug/memgate") ;;
    write)
        build_bench test
        exec "$wire" write ;;
    compare)
        base="$(git rev-parse --verify "${2:?which commit is the other one?}^{commit}")"
        source="$target/bench-compare/source"
        clean_up() { git worktree remove --force "$source" 2> /dev/null || rm -rf "$source"; }
        trap clean_up EXIT
        clean_up
        git worktree add --quiet --detach "$source" "$base"
        # From its own directory, so that its own toolchain and settings count.
        (cd "$source" && CARGO_TARGET_DIR="$target/bench-compare/build" build_release)
        build_bench bench
        build_release
        name="$(git describe --always --exclude '*' "$base")"
        programs=("$name=$target/bench-compare/build/release/memgate"
            "$MEMGATE_BENCH_COMMIT=$target/release/memgate") ;;
    *) sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
if [ "$mode" != compare ]; then
    of_cluster=("${programs[0]}")
    if command -v go > /dev/null; then
        peer="$target/peers/controller-runtime"
        (cd stress/benches/peers/controller-runtime && go build -trimpath -o "$peer" .)
        programs+=("peer=$peer")
        of_cluster+=("peer=$peer")
    fi
    if command -v openssl > /dev/null; then
        programs+=("openssl=$(command -v openssl)")
    fi
    # On all cores, as it gives its processes theirs. The second run writes the page, with the results of both.
    "$wire" cluster "$mode" "${of_cluster[@]}"
fi
taskset -c "$load_core" "$wire" "$mode" "${programs[@]}"
