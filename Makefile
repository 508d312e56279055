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
DEMOS := message_summary push_dedupe contact_limit

# Server tests wait for their servers about as long as they work: more at a time than there are cores.
export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))

# The part of the server tests that every supported server has to pass, as filters of test names.
CORE_TESTS := commands_ config info_ persistence replication
# But those that compare long random sessions with a model, for what they find does not depend on the server, and those
# of a hostile world, which `make hostile` runs on all servers.
NOT_CORE_TESTS := replication_windows_model replication_cut persistence_full_disk persistence_killed commands_without_memory
# All but the examples of documents. Programs in examples/ have no tests, and `make lint` compiles them.
TESTS := --workspace --locked --lib --bins --tests
# Optimised: they add tens of millions of items.
ACCURACY_TESTS := --profile accuracy --locked --package rollcall-core --test accuracy
OTHER_SERVERS := redis-8.2.3 valkey-9.1.2
PEERS := redis-6.2.5 redisbloom-2.8.2
# VARIABLE=FILE for a fetched server; empty on a machine that the server does not run on.
in_variable = $(addprefix $(1)=,$(shell scripts/servers.py path $(2)))

space := $(subst ,, )

.PHONY: help run test test-servers test-clients test-python test-watch wheel bench-python chaos chaos-short hostile memcheck sanitize miri golden build lint surface demo bench accuracy instructions fuzz fuzz-keep fuzz-server mutants package test-package setup clean setup-run setup-test

help: ## List the targets (what `make` alone does)
	@echo "make TARGET, where TARGET is one of"
	@echo
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r name text; do \
		printf '%-14s %s\n' "$$name" "$$text"; done

run: ## Install what is missing, build, and start redis-server with the module; PORT=6380 for another port
	@scripts/run.sh check "$(PORT)"
	@scripts/setup.sh build server
	@$(MAKE) build
	@exec scripts/run.sh start "$(PORT)"

# The module is linked by one core for minutes: the tests are compiled meanwhile.
test: setup-test ## Run every test: all of them on redis-server, then the core part on Redis 8 and Valkey
	@scripts/servers.py fetch $(PEERS)
	@cargo build --release --locked & module=$$!; compiled=0; \
		{ cargo test $(TESTS) --no-run && cargo test $(ACCURACY_TESTS) --no-run; } || compiled=$$?; \
		wait $$module && exit $$compiled
	@mkdir -p target/run
	@echo "== all tests, on $$(redis-server --version | cut -d' ' -f1-3)"
	@ROLLCALL_MODULE=$(MODULE) ROLLCALL_SERVER=redis-server \
		$(call in_variable,ROLLCALL_OLD_SERVER,redis-6.2.5) $(call in_variable,ROLLCALL_PEER,redisbloom-2.8.2) \
		cargo test $(TESTS) --no-fail-fast
	@cargo test --workspace --locked --doc
	@echo "== accuracy, optimised"
	@cargo test $(ACCURACY_TESTS)
	@$(MAKE) test-servers
	@echo "== make test: every test passed"

test-servers: setup-test build ## Run the core server tests (commands, options, persistence, replication) on Redis 8.2.3 and Valkey 9.1.2
	@scripts/servers.py fetch $(OTHER_SERVERS) redisbloom-2.8.2
	@for filter in $(CORE_TESTS); do \
		cargo test --workspace --locked --quiet --test server -- --list "$$filter" | grep ': test$$' >/dev/null || \
			{ echo "no server test matches '$$filter': this target would pass without testing" >&2; exit 1; }; \
	done
	@for name in $(OTHER_SERVERS); do \
		server=$$(scripts/servers.py path $$name); \
		[[ -n "$$server" ]] || continue; \
		echo "== core server tests, on $$name"; \
		ROLLCALL_MODULE=$(MODULE) ROLLCALL_SERVER=$$server $(call in_variable,ROLLCALL_PEER,redisbloom-2.8.2) \
			cargo test --workspace --locked --no-fail-fast --test server -- $(CORE_TESTS) $(addprefix --skip ,$(NOT_CORE_TESTS)); \
	done

# How much of each scenario: kills, failovers, seconds of everything at once, seconds of slots that move.
CHAOS_KILLS ?= 200
CHAOS_FAILOVERS ?= 50
CHAOS_SECONDS ?= 600
CHAOS_CLUSTER_SECONDS ?= 300
SERVERS ?= redis-server $(OTHER_SERVERS)
# One scenario at a time, which has all cores. Logs of servers are kept where one fails.
RUN_CHAOS = ROLLCALL_MODULE=$(MODULE) ROLLCALL_LOGS=$(CARGO_TARGET_DIR)/chaos cargo test --workspace --locked --test chaos -- \
	--ignored --nocapture --test-threads 1

chaos: setup-test build ## Kill, cut off, reload and move servers at full load, and look for all that was acknowledged, 20 minutes for each of SERVERS=...; CHAOS_SECONDS=60 and the like: shorter
	@scripts/servers.py fetch $(OTHER_SERVERS)
	@cargo test --workspace --locked --test chaos --no-run
	@for name in $(SERVERS); do \
		server=$$name; [[ "$$name" == redis-server ]] || server=$$(scripts/servers.py path $$name); \
		[[ -n "$$server" ]] || continue; \
		echo "== chaos, on $$name"; \
		ROLLCALL_CHAOS_KILLS=$(CHAOS_KILLS) ROLLCALL_CHAOS_FAILOVERS=$(CHAOS_FAILOVERS) \
			ROLLCALL_CHAOS_SECONDS=$(CHAOS_SECONDS) ROLLCALL_CHAOS_CLUSTER_SECONDS=$(CHAOS_CLUSTER_SECONDS) \
			ROLLCALL_SERVER=$$server $(RUN_CHAOS); \
	done
	@echo "== make chaos: nothing was lost"

chaos-short: setup-test build ## The same for two minutes, on redis-server
	@cargo test --workspace --locked --test chaos --no-run
	@ROLLCALL_SERVER=redis-server $(RUN_CHAOS)

test-clients: ## Run redis-py, node-redis and redis-rs against the module, each in RESP2 and RESP3
	@scripts/setup.sh build server wheels node
	@$(MAKE) build
	@scripts/clients.sh fetch
	@ROLLCALL_MODULE=$(MODULE) ROLLCALL_SERVER=redis-server scripts/clients.sh run
	@echo "== make test-clients: every client passed"

wheel: ## Build the wheel of the Python package: target/python/wheels/
	@scripts/setup.sh build wheels
	@scripts/python.sh wheel

test-python: setup-test build wheel ## Test the Python package as it is installed, on every Python from 3.11 on that is here, with all servers and clients; ROLLCALL_ALL_WAYS=1: each command in all 60 ways of calling
	@scripts/setup.sh node
	@scripts/servers.py fetch $(OTHER_SERVERS)
	cargo build --locked --profile test --package rollcall-cli --package rollcall-testkit
	@ROLLCALL_MODULE=$(MODULE) ROLLCALL_TOOL=$(CARGO_TARGET_DIR)/debug/rollcall \
		ROLLCALL_SERVER=$(subst $(space),:,$(strip redis-server $(foreach name,$(OTHER_SERVERS),$(shell scripts/servers.py path $(name))))) \
		scripts/python.sh test

bench-python: wheel ## Measure the Python package beside what there is otherwise, 5 minutes, and write docs/python.md; QUICK=1: a rough run that only prints
	@scripts/python.sh bench $(if $(filter-out 0,$(QUICK)),--quick,--write docs/python.md)

# Tests of the tool that take programs of others, as filters of test names.
WATCH_TESTS := monitoring browser

test-watch: setup-test build ## Run the exporter, the alert rules and the dashboards against Prometheus and Chromium
	@scripts/setup.sh watch
	@scripts/servers.py fetch redisbloom-2.8.2
	@ROLLCALL_MODULE=$(MODULE) ROLLCALL_SERVER=redis-server $(call in_variable,ROLLCALL_PEER,redisbloom-2.8.2) \
		ROLLCALL_PROMETHEUS=$$(command -v prometheus) ROLLCALL_BROWSER=$$(command -v chromium) \
		cargo test --workspace --locked --no-fail-fast --test online -- $(WATCH_TESTS)
	@echo "== make test-watch: what watches is right"

# Tests of a hostile world, as filters of test names. `make test` runs them too, with links cut in some places only.
HOSTILE_TESTS := replication_cut persistence_full_disk persistence_killed persistence_corruption commands_without_memory

hostile: setup-test build ## Break links after every byte of a value, fill disks, kill children, refuse memory: on three servers, about 15 minutes
	@scripts/servers.py fetch $(OTHER_SERVERS)
	@for server in redis-server $(foreach name,$(OTHER_SERVERS),$(shell scripts/servers.py path $(name))); do \
		echo "== a hostile world, on $$($$server --version | cut -d' ' -f1-3)"; \
		ROLLCALL_THOROUGH=1 ROLLCALL_MODULE=$(MODULE) ROLLCALL_SERVER=$$server \
			cargo test --locked --no-fail-fast --test server -- --show-output $(HOSTILE_TESTS); \
	done
	@cargo test --locked --package rollcall-core --test allocation
	@echo "== make hostile: all held"

# Server tests whose servers are watched, as filters of test names; more with FILTERS="...".
MEMORY_TESTS := any_commands commands_bloom commands_counting commands_members commands_admission persistence_golden persistence_corruption types_generic replication_effects

memcheck: setup-test build ## Run part of the server tests on servers under valgrind, about half an hour; FILTERS="..." for another part
	@scripts/setup.sh counts
	@ROLLCALL_MODULE=$(MODULE) scripts/check_memory.sh memcheck $(or $(FILTERS),$(MEMORY_TESTS))

# Not those with a clock of their own, with limits of memory or that measure it, or that add very many items.
SANITIZE_TESTS := any_commands commands_admission commands_beside commands_bloom commands_counting commands_expiry commands_members \
	errors events persistence_corruption persistence_full_disk persistence_golden persistence_restart replication_cut \
	replication_effects replication_sync types_generic types_payload

sanitize: setup-test ## Run part of the server tests with a module that has the address and leak sanitizer in it; FILTERS="..." for another part
	@scripts/setup.sh nightly
	@scripts/servers.py fetch redisbloom-2.8.2
	@$(call in_variable,ROLLCALL_PEER,redisbloom-2.8.2) scripts/check_memory.sh sanitize $(or $(FILTERS),$(SANITIZE_TESTS))

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
	ROLLCALL_WRITE_GOLDEN=1 ROLLCALL_MODULE=$(MODULE) ROLLCALL_SERVER=redis-server cargo test --locked --test server -- persistence_golden::files_are_written

build: ## Build the module, optimised: target/release/librollcall.so
	cargo build --release --locked
	@mkdir -p target/run

# Crates with lock files of their own, beside the workspace; fuzz/libfuzzer compiles with the nightly toolchain only.
ALONE := tests/clients/rust tests/surface
DENY := $(CARGO_TARGET_DIR)/tools/lint/bin/cargo-deny --locked --config $(CURDIR)/deny.toml
DENY_ALL = for folder in . $(ALONE) fuzz/libfuzzer; do $(DENY) --manifest-path $$folder/Cargo.toml $(1); done
SURFACE := RUSTDOC=$(CURDIR)/tests/surface/rustdoc.sh cargo rustdoc --quiet --locked --package rollcall-core --lib -- -Z unstable-options --output-format json && \
	cargo run --quiet --locked --manifest-path tests/surface/Cargo.toml $(CARGO_TARGET_DIR)/doc/rollcall_core.json
OLDEST_RUST := $(shell sed -nE 's/^rust-version = "(.*)"/\1/p' Cargo.toml)

lint: ## Check formatting, clippy, doc comments, what the library shows, the floors of the tree, licences and sources of crates, the oldest Rust, workflows and (where possible) advisories
	@scripts/setup.sh build lint wheels node
	@scripts/tools.sh lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked
	cargo fmt --check --manifest-path fuzz/libfuzzer/Cargo.toml
	@for folder in $(ALONE); do \
		cargo fmt --check --manifest-path $$folder/Cargo.toml; \
		cargo clippy --all-targets --locked --manifest-path $$folder/Cargo.toml -- -D warnings; \
	done
	@($(SURFACE)) | diff -u core/surface.txt - || { echo "lint: an example is missing, or the library shows something else than core/surface.txt says: hide it, or run  make surface" >&2; exit 1; }
	@scripts/check_layers.py
	@$(call DENY_ALL,check licenses bans sources)
	@if timeout 60 $(DENY) fetch db 2>/dev/null || compgen -G "$${CARGO_HOME:-$$HOME/.cargo}/advisory-dbs/*/crates" >/dev/null; then $(call DENY_ALL,--offline check advisories); \
		else echo "lint: advisories not checked: they are on a network, and there is no local copy"; fi
	@if rustup toolchain list 2>/dev/null | grep -q '^$(OLDEST_RUST)'; then cargo +$(OLDEST_RUST) check --workspace --lib --bins --locked; \
		else echo "lint: not compiled with the oldest Rust:  rustup toolchain install $(OLDEST_RUST)  lets it"; fi
	@scripts/check_workflows.sh
	@echo "== make lint: nothing to object to"

surface: ## Write core/surface.txt anew, the list of what the library shows to its users
	@($(SURFACE)) >$(CARGO_TARGET_DIR)/surface.txt && mv $(CARGO_TARGET_DIR)/surface.txt core/surface.txt

demo: ## Run the three example services on real input, each beside a server of its own
	@scripts/setup.sh build server words
	@$(MAKE) build
	cargo build --release --locked --examples
	@for name in $(DEMOS); do \
		echo; echo "== $$name"; \
		cargo with-server $(CARGO_TARGET_DIR)/release/examples/$$name; \
	done

# A quick run shows that all works and roughly what it gives; only a full one is worth keeping in docs/.
BENCH_IN_PART = $(filter-out 0,$(QUICK))$(ONLY)
BENCH_DOCUMENT = $(if $(BENCH_IN_PART),$(CARGO_TARGET_DIR)/benchmarks.md,docs/benchmarks.md)
BENCH_PAGES = $(if $(BENCH_IN_PART),,README.md,docs/operations.md,docs/counting.md,docs/windows.md)

bench: setup-test build ## Measure against RedisBloom, 15 minutes, write docs/benchmarks.md and other pages' tables; QUICK=1: a rough run of two
	@scripts/servers.py fetch redisbloom-2.8.2
	@[[ -n "$(call in_variable,BENCH_PEER,redisbloom-2.8.2)" ]] || { echo "bench: RedisBloom is for x86-64 Linux only" >&2; exit 1; }
	cargo build --release --locked --example floor
	cargo build --release --locked --package rollcall-cli
	cargo bench --locked --no-run --bench server
	@BENCH_QUICK=$(QUICK) BENCH_ONLY="$(ONLY)" BENCH_DOCUMENT=$(BENCH_DOCUMENT) BENCH_PAGES=$(BENCH_PAGES) BENCH_MODULE=$(MODULE) \
		BENCH_FLOOR=$(CARGO_TARGET_DIR)/release/examples/libfloor.so BENCH_TOOL=$(CARGO_TARGET_DIR)/release/rollcall $(call in_variable,BENCH_PEER,redisbloom-2.8.2) \
		cargo bench --locked --quiet --bench server
	@[[ -n "$(BENCH_IN_PART)" ]] || cargo bench --locked --package rollcall-core --bench core

# As above: only a full run writes the document.
ACCURACY_DOCUMENT = $(if $(filter-out 0,$(QUICK)),$(CARGO_TARGET_DIR)/accuracy.md,docs/accuracy.md)

accuracy: ## Measure every claim of accuracy, 6 minutes, and write docs/accuracy.md; QUICK=1: a rough run of one; fails if one does not hold
	@scripts/setup.sh build
	cargo bench --locked --no-run --bench accuracy
	@ACCURACY_QUICK=$(QUICK) ACCURACY_ONLY="$(ONLY)" ACCURACY_TEMPLATE=$(CURDIR)/docs/accuracy.md \
		ACCURACY_DOCUMENT=$(abspath $(ACCURACY_DOCUMENT)) cargo bench --locked --quiet --bench accuracy

instructions: ## Compare the instructions that the core takes with core/benches/instructions.txt; UPDATE=1 to keep those of now
	@scripts/setup.sh build counts
	@scripts/check_instructions.py $(if $(UPDATE),--update)

# .cargo/mutants.toml names changes that no test can notice. One folder of builds: crates of others are compiled once.
MUTANTS := $(CARGO_TARGET_DIR)/mutants

mutants: ## Change each line of core/src that is new since SINCE=main and see whether a test notices; FILES="core/src/persist/*.rs": these whole; NOTICED_BY="--lib bloom::": by these tests alone
	@scripts/setup.sh build
	@scripts/tools.sh mutants
	@mkdir -p $(MUTANTS) && git diff $(or $(SINCE),main) -- core/src >$(MUTANTS)/diff
	@set -f; PATH="$(CARGO_TARGET_DIR)/tools/mutants/bin:$$PATH" CARGO_TARGET_DIR=$(MUTANTS)/build cargo mutants --package rollcall-core \
		--output $(MUTANTS) $(if $(FILES),$(addprefix --file=,$(FILES)),--in-diff $(MUTANTS)/diff) -- $(or $(NOTICED_BY),--lib --tests)

# Of each target; and commands in all.
FUZZ_SECONDS ?= 300
FUZZ_COMMANDS ?= 200000
FUZZ := $(CARGO_TARGET_DIR)/fuzz
FUZZ_TARGETS = $(or $(TARGETS),$(basename $(notdir $(wildcard fuzz/libfuzzer/fuzz_targets/*.rs))))
CARGO_FUZZ = PATH="$(CARGO_TARGET_DIR)/tools/fuzz/bin:$$PATH" ASAN_OPTIONS=allocator_may_return_null=1 cargo +$(NIGHTLY) fuzz
# No input has to guess a value that it is compared with: without marks of comparisons it is a third faster.
FUZZ_BUILD = --fuzz-dir fuzz/libfuzzer --target-dir $(FUZZ)/build --sanitizer $(or $(FUZZ_SANITIZER),none) --no-trace-compares
# Longer inputs reach no more. A value takes at most 1 MiB (fuzz/src/limit.rs), what is worked out of several 64 MiB.
# Nothing leaks without `unsafe`, and weighing inputs takes longer than they do.
FUZZ_LIMITS := -max_len=512 -malloc_limit_mb=100 -rss_limit_mb=2048 -timeout=10 -detect_leaks=0 -entropic=0 -reload=0

fuzz: ## Fuzz the library in process, each target for FUZZ_SECONDS=300; TARGETS="rdb chunks": these alone; FUZZ_SANITIZER=address: with it
	@scripts/setup.sh build fuzz
	@scripts/tools.sh fuzz
	@$(CARGO_FUZZ) build $(FUZZ_BUILD)
	@mkdir -p $(FUZZ)/failed $(addprefix $(FUZZ)/corpus/,$(FUZZ_TARGETS))
	@printf '%s\n' $(FUZZ_TARGETS) | xargs -P $(or $(FUZZ_JOBS),$(shell nproc)) -I@ bash -c '$(CARGO_FUZZ) run $(FUZZ_BUILD) @ $(FUZZ)/corpus/@ fuzz/corpus/@ -- \
		$(FUZZ_LIMITS) -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=$(FUZZ)/failed/@- >$(FUZZ)/@.log 2>&1 || { tail -n 60 $(FUZZ)/@.log; exit 1; }; \
		echo "fuzz: @: $$(tail -n 1 $(FUZZ)/@.log)"'

fuzz-keep: ## Write fuzz/corpus anew: of all inputs that `make fuzz` found, at most 250 of a target, which reach most
	@scripts/setup.sh build fuzz
	@scripts/tools.sh fuzz
	@for target in $(FUZZ_TARGETS); do \
		find $(FUZZ)/corpus/$$target -type f -exec cp -t fuzz/corpus/$$target {} +; \
		$(CARGO_FUZZ) cmin $(FUZZ_BUILD) $$target fuzz/corpus/$$target -- $(FUZZ_LIMITS) -use_counters=0; \
		(cd fuzz/corpus/$$target && ls -Sr | head -n -250 | xargs -r rm --); \
	done

fuzz-server: setup-test build ## Fuzz a server with FUZZ_COMMANDS=200000 random commands; FUZZ_SEED=2: others; ROLLCALL_SERVER: another server
	ROLLCALL_MODULE=$(MODULE) ROLLCALL_SERVER=$${ROLLCALL_SERVER:-redis-server} ROLLCALL_FUZZ_COMMANDS=$(FUZZ_COMMANDS) \
		ROLLCALL_FUZZ_SEED=$(FUZZ_SEED) ROLLCALL_FUZZ_LONGEST_MS=100 \
		cargo test --workspace --locked --test fuzz -- --nocapture

package: ## Make the packages for this processor, target/package/: Debian package, archive, sums, bills of materials; LIBC=musl: for musl
	@scripts/setup.sh build wheels package
	@scripts/tools.sh zig cyclonedx deb
	@scripts/package.sh build
	@scripts/package.sh pack

# The part of the server tests that the packaged module passes on every server.
PACKAGE_TESTS := commands_ persistence module_loading

test-package: package ## Make the packages and test them: symbols, sums, contents, lintian, install and remove, and the module on every server
	@scripts/setup.sh server deb
	@packaging/test/run.sh
	@scripts/servers.py fetch $(OTHER_SERVERS) redisbloom-2.8.2
	@for server in redis-server $(foreach name,$(OTHER_SERVERS),$(shell scripts/servers.py path $(name))); do \
		echo "== the packaged module on $$($$server --version | cut -d' ' -f1-3)"; \
		ROLLCALL_MODULE=$(CURDIR)/target/package/librollcall.so ROLLCALL_SERVER=$$server $(call in_variable,ROLLCALL_PEER,redisbloom-2.8.2) \
			cargo test --workspace --locked --no-fail-fast --test server -- $(PACKAGE_TESTS); \
	done
	@echo "== make test-package: the packages are right"

setup: ## Install everything that any target needs, as far as it is missing
	@scripts/setup.sh build lint server wheels clocks node counts watch words package deb
	@scripts/tools.sh lint zig cyclonedx deb
	@scripts/servers.py fetch
	@cargo fetch --locked
	@scripts/clients.sh fetch

setup-test:
	@scripts/setup.sh build server wheels clocks

clean: ## Remove all that was built or fetched, and what `make run` stored
	rm -rf target
