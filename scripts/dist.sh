#!/bin/sh
# Makes target/dist/heapmark-VERSION-ARCH-linux-gnu.tar.gz: the program, manual pages, completions, licences and checksums; prints the
# oldest glibc on which it runs. The program is built by `make build`.
set -eu
cd "$(dirname "$0")/.."
program=$PWD/target/release/heapmark
[ -x "$program" ] || { echo "dist: no $program: make build" >&2; exit 1; }

name=$("$program" --version | tr ' ' -)-$(uname -m)-linux-gnu
to=target/dist/$name
rm -rf target/dist
mkdir -p "$to/bin" "$to/share/man/man1" "$to/share/completions"
cp "$program" "$to/bin/"
cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT docs/INSTALL.md "$to/"
"$program" man "$to/share/man/man1" 2>/dev/null
for shell in bash zsh fish; do
    "$program" completions "$shell" >"$to/share/completions/heapmark.$shell"
done

# The names of symbols' versions, of the program and of the files that it carries: the newest is the oldest glibc.
grep -aoE 'GLIBC_[0-9]+(\.[0-9]+)+' "$program" | sort -uV | tail -n 1 | sed 's/GLIBC_/glibc /' >"$to/NEEDS"

(cd "$to" && find . -type f ! -name SHA256SUMS | sort | xargs sha256sum >SHA256SUMS)
tar -C target/dist -czf "target/dist/$name.tar.gz" --owner 0 --group 0 --sort name "$name"
(cd target/dist && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "target/dist/$name.tar.gz needs $(cat "$to/NEEDS") or newer"
