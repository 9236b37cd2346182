#!/usr/bin/env bash
# The steps of a release beside the builds. .github/workflows/release.yml runs them in this order; tools/RELEASE.md says
# what a person does.
#
#   tools/release.sh addresses   that tag, version and changelog agree; prints the variables of the build, NAME=VALUE
#   tools/release.sh files       after the builds: puts image, chart, manifest, extension and bills of materials beside the
#                                archives in target/releases, with the provenance and the sums of all
#   tools/release.sh push        pushes the image and the chart; an image tag that exists with other content is an error
#   tools/release.sh draft       makes a draft release with all files, or replaces the files of that draft
#
# It reads GITHUB_REF_NAME (the tag), GITHUB_SERVER_URL, GITHUB_REPOSITORY and GITHUB_WORKFLOW_REF, which a runner sets;
# MEMGATE_IMAGE_NAME, the image without a tag, such as REGISTRY/OWNER/memgate; and for push REGISTRY_USER and
# REGISTRY_PASSWORD. None of these becomes part of a command: each is compared with what it may be.
#
# Needs git and jq; push also skopeo and helm, draft gh.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'tools/release.sh: %s\n' "$*" >&2; exit 1; }

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
tag=v$version
releases=target/releases/$tag
layout=target/image
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Bytes of other locales are not letters.
export LC_ALL=C
image_name() {
    [[ ${MEMGATE_IMAGE_NAME:-} =~ ^[a-z0-9][a-z0-9.:-]*(/[a-z0-9][a-z0-9._-]*)+$ ]] \
        || fail "MEMGATE_IMAGE_NAME is not REGISTRY/OWNER/memgate: '${MEMGATE_IMAGE_NAME:-}'"
    printf '%s' "$MEMGATE_IMAGE_NAME"
}

# The section of the changelog about this version.
notes() {
    awk -v heading="## [$version]" '
        index($0, heading) == 1 { inside = 1; next }
        inside && /^## \[/ { exit }
        inside { print }
    ' CHANGELOG.md
}

image_digest() {
    jq --raw-output --exit-status --arg name "$version" \
        '.manifests[] | select(.annotations["org.opencontainers.image.ref.name"] == $name) | .digest' "$layout/index.json"
}

sums() { (cd "$releases" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum); }

check_sums() {
    (cd "$releases" && sha256sum --check --quiet SHA256SUMS) || fail "the files are not those of $releases/SHA256SUMS"
}

addresses() {
    local source=${GITHUB_SERVER_URL:?}/${GITHUB_REPOSITORY:?} builder=${GITHUB_SERVER_URL}/${GITHUB_WORKFLOW_REF:?} name
    [ "${GITHUB_REF_NAME:?}" = "$tag" ] || fail "the tag is not $tag, the version of Cargo.toml: '$GITHUB_REF_NAME'"
    [ -n "$(notes)" ] || fail "CHANGELOG.md has no section ## [$version]"
    local address
    for address in "$source" "$builder"; do
        [[ $address =~ ^https://[A-Za-z0-9.:-]+(/[A-Za-z0-9._@+-]+)+$ ]] || fail "not an address: '$address'"
    done
    name=$(image_name)
    cat << END
MEMGATE_SOURCE=$source
MEMGATE_PAGES=$source/blob/$tag/docs
MEMGATE_RELEASES=$source/releases/download
MEMGATE_IMAGE=$name:$version
MEMGATE_BUILDER=$builder
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
END
}

# An archive with the same bytes for the same files: of the folder $1 the entry $2.
packed() {
    tar --create --directory "$1" --format ustar --sort name --owner 0 --group 0 --numeric-owner --mode 'u=rwX,go=rX' \
        --mtime "@${SOURCE_DATE_EPOCH:-0}" "$2"
}

files() {
    local program system target architecture image digest revision built
    digest=$(image_digest)
    program=target/static/$(uname -m)-unknown-linux-musl/memgate
    image=${MEMGATE_IMAGE:?}
    revision=$(cat "${program%/*}/revision")

    for system in linux-x86_64 linux-aarch64 darwin-x86_64 darwin-aarch64 windows-x86_64; do
        architecture=${system#*-}
        case $system in
            linux-*) target=$architecture-unknown-linux-musl ;;
            darwin-*) target=$architecture-apple-darwin ;;
            windows-*) target=$architecture-pc-windows-gnu ;;
        esac
        built=$(find "$releases" -name "memgate-$version-$system.*" ! -name '*.cdx.json')
        [ -n "$built" ] || fail "there is no archive for $system in $releases"
        install -m 0644 "target/static/$target/memgate.cdx.json" "$releases/memgate-$version-$system.cdx.json"
    done
    for architecture in x86_64 aarch64; do
        built=target/static/image/$architecture-unknown-linux-musl
        [ "$(cat "$built/revision")" = "$revision" ] || fail "$built is of another commit than $revision"
        install -m 0644 "$built/memgate.cdx.json" "$releases/memgate-$version-image-$architecture.cdx.json"
    done
    packed "$layout" . > "$releases/memgate-$version-image.tar"

    # The chart installs this image, and says where it is from.
    cp -RL deploy/helm/memgate "$scratch/memgate"
    sed -i "s|^  repository: \"\" # needed.*|  repository: \"${image%:*}\"|" "$scratch/memgate/values.yaml"
    grep -qxF "  repository: \"${image%:*}\"" "$scratch/memgate/values.yaml" || fail "values.yaml has no image.repository"
    printf 'home: %s\nsources: [%s]\n' "${MEMGATE_SOURCE:?}" "$MEMGATE_SOURCE" >> "$scratch/memgate/Chart.yaml"
    packed "$scratch" memgate | gzip --no-name -9 > "$releases/memgate-$version.tgz"

    "$program" manifests --image "$image@$digest" > "$releases/memgate.yaml"
    install -m 0644 "target/vscode/memgate-$version.vsix" "$releases"

    printf '%s  %s\n' "${digest#sha256:}" "${image%:*}" \
        | tools/provenance.sh "$revision" tools/build-image.sh x86_64 aarch64 > "$scratch/image.intoto.json"
    install -m 0644 "$scratch/image.intoto.json" "$releases/memgate-$version-image.intoto.json"
    # One statement about all files replaces the one about the archives.
    rm -f "$releases/memgate-$version.intoto.json"
    sums | tools/provenance.sh "$revision" tools/release.sh files > "$scratch/intoto.json"
    install -m 0644 "$scratch/intoto.json" "$releases/memgate-$version.intoto.json"
    sums | tee "$releases/SHA256SUMS"
}

push() {
    local name digest pushed
    name=$(image_name)
    digest=$(image_digest)
    check_sums
    # The password reaches the programs by their standard input, and both read one file of credentials.
    export REGISTRY_AUTH_FILE=$scratch/auth.json HELM_REGISTRY_CONFIG=$scratch/auth.json
    printf '%s' "${REGISTRY_PASSWORD:?}" \
        | skopeo login --username "${REGISTRY_USER:?}" --password-stdin "${name%%/*}"
    if skopeo inspect --raw "docker://$name:$version" > "$scratch/manifest" 2> "$scratch/error"; then
        pushed=sha256:$(sha256sum < "$scratch/manifest" | cut -d ' ' -f 1)
        [ "$pushed" = "$digest" ] || fail "$name:$version exists as $pushed, and tags are not moved"
    else
        # Anything but "there is no such tag" may hide one.
        grep -qiE 'manifest unknown|not found|name unknown' "$scratch/error" \
            || fail "cannot ask for $name:$version: $(cat "$scratch/error")"
        skopeo copy --all --preserve-digests "oci:$layout:$version" "docker://$name:$version"
    fi
    helm push "$releases/memgate-$version.tgz" "oci://${name%/*}/charts"
}

draft() {
    local name digest is_draft
    name=$(image_name)
    digest=$(image_digest)
    check_sums
    {
        notes
        printf '\nImage: `%s:%s@%s`\n\nChart: `oci://%s/charts/memgate`, version %s\n' \
            "$name" "$version" "$digest" "${name%/*}" "$version"
    } > "$scratch/notes.md"
    export GH_REPO=${GITHUB_REPOSITORY:?}
    if is_draft=$(gh release view "$tag" --json isDraft --jq .isDraft 2> /dev/null); then
        [ "$is_draft" = true ] || fail "$tag is published, and releases are not changed"
        gh release upload "$tag" --clobber "$releases"/*
    else
        gh release create "$tag" --draft --verify-tag --title "memgate $version" --notes-file "$scratch/notes.md" \
            "$releases"/*
    fi
}

case ${1:-} in
    addresses | files | push | draft) "$1" ;;
    *) fail "addresses, files, push or draft?" ;;
esac
