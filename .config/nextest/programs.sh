#!/bin/sh
# Builds the fake language server that tests start, unless it is up to date.
# `cargo nextest run --workspace` has built it already; building it here would compile it again with other features.
set -eu
program="${CARGO_TARGET_DIR:-target}/debug/tenon-fake-lsp"
# `cargo xtask test` sets this.
if [ -n "${TENON_WORKSPACE_BUILT:-}" ] && [ -x "$program" ]; then
    exit 0
fi
if [ -x "$program" ] && [ -f "$program.d" ]; then
    # The dep-info file lists the sources. `find` fails when one of them is missing.
    sources=$(sed 's/^[^:]*: //' "$program.d")
    # shellcheck disable=SC2086
    if newer=$(find Cargo.lock $sources -newer "$program" 2>/dev/null) && [ -z "$newer" ]; then
        exit 0
    fi
fi
exec cargo build --quiet --package tenon-fake-lsp --bins
