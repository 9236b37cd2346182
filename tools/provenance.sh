#!/usr/bin/env bash
# Prints the provenance of files: an in-toto statement (v1) with a predicate of SLSA (v1) on one line. It says from which
# commit, with which tools and by which command the files were built. The same files and commit give the same bytes.
#
#   sha256sum FILE... | tools/provenance.sh REVISION COMMAND [ARGUMENT]... > memgate.intoto.json
#
# Standard input names the files, as sha256sum prints them. REVISION is the commit that tools/build-static.sh noted beside
# the program, COMMAND the script that made the files. MEMGATE_BUILDER is the address that stands for the builder, for a
# release the one of the workflow; by default a maintainer's machine. docs/release.md describes the fields. Needs jq.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v jq > /dev/null || { echo "tools/provenance.sh: found no jq; install it (Debian, Ubuntu: jq)" >&2; exit 1; }
revision="${1:?a commit}"
command="${2:?a command}"
shift 2
homepage=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
rust=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
lock=$(sha256sum < Cargo.lock | cut -d ' ' -f 1)

jq --raw-input --slurp --compact-output \
    --arg homepage "$homepage" --arg revision "$revision" --arg command "$command" --arg rust "$rust" \
    --arg lock "$lock" --arg epoch "${SOURCE_DATE_EPOCH:-0}" \
    --arg builder "${MEMGATE_BUILDER:-$homepage/blob/main/docs/release.md}" '
    [split("\n")[] | select(. != "") | capture("^(?<sum>[0-9a-f]{64}) [ *](?<name>.+)$") // error("not a sum and a name: \(.)")] as $files
    | if $files == [] then error("no files on standard input") else . end
    | ($revision | rtrimstr("-dirty")) as $commit
    | {
        _type: "https://in-toto.io/Statement/v1",
        subject: [$files[] | {name, digest: {sha256: .sum}}],
        predicateType: "https://slsa.dev/provenance/v1",
        predicate: {
            buildDefinition: {
                buildType: "\($homepage)/blob/main/docs/release.md#provenance",
                externalParameters: {command: $command, arguments: $ARGS.positional},
                internalParameters: {SOURCE_DATE_EPOCH: $epoch, modified: ($commit != $revision)},
                resolvedDependencies: [
                    {uri: "git+\($homepage)", digest: {gitCommit: $commit}},
                    {uri: "pkg:generic/rust@\($rust)"},
                    {name: "Cargo.lock", digest: {sha256: $lock}}
                ]
            },
            runDetails: {builder: {id: $builder}}
        }
    }' --args -- "$@"
