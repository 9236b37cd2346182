# Each recipe is one plain command, so it works where `just` is missing.

default:
    @just --list

# Rewrite the sources as rustfmt wants them
fmt:
    cargo fmt

# Formatting and lints, warnings denied
lint:
    cargo fmt --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# The tests that need Rust, a C compiler and git only; `just test NAME` for some of them
test *FILTER:
    cargo test --locked {{FILTER}}

# Also those that need Go, node, python3, curl, vim, Neovim, Emacs or Chromium
test-all *FILTER:
    MEMGATE_TESTS=all cargo test --locked {{FILTER}}

# What the core alone has: its cases, properties, reading and rewriting of manifests
core *FILTER:
    cargo test --locked --package memgate-core {{FILTER}}

# The project's own case files through the binary
cases *FILTER:
    cargo run --locked --quiet -- test tests/cases {{FILTER}}

# Write the expected output of the command tests anew, to be read in the diff
bless:
    BLESS=1 cargo test --locked --test ui

# Draw the pictures of README anew, from what memgate prints
pictures:
    BLESS=1 cargo test --locked --test readme pictures

# Take the pictures of the page for browsers anew; needs node and Chromium
page-pictures:
    BLESS=1 cargo test --locked --test browser -- --include-ignored pictures

# Write the base of deploy/kustomize, the tables of the chart, stress/ATTACKS.md and the threats of SECURITY.md, anew
generate:
    BLESS=1 cargo test --locked --test deploy --test documents -- kustomize:: helm:: attacks::

# List anew what a platform's own definitions ask: `just shape ark ../ark/config/crd/bases/*.yaml`; `git diff` says what moved
shape NAME *FILES:
    SHAPE_NAME={{NAME}} SHAPE_FILES="{{FILES}}" cargo test --locked --test documents -- --ignored --exact shapes::write_a_list

# Only what runs against the real kube-apiserver; with MEMGATE_TEST_CASES=all every case of tests/cases
apiserver *FILTER:
    MEMGATE_TESTS=all cargo test --locked --test apiserver {{FILTER}}

# The same against another version of Kubernetes: `just kubernetes 1.33` for all of it
kubernetes VERSION *FILTER:
    MEMGATE_TESTS=all MEMGATE_TEST_KUBERNETES={{VERSION}} cargo test --locked --test apiserver {{FILTER}}

# Bad input and bad callers against the program
attack *FILTER:
    cargo test --locked --package memgate-stress --test attack {{FILTER}}

# Damaged input for one target (or all) for so many seconds each; what goes wrong is kept in stress/tests/fuzz/corpus
fuzz TARGET="" SECONDS="60":
    MEMGATE_FUZZ_SECONDS={{SECONDS}} cargo test --locked --release --package memgate-stress --test fuzz -- fuzz::{{TARGET}}

# The same guided by coverage, with a nightly toolchain and cargo-fuzz, for one of review, yaml, policy and crd (or all)
fuzz-guided TARGET="all" SECONDS="60":
    tools/fuzz-guided.sh {{TARGET}} {{SECONDS}}

# Long runs with numbers: `just soak` lists them
soak *ARGS:
    tools/soak.sh {{ARGS}}

# From the build of an older commit to this one and back, under calls: `just upgrade HEAD~1`
upgrade BASE *ARGS:
    tools/upgrade.sh {{BASE}} {{ARGS}}

# What inputs cost, against their bounds: `just cost` lists the ways, `just cost search` is the full one
cost *ARGS:
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 cargo test --locked --release --package memgate-stress --test cost -- {{ARGS}}

# The control plane for the tests, built ahead of time
envtest:
    MEMGATE_TESTS=all cargo test --locked --test apiserver -- --exact control_plane::reports_its_version
    MEMGATE_TESTS=all MEMGATE_TEST_KUBERNETES=1.33 cargo test --locked --test apiserver -- --exact control_plane::reports_its_version

# SARIF and JUnit files, judged by programs of others that npm and pip fetch
formats:
    tools/check-formats.sh

# The action, the template of GitLab, the hooks and the pipelines of the documents, judged by programs of others
pipelines:
    tools/check-pipelines.sh

# The extension for Visual Studio Code, as target/vscode/memgate-VERSION.vsix
vscode:
    tools/build-vscode.sh

# How long `check` takes, beside kubeconform where there is Go
bench-cli *ARGS:
    tools/bench-cli.sh {{ARGS}}

# How long the language server takes from an edit to its marks
bench-lsp *ARGS:
    tools/bench-lsp.sh {{ARGS}}

# Ten intents over 10,000 objects, beside Kyverno, Gatekeeper and ValidatingAdmissionPolicies where there is Go
bench-policies *ARGS:
    tools/bench-policies.sh {{ARGS}}

# The documentation of the crate
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items

# Licences, duplicate versions and sources of everything that is linked in
deny:
    cargo deny check bans licenses sources

# Known vulnerabilities; needs the advisory database
advisories:
    cargo deny check advisories

# The request path beside its limit and a webhook in Go, alone and through an apiserver, for stress/PERFORMANCE.md; `just bench short` is for a look
bench *ARGS:
    tools/bench.sh {{ARGS}}

# Every table of stress/PERFORMANCE.md anew
performance:
    tools/bench.sh
    tools/instructions.sh write

# The same of another commit and of this one, in turn: `just bench-compare HEAD~1`
bench-compare BASE:
    tools/bench.sh compare {{BASE}}

# Instructions and allocations beside those of the last time; `just instructions write` keeps the new ones
instructions *ARGS:
    tools/instructions.sh {{ARGS}}

# Speed in process: `just bench-process request`; results belong in stress/PERFORMANCE.md
bench-process NAME *FILTER:
    cargo bench --locked --package memgate-stress --bench {{NAME}} -- {{FILTER}}

# The static binary, its bill of materials and the image of both (target/image), and the tests of all three
image:
    tools/build-static.sh --image
    tools/build-image.sh
    cargo test --locked --test image -- --include-ignored

# The same for x86-64 and arm64, one of them cross-compiled with Zig: what is released
image-all:
    tools/build-static.sh --image x86_64-unknown-linux-musl
    tools/build-static.sh --image aarch64-unknown-linux-musl
    tools/build-image.sh x86_64 aarch64
    cargo test --locked --test image -- --include-ignored

# What a release has to download, below target/releases, from what tools/build-static.sh has built
archives *SYSTEMS:
    tools/build-archives.sh {{SYSTEMS}}

# The last commit built twice in two directories: binary, bill of materials and image must be the same bytes
reproduce *TARGET:
    tools/reproduce.sh {{TARGET}}

# What must pass before a change lands
ci:
    .ci/run

# Everything else, or some steps of it: `just night cost attack`
night *STEPS:
    .ci/night {{STEPS}}
