#!/usr/bin/env bash
# How many instructions and allocations memgate takes for what it does most, and how often a review misses the caches of a
# server and its branches are predicted wrongly, counted by callgrind, beside those of
# stress/benches/results/instructions.txt (stress/counts).
#
#   tools/instructions.sh        prints the differences. More than 5 % more are an error, unless CHANGELOG.md has a line
#                                that says why, with the name of the row, its number in the file, and the new one:
#                                Instructions of `review.pod_4_kb`: 196646 -> 210000, because …
#   tools/instructions.sh write  the same, and then writes the file anew
#
# Needs valgrind. Built without link-time optimization, so that CI can afford it. The counts do not depend on the load of
# the machine, but on the versions of Rust, glibc and valgrind, and a little on what the processor can do.
set -euo pipefail
cd "$(dirname "$0")/.."

results=stress/benches/results/instructions.txt
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
version="$(sed -n 's/^gungraun = "=\(.*\)"$/\1/p' Cargo.toml)"
GUNGRAUN_RUNNER="$(tools/cargo-tool.sh gungraun-runner "$version")"
export GUNGRAUN_RUNNER GUNGRAUN_HOME="$target/gungraun"
export CARGO_PROFILE_BENCH_LTO=off CARGO_PROFILE_BENCH_CODEGEN_UNITS=1
rm -rf "$GUNGRAUN_HOME"
mkdir -p "$target"
log="$target/instructions.log"
bench() { cargo bench --locked --quiet --package memgate-counts "$@"; }
bench --bench instructions --bench commands > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
allocations="$(bench --bench allocations)"

# A row for each file of callgrind. The rows of answers and reviews are of one of the hundred that are counted together.
counted() {
    find "$GUNGRAUN_HOME" -name 'callgrind.*.out' | sort | while read -r file; do
        row="$(basename "$file" .out)"
        row="${row#callgrind.}"
        # One file for each thread.
        row="${row%.t[0-9]*.p[0-9]*}"
        case "$row" in answer.* | review.*) share=100 ;; *) share=1 ;; esac
        awk -v row="$row" -v share="$share" '
            /^events:/ { for (at = 2; at <= NF; at++) place[$at] = at }
            /^(summary|totals):/ { for (event in place) count[event] = $place[event] }
            END {
                printf "%-42s %12.0f\n", row, count["Ir"] / share
                if (!("Bcm" in count)) exit
                sub(/^(answer|review)/, "", row)
                printf "misses%-36s %12.0f\n", row, (count["I1mr"] + count["D1mr"] + count["D1mw"]) / share
                printf "mispredictions%-28s %12.0f\n", row, (count["Bcm"] + count["Bim"]) / share
            }' "$file"
    done | awk '{ all[$1] += $2 } END { for (row in all) printf "%-42s %12.0f\n", row, all[row] }' | sort
    awk '{ printf "%-42s %12d\n", $1, $2 }' <<< "$allocations"
}

counted > "$target/instructions.txt"
touch "$results"
awk -v results="$results" -v changelog=CHANGELOG.md -v writes="${1:-}" '
    BEGIN {
        while ((getline line < results) > 0) { split(line, field, " "); before[field[1]] = field[2] }
        while ((getline line < changelog) > 0)
            if (match(line, /Instructions of `[^`]*`: [0-9]+ -> [0-9]+,/)) {
                split(substr(line, RSTART, RLENGTH), part, "`")
                split(part[3], number, /[^0-9]+/)
                explained[part[2] " " number[2]] = number[3]
            }
        printf "%-42s %12s %12s %11s\n", "", "now", "before", "difference"
    }
    {
        old = before[$1]
        seen[$1] = 1
        growth = old > 0 ? ($2 - old) / old * 100 : 0
        printf "%-42s %12.0f %12.0f %+9.2f %%\n", $1, $2, old, growth
        if (old == "" && writes != "write") { print $1 ": not in " results ": write it" > "/dev/stderr"; failed = 1 }
        # The number in the changelog may be a hundredth less.
        # Misses depend on where the linker puts functions: they are shown, and no growth is an error.
        if (growth > 5 && $1 !~ /^mis/ && $2 > explained[$1 " " old] * 1.01) {
            printf "%s: %.2f %% more, and no line in %s says why\n", $1, growth, changelog > "/dev/stderr"
            failed = 1
        }
    }
    END {
        for (row in before)
            if (!(row in seen) && writes != "write") {
                print row ": not counted any more: write " results > "/dev/stderr"
                failed = 1
            }
        exit failed
    }
' "$target/instructions.txt"
if [ "${1:-}" = write ]; then
    mv "$target/instructions.txt" "$results"
fi
