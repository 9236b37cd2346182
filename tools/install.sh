#!/bin/sh
# Installs the memgate command line from a release: downloads the archive for this machine, checks its sum, and puts
# the program into a directory.
#
#   MEMGATE_RELEASES=URL sh install.sh [VERSION]
#
#   MEMGATE_RELEASES     the place of releases: below it, vVERSION/memgate-VERSION-SYSTEM-ARCHITECTURE.tar.gz and
#                        vVERSION/SHA256SUMS. https://, http:// or file://. The install.sh of a release knows its place.
#   MEMGATE_INSTALL_DIR  the directory of the program; ~/.local/bin by default
#
# Nothing is installed unless the sum is right. The sums come from the same place as the archive, so they find damage,
# but not an attacker who controls that place: tools/RELEASE.md says how to check a signature. Needs tar, sha256sum or
# shasum, and curl or wget.
set -eu

# tools/build-archives.sh writes the place of the release here.
RELEASES=

fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

# Downloads a URL into a file, whole or not at all.
fetch() {
    case $1 in
        file://*) cp "${1#file://}" "$2" 2> /dev/null || fail "found no ${1#file://}" ;;
        https://* | http://*)
            if command -v curl > /dev/null 2>&1; then
                # An https URL must not redirect to plain http.
                redirects='=http,https'
                case $1 in https://*) redirects='=https' ;; esac
                curl --fail --silent --show-error --location --proto-redir "$redirects" --retry 3 --output "$2" "$1" \
                    || fail "failed to fetch $1"
            elif command -v wget > /dev/null 2>&1; then
                wget --quiet --tries 3 --output-document "$2" "$1" || fail "failed to fetch $1"
            else
                fail "found neither curl nor wget"
            fi
            ;;
        *) fail "MEMGATE_RELEASES is not an https://, http:// or file:// URL: $1" ;;
    esac
}

sum() {
    if command -v sha256sum > /dev/null 2>&1; then
        sha256sum "$1"
    elif command -v shasum > /dev/null 2>&1; then
        shasum -a 256 "$1"
    else
        fail "found neither sha256sum nor shasum"
    fi | cut -d ' ' -f 1
}

main() {
    case ${1:-} in
        -h | --help)
            echo 'MEMGATE_RELEASES=URL [MEMGATE_INSTALL_DIR=DIRECTORY] sh install.sh [VERSION]'
            return
            ;;
        -*) fail "there is no option $1; see --help" ;;
    esac
    version="${1:-0.1.0}"
    version="${version#v}"
    releases="${MEMGATE_RELEASES:-$RELEASES}"
    [ -n "$releases" ] || fail "set MEMGATE_RELEASES to the place of releases, such as
  https://HOST/OWNER/memgate/releases/download or file:///path/to/releases"
    build='cargo install --locked --path . in a checkout builds memgate from its sources'
    case $(uname -s) in
        Linux) system=linux ;;
        Darwin) system=darwin ;;
        MINGW* | MSYS* | CYGWIN*) fail "on Windows, unpack memgate-$version-windows-x86_64.zip of $releases" ;;
        *) fail "there is no archive for $(uname -s); $build" ;;
    esac
    case $(uname -m) in
        x86_64 | amd64) architecture=x86_64 ;;
        aarch64 | arm64) architecture=aarch64 ;;
        *) fail "there is no archive for $(uname -m); $build" ;;
    esac
    name="memgate-$version-$system-$architecture"
    place="${releases%/}/v$version"
    directory="${MEMGATE_INSTALL_DIR:-${HOME:?is not set; set it or MEMGATE_INSTALL_DIR}/.local/bin}"

    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM
    fetch "$place/SHA256SUMS" "$scratch/SHA256SUMS"
    wanted=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$name\.tar\.gz\$/\1/p" "$scratch/SHA256SUMS")
    [ -n "$wanted" ] || fail "$place/SHA256SUMS has no $name.tar.gz"
    fetch "$place/$name.tar.gz" "$scratch/archive.tar.gz"
    found=$(sum "$scratch/archive.tar.gz")
    [ "$found" = "$wanted" ] || fail "$place/$name.tar.gz has the sum $found, not $wanted; nothing was installed"

    tar -x -z -f "$scratch/archive.tar.gz" -C "$scratch" "$name/memgate" || fail "$name.tar.gz does not hold memgate"
    mkdir -p "$directory"
    # Renamed within the directory, so that the program is never incomplete.
    cp "$scratch/$name/memgate" "$directory/.memgate-$$"
    chmod 755 "$directory/.memgate-$$"
    mv -f "$directory/.memgate-$$" "$directory/memgate"
    printf 'installed %s as %s\n' "$("$directory/memgate" --version)" "$directory/memgate"
    case ":${PATH:-}:" in
        *":$directory:"*) ;;
        *) printf 'note: %s is not in PATH\n' "$directory" ;;
    esac
}

# At the end, so that a script that was cut off does nothing.
main "$@"
