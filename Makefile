# `make` alone lists the targets. The description of a target is the text after the two hashes on its line.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The steps of a target depend on each other, so they run one after another even with -j. Cargo uses all cores anyway.
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# redis.conf, tests and scripts expect the module in this folder, so other settings of the target folder are
# overridden.
export CARGO_TARGET_DIR := $(CURDIR)/target
MODULE := $(CARGO_TARGET_DIR)/release/librollcall.so

# Uses the stable toolchain if the one of rust-toolchain.toml is missing and cannot be installed.
ifeq ($(shell cargo --version >/dev/null 2>&1 || echo missing)$(RUSTUP_TOOLCHAIN),missing)
export RUSTUP_TOOLCHAIN := stable
endif
ifneq ($(filter fuzz fuzz-keep sanitize miri,$(MAKECMDGOALS)),)
export NIGHTLY := $(or $(shell date=nightly-2026-05-20; cargo +$$date --version >/dev/null 2>&1 && echo $$date),nightly)
endif

PORT ?= 6379

# Server tests spend half of their time waiting, so more of them run than there are cores.
export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))

# All tests except the examples of documents. Targets without tests are left out; `make lint` compiles them.
TESTS := --workspace --locked --tests
# The tool and `with-server`. Naming a test makes cargo compile each crate as for tests.
PROGRAMS := --workspace --locked --bins --test tool
# Optimises the repository's own crates, for tests that add millions of items.
OPTIMISED := --config .cargo/optimised.toml --workspace --locked
HEAVY := --test accuracy --test allocation --test format --test slices --test windowed_counters
OTHER_SERVERS := redis-8.10.2 valkey-9.1.2
# Runs a command with the paths of a server and of RedisBloom in the environment. `make TARGET SERVER=redis-8.10.2`
# chooses the server.
WITH = scripts/servers.py with $(or $(SERVER),redis-server) --
SERVERS ?= redis-server redis-8.2.3 $(OTHER_SERVERS)
# `make release` makes packages and wheels for these.
PROCESSORS ?= $(if $(filter x86_64,$(shell uname -m)),amd64 )arm64
# `make TARGET ARCH=arm64` on an x86-64 machine compiles for AArch64.
CROSS := $(filter arm64x86_64,$(ARCH)$(shell uname -m))
FETCH_ARM64 := $(if $(CROSS),scripts/arm64.sh fetch)
EMULATED := $(if $(CROSS),scripts/arm64.sh emulated)
SERVER_TESTS := cargo test --workspace --locked --no-fail-fast --test server --

.PHONY: help run test test-servers test-clients npm test-npm test-python test-engines test-watch wheel test-wheel bench-python bench-engines bench-behind chaos chaos-short hostile memcheck sanitize miri golden commands build lint surface demo bench accuracy instructions fuzz fuzz-keep fuzz-server mutants package test-package test-arm64 image test-image release setup clean setup-test setup-image no-avx512 test-no-avx512

help: ## List the targets (the default)
	@echo "make TARGET, where TARGET is one of"
	@echo
	@sed -nE 's/^([a-z0-9-]+):[^#]*## (.*)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r name text; do \
		printf '%-14s %s\n' "$$name" "$$text"; done

run: ## Install what is missing, build, and start redis-server with the module; PORT=6380 for another port
	@scripts/run.sh check "$(PORT)"
	@scripts/setup.sh build server
	@$(MAKE) build
	@exec scripts/run.sh start "$(PORT)"

# Linking the module takes one core for minutes, so the tests are compiled at the same time.
test: setup-test ## Run every test on redis-server, then the tests of every server on Redis 8 and Valkey
	@scripts/servers.py fetch
	@scripts/beside.sh 'cargo build --release --locked' 'cargo test $(TESTS) --no-run; cargo test $(OPTIMISED) $(HEAVY) --no-run'
	@mkdir -p target/run
	@scripts/beside.sh '$(WITH) cargo test $(TESTS) --no-fail-fast; cargo test --workspace --locked --doc' \
		'echo "== optimised, then on other servers"; cargo test $(OPTIMISED) $(HEAVY); $(MAKE) test-servers'
	@echo "== make test: every test passed"

# A processor with AVX-512 tests and measures the other kernels only in this build.
WITHOUT_AVX512 := RUSTFLAGS="--cfg rollcall_no_avx512" CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/no-avx512 cargo

no-avx512:
	@$(WITHOUT_AVX512) build --release --locked >&2
	@echo $(CARGO_TARGET_DIR)/no-avx512/release/librollcall.so

test-no-avx512: ## Test filters and counters as on a processor without AVX-512
	@scripts/setup.sh build
	$(WITHOUT_AVX512) test --locked --package rollcall-core --lib

test-servers: setup-test build ## Run the tests of every server on Redis 8.10.2 and Valkey 9.1.2, and defragmentation on Redis 8.2.3; OTHER_SERVERS=redis-8.2.3: all on that server; OTHER_SERVERS=valkey-sid: on Debian's Valkey, with jemalloc
	@scripts/servers.py with $(OTHER_SERVERS) -- $(SERVER_TESTS) every_server
	@scripts/servers.py with $(OTHER_SERVERS) -- cargo test --workspace --locked --test fuzz
	@# Redis 8.10.2 uses libc's allocator here, and only jemalloc defragments.
	@scripts/servers.py with redis-8.2.3 -- $(SERVER_TESTS) defragmented

# Scenarios run one by one, so that each has all cores. Server logs of a failed scenario are kept.
RUN_CHAOS = ROLLCALL_LOGS=$(CARGO_TARGET_DIR)/chaos cargo test --workspace --locked --test chaos -- $(ONLY) --ignored --nocapture --test-threads 1

chaos: setup-test build ## Kill, disconnect, reload and move servers at full load, and check that no acknowledged write is lost; 20 minutes for each of SERVERS=...; CHAOS_SECONDS=60: shorter; ONLY=cluster: one of the four scenarios
	@ROLLCALL_CHAOS_KILLS=$(or $(CHAOS_KILLS),200) ROLLCALL_CHAOS_FAILOVERS=$(or $(CHAOS_FAILOVERS),50) ROLLCALL_CHAOS_SECONDS=$(or $(CHAOS_SECONDS),600) \
		ROLLCALL_CHAOS_CLUSTER_SECONDS=$(or $(CHAOS_CLUSTER_SECONDS),300) scripts/servers.py with $(SERVERS) -- env $(RUN_CHAOS)
	@echo "== make chaos: nothing was lost"

chaos-short: setup-test build ## Run the scenarios of make chaos for one minute, on redis-server
	@$(WITH) env $(RUN_CHAOS)

test-clients: ## Run redis-py, node-redis, redis-rs, valkey-glide, redigo, phpredis, redis-rb and Perl's Redis against the module
	@scripts/setup.sh build server wheels node go others
	@$(MAKE) build
	@scripts/clients.sh fetch
	@$(WITH) scripts/clients.sh run
	@echo "== make test-clients: every client passed"

npm: ## Pack the package for npm: target/npm/
	@scripts/setup.sh node
	@scripts/clients.sh fetch node
	@scripts/clients.sh pack

test-npm: npm build ## Test the packed npm package with node-redis and ioredis, on single servers and clusters of Redis 8.2.3 and Valkey 9.1.2; OTHER=redis-8.10.2: on another server
	@scripts/servers.py with $(or $(OTHER),redis-8.2.3 valkey-9.1.2) -- scripts/clients.sh npm
	@echo "== make test-npm: every command passed"

wheel: ## Build the wheel of the Python package, for glibc 2.28 and later, and its source distribution: target/python/wheels/
	@scripts/setup.sh build wheels package
	@scripts/tools.sh zig cyclonedx
	@$(FETCH_ARM64)
	@scripts/python.sh wheel

test-wheel: wheel ## Test the wheel of `make wheel`: symbols, licences, bill of materials, installed on Debian 11, and built from source; some minutes; ARCH=arm64: the wheel for AArch64, under qemu
	@scripts/setup.sh roots
	@packaging/test/wheel.sh

test-python: setup-test build ## Test the installed Python package on python3 and on the newest Python of this machine, with all clients; ROLLCALL_ALL_WAYS=1: each command in all 60 ways of calling
	@scripts/setup.sh node postgres
	@scripts/python.sh plain
	@scripts/servers.py fetch redis-8.10.2 valkey-9.1.2
	cargo build $(PROGRAMS)
	@ROLLCALL_MODULE=$(MODULE) ROLLCALL_TOOL=$(CARGO_TARGET_DIR)/debug/rollcall \
		ROLLCALL_SERVER=redis-server:$$(scripts/servers.py path redis-8.10.2):$$(scripts/servers.py path valkey-9.1.2) scripts/python.sh test

ENGINES ?= datafusion duckdb spark

test-engines: setup-test build ## Count in DataFusion, DuckDB and Spark, and merge into a server; ENGINES="datafusion duckdb": without Spark, which needs Java
	@scripts/setup.sh wheels $(if $(filter spark,$(ENGINES)),java)
	@scripts/python.sh plain
	cargo build --locked -p rollcall-testkit
	@ROLLCALL_MODULE=$(MODULE) $(WITH) $(CARGO_TARGET_DIR)/debug/with-server scripts/python.sh engines $(ENGINES)

bench-engines: wheel ## Compare counters with the approximate distinct counts of DataFusion, DuckDB and Spark, 3 minutes; QUICK=1: a tenth of the rows; ENGINES=duckdb: only this one
	@scripts/setup.sh $(if $(filter spark,$(ENGINES)),java)
	@QUICK=$(QUICK) scripts/python.sh bench-engines $(ENGINES)

bench-behind: setup-test build ## Compare WriteBehind with direct adds by four processes, 3 minutes; QUICK=1: a hundredth of the adds; SERVER=redis-8.2.3: another server
	@scripts/setup.sh node
	@scripts/python.sh plain
	cargo build --locked -p rollcall-testkit
	@ROLLCALL_MODULE=$(MODULE) $(WITH) $(CARGO_TARGET_DIR)/debug/with-server scripts/python.sh behind $(if $(filter-out 0,$(QUICK)),--quick)

bench-python: wheel ## Compare the speed of the Python package with alternatives, 5 minutes, and write docs/python.md; QUICK=1: a rough run that only prints
	@scripts/python.sh bench $(if $(filter-out 0,$(QUICK)),--quick,--write docs/python.md)

test-watch: setup-test build ## Run the exporter, the alert rules and the dashboards with Prometheus and Chromium
	@scripts/setup.sh watch
	@ROLLCALL_PROMETHEUS=$$(command -v prometheus) ROLLCALL_BROWSER=$$(command -v chromium) \
		$(WITH) cargo test --workspace --locked --no-fail-fast --test online -- monitoring browser
	@echo "== make test-watch: what watches is right"

# `make test` also runs these tests, but cuts links only in some places.
hostile: setup-test build ## Break links after every byte of a value, fill disks, kill child processes, deny memory; on all servers, about 20 minutes
	@ROLLCALL_THOROUGH=1 scripts/servers.py with $(SERVERS) -- $(SERVER_TESTS) --show-output hostile persistence_corruption
	@cargo test --locked --package rollcall-core --test allocation
	@echo "== make hostile: all held"

memcheck: setup-test build ## Run part of the server tests on servers under valgrind, about half an hour; FILTERS="..." for another part
	@scripts/setup.sh counts
	@$(WITH) scripts/check_memory.sh memcheck $(FILTERS)

sanitize: setup-test ## Run part of the server tests on a module compiled with the address and leak sanitizers; FILTERS="..." for another part
	@scripts/setup.sh nightly
	@$(WITH) scripts/check_memory.sh sanitize $(FILTERS)

# Tests of the core that are fast enough for an interpreter. The others add too many items.
MIRI_TESTS := bits:: members::record:: --skip or_and_counts --skip pages_of_zeros --skip large_buffers
# Miri's older model of borrowing, Stacked Borrows, would reject pointers that the crate bitvec uses.
MIRI_FLAGS := -Zmiri-disable-isolation -Zmiri-tree-borrows

miri: ## Interpret part of the core's tests, to find violations of Rust's memory rules in the core and its dependencies
	@scripts/setup.sh build miri
	MIRIFLAGS="$(MIRI_FLAGS)" PROPTEST_CASES=2 CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/miri \
		cargo +$(NIGHTLY) miri test --locked --package rollcall-core --lib -- $(MIRI_TESTS)

golden: build ## Rewrite the golden files of the stored format, core/tests/golden and tests/server/golden; only for a new version of the format
	ROLLCALL_WRITE_GOLDEN=1 cargo test --locked --package rollcall-core --test golden every_kind_of_value_is_stored
	ROLLCALL_WRITE_GOLDEN=1 $(WITH) $(SERVER_TESTS) persistence_golden::files_are_written

commands: setup-test build ## Rewrite docs/commands.json, the commands for programs, after a change of the command table
	@ROLLCALL_WRITE_COMMANDS=1 scripts/servers.py with redis-8.10.2 -- $(SERVER_TESTS) commands_json

build: ## Build the optimised module: target/release/librollcall.so
	cargo build --release --locked
	@mkdir -p target/run

lint: ## Check formatting, clippy, doc comments, the library's public names, layers of the tree, licences and sources of crates, the oldest Rust, workflows and (if possible) advisories
	@scripts/setup.sh build lint wheels node
	@scripts/tools.sh lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(HEAVY) --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked
	@scripts/check_layers.py
	@scripts/identity.py check
	@scripts/reference.py check
	@scripts/node_commands.py
	@scripts/check_crates.sh
	@scripts/check_workflows.sh
	@echo "== make lint: nothing to object to"

surface: ## Rewrite core/surface.txt, the list of the library's public names
	@scripts/check_crates.sh surface

DEMOS := message_summary push_dedupe contact_limit leases write_behind

demo: ## Run the example services on real input, and fifty workers that compete for ten seats; each example has its own server
	@scripts/setup.sh build server words
	@$(MAKE) build
	cargo build $(OPTIMISED) --bin with-server $(DEMOS:%=--example %)
	@for name in $(DEMOS); do \
		echo; echo "== $$name"; $(WITH) $(CARGO_TARGET_DIR)/debug/with-server $(CARGO_TARGET_DIR)/debug/examples/$$name; \
	done

bench: setup-test build ## Compare ten kinds of work with RedisBloom, 5 minutes, and write the column of redis-server in docs/benchmarks.md; SERVER=redis-8.10.2: another column; QUICK=1: a rough run that only prints; ONLY=1,7: only these rows, printed; AVX512=no: a column without AVX-512; ONLY=leases: the rows of docs/tutorials/leases.md, one minute
	@QUICK=$(QUICK) ONLY="$(ONLY)" AVX512=$(AVX512) SERVER=$(SERVER) scripts/bench.sh server

accuracy: ## Measure every claim of accuracy, about 10 minutes, and write target/accuracy/ and the figures of docs/accuracy.md; QUICK=1: a rough run; fails if a claim does not hold
	@scripts/setup.sh build
	@QUICK=$(QUICK) ONLY="$(ONLY)" scripts/bench.sh accuracy

instructions: ## Count the instructions of the core's functions, and compare them with benches/core/instructions.txt; UPDATE=1: write the new counts there
	@scripts/setup.sh build counts
	@scripts/check_instructions.py $(if $(UPDATE),--update)

mutants: ## Change each line of core/src that is new since SINCE=main, and see whether a test fails; FILES="core/src/persist/*.rs": all lines of these files; NOTICED_BY="--lib bloom::": run only these tests
	@scripts/setup.sh build
	@scripts/tools.sh mutants
	@FILES="$(FILES)" NOTICED_BY="$(NOTICED_BY)" scripts/mutants.sh $(SINCE)

fuzz: ## Fuzz the library without a server, each target for FUZZ_SECONDS=300; TARGETS="rdb chunks": only these targets; FUZZ_SANITIZER=address: with this sanitizer
	@scripts/setup.sh build fuzz
	@scripts/tools.sh fuzz
	@scripts/fuzz.sh run $(or $(FUZZ_SECONDS),300) $(TARGETS)

fuzz-keep: ## Rewrite fuzz/corpus with the inputs of `make fuzz` that reach the most code, at most 250 for each target
	@scripts/setup.sh build fuzz
	@scripts/tools.sh fuzz
	@scripts/fuzz.sh keep $(TARGETS)

fuzz-server: setup-test build ## Fuzz a server with FUZZ_COMMANDS=200000 random commands; FUZZ_SEED=2: other commands; ROLLCALL_SERVER: another server
	@ROLLCALL_FUZZ_COMMANDS=$(or $(FUZZ_COMMANDS),200000) ROLLCALL_FUZZ_SEED=$(FUZZ_SEED) ROLLCALL_FUZZ_LONGEST_MS=100 \
		$(WITH) cargo test --workspace --locked --test fuzz -- --nocapture

package: ## Make the packages for this processor in target/package/: Debian package, archive, checksums, bills of materials; LIBC=musl: for musl; ARCH=arm64: for AArch64
	@scripts/setup.sh build wheels package
	@scripts/tools.sh zig cyclonedx deb
	@$(FETCH_ARM64)
	@scripts/package.sh build
	@scripts/package.sh pack

test-package: package ## Make the packages and test them: symbols, checksums, contents, lintian, install and remove, and the module on every server; ARCH=arm64: for AArch64, under qemu; LIBC=musl: for musl, symbols, checksums and contents
	@scripts/setup.sh server deb
	@packaging/test/run.sh
	@$(if $(CROSS)$(filter musl,$(LIBC)),echo "servers load it in $(if $(filter musl,$(LIBC)),make test-image,make test-arm64)",ROLLCALL_MODULE=$(CURDIR)/target/package/librollcall.so \
		scripts/servers.py with $(SERVERS) -- $(SERVER_TESTS) every_server::commands every_server::persistence module_loading)
	@echo "== make test-package: the packages are right"

test-arm64: setup-test build ## Test the core, and commands, persistence and replication of the module, for AArch64 on x86-64, under qemu; 15 minutes
	@ARCH=arm64 scripts/setup.sh package
	@scripts/tools.sh zig
	@scripts/arm64.sh fetch
	@ARCH=arm64 scripts/package.sh build
	@scripts/arm64.sh test
	@echo "== make test-arm64: AArch64 does the same"

image: setup-image ## Build images of Redis and Valkey with the module, and an image of the module and the tool alone; ENGINE=docker: with Docker; ARCH=arm64: for AArch64, as root
	@$(EMULATED) scripts/image.sh build

test-image: setup-image ## Build the images on base images made here, and run them and the examples for Compose and Kubernetes, as root; BASES=registry: on the official base images; ARCH=arm64: for AArch64, without the examples
	@scripts/setup.sh server wheels
	@scripts/tools.sh images
	@$(EMULATED) packaging/test/images.sh

release: ## Rehearse the release of VERSION=0.1.0, as root: check, build and collect everything for both processors in target/release-0.1.0/, and list what is left, step by step; FINAL=1: fail if anything is missing; PROCESSORS=amd64: for one; BASES=made: images on the base images of make test-image
	@scripts/release.sh check "$(VERSION)"
	@for arch in $(PROCESSORS); do $(MAKE) package wheel ARCH=$$arch; $(MAKE) package ARCH=$$arch LIBC=musl; done
	@$(MAKE) npm
	@scripts/setup.sh images
	@PROCESSORS="$(PROCESSORS)" scripts/release.sh gather "$(VERSION)"

setup: ## Install everything that any target needs and that is missing
	@scripts/setup.sh build lint server wheels clocks node postgres go others counts watch words package roots deb
	@scripts/tools.sh lint zig cyclonedx deb
	@scripts/servers.py fetch
	@cargo fetch --locked
	@scripts/clients.sh fetch

setup-test:
	@scripts/setup.sh build server wheels clocks

# Builds the module and the tool for glibc and for musl.
setup-image:
	@scripts/setup.sh build wheels package images
	@LIBC=musl scripts/setup.sh package
	@scripts/tools.sh zig
	@$(FETCH_ARM64)
	@scripts/package.sh build
	@LIBC=musl scripts/package.sh build

clean: ## Remove everything that was built or fetched, and the data of `make run`
	rm -rf target
