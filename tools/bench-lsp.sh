#!/usr/bin/env bash
# How long an edit takes until an editor has its marks, in a file of 500 lines among other manifests, and its CPU. The time
# contains the pause for which the server waits (`PAUSE` in crates/editor/src/session.rs).
#
#   tools/bench-lsp.sh [MEMGATE] [EDITS] [MANIFESTS]     default: target/release/memgate, 100 edits, 1,000 manifests
#
# Needs node 20 or newer with npm, which fetches the packages of tools/lsp.
set -euo pipefail
cd "$(dirname "$0")/.."

MEMGATE=$(realpath "${1:-target/release/memgate}")
tools=$PWD/target/bench-lsp
mkdir -p "$tools"
cp tools/lsp/package.json tools/lsp/package-lock.json "$tools"
npm ci --prefix "$tools" --ignore-scripts --no-audit --no-fund --loglevel=error
export MEMGATE NODE_MODULES="$tools/node_modules"
node tests/lsp/bench.mjs "${2:-100}" "${3:-1000}"
