#!/usr/bin/env bash
# What CI systems read of this repository, judged by programs of others: check-jsonschema has the schemas of SchemaStore
# and GitLab, actionlint reads workflows with their expressions and jobs, and pre-commit knows its own hooks.
#
#   tools/check-pipelines.sh
#
# Judged are action.yml, ci/memgate.gitlab-ci.yml, .pre-commit-hooks.yaml, .github, and the pipelines of README and
# docs/ci.md. A damaged copy of each has to be refused. That their commands work, `cargo test --test install --test formats`
# shows.
#
# Needs python3 with venv, and Go; pip and Go fetch the three programs into target/check-pipelines.
set -euo pipefail
cd "$(dirname "$0")/.."

CHECK_JSONSCHEMA=0.39.0
PRE_COMMIT=4.7.0

fail() { echo "check-pipelines: $*" >&2; exit 1; }
for program in python3 go; do
    command -v "$program" > /dev/null || fail "there is no $program"
done

venv=$PWD/target/check-pipelines/venv
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check \
    "check-jsonschema==$CHECK_JSONSCHEMA" "pre-commit==$PRE_COMMIT"
actionlint=$PWD/target/check-pipelines/actionlint
(cd tools/actionlint && go build -o "$actionlint" github.com/rhysd/actionlint/cmd/actionlint)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Whether a file is what a schema or pre-commit wants of it.
judge() {
    case $1 in
        hooks) "$venv/bin/pre-commit" validate-manifest "$2" ;;
        configuration) "$venv/bin/pre-commit" validate-config "$2" ;;
        # It would use these programs where they are installed, and only there.
        actionlint) "$actionlint" -shellcheck= -pyflakes= "$2" ;;
        *) "$venv/bin/check-jsonschema" --builtin-schema "vendor.$1" "$2" ;;
    esac > "$work/said" 2>&1
}

# A file must be good, and must not be any more once sed has damaged it.
held() {
    local kind=$1 file=$2 damage=$3
    judge "$kind" "$file" || { cat "$work/said"; fail "$file is not what $kind says"; }
    sed "$damage" "$file" > "$work/damaged.yaml"
    cmp -s "$file" "$work/damaged.yaml" && fail "$file cannot be damaged by $damage"
    judge "$kind" "$work/damaged.yaml" && fail "$kind finds nothing in a damaged $file"
    echo "$kind: ${file##*/} is good, and refused when damaged"
}

held github-actions action.yml 's/using: composite/using: compost/'
# The schema lets a hidden job be anything, so this one is shown.
sed 's/^\.memgate:/memgate:/' ci/memgate.gitlab-ci.yml > "$work/template.yaml"
held gitlab-ci "$work/template.yaml" 's/when: always/when: never again/'
for file in .github/workflows/*.yml; do
    held github-workflows "$file" 's/runs-on:/run-son:/'
    # A title becomes part of a command.
    held actionlint "$file" 's/ run: / run: echo "${{ github.event.pull_request.title }}"; /'
done
held actionlint .github/workflows/release.yml 's/needs: build/needs: built/'
for file in .github/ISSUE_TEMPLATE/*.yml; do
    case $file in
        */config.yml) held github-issue-config "$file" 's/url:/urls:/' ;;
        *) held github-issue-forms "$file" 's/type: textarea/type: text/' ;;
    esac
done
held hooks .pre-commit-hooks.yaml 's/language: system/language: sysstem/'

# The pipelines of the documents, each in a file that is named for the kind that it is by its keys.
awk -v to="$work/documents." '
    /^```yaml$/ { text = kind = ""; inside = 1; next }
    /^```$/ && inside {
        inside = 0
        if (kind != "") { file = to kind "." ++count ".yaml"; printf "%s", text > file; close(file) }
        next
    }
    inside {
        text = text $0 "\n"
        if (/^jobs:/) kind = "github-workflows"
        if (/^(memgate|include):/) kind = "gitlab-ci"
        if (/^pool:/) kind = "azure-pipelines"
        if (/^repos:/) kind = "configuration"
    }
' README.md docs/ci.md
for kind in github-workflows gitlab-ci azure-pipelines configuration; do
    case $kind in
        github-workflows) damage='s/runs-on:/run-son:/' ;;
        gitlab-ci) damage='s/^  script:/  script: {}\n  scripts:/; s/^    file: .*/    file: {}/' ;;
        azure-pipelines) damage='s/^steps:/step:/' ;;
        configuration) damage='s/repo:/repro:/' ;;
    esac
    ls "$work/documents.$kind".*.yaml > /dev/null 2>&1 || fail "the documents have no $kind"
    for file in "$work/documents.$kind".*.yaml; do
        held "$kind" "$file" "$damage"
        [ "$kind" != github-workflows ] || held actionlint "$file" 's/runs-on:/runs-in:/'
    done
done
