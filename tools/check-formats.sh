#!/usr/bin/env bash
# SARIF and JUnit files of memgate, judged by programs of others.
#
#   tools/check-formats.sh
#
# SARIF: `validate` of @microsoft/sarif-multitool, with the rules of the standard and those of GitHub's code scanning.
# JUnit: xmlschema, by the schema beside tests/formats. Each gets files of a clean run, of one with findings, of one with
# an input that cannot be read, and damaged ones, which it has to refuse. What `cargo test` finds by the same schemas
# needs none of this.
#
# Needs cargo, node with npm, and python3 with venv; npm and pip fetch the two programs into target/check-formats.
set -euo pipefail
cd "$(dirname "$0")/.."

MULTITOOL=5.7.0
XMLSCHEMA=4.3.2

fail() { echo "check-formats: $*" >&2; exit 1; }
for program in cargo node npm python3; do
    command -v "$program" > /dev/null || fail "there is no $program"
done

tools=$PWD/target/check-formats
mkdir -p "$tools"
npm install --silent --no-audit --no-fund --prefix "$tools" "@microsoft/sarif-multitool@$MULTITOOL"
sarif=$(node -p 'require(process.argv[1])' "$tools/node_modules/@microsoft/sarif-multitool")
chmod u+x "$sarif"
[ -x "$tools/venv/bin/pip" ] || python3 -m venv "$tools/venv"
"$tools/venv/bin/pip" install --quiet --disable-pip-version-check "xmlschema==$XMLSCHEMA"

cargo build --locked --quiet
memgate=${CARGO_TARGET_DIR:-$PWD/target}/debug/memgate
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What the two say about a file; each says nothing about a good one.
sarif_complaints() {
    "$sarif" validate "$1" --rule-kind 'Sarif;Ghas' --level 'Error;Warning' > "$work/said" 2>&1 || true
    grep -q '^Analysis completed successfully' "$work/said" || cat "$work/said"
    # A build that was not given the address of its pages names none.
    grep -E '\): (error|warning) ' "$work/said" | grep -v "SARIF2005: .*'informationUri'" || true
}
junit_complaints() {
    "$tools/venv/bin/python" - "$1" <<'PYTHON'
import sys, xmlschema
for error in xmlschema.XMLSchema("tests/formats/junit/junit-4.xsd").iter_errors(sys.argv[1]):
    print(error.path, error.reason)
PYTHON
}

expect_good() {
    local complaints
    complaints=$("$1" "$2")
    [ -z "$complaints" ] || fail "$2: $complaints"
}
expect_refused() {
    cmp -s "$2" "$3" && fail "$3 is not damaged"
    [ -n "$("$1" "$3")" ] || fail "$1 finds nothing in a damaged file"
}

# The name of a run, the exit code that it must have, and the paths.
run() {
    local name=$1 code=$2 got=0
    shift 2
    "$memgate" check "$@" -o "sarif=$work/$name.sarif" -o "junit=$work/$name.xml" 2> /dev/null || got=$?
    [ "$got" = "$code" ] || fail "memgate check $*: exit code $got, not $code"
    expect_good sarif_complaints "$work/$name.sarif"
    expect_good junit_complaints "$work/$name.xml"
    echo "$name: $(grep -c '"ruleId"' "$work/$name.sarif") results, $(grep -c '<testcase' "$work/$name.xml") tests: good"
}

# The inputs of a scenario of the command tests.
inputs=target/check-formats/inputs
rm -rf "$inputs" && mkdir "$inputs"
awk -v to="$inputs" '/^-- .* --$/ { file = to "/" $2; next } file { print > file }' tests/ui/check/format-sarif.txt

run clean 0 examples/arkonis
run dirty 1 "$inputs/bad.yaml" "$inputs/good.yaml" docs/tour
run unreadable 2 "$inputs"
sed 's/"startLine": [0-9]*/"startLine": 0/' "$work/dirty.sarif" > "$work/damaged.sarif"
expect_refused sarif_complaints "$work/dirty.sarif" "$work/damaged.sarif"
sed 's/<system-out>/<system-out level="warn">/' "$work/dirty.xml" > "$work/damaged.xml"
expect_refused junit_complaints "$work/dirty.xml" "$work/damaged.xml"
echo "damaged files are refused"
