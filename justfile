# Recipes are thin: what they run works by hand too. Logic is in .config/setup.sh and .ci/run.

set shell := ["bash", "-euo", "pipefail", "-c"]

[private]
default:
    @just --list --unsorted

# Set up what is missing, build, train the shipped agent on simulated desktops and watch it
[group('use')]
demo *args: setup
    cargo build --release
    cargo run --release --quiet --bin arpo -- train -p profiles/demo.toml {{ args }}

# Set up what is missing and run every test that can run here
[group('work')]
test: setup setup-ref setup-sidecar setup-desktops setup-vm
    @# Virtual machines last and alone: what they emulate takes all processors.
    status=0; cargo test --release --no-fail-fast -- --skip qemu:: || status=1; \
    cargo test --release --no-fail-fast qemu:: -- --test-threads=1 || status=1; exit $status

# Install libtorch into .venv
[group('set-up')]
setup:
    @.config/setup.sh torch

# Install the Python that numeric tests and benches compare with into .venv-ref (5 GB)
[group('set-up')]
setup-ref:
    @.config/setup.sh reference

# Install OSWorld's own evaluators, which ours are compared with, into .venv-sidecar (1 GB)
[group('set-up')]
setup-sidecar:
    @.config/setup.sh sidecar

# Install what real desktops are made of, where this is Debian and you are root; else say what is missing
[group('set-up')]
setup-desktops:
    @.config/setup.sh desktops

# Install what virtual machines need, where this is Debian and you are root, and make their image
[group('set-up')]
setup-vm:
    @.config/setup.sh vm

# Make the image of virtual machines in FOLDER, with LibreOffice Writer (0.9 GB, minutes)
[group('set-up')]
vm-image folder=".vm-image":
    @.config/vm-image.sh {{ quote(folder) }}

# Build and test `arpo` alone, without libtorch, as on a laptop
[group('work')]
test-console:
    cargo test --release --no-default-features --no-fail-fast

# Check formatting
[group('work')]
fmt-check:
    cargo fmt --check

# Lint both builds, with and without libtorch
[group('work')]
lint: setup
    cargo clippy --release --all-targets -- -D warnings
    cargo clippy --release --all-targets --no-default-features -- -D warnings

# Build the API documentation
[group('work')]
docs: setup
    RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps --lib

# Load, decode and learn on the GPU and compare with the CPU; ends with 2 where there is no GPU
[group('work')]
gpu-check *args: setup
    cargo build --release --bin arpo-engine
    cargo run --release --quiet --bin arpo-engine -- gpu-check {{ args }}

# What continuous integration runs
[group('work')]
ci:
    .ci/run
