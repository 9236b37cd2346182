#!/usr/bin/env bash
# Checks what is linked in against the RustSec advisories, where their database can be had. Where it cannot (a machine
# without a way to it), this says so and is no failure; a found advisory always is. `just advisories` is the same
# check that fails without the database.
#
# A mirror is named to git: git config --global url.MIRROR.insteadOf https://github.com/RustSec/advisory-db
set -euo pipefail
cd "$(dirname "$0")/.."

said=$(mktemp)
trap 'rm -f "$said"' EXIT
if ! timeout --kill-after=10 5m cargo deny fetch db index 2> "$said"; then
    sed 's/^/    /' "$said" >&2
    printf 'SKIPPED: advisories were NOT checked, for their database (or the index of crates) could not be fetched\n' >&2
    exit 0
fi
# With what was fetched just now, so that a network that fails from here on is no found advisory.
cargo deny --offline check advisories
