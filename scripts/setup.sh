#!/bin/sh
# Installs what heapmark can use from the system: a compiler to build allocators, the allocators that only come as
# packages, and what measured programs need. As root it installs; otherwise it prints the one line to run. Only a missing
# compiler stops it: an allocator or a program that is not there is listed as absent.
set -eu

wanted=""
want() { # want TEST PACKAGE...: the packages are other names for the same thing on other releases
    if sh -c "$1" >/dev/null 2>&1; then return; fi
    shift
    wanted="$wanted $(echo "$*" | tr ' ' '|')"
}
has_library() { echo "ldconfig -p | grep -q -F '$1'"; }

PATH="$PATH:/sbin:/usr/sbin"
export PATH
want "command -v cc && command -v c++ && command -v make" build-essential
want "printf '#include <libpmemobj.h>' | cc -fsyntax-only -x c -" libpmemobj-dev
want "$(has_library libtcmalloc_minimal.so.4)" libtcmalloc-minimal4 libtcmalloc-minimal4t64
want "$(has_library libtbbmalloc_proxy.so.2)" libtbbmalloc2
want "$(has_library libjemalloc.so.2)" libjemalloc2
want "$(has_library libmimalloc.so)" libmimalloc2.0 libmimalloc3 libmimalloc2

if [ -n "$wanted" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq || true
    for names in $wanted; do
        installed=no
        for package in $(echo "$names" | tr '|' ' '); do
            if apt-cache show "$package" >/dev/null 2>&1 &&
                DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null; then
                installed=yes
                break
            fi
        done
        [ $installed = yes ] || echo "setup: no package for $names here; it will be listed as absent" >&2
    done
elif [ -n "$wanted" ]; then
    echo "setup: for more allocators: sudo apt-get install$(echo "$wanted" | sed 's/|[^ ]*//g')" >&2
fi

command -v cargo >/dev/null || { echo "setup: Rust is missing: see https://rustup.rs" >&2; exit 1; }
command -v cc >/dev/null && command -v c++ >/dev/null || { echo "setup: no C and C++ compiler" >&2; exit 1; }
