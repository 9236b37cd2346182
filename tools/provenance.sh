#!/usr/bin/env bash
# Prints the provenance of files: an in-toto statement (v1) with a predicate of SLSA (v1) on one line. It says from which
# commit, with which tools and by which command the files were built. The same files and commit give the same bytes.
#
#   sha256sum FILE... | tools/provenance.sh REVISION COMMAND [ARGUMENT]... > memgate.intoto.json
#
# Standard input names the files, as sha256sum prints them. REVISION is the commit that tools/build-static.sh noted beside
# the program, COMMAND the script that made the files. tools/RELEASE.md describes the fields. Needs jq.
#
#   MEMGATE_SOURCE   the address of the repository; without it the commit alone says where the files come from
#   MEMGATE_PAGES    the address of the directory docs, as for the build
#   MEMGATE_BUILDER  the address that stands for the builder, for a release that of the workflow; by default tools/RELEASE.md,
#                    which stands for the machine of a maintainer
set -euo pipefail
cd "$(dirname "$0")/.."

command -v jq > /dev/null || { echo "tools/provenance.sh: found no jq; install it (Debian, Ubuntu: jq)" >&2; exit 1; }
revision="${1:?a commit}"
command="${2:?a command}"
shift 2
# Without an address a URI that names the page in the commit.
page="${MEMGATE_PAGES:-file:docs}"
page="${page%/}"
page="${page%docs}tools/RELEASE.md"
rust=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
lock=$(sha256sum < Cargo.lock | cut -d ' ' -f 1)

jq --raw-input --slurp --compact-output \
    --arg source "${MEMGATE_SOURCE:-}" --arg page "$page" --arg revision "$revision" --arg command "$command" --arg rust "$rust" \
    --arg lock "$lock" --arg epoch "${SOURCE_DATE_EPOCH:-0}" \
    --arg builder "${MEMGATE_BUILDER:-$page}" '
    [split("\n")[] | select(. != "") | capture("^(?<sum>[0-9a-f]{64}) [ *](?<name>.+)$") // error("not a sum and a name: \(.)")] as $files
    | if $files == [] then error("no files on standard input") else . end
    | ($revision | rtrimstr("-dirty")) as $commit
    | ($ENV | with_entries(select((.key | IN("MEMGATE_SOURCE", "MEMGATE_PAGES", "MEMGATE_IMAGE", "MEMGATE_RELEASES"))
        and .value != ""))) as $addresses
    | {
        _type: "https://in-toto.io/Statement/v1",
        subject: [$files[] | {name, digest: {sha256: .sum}}],
        predicateType: "https://slsa.dev/provenance/v1",
        predicate: {
            buildDefinition: {
                buildType: "\($page)#provenance",
                externalParameters: {command: $command, arguments: $ARGS.positional, environment: $addresses},
                internalParameters: {SOURCE_DATE_EPOCH: $epoch, modified: ($commit != $revision)},
                resolvedDependencies: [
                    ((if $source == "" then {name: "memgate"} else {uri: "git+\($source)"} end) + {digest: {gitCommit: $commit}}),
                    {uri: "pkg:generic/rust@\($rust)"},
                    {name: "Cargo.lock", digest: {sha256: $lock}}
                ]
            },
            runDetails: {builder: {id: $builder}}
        }
    }' --args -- "$@"
