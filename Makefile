# Short names for cargo and scripts/. `make run` measures, `make test` runs all tests.

CARGO ?= cargo
HEAPMARK = target/release/heapmark
.PHONY: run test test-all test-core test-beside-load check bench counts shape validity agreement false-alarms pictures reproduction languages programs dist install clean-roots docs clean build setup setup-test setup-bench setup-counts setup-languages setup-programs

# What packages and glibc have needs no building, and so is measured first.
FIRST = -a glibc,jemalloc-debian,mimalloc-debian,tbbmalloc-debian,gperftools,scudo -w trace:jq-group --set trace:jq-group.rounds=first --blocks 6
run: setup build            ## measure: what is installed, for a first table; then build what is missing, run the quick suite, print the answer
	@$(if $(ARGS),,echo 'a first table, of what is installed: a minute'; $(HEAPMARK) run $(FIRST) || true)
	$(HEAPMARK) run $(ARGS)
	@command -v heapmark > /dev/null || echo 'From now on: $(HEAPMARK) try ./your-program, or "cargo install --locked --path crates/heapmark" to type heapmark'

build:
	@[ -e $(HEAPMARK) ] || echo 'building heapmark: some 4 minutes on 2 CPUs, once; cargo counts its parts'
	$(CARGO) build --release --locked

# System packages: installed if root, otherwise the command is printed.
setup setup-test setup-bench setup-counts setup-languages setup-programs:
	@scripts/setup.sh $(patsubst setup-%,%,$(filter setup-%,$@))

languages: setup-languages build ## the languages of the measured programs that have packages, then the programs
	$(HEAPMARK) build --languages

programs: setup-programs build ## the packages of the real programs that suite programs runs
	$(HEAPMARK) list programs

# Most of a test is waiting: six times as many at a time as there are CPUs.
export RUST_TEST_THREADS ?= $(shell echo $$((6 * $$(nproc))))
# Without the folders of version managers: a program there is a script that starts thirty others before the one it is for.
test test-all test-core test-beside-load: export PATH := $(shell echo "$$PATH" | tr : '\n' | grep -v '/shims$$' | paste -s -d :)
TEST = $(CARGO) test --locked --workspace
# Of documentation; no other crate has some.
EXAMPLES = $(CARGO) test --locked -p heapmark-wire --doc

# All is compiled at once, and documentation examples come first, so that the last line is the summary of the last test program.
test: setup-test            ## what a change must pass
	$(TEST) --no-run --tests
	$(EXAMPLES)
	$(TEST) --no-fail-fast --tests

test-all: setup-test        ## also what takes longer: full presets, all languages at their quick size, a thousand damages (ignored in `make test`)
	$(TEST) --no-run --tests
	$(EXAMPLES)
	$(TEST) --no-fail-fast --tests -- --include-ignored

HOST = catalog build plan observe core check capture pool history which tune claims
test-core:                  ## the tests of the host's crates that need no more than a C compiler: for a first change
	$(CARGO) test --locked --no-fail-fast -p heapmark $(HOST:%=-p heapmark-%) --lib --test core

test-beside-load: setup-test ## the end-to-end tests ten times, five of them beside four busy loops: for a night; ARGS="1 1" for once each
	scripts/beside-load.sh $(ARGS)

check: setup-test           ## what a change must pass: format, lints, all tests (which read every data file)
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(MAKE) test

BENCHES = scale recording trace replay_floor
bench: setup setup-bench build ## the harness's own cost beside each allocator, which planted effects are found; a report of a million samples, the recorder beside heaptrack, long traces, the floor of replays
	$(HEAPMARK) run floor $(ARGS)
	$(HEAPMARK) selftest
	$(CARGO) bench --locked --no-fail-fast -p heapmark $(BENCHES:%=--bench %)

counts: setup-counts        ## whether the recorder and an independent counter agree on every call in about forty programs; ARGS="redis dot" for some
	$(CARGO) bench --locked -p heapmark --bench counts -- $(ARGS)

shape: setup build          ## whether the quick preset of each workload ranks six allocators as its paper preset does: hours; ARGS="same-thread larson" for some
	HEAPMARK=$(HEAPMARK) scripts/shape.py $(ARGS)

validity: setup-programs build ## does the default run's answer hold for programs that no choice has seen: docs/VALIDITY.md; up to two hours, or ARGS="--minutes 9" again and again
	HEAPMARK=$(HEAPMARK) scripts/validity.py $(ARGS) heapmark-results/validity

agreement: setup-programs build ## do replays hold as much memory as their programs: docs/TRACES.md; ARGS="jq-group z3-solve" for some
	HEAPMARK=$(HEAPMARK) scripts/agreement.py $(ARGS)

pictures: setup-test build  ## the pictures of README and of the tutorial; ARGS="RUN TRY TRACE" names two stored runs and a trace
	HEAPMARK=$(HEAPMARK) scripts/pictures.py $(ARGS)

reproduction: setup build   ## the reference documents' figures and claims beside our own runs: docs/REPRODUCTION.md; SIZE=paper for their own sizes, from the runs in docs/reproduction and others of yours
	HEAPMARK=$(HEAPMARK) scripts/reproduction.sh

false-alarms: build         ## 40 comparisons of glibc with its own copy: counts those called different; about 5 minutes
	HEAPMARK=$(HEAPMARK) scripts/false-alarms.sh

install:                    ## heapmark as a command, in ~/.cargo/bin
	$(CARGO) install --locked --path crates/heapmark

# For this machine's processor, and by its compilers for glibc 2.28: other than what `make build` leaves, it runs on older systems.
DIST = target/dist/cargo/$(shell uname -m)-unknown-linux-gnu/release/heapmark
dist:                       ## target/dist/: wheels of the program and of prebuilt allocators, a tarball with manual pages and completions, a Debian package; ARCH=aarch64 for that wheel alone
	scripts/wheels.py $(ARCH)
	$(if $(ARCH),,HEAPMARK=$(DIST) scripts/dist.sh)

clean-roots:                ## what README says, typed in new Debian systems: clone, run and test; the tarball; the package; the wheels; ARGS=run, test, tarball, deb or wheel for one; needs root
	scripts/clean-root.sh $(ARGS)

docs: build                 ## the code's own documentation; in target/docs/ the pages that heapmark prints: commands, allocators, workloads, metrics, checks
	$(CARGO) doc --locked --workspace --no-deps
	HEAPMARK=$(HEAPMARK) scripts/docs.sh

clean:                      ## removes what was built here; results and built allocators stay
	$(CARGO) clean
