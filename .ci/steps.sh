# shellcheck shell=bash
# What .ci/run and .ci/night share. A step runs to its end whatever became of the ones before it, so that one run shows
# everything that is wrong.

export CARGO_TERM_COLOR=never
# Some tests open thousands of connections. A machine often allows more files than a shell begins with.
ulimit -n "$(ulimit -Hn)"

times=()
failed=()

# What takes longer than this hangs.
hour=(timeout --kill-after=30 60m)

# step NAME COMMAND [ARG…]; a function sees to its time itself.
step() {
    local name=$1 start=$SECONDS result=
    shift
    [ "$(type -t "$1")" != file ] || set -- "${hour[@]}" "$@"
    printf '\n== %s\n' "$name" >&2
    "$@" || result=': failed'
    [ -z "$result" ] || failed+=("$name")
    times+=("$(printf '%5d s  %s%s' $((SECONDS - start)) "$name" "$result")")
    printf '== %s: %s s%s\n' "$name" $((SECONDS - start)) "$result" >&2
}

# Prints the time of each step, the sum, and the names of the steps that failed. Fails if one did.
summary() {
    printf '\n%s\n' "Time of each step:"
    printf '%s\n' "${times[@]}"
    printf '%5d s  in all\n' "$SECONDS"
    [ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[*]}"; return 1; }
}

# The path of a program that Cargo installs, in this version.
cargo_deny() {
    command -v cargo-deny || tools/cargo-tool.sh cargo-deny 0.20.2
}
