#!/bin/sh
# Installs the pinned tools that tests run, unless this was done after the last change of the pins.
set -eu
checked=target/tools/.checked
if [ -f "$checked" ] && [ -z "$(find tests/tools xtask/src/setup.rs xtask/src/setup -newer "$checked")" ]; then
    exit 0
fi
cargo xtask setup
touch "$checked"
