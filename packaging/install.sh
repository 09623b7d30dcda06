#!/bin/sh
# Installs Tenon @VERSION@ for one user: downloads the archive of this system, checks its SHA-256 and copies program,
# manual pages and completions below one folder. It needs no root, starts nothing and changes no shell profile.
set -eu

version='@VERSION@'
from='@BASE_URL@'
to=

fail() {
    echo "error: $1" >&2
    [ -z "${2-}" ] || echo "  hint: $2" >&2
    exit 1
}

usage() {
    cat <<TEXT
Install Tenon $version

Usage: install.sh [--from URL|DIR] [--to DIR]

  --from URL|DIR  where the archive and SHA256SUMS are${from:+ [default: $from]}
  --to DIR        folder that gets bin/tenon, share/man and completions [default: ~/.local]
TEXT
}

while [ $# -gt 0 ]; do
    case $1 in
    --from | --to)
        [ $# -ge 2 ] || fail "\`$1\` needs a value" 'run it with `--help`'
        if [ "$1" = --from ]; then from=$2; else to=$2; fi
        shift 2
        ;;
    --help | -h)
        usage
        exit 0
        ;;
    *) fail "unknown argument \`$1\`" 'run it with `--help`' ;;
    esac
done

[ -n "$from" ] || fail 'no address to install from' 'add `--from URL`, or `--from DIR` for downloaded files'
if [ -z "$to" ]; then
    [ -n "${HOME-}" ] || fail '`HOME` is not set' 'add `--to DIR`'
    to=$HOME/.local
fi

# Whether version $1 is older than version $2; both are MAJOR.MINOR.
older() {
    [ "${1%%.*}" -lt "${2%%.*}" ] || { [ "${1%%.*}" -eq "${2%%.*}" ] && [ "${1#*.}" -lt "${2#*.}" ]; }
}

needed_glibc=
case $(uname -s)-$(uname -m) in
Linux-x86_64 | Linux-amd64)
    target=x86_64-unknown-linux-gnu
    needed_glibc='@GLIBC_X86_64@'
    ;;
Linux-aarch64 | Linux-arm64)
    target=aarch64-unknown-linux-gnu
    needed_glibc='@GLIBC_AARCH64@'
    ;;
Darwin-arm64) target=aarch64-apple-darwin ;;
*) fail "no binary for $(uname -s) on $(uname -m)" 'build from source with `cargo build --profile dist -p tenon`' ;;
esac
if [ -n "$needed_glibc" ]; then
    found_glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc \([0-9]*\.[0-9]*\).*/\1/p') || found_glibc=
    source_hint='build from source with `cargo build --profile dist -p tenon`'
    [ -n "$found_glibc" ] || fail "this system has no glibc; the binary needs glibc $needed_glibc" "$source_hint"
    if older "$found_glibc" "$needed_glibc"; then
        fail "this system has glibc $found_glibc; the binary needs glibc $needed_glibc" "$source_hint"
    fi
fi

if command -v sha256sum >/dev/null; then
    sum() { sha256sum "$1" | cut -d ' ' -f 1; }
elif command -v shasum >/dev/null; then
    sum() { shasum -a 256 "$1" | cut -d ' ' -f 1; }
else
    fail 'neither `sha256sum` nor `shasum` is installed' 'install coreutils'
fi

# Copies file $1 of the release to $2.
fetch() {
    case $from in
    http://* | https://*)
        if command -v curl >/dev/null; then
            curl --fail --silent --show-error --location --output "$2" "$from/$1"
        elif command -v wget >/dev/null; then
            wget -q -O "$2" "$from/$1"
        else
            fail 'neither `curl` nor `wget` is installed' 'install one, or download the files and add `--from DIR`'
        fi
        ;;
    *) cp "${from#file://}/$1" "$2" ;;
    esac || fail "cannot get \`$1\` from $from" 'check the address and the network'
}

work=$(mktemp -d) || fail 'cannot create a temporary folder' 'set `TMPDIR` to a folder that you may write to'
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

name=tenon-$version-$target
fetch SHA256SUMS "$work/SHA256SUMS"
fetch "$name.tar.gz" "$work/$name.tar.gz"
expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.gz\$/\1/p" "$work/SHA256SUMS")
[ -n "$expected" ] || fail "SHA256SUMS does not list \`$name.tar.gz\`" 'download the files again'
actual=$(sum "$work/$name.tar.gz")
if [ "$actual" != "$expected" ]; then
    fail "checksum of \`$name.tar.gz\` is $actual, expected $expected" 'download the files again; do not use this archive'
fi
tar -xzf "$work/$name.tar.gz" -C "$work" || fail "cannot unpack \`$name.tar.gz\`" 'check the free space of the temporary folder'

# Copies file $1 of the archive to $2 below the target folder; a running program keeps its old file.
place() {
    file=$to/$2
    { mkdir -p "$(dirname "$file")" && cp "$work/$name/$1" "$file.new.$$" && mv -f "$file.new.$$" "$file"; } || {
        rm -f "$file.new.$$"
        fail "cannot write \`$file\`" 'add `--to DIR` with a folder that you may write to'
    }
}

place tenon bin/tenon
for page in "$work/$name"/man/man1/*; do
    place "man/man1/${page##*/}" "share/man/man1/${page##*/}"
done
place completions/tenon.bash share/bash-completion/completions/tenon
place completions/_tenon share/zsh/site-functions/_tenon
place completions/tenon.fish share/fish/vendor_completions.d/tenon.fish

"$to/bin/tenon" --version >/dev/null || fail "\`$to/bin/tenon\` does not run" 'build from source with `cargo build --profile dist -p tenon`'
echo "Installed tenon $version: $to/bin/tenon"
echo "Manual pages and completions: $to/share"
case :$PATH: in
*":$to/bin:"*) ;;
*) echo "Add it to your PATH: export PATH=\"$to/bin:\$PATH\"" ;;
esac
echo 'Next: run `tenon up` in a workspace'
