#!/usr/bin/env bash
# What a release offers beside the image: for each system an archive with the program, its bill of materials, completions
# of shells, manual pages, examples, the licence and the changelog; install.sh; a formula for Homebrew and a plugin
# manifest for krew, which install the archives; the provenance of these; and the sums of all, which are what is signed.
# The same binaries give the same archives.
#
#   tools/build-archives.sh [--from DIRECTORY] [--out DIRECTORY] [SYSTEM-ARCHITECTURE]...
#
# What there can be is linux-x86_64, linux-aarch64, darwin-x86_64, darwin-aarch64 and windows-x86_64, by default what this
# machine is; tools/build-static.sh makes the programs, and comes first. They are looked for in target/static. The
# directory is target/releases, where that of the version is made anew: MEMGATE_RELEASES=file://$PWD/target/releases.
# MEMGATE_RELEASES is where the formula and the plugin manifest find the archives. They are made only if it is an https://
# address, which install.sh then knows too. MEMGATE_SOURCE is the address of the repository, by default the part before /releases/download.
# SOURCE_DATE_EPOCH is the time of all files; 0 by default. It needs jq, and for Windows python3.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'tools/build-archives.sh: %s\n' "$*" >&2; exit 1; }

from=target/static
out=target/releases
while [ $# -gt 0 ]; do
    case $1 in
        --from) from="${2:?a directory}" ;;
        --out) out="${2:?a directory}" ;;
        *) break ;;
    esac
    shift 2
done
own="linux-$(uname -m)"
[ $# -gt 0 ] || set -- "$own"
systems=("$@")
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
# A place of files is not one that Homebrew or krew can read.
releases=
case ${MEMGATE_RELEASES:-} in https://*) releases=${MEMGATE_RELEASES%/} ;; esac
homepage=${MEMGATE_SOURCE:-${releases%/releases/download}}
case $releases$homepage in *[!a-zA-Z0-9:/._~-]*) fail "not an address: $releases or $homepage" ;; esac
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-0}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# What Rust calls a system.
target() {
    case $1 in
        linux-*) echo "${1#*-}-unknown-linux-musl" ;;
        darwin-*) echo "${1#*-}-apple-darwin" ;;
        windows-x86_64) echo x86_64-pc-windows-gnu ;;
        *) fail "there is no archive for $1" ;;
    esac
}

# Python writes what zip does not: the same bytes for the same files.
zip_up() {
    python3 - "$1" "$2" << 'PYTHON'
import os, pathlib, sys, time, zipfile
folder, archive = pathlib.Path(sys.argv[1]), sys.argv[2]
# The format knows no time before 1980.
at = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        entry = zipfile.ZipInfo(path.relative_to(folder.parent).as_posix(), at)
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (path.stat().st_mode & 0xFFFF) << 16
        made.writestr(entry, path.read_bytes())
PYTHON
}

# Texts are the same for all systems; they come from the program that runs on this one.
memgate="$from/$(target "$own")/memgate"
[ -x "$memgate" ] || fail "found no $memgate, of which completions and manual pages come; tools/build-static.sh makes it"
texts="$scratch/texts"
install -d -m 0755 "$texts" "$texts/completions" "$texts/docs/tour"
"$memgate" completions bash > "$texts/completions/memgate.bash"
"$memgate" completions zsh > "$texts/completions/_memgate"
"$memgate" completions fish > "$texts/completions/memgate.fish"
"$memgate" completions powershell > "$texts/completions/_memgate.ps1"
"$memgate" man --dir "$texts/man/man1"
cp -R examples LICENSE CHANGELOG.md "$texts"
cp docs/tour/memory.yaml "$texts/docs/tour"
find "$texts" -type d -exec chmod 0755 {} + -o -exec chmod 0644 {} +

revision=$(cat "$from/$(target "$1")/revision")
out="$out/v$version"
rm -rf "$out"
mkdir -p "$out"
for system in "$@"; do
    built="$from/$(target "$system")"
    name="memgate-$version-$system"
    [ "$(cat "$built/revision")" = "$revision" ] || fail "$built is of another commit than $revision"
    cp -R "$texts" "$scratch/$name"
    install -m 0644 "$built/memgate.cdx.json" "$scratch/$name"
    if [ -e "$built/memgate.exe" ]; then
        install -m 0755 "$built/memgate.exe" "$scratch/$name"
        zip_up "$scratch/$name" "$out/$name.zip"
    else
        install -m 0755 "$built/memgate" "$scratch/$name"
        tar --create --directory "$scratch" --format ustar --sort name --owner 0 --group 0 --numeric-owner \
            --mtime "@$SOURCE_DATE_EPOCH" "$name" | gzip --no-name -9 > "$out/$name.tar.gz"
    fi
    rm -r "${scratch:?}/$name"
done

# The address and the sum of an archive, as `URL SUM`; nothing if it was not made.
archive() {
    local file="memgate-$version-$1"
    [ -e "$out/$file" ] || return 0
    echo "$releases/v$version/$file $(sha256sum "$out/$file" | cut -d ' ' -f 1)"
}

# A block of the formula for a system, from pairs of Homebrew's and our name of a processor.
formula_block() {
    local system=$1 ours=$2 entry blocks=
    for entry in arm:$3 intel:x86_64; do
        entry="${entry%%:*} $(archive "$ours-${entry#*:}.tar.gz")"
        # shellcheck disable=SC2086  # the address and the sum are words of their own
        set -- $entry
        [ $# -eq 3 ] || continue
        blocks+="    on_$1 do
      url \"$2\"
      sha256 \"$3\"
    end
"
    done
    [ -z "$blocks" ] || printf '\n  on_%s do\n%s  end\n' "$system" "$blocks"
}

description="Gives AI agents on Kubernetes their memory, and checks their manifests"

formula() {
    cat << RUBY
class Memgate < Formula
  desc "$description"
  homepage "$homepage"
  version "$version"
  license "Apache-2.0"
RUBY
    formula_block macos darwin aarch64
    formula_block linux linux aarch64
    cat << 'RUBY'

  def install
    bin.install "memgate"
    bash_completion.install "completions/memgate.bash" => "memgate"
    zsh_completion.install "completions/_memgate"
    fish_completion.install "completions/memgate.fish"
    man1.install Dir["man/man1/*.1"]
    pkgshare.install "examples"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/memgate --version")
    system bin/"memgate", "check", pkgshare/"examples/arkonis"
  end
end
RUBY
}

plugin() {
    local system platform ending program
    cat << YAML
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: memgate
spec:
  version: v$version
  homepage: $homepage
  shortDescription: Checks the memory of AI agents
  description: |
    $description:
    memory resources of agent platforms, what refers to them, agent pods and
    workloads. It also installs and examines the webhook that does so in a cluster.
  platforms:
YAML
    for system in linux-x86_64:linux/amd64 linux-aarch64:linux/arm64 darwin-x86_64:darwin/amd64 \
        darwin-aarch64:darwin/arm64 windows-x86_64:windows/amd64; do
        platform=${system#*:} system=${system%%:*} ending=tar.gz program=memgate
        case $system in windows-*) ending=zip program=memgate.exe ;; esac
        # shellcheck disable=SC2046  # the address and the sum are words of their own
        set -- $(archive "$system.$ending")
        [ $# -eq 2 ] || continue
        cat << YAML
    - selector:
        matchLabels: {os: ${platform%/*}, arch: ${platform#*/}}
      uri: $1
      sha256: $2
      bin: $program
      files:
        - {from: memgate-$version-$system/$program, to: .}
        - {from: memgate-$version-$system/LICENSE, to: .}
YAML
    done
}

if [ -n "$releases" ]; then
    formula > "$out/memgate.rb"
    plugin > "$out/memgate.krew.yaml"
else
    echo "tools/build-archives.sh: neither memgate.rb nor memgate.krew.yaml: MEMGATE_RELEASES is not an https:// address" >&2
fi

sed "s|^RELEASES=\$|RELEASES='$releases'|" tools/install.sh > "$out/install.sh"
chmod 0755 "$out/install.sh"
sums() { (cd "$out" && sha256sum ./memgate* ./install.sh | sed 's|\./||'); }
made=$(sums)
tools/provenance.sh "$revision" tools/build-archives.sh "${systems[@]}" <<< "$made" > "$out/memgate-$version.intoto.json"
sums | tee "$out/SHA256SUMS"
