#!/bin/sh
# floor.sh ARCH GLIBC FOLDER [OLDER]: makes compilers cc and c++ there whose programs and libraries run on that glibc and newer ones, for
# x86_64 or aarch64; with OLDER, compilers in that folder link the libraries. They are this system's gcc, which links with what PyPI's
# ziglang knows of each glibc: which symbols it has. So no older system is needed, and what they make differs from what gcc makes in
# nothing else.
set -eu
from=$(cd "$(dirname "$0")" && pwd)
arch=$1
glibc=$2
older=${4-}
mkdir -p "$3"
cd "$3"
folder=$PWD
prefix=
[ "$arch" = "$(uname -m)" ] || prefix=$arch-linux-gnu-
command -v "${prefix}g++" >/dev/null || { echo "floor: no ${prefix}g++: apt-get install g++-$(echo "$arch" | tr _ -)-linux-gnu" >&2; exit 1; }
[ ! -x c++ ] || exit 0

echo 'int main(void) { return 0; }' >main.c
# It leaves in its cache what it links with, and names there are relative to this folder. Its own run-time libraries take half a minute.
ZIG_GLOBAL_CACHE_DIR=$folder/zig ZIG_LOCAL_CACHE_DIR=$folder/zig "${PYTHON:-python3}" -m ziglang build-exe main.c -lc -fPIE \
    -target "$arch-linux-gnu.$glibc" -fno-compiler-rt -fno-ubsan-rt -fno-sanitize-c -femit-bin=main
for name in m.so.6 pthread.so.0 dl.so.2 rt.so.1 util.so.1 c.so.6; do
    cp "$(find zig/o -name lib$name)" .
    ln -sf lib$name "lib${name%.so.*}.so"
done
cp "$(find zig/o -name '*crt1.o')" Scrt1.o
# What glibc exports only since later: fstat and others, from ziglang, and what floor.c adds.
"${prefix}gcc" -std=gnu11 -O2 -Wall -fPIC -ftls-model=initial-exec -ffunction-sections -fdata-sections -c "$from/floor.c"
# shellcheck disable=SC2046 # a word for each object
"${prefix}ar" rcs libc_nonshared.a floor.o $("${prefix}ar" t "$(find zig/o -name libc_nonshared.a)")
rm -r libc.so zig floor.o main.c main
case $arch in
    x86_64) loader=ld-linux-x86-64.so.2 ;;
    *) loader=ld-linux-$arch.so.1 ;;
esac
# Since 2.34 they are parts of libc.
apart="$folder/libpthread.so.0 $folder/libdl.so.2 $folder/librt.so.1 $folder/libutil.so.1"
echo "GROUP ( $folder/libc.so.6 $folder/libc_nonshared.a AS_NEEDED ( $apart $loader ) )" >libc.so
compiler() { # compiler NAME PROGRAM [FLAG]: the other libraries of this system need a newer glibc
    libraries=${older:+"case \" \$* \" in *' -shared '*) exec $older/$1 \"\$@\" ;; esac"}
    printf '%s\n' '#!/bin/sh' "$libraries" "exec $prefix$2 -B$folder -L$folder -Wl,--allow-shlib-undefined $3 \"\$@\"" >"$1"
    chmod +x "$1"
}
compiler cc gcc ""
compiler c++ g++ -Wl,--wrap=__cxa_thread_atexit_impl
