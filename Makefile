# `make` alone lists the targets. The description of a target is the text after the two hashes on its line.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The steps of a target follow each other (setup, build, then use), with -j too. Cargo uses all cores by itself.
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# redis.conf, the tests and the scripts name the module by its path. So it is built there, whatever else is configured.
export CARGO_TARGET_DIR := $(CURDIR)/target
MODULE := $(CARGO_TARGET_DIR)/release/librollcall.so

# Where the toolchain of rust-toolchain.toml is not installed and rustup cannot install it: the one that is called stable.
ifeq ($(shell cargo --version >/dev/null 2>&1 || echo missing)$(RUSTUP_TOOLCHAIN),missing)
export RUSTUP_TOOLCHAIN := stable
endif
ifneq ($(filter fuzz fuzz-keep sanitize miri,$(MAKECMDGOALS)),)
export NIGHTLY := $(or $(shell date=nightly-2026-05-20; cargo +$$date --version >/dev/null 2>&1 && echo $$date),nightly)
endif

PORT ?= 6379

# Server tests wait for their servers about as long as they work: more at a time than there are cores.
export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))

# All but the examples of documents, and what has no tests: `make lint` compiles it.
TESTS := --workspace --locked --tests
# The tool and `with-server`. With one of the tests, each crate is compiled as for the tests.
PROGRAMS := --workspace --locked --bins --test tool
# Our own code optimised, all else as in the tests: for what adds millions of items.
OPTIMISED := --config .cargo/optimised.toml --workspace --locked
HEAVY := --test accuracy --test allocation --test format --test windowed_counters
OTHER_SERVERS := redis-8.10.2 valkey-9.1.2
# Runs a command with a server and its peers in the environment; `make TARGET SERVER=redis-8.10.2`: with that one.
WITH = scripts/servers.py with $(or $(SERVER),redis-server) --
SERVERS ?= redis-server redis-8.2.3 $(OTHER_SERVERS)
# `make TARGET ARCH=arm64` on x86-64 compiles for AArch64.
CROSS := $(filter arm64x86_64,$(ARCH)$(shell uname -m))
FETCH_ARM64 := $(if $(CROSS),scripts/arm64.sh fetch)
EMULATED := $(if $(CROSS),scripts/arm64.sh emulated)
SERVER_TESTS := cargo test --workspace --locked --no-fail-fast --test server --

.PHONY: help run test test-servers test-clients test-python test-watch wheel test-wheel bench-python chaos chaos-short hostile memcheck sanitize miri golden build lint surface demo bench accuracy instructions fuzz fuzz-keep fuzz-server mutants package test-package test-arm64 image test-image release setup clean setup-test setup-image

help: ## List the targets (what `make` alone does)
	@echo "make TARGET, where TARGET is one of"
	@echo
	@sed -nE 's/^([a-z0-9-]+):[^#]*## (.*)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r name text; do \
		printf '%-14s %s\n' "$$name" "$$text"; done

run: ## Install what is missing, build, and start redis-server with the module; PORT=6380 for another port
	@scripts/run.sh check "$(PORT)"
	@scripts/setup.sh build server
	@$(MAKE) build
	@exec scripts/run.sh start "$(PORT)"

# The module is linked by one core for minutes: the tests are compiled meanwhile.
test: setup-test ## Run every test: all of them on redis-server, then what every server has to pass on Redis 8 and Valkey
	@scripts/servers.py fetch
	@scripts/beside.sh 'cargo build --release --locked' 'cargo test $(TESTS) --no-run; cargo test $(OPTIMISED) $(HEAVY) --no-run'
	@mkdir -p target/run
	@scripts/beside.sh '$(WITH) cargo test $(TESTS) --no-fail-fast; cargo test --workspace --locked --doc' \
		'echo "== optimised, then on other servers"; cargo test $(OPTIMISED) $(HEAVY); $(MAKE) test-servers'
	@echo "== make test: every test passed"

test-servers: setup-test build ## Run the server tests that every server has to pass on Redis 8.10.2 and Valkey 9.1.2, and defragmentation on Redis 8.2.3; OTHER_SERVERS=redis-8.2.3: all on that one; OTHER_SERVERS=valkey-sid: on Debian's Valkey, with jemalloc
	@scripts/servers.py with $(OTHER_SERVERS) -- $(SERVER_TESTS) every_server
	@# What 8.10.2 cannot find: its allocator is libc's, and only jemalloc defragments.
	@scripts/servers.py with redis-8.2.3 -- $(SERVER_TESTS) defragmented

# One scenario at a time, which has all cores. Logs of servers are kept where one fails.
RUN_CHAOS = ROLLCALL_LOGS=$(CARGO_TARGET_DIR)/chaos cargo test --workspace --locked --test chaos -- $(ONLY) --ignored --nocapture --test-threads 1

chaos: setup-test build ## Kill, cut off, reload and move servers at full load, and look for all that was acknowledged, 20 minutes for each of SERVERS=...; CHAOS_SECONDS=60 and the like: shorter; ONLY=cluster: one of the four scenarios
	@ROLLCALL_CHAOS_KILLS=$(or $(CHAOS_KILLS),200) ROLLCALL_CHAOS_FAILOVERS=$(or $(CHAOS_FAILOVERS),50) ROLLCALL_CHAOS_SECONDS=$(or $(CHAOS_SECONDS),600) \
		ROLLCALL_CHAOS_CLUSTER_SECONDS=$(or $(CHAOS_CLUSTER_SECONDS),300) scripts/servers.py with $(SERVERS) -- env $(RUN_CHAOS)
	@echo "== make chaos: nothing was lost"

chaos-short: setup-test build ## The same for a minute, on redis-server
	@$(WITH) env $(RUN_CHAOS)

test-clients: ## Run redis-py, node-redis, redis-rs, valkey-glide, redigo, phpredis, redis-rb and Perl's Redis against the module
	@scripts/setup.sh build server wheels node go others
	@$(MAKE) build
	@scripts/clients.sh fetch
	@$(WITH) scripts/clients.sh run
	@echo "== make test-clients: every client passed"

wheel: ## Build the wheel of the Python package, for glibc 2.28 and later, and its source distribution: target/python/wheels/
	@scripts/setup.sh build wheels package
	@scripts/tools.sh zig cyclonedx
	@$(FETCH_ARM64)
	@scripts/python.sh wheel

test-wheel: wheel ## Test what `make wheel` made: symbols, licences, bill of materials, installed on Debian 11, and built from source; some minutes; ARCH=arm64: the one for AArch64, used under qemu
	@scripts/setup.sh roots
	@packaging/test/wheel.sh

test-python: setup-test build ## Test the Python package as it is installed, on python3 and the newest Python that is here, with all clients; ROLLCALL_ALL_WAYS=1: each command in all 60 ways of calling
	@scripts/setup.sh node postgres
	@scripts/python.sh plain
	@scripts/servers.py fetch redis-8.10.2 valkey-9.1.2
	cargo build $(PROGRAMS)
	@ROLLCALL_MODULE=$(MODULE) ROLLCALL_TOOL=$(CARGO_TARGET_DIR)/debug/rollcall \
		ROLLCALL_SERVER=redis-server:$$(scripts/servers.py path redis-8.10.2):$$(scripts/servers.py path valkey-9.1.2) scripts/python.sh test

bench-python: wheel ## Measure the Python package beside what there is otherwise, 5 minutes, and write docs/python.md; QUICK=1: a rough run that only prints
	@scripts/python.sh bench $(if $(filter-out 0,$(QUICK)),--quick,--write docs/python.md)

test-watch: setup-test build ## Run the exporter, the alert rules and the dashboards against Prometheus and Chromium
	@scripts/setup.sh watch
	@ROLLCALL_PROMETHEUS=$$(command -v prometheus) ROLLCALL_BROWSER=$$(command -v chromium) \
		$(WITH) cargo test --workspace --locked --no-fail-fast --test online -- monitoring browser
	@echo "== make test-watch: what watches is right"

# `make test` runs them too, with links cut in some places only.
hostile: setup-test build ## Break links after every byte of a value, fill disks, kill children, reject memory: on all servers, about 20 minutes
	@ROLLCALL_THOROUGH=1 scripts/servers.py with $(SERVERS) -- $(SERVER_TESTS) --show-output hostile persistence_corruption
	@cargo test --locked --package rollcall-core --test allocation
	@echo "== make hostile: all held"

memcheck: setup-test build ## Run part of the server tests on servers under valgrind, about half an hour; FILTERS="..." for another part
	@scripts/setup.sh counts
	@$(WITH) scripts/check_memory.sh memcheck $(FILTERS)

sanitize: setup-test ## Run part of the server tests with a module that has the address and leak sanitizer in it; FILTERS="..." for another part
	@scripts/setup.sh nightly
	@$(WITH) scripts/check_memory.sh sanitize $(FILTERS)

# Tests of the core that an interpreter gets through: the others add too many items.
MIRI_TESTS := bits:: members::packed:: --skip or_and_counts --skip pages_of_zeros --skip large_buffers \
	--skip members_of_one_group --skip sizes_are_pinned --skip what_will_be_read
# By the older of Miri's two models of borrowing (Stacked Borrows), bitvec's pointers to slices are wrong already.
MIRI_FLAGS := -Zmiri-disable-isolation -Zmiri-tree-borrows

miri: ## Interpret part of the core's tests: neither it nor what it depends on breaks a rule of memory
	@scripts/setup.sh build miri
	MIRIFLAGS="$(MIRI_FLAGS)" PROPTEST_CASES=2 CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/miri \
		cargo +$(NIGHTLY) miri test --locked --package rollcall-core --lib -- $(MIRI_TESTS)

golden: build ## Write the golden files of the stored format, core/tests/golden and tests/server/golden, anew: only for a new version of it
	ROLLCALL_WRITE_GOLDEN=1 cargo test --locked --package rollcall-core --test golden every_kind_of_value_is_stored
	ROLLCALL_WRITE_GOLDEN=1 $(WITH) $(SERVER_TESTS) persistence_golden::files_are_written

build: ## Build the module, optimised: target/release/librollcall.so
	cargo build --release --locked
	@mkdir -p target/run

lint: ## Check formatting, clippy, doc comments, what the library shows, the floors of the tree, licences and sources of crates, the oldest Rust, workflows and (where possible) advisories
	@scripts/setup.sh build lint wheels node
	@scripts/tools.sh lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(HEAVY) --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked
	@scripts/check_layers.py
	@scripts/identity.py check
	@scripts/reference.py check
	@scripts/check_crates.sh
	@scripts/check_workflows.sh
	@echo "== make lint: nothing to object to"

surface: ## Write core/surface.txt anew, the list of what the library shows to its users
	@scripts/check_crates.sh surface

DEMOS := message_summary push_dedupe contact_limit leases

demo: ## Run the example services on real input, and fifty workers that compete for ten seats, each beside a server of its own
	@scripts/setup.sh build server words
	@$(MAKE) build
	cargo build $(OPTIMISED) --bin with-server $(DEMOS:%=--example %)
	@for name in $(DEMOS); do \
		echo; echo "== $$name"; $(WITH) $(CARGO_TARGET_DIR)/debug/with-server $(CARGO_TARGET_DIR)/debug/examples/$$name; \
	done

bench: setup-test build ## Measure the ten rows of docs/benchmarks.md beside RedisBloom, 5 minutes, and write redis-server's column; SERVER=redis-8.10.2: that one's; QUICK=1: a rough run of one, and ONLY=1,7: these rows, which only print; ONLY=leases: those of docs/tutorials/leases.md, one minute
	@QUICK=$(QUICK) ONLY="$(ONLY)" SERVER=$(SERVER) scripts/bench.sh server

accuracy: ## Measure every claim of accuracy, about 10 minutes, and write target/accuracy/ and the figures of docs/accuracy.md; QUICK=1: a rough run of one; fails if one does not hold
	@scripts/setup.sh build
	@QUICK=$(QUICK) ONLY="$(ONLY)" scripts/bench.sh accuracy

instructions: ## Compare the instructions that the core takes with benches/core/instructions.txt; UPDATE=1 to keep those of now
	@scripts/setup.sh build counts
	@scripts/check_instructions.py $(if $(UPDATE),--update)

mutants: ## Change each line of core/src that is new since SINCE=main and see whether a test notices; FILES="core/src/persist/*.rs": these whole; NOTICED_BY="--lib bloom::": by these tests alone
	@scripts/setup.sh build
	@scripts/tools.sh mutants
	@FILES="$(FILES)" NOTICED_BY="$(NOTICED_BY)" scripts/mutants.sh $(SINCE)

fuzz: ## Fuzz the library in process, each target for FUZZ_SECONDS=300; TARGETS="rdb chunks": these alone; FUZZ_SANITIZER=address: with it
	@scripts/setup.sh build fuzz
	@scripts/tools.sh fuzz
	@scripts/fuzz.sh run $(or $(FUZZ_SECONDS),300) $(TARGETS)

fuzz-keep: ## Write fuzz/corpus anew: of all inputs that `make fuzz` found, at most 250 of a target, which reach most
	@scripts/setup.sh build fuzz
	@scripts/tools.sh fuzz
	@scripts/fuzz.sh keep $(TARGETS)

fuzz-server: setup-test build ## Fuzz a server with FUZZ_COMMANDS=200000 random commands; FUZZ_SEED=2: others; ROLLCALL_SERVER: another server
	@ROLLCALL_FUZZ_COMMANDS=$(or $(FUZZ_COMMANDS),200000) ROLLCALL_FUZZ_SEED=$(FUZZ_SEED) ROLLCALL_FUZZ_LONGEST_MS=100 \
		$(WITH) cargo test --workspace --locked --test fuzz -- --nocapture

package: ## Make the packages for this processor, target/package/: Debian package, archive, sums, bills of materials; LIBC=musl: for musl; ARCH=arm64: for AArch64
	@scripts/setup.sh build wheels package
	@scripts/tools.sh zig cyclonedx deb
	@$(FETCH_ARM64)
	@scripts/package.sh build
	@scripts/package.sh pack

test-package: package ## Make the packages and test them: symbols, sums, contents, lintian, install and remove, and the module on every server; ARCH=arm64: for AArch64, used under qemu
	@scripts/setup.sh server deb
	@packaging/test/run.sh
	@$(if $(CROSS),echo "the server tests for AArch64 are in make test-arm64",ROLLCALL_MODULE=$(CURDIR)/target/package/librollcall.so \
		scripts/servers.py with $(SERVERS) -- $(SERVER_TESTS) every_server::commands every_server::persistence module_loading)
	@echo "== make test-package: the packages are right"

test-arm64: setup-test build ## Test the core, and commands, persistence and replication of the module, for AArch64 on x86-64, under qemu; about a quarter of an hour
	@scripts/setup.sh package
	@scripts/tools.sh zig
	@scripts/arm64.sh fetch
	@ARCH=arm64 scripts/package.sh build
	@scripts/arm64.sh test
	@echo "== make test-arm64: AArch64 does the same"

image: setup-image ## Build the images of Redis and Valkey with the module, and of its files alone; ENGINE=docker: with Docker; ARCH=arm64: for AArch64, as root
	@$(EMULATED) scripts/image.sh build

test-image: setup-image ## Build the images on bases made here and run them, with the examples for Compose and Kubernetes, as root; BASES=registry: on the official bases; ARCH=arm64: images for AArch64, without the examples
	@scripts/setup.sh server wheels
	@scripts/tools.sh images
	@$(EMULATED) packaging/test/images.sh

release: ## Rehearse the release of VERSION=0.1.0: check, make and gather all of it in target/release-0.1.0/, and say what is left for a person; FINAL=1: fail on a gap
	@scripts/release.sh check "$(VERSION)"
	@$(MAKE) package wheel
	@scripts/release.sh gather "$(VERSION)"

setup: ## Install everything that any target needs, as far as it is missing
	@scripts/setup.sh build lint server wheels clocks node postgres go others counts watch words package roots deb
	@scripts/tools.sh lint zig cyclonedx deb
	@scripts/servers.py fetch
	@cargo fetch --locked
	@scripts/clients.sh fetch

setup-test:
	@scripts/setup.sh build server wheels clocks

# The module and the tool, for both C libraries.
setup-image:
	@scripts/setup.sh build wheels package musl images
	@scripts/tools.sh zig
	@$(FETCH_ARM64)
	@scripts/package.sh build
	@LIBC=musl scripts/package.sh build

clean: ## Remove all that was built or fetched, and what `make run` stored
	rm -rf target
