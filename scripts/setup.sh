#!/bin/sh
# Installs the system packages that heapmark can use; without root it prints the command instead. An install that fails is an
# error, and so is a missing compiler or tool of the tests. What has no package in this release is listed as absent.
#
#   setup.sh            a compiler, and the allocators and libraries that exist only as packages
#   setup.sh test       these, and the languages and tools that the tests need
#   setup.sh bench      the programs that the benchmarks of the recorder run and compare with
#   setup.sh counts     the programs whose recordings are compared with an independent counter
#   setup.sh languages  all languages of the measured programs
#   setup.sh programs   the packages of the real programs of suite programs
set -eu

case "$# ${1-}" in
    "0 " | "1 test" | "1 bench" | "1 counts" | "1 languages" | "1 programs") ;;
    *) echo "setup: usage: setup.sh [test | bench | counts | languages | programs]" >&2; exit 2 ;;
esac

want() { # want TEST PACKAGE...: the packages are names of the same thing in different releases
    if sh -c "$1" >/dev/null 2>&1; then return; fi
    shift
    wanted="$wanted $(echo "$*" | tr ' ' '|')"
}
has_library() { echo "ldconfig -p | grep -q -F '$1'"; }

PATH="$PATH:/sbin:/usr/sbin"
export PATH
purpose="${1-}"
allocators() {
    want "command -v cc && command -v c++ && command -v make" build-essential
    want "printf '#include <libpmemobj.h>' | cc -fsyntax-only -x c -" libpmemobj-dev
    want "$(has_library libtcmalloc_minimal.so.4)" libtcmalloc-minimal4 libtcmalloc-minimal4t64
    want "$(has_library libtbbmalloc_proxy.so.2)" libtbbmalloc2
    want "$(has_library libjemalloc.so.2)" libjemalloc2
    want "ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-$(uname -m).so" \
        libclang-rt-19-dev libclang-rt-21-dev libclang-rt-20-dev libclang-rt-18-dev libclang-rt-17-dev libclang-rt-15-dev libclang-rt-14-dev
    want "$(has_library libmimalloc.so)" libmimalloc2.0 libmimalloc3 libmimalloc2
}
tools() {
    if [ "$purpose" = test ] || [ "$purpose" = languages ]; then
        want "printf '#include <gc.h>' | cc -fsyntax-only -x c -" libgc-dev
        want "command -v ocamlopt" ocaml-nox
        want "command -v nim" nim
        want "command -v ldc2" ldc
    fi
    if [ "$purpose" = test ]; then
        want "command -v valgrind" valgrind
        want "command -v chromium || command -v chromium-browser || command -v google-chrome" chromium
        # Debian 12 has Node 18: crates/heapmark/tests/node takes the newest packages that run on it.
        want "command -v node" nodejs
        want "command -v npm" npm
        want "command -v python3" python3
        want "python3 -c 'import ensurepip, venv'" python3-venv
        want "python3 -m pip --version" python3-pip
        want "test -f /usr/share/benchmark/compare.py" libbenchmark-tools
        want "command -v redis-server && command -v redis-benchmark" redis-server
        want "command -v sqlite3" sqlite3
        want "command -v slurmctld && command -v slurmd && command -v sbatch" slurm-wlm
        want "command -v perl" perl
        want "command -v musl-gcc" musl-tools
        want "command -v git" git
        want "command -v curl" curl
        want "printf '#include <boost/context/fiber.hpp>' | c++ -fsyntax-only -x c++ -" libboost-context-dev
    fi
    if [ "$purpose" = bench ]; then
        want "command -v python3" python3
        want "command -v heaptrack" heaptrack
        want "command -v xmllint" libxml2-utils
    fi
    if [ "$purpose" = counts ]; then
        for name in bash git jq make perl php python3 ruby sqlite3 sudo xz z3 memcached nginx node; do
            case $name in
                php) package=php-cli ;;
                xz) package=xz-utils ;;
                node) package=nodejs ;;
                *) package=$name ;;
            esac
            want "command -v $name" $package
        done
        want "command -v gs" ghostscript
        want "command -v dot" graphviz
        want "test -x /usr/bin/convert" imagemagick
        want "command -v lua5.4" lua5.4
        want "command -v java" openjdk-17-jre-headless default-jre-headless
        want "command -v go" golang-go
        want "command -v xmllint" libxml2-utils
        want "command -v redis-server && command -v redis-benchmark" redis-server
        want "ls /usr/lib/postgresql/*/bin/initdb" postgresql
        want "perl -MCoro -e 1" libcoro-perl
        want "/usr/bin/python3 -c 'import greenlet'" python3-greenlet
        want "echo '#include <boost/fiber/all.hpp>' | c++ -fsyntax-only -x c++ -" libboost-fiber-dev
        want "echo '#include <pth.h>' | cc -fsyntax-only -x c -" libpth-dev
    fi
    if [ "$purpose" = languages ]; then
        want "command -v go" golang-go
        want "command -v javac" openjdk-17-jdk-headless default-jdk-headless
        want "command -v ghc" ghc
        want "command -v node" nodejs
        want "command -v mcs" mono-mcs
        want "command -v mono" mono-runtime
        want "command -v python3" python3
    fi
    if [ "$purpose" = programs ]; then
        for package in $(sed -n 's/^packages = \[\(.*\)\]/\1/p' "$(dirname "$0")"/../real-programs/*/program.toml | tr -d '",' | tr ' ' '\n' | sort -u); do
            want "dpkg -s $package" $package
        done
    fi
}
# Of packages of which one will do, those that this release has.
available() {
    for package in $(echo "$1" | tr '|' ' '); do
        if apt-cache show "$package" >/dev/null 2>&1; then
            echo "$package"
        fi
    done
}

wanted=""
allocators
tools
if [ -n "$wanted" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    # Another apt may be at work for minutes.
    apt="apt-get -qq -o DPkg::Lock::Timeout=600"
    $apt update || true
    all=$(echo "$wanted" | wc -w)
    count=0
    for names in $wanted; do
        count=$((count + 1))
        package=$(available "$names" | head -n 1)
        if [ -z "$package" ]; then
            echo "setup: no package for $names here; it will be listed as absent" >&2
        else
            echo "setup: installing $package ($count of $all)" >&2
            DEBIAN_FRONTEND=noninteractive $apt install -y --no-install-recommends "$package" >/dev/null ||
                { echo "setup: $package could not be installed: see above" >&2; exit 1; }
        fi
    done
elif [ -n "$wanted" ]; then
    packages=
    for names in $wanted; do
        first=$(available "$names" | head -n 1)
        packages="$packages ${first:-${names%%|*}}"
    done
    echo "setup: for more allocators and programs: sudo apt-get install$packages" >&2
fi

command -v cargo >/dev/null || { echo "setup: Rust is missing: see https://rustup.rs" >&2; exit 1; }
command -v cc >/dev/null && command -v c++ >/dev/null || { echo "setup: no C and C++ compiler" >&2; exit 1; }
wanted=""
tools
if [ "$purpose" = test ] && [ -n "$wanted" ]; then
    echo "setup: the tests need what is still missing:$wanted" >&2
    exit 1
fi
