# `just` lists these; CONTRIBUTING.md says when to use which.
set dotenv-load

_list:
    @just --list --unsorted

# Everything on this machine, with a private PostgreSQL.
dev:
    cargo run -- dev

# What is fast and must hold before a commit.
check:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --document-private-items

# All tests, as the README says.
test *ARGS:
    cargo test {{ ARGS }}

# One test, by a part of its name, with its output.
test-one NAME:
    cargo test {{ NAME }} -- --nocapture

# Accepts the changed snapshots: read the diff before you commit it.
bless:
    INSTA_UPDATE=always cargo test

# Writes `.sqlx/` after a statement or a migration has changed.
sqlx:
    .ci/sqlx --write

# Compares `.sqlx/` with the code.
sqlx-check:
    .ci/sqlx

# The database that DATABASE_URL (or `.env`) names.
psql:
    psql "$DATABASE_URL"

# Everything that CI checks, on Debian and as root.
ci:
    .ci/run
