#!/bin/sh
# dist.sh [FOLDER]: makes heapmark-VERSION-ARCH-linux-gnu.tar.gz there: the program, manual pages, completions, licences and
# checksums; prints the oldest glibc on which it runs. The program is $HEAPMARK, or what `make build` leaves.
set -eu
cd "$(dirname "$0")/.."
program=${HEAPMARK:-target/release/heapmark}
folder=${1:-target/dist}
[ -x "$program" ] || { echo "dist: no $program: make build" >&2; exit 1; }

name=$("$program" --version | tr ' ' -)-$(uname -m)-linux-gnu
to=$folder/$name
rm -rf "$to" "$to.tar.gz" "$to.tar.gz.sha256"
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
tar -C "$folder" -czf "$to.tar.gz" --owner 0 --group 0 --sort name "$name"
(cd "$folder" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$to.tar.gz needs $(cat "$to/NEEDS") or newer"
