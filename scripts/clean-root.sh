#!/bin/sh
# Types what README says on a system that has only what README asks for: a root made by debootstrap, in which a fresh clone of the
# last commit is built and run; or one without a compiler, in which tarball and package are used. Needs root and debootstrap.
#
#   clean-root.sh TARGET...   git clone, make TARGET...: run, test; `run ARGS="-w larson"` for less
#   clean-root.sh tarball     heapmark try, with nothing but glibc and with allocators that Debian has
#   clean-root.sh deb         the Debian package: heapmark try, a manual page
#   clean-root.sh wheel       Python and the two wheels, then heapmark try: with a network, and without
#   clean-root.sh             run and test, then tarball, deb and wheel
#
# $SUITE and $MIRROR are those of this machine if they are not set. The root gets this machine's settings of apt, cargo, proxies and
# certificates, and its Rust, read-only. Mounts are in a namespace that ends with its first process, so nothing stays mounted, after
# a failure or Ctrl-C either; then the root is removed.
set -euf
cd "$(dirname "$0")/.."
say() { echo "clean-root: $*" >&2; }
fail() { say "$*"; exit 1; }

if [ $# = 0 ]; then
    "$0" run test
    "$0" tarball
    "$0" deb
    exec "$0" wheel
fi

if [ "$1" != inside ]; then
    [ "$(id -u)" = 0 ] || fail "needs root: sudo $0 $*"
    command -v debootstrap >/dev/null || fail "no debootstrap: apt-get install debootstrap"
    root=$(mktemp -d "${TMPDIR:-/var/tmp}/heapmark-root.XXXXXX")
    inside=""
    # shellcheck disable=SC2317,SC2046 # a trap calls it; there is one child or none
    end() {
        [ -z "$inside" ] || kill -KILL $(cat "/proc/$inside/task/$inside/children" 2>/dev/null) 2>/dev/null || true
        wait
        rm -rf --one-file-system "$root"
    }
    trap end EXIT
    trap 'exit 130' INT TERM HUP
    case $1 in
        tarball | deb | wheel)
            make dist
            mkdir "$root/dist"
            set +f
            cp target/dist/*"$(uname -m)".whl target/dist/*.tar.gz target/dist/*.deb "$root/dist/"
            set -f
            ;;
    esac
    # In the background, so that a signal ends it at once; what a shell starts there ignores SIGINT, which tests send.
    setsid unshare --mount --pid --fork env --default-signal=INT,QUIT "$0" inside "$root" "$@" </dev/null &
    inside=$!
    wait "$inside"
    say "$*: passed"
    exit
fi

# From here on this is process 1 of the namespaces, and nowhere else: mounts would stay.
[ $$ = 1 ] || fail "inside is for this script alone"
root=$2
shift 2
suite=${SUITE:-$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)}
# shellcheck disable=SC2016 # these are apt's names
mirror=${MIRROR:-$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
    awk -v suite="$suite" '$1 == suite { print $2; exit }')}
[ -n "$mirror" ] || fail "apt knows no mirror of $suite: set MIRROR"

handed='[a-z]+_proxy|SSL_CERT_[A-Z]+|[A-Z_]+_CA_?(BUNDLE|CERTS)|GIT_SSL_CAINFO|CARGO_(HTTP|NET|REGISTR)[A-Z_]+|PIP_(CERT|INDEX_URL|PROXY)'

# types USER LINE [ARGUMENT...]: a login, then a line of sh
types() {
    user=$1
    line=$2
    shift 2
    say "$user types: $line $*"
    # shellcheck disable=SC2046 # a word for each variable
    env -i $(env | grep -iE "^($handed)=[^ ]+$") LANG=C.UTF-8 TERM="${TERM:-dumb}" DEBIAN_FRONTEND=noninteractive \
        PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        ${alone-} chroot "$root" setpriv --reuid "$user" --regid "$user" --init-groups \
        sh -euc "export HOME=~$user; cd; $line" sh "$@"
}

# debian VARIANT PACKAGE...: a root with these packages and an ordinary user
debian() {
    say "$suite from $mirror"
    log=$(debootstrap ${1:+"--variant=$1"} --include=ca-certificates "$suite" "$root" "$mirror" 2>&1) || {
        echo "$log" | tail >&2
        tail "$root/debootstrap/debootstrap.log" >&2
        fail "debootstrap failed"
    }
    shift
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    chmod 755 "$root"
    rm -r "$root/etc/apt"
    cp -r /etc/apt /etc/resolv.conf /etc/hosts "$root/etc/"
    cp -rn /usr/share/keyrings "$root/usr/share/"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    types root 'apt-get update -qq && apt-get install -qq --no-install-recommends "$@" >/dev/null' "$@"
    types root 'useradd --create-home newcomer'
}

case $1 in
    tarball)
        debian minbase python3
        types newcomer 'if command -v cc; then exit 1; fi'
        types newcomer 'tar -xzf /dist/*.tar.gz && cd heapmark-* && sha256sum -c --quiet SHA256SUMS'
        try="bin/heapmark try -- /usr/bin/python3 -c 'print(len([str(i) for i in range(200_000)]))'"
        types newcomer "cd heapmark-*; $try"
        types root 'apt-get install -qq libjemalloc2 libtbbmalloc2 >/dev/null'
        types newcomer "cd heapmark-*; $try | tee said"
        for row in glibc jemalloc-debian tbbmalloc-debian; do
            types newcomer "grep '^ *$row  *[0-9.]' heapmark-*/said"
        done
        ;;
    deb)
        debian minbase python3
        types newcomer 'if command -v cc || command -v heapmark; then exit 1; fi'
        types root 'apt-get install -qq --no-install-recommends /dist/heapmark_*.deb >/dev/null'
        types newcomer "heapmark try -- /usr/bin/python3 -c 'print(len([str(i) for i in range(200_000)]))' | tee said
            grep '^ *glibc  *[0-9.]' said"
        types newcomer 'zcat /usr/share/man/man1/heapmark-try.1.gz | grep -c .'
        ;;
    wheel)
        debian minbase python3-venv
        types newcomer 'if command -v cc || command -v cargo; then exit 1; fi'
        try="heapmark try -- /usr/bin/python3 -c 'print(len([str(i) for i in range(200_000)]))'"
        # With a network, then without.
        for alone in "" "unshare --net"; do
            began=$(date +%s)
            types newcomer "rm -rf v .cache heapmark-results; python3 -m venv v
                v/bin/pip install --quiet --no-index /dist/*.whl; PATH=\$HOME/v/bin:\$PATH; heapmark --version
                $try 2>&1 | while read -r line; do echo \"\$(date +%s) \$line\"; done | tee said"
            said=$root/home/newcomer/said
            first=$(sed -n 's/ .*best so far.*//p' "$said" | head -n 1)
            say "from venv and pip to the first number: $((first - began)) s${alone:+, without a network}"
            [ $((first - began)) -le 60 ] || fail "more than 60 s"
            [ "$(grep -cE '^[0-9]+ (glibc|[a-z]+malloc[0-9]?)  +[0-9.]+ ' "$said")" -ge 6 ] || fail "fewer than six allocators"
        done
        alone=
        ;;
    *)
        debian "" git make g++
        mkdir "$root/opt/rust"
        mount --bind -o ro "$(rustc --print sysroot)" "$root/opt/rust"
        cargo_settings=${CARGO_HOME:-$HOME/.cargo}/config.toml
        [ ! -f "$cargo_settings" ] || install -D -m 644 "$cargo_settings" "$root/root/.cargo/config.toml"
        git bundle create -q "$root/heapmark.bundle" HEAD
        [ -z "$(git status --porcelain)" ] || say "what is not committed is not in the clone"
        # An ordinary user reads which packages are missing.
        types newcomer 'git clone -q /heapmark.bundle heapmark && cd heapmark && make setup 2>&1 | tee said
            grep -q "sudo apt-get install .*libjemalloc2" said'
        types root 'git clone -q /heapmark.bundle heapmark && cd heapmark && make "$@"' "$@"
        ;;
esac
