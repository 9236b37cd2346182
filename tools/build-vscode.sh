#!/usr/bin/env bash
# The extension for Visual Studio Code as a file: target/vscode/memgate-VERSION.vsix.
#
#   tools/build-vscode.sh
#
# Checks the types, bundles editors/vscode with its packages into one file, collects their licences, and packs it. The
# same sources give the same bytes. Needs node 20 or newer with npm, which fetches the packages of package-lock.json.
# MEMGATE_SOURCE is the address of the repository, which the manifest and a message then name.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "build-vscode: $*" >&2; exit 1; }
for program in node npm; do
    command -v "$program" > /dev/null || fail "there is no $program"
done

work=$PWD/target/vscode
mkdir -p "$work/source"
# Another run may pack it at the same time, such as that of a test.
exec 9> "$work/lock"
if command -v flock > /dev/null; then flock 9; fi
find "$work/source" -mindepth 1 -maxdepth 1 ! -name node_modules -exec rm -rf {} +
cp -RL editors/vscode/. "$work/source"
cd "$work/source"
if ! cmp -s package-lock.json "$work/installed"; then
    rm -f "$work/installed"
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    cp package-lock.json "$work/installed"
fi
version=$(node -p "require('./package.json').version")
if [ -n "${MEMGATE_SOURCE:-}" ]; then
    # Through the environment, so that no text becomes part of a program.
    node - << 'NODE'
const { readFileSync, writeFileSync } = require('node:fs');
const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const url = process.env.MEMGATE_SOURCE;
Object.assign(manifest, { repository: { type: 'git', url, directory: 'editors/vscode' }, bugs: { url: `${url}/issues` } });
writeFileSync('package.json', `${JSON.stringify(manifest, null, 2)}\n`);
NODE
fi
# A fixed time for the entries of the archive.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}
npx --no-install vsce package --no-dependencies --allow-missing-repository --out "$work/memgate-$version.vsix" >&2
echo "$work/memgate-$version.vsix"
