#!/usr/bin/env bash
# Checks the linked crates against the RustSec advisories. Where their database cannot be fetched (a machine without
# network), this says so and succeeds; a found advisory is always a failure. `just advisories` is the same
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
# With what was fetched just now, so that a network failure from here on does not look like an advisory.
cargo deny --offline check advisories
