#!/usr/bin/env bash
# Fuzzes a reader, or each one, for so many seconds, guided by coverage. What goes wrong is kept below stress/guided/artifacts; new
# inputs stay in stress/guided/target. Without a nightly toolchain or cargo-fuzz it only reports that.
#
#   tools/fuzz-guided.sh [review|yaml|policy|crd|all] [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:-all}
seconds=${2:-60}
[ "$target" = all ] && targets=(review yaml policy crd) || targets=("$target")

if ! rustup toolchain list 2> /dev/null | grep -q '^nightly'; then
    echo "not fuzzed with coverage: there is no nightly toolchain" >&2
    exit 0
fi
if ! fuzz=$(tools/cargo-tool.sh cargo-fuzz 0.13.2 2> /dev/null); then
    echo "not fuzzed with coverage: cargo-fuzz cannot be installed" >&2
    exit 0
fi
export RUSTUP_TOOLCHAIN=nightly
for target in "${targets[@]}"; do
    new="$PWD/stress/guided/target/corpus/$target"
    mkdir -p "$new"
    # Without a sanitizer: memgate has no `unsafe` code, and this is twice as fast.
    "$fuzz" fuzz run --fuzz-dir stress/guided --sanitizer none "$target" "$new" "stress/guided/corpus/$target" -- \
        -max_total_time="$seconds" -max_len=16384 -timeout=10 -print_final_stats=1 -verbosity=0
done
