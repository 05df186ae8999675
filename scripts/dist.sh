#!/bin/sh
# dist.sh [FOLDER]: makes heapmark-VERSION-ARCH-linux-gnu.tar.gz there: the program, manual pages, completions, licences and
# checksums; and, if dpkg-deb is installed, a Debian package of the same; prints the oldest glibc on which they run. The program is
# $HEAPMARK, or what `make build` leaves.
set -eu
cd "$(dirname "$0")/.."
program=${HEAPMARK:-target/release/heapmark}
folder=${1:-target/dist}
[ -x "$program" ] || { echo "dist: no $program: make build" >&2; exit 1; }

version=$("$program" -V | cut -d ' ' -f 2)
name=heapmark-$version-$(uname -m)-linux-gnu
to=$folder/$name
rm -rf "$to" "$to.tar.gz" "$to.tar.gz.sha256"
mkdir -p "$to/bin" "$to/share/man/man1" "$to/share/completions"
cp "$program" "$to/bin/heapmark"
cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT docs/INSTALL.md "$to/"
"$program" man "$to/share/man/man1" 2>/dev/null
for shell in bash zsh fish; do
    "$program" completions "$shell" >"$to/share/completions/heapmark.$shell"
done

# The names of symbols' versions, of the program and of the files that it carries: the newest is the oldest glibc.
glibc=$(grep -aoE 'GLIBC_[0-9]+(\.[0-9]+)+' "$program" | sort -uV | tail -n 1 | sed 's/GLIBC_//')
echo "glibc $glibc" >"$to/NEEDS"

(cd "$to" && find . -type f ! -name SHA256SUMS | sort | xargs sha256sum >SHA256SUMS)
tar -C "$folder" -czf "$to.tar.gz" --owner 0 --group 0 --sort name "$name"
(cd "$folder" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$to.tar.gz needs glibc $glibc or newer"

if command -v dpkg-deb >/dev/null; then
    package=heapmark_${version}_$(dpkg --print-architecture).deb
    stage=$folder/deb
    rm -rf "$stage"
    usr=$stage/usr/share
    install -D "$program" "$stage/usr/bin/heapmark"
    install -d "$stage/DEBIAN" "$usr/man/man1"
    for page in "$to"/share/man/man1/*; do
        gzip -9n <"$page" >"$usr/man/man1/${page##*/}.gz"
    done
    install -D -m 644 "$to/share/completions/heapmark.bash" "$usr/bash-completion/completions/heapmark"
    install -D -m 644 "$to/share/completions/heapmark.zsh" "$usr/zsh/vendor-completions/_heapmark"
    install -D -m 644 "$to/share/completions/heapmark.fish" "$usr/fish/vendor_completions.d/heapmark.fish"
    install -D -m 644 -t "$usr/doc/heapmark" README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT
    cat >"$stage/DEBIAN/control" <<END
Package: heapmark
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: The heapmark authors
Depends: libc6 (>= $glibc), libgcc-s1
Suggests: build-essential, cargo, libjemalloc2, libtbbmalloc2, libtcmalloc-minimal4
Section: devel
Priority: optional
Description: benchmark memory allocators with numbers that hold
 Which allocator is better for a program, by how much, and whether that is
 known. It measures programs as they are, calls that were recorded, and the
 workloads of papers.
END
    dpkg-deb -Zgzip --root-owner-group --build "$stage" "$folder/$package" >/dev/null
    rm -r "$stage"
    (cd "$folder" && sha256sum "$package" >"$package.sha256")
    echo "$folder/$package needs glibc $glibc or newer"
fi
