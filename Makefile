# The front door. Each target installs what it needs (or names the line that does), says what it does, and edits no file of the
# project unless its name says so. The work is done by scripts/, which can be called alone.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Outside the checkout, so that a new clone finds its dependencies compiled.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/flechtwerk/target

.PHONY: help
help: ## Explains the targets
	@echo 'make TARGET, where TARGET is one of'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo 'Compiled into $(CARGO_TARGET_DIR)'

.PHONY: demo
demo: ## Real flights through two instances, one killed in mid-transaction; KAFKA=real for a real Kafka
	@scripts/demo

.PHONY: test
test: ## All tests, against the development broker and a real Apache Kafka that are started and stopped
	@scripts/test

.PHONY: test-quick
test-quick: ## The tests that need no Java: on the development broker, without RocksDB and TLS
	@scripts/test --quick

.PHONY: test-unit
test-unit: ## Only the tests that compile no C
	@scripts/test --unit

.PHONY: simulate
simulate: ## Simulated clusters: SEEDS=100000 plays so many histories, SEED=.. one again
	@scripts/simulate $(if $(SEED),replay $(SEED),run --seeds $(or $(SEEDS),20000) $(if $(FROM),--from $(FROM)))

.PHONY: controls
controls: ## Breaks each rule on purpose in the simulation, and shows which check notices and after how long
	@scripts/simulate controls

.PHONY: chaos
chaos: ## Three real brokers, and faults of every kind by a schedule (an hour and more); ARGS='--kills 50 --minutes 5', SEED=.. plays one again
	@scripts/chaos $(ARGS)

.PHONY: chaos-release
chaos-release: ## The same before a release: ten times the kills and records (takes a day)
	@scripts/chaos --tier release $(ARGS)

.PHONY: mutants
mutants: ## Changes each operator and result of what keeps the promises, one at a time: do the tests notice? (PARTS=transaction; needs cargo-mutants)
	@scripts/mutants $(PARTS)

.PHONY: lint
lint: ## Format, clippy, documentation, licences, scripts, and that the semantics name tests that exist
	@scripts/lint

.PHONY: bench
bench: ## Compares with a hand-written loop and prints ratios (takes long, wants a quiet machine)
	@scripts/bench

.PHONY: nightly
nightly: ## What takes long: Kafka's tools, Kafka Streams and Python against the development broker, a real schema registry, the unsafe module under AddressSanitizer, ten minutes of fuzzing the broker and ten the library, a million simulated histories
	@scripts/dev-broker-clients
	@scripts/schema-registry test
	@scripts/sanitize
	@scripts/dev-broker-fuzz 600
	@scripts/fuzz 600
	@scripts/simulate run --seeds 1000000
	@scripts/simulate controls
	@scripts/simulate small

.PHONY: docs
docs: ## Builds the API documentation, and the book where mdbook is installed
	@scripts/docs

.PHONY: fmt
fmt: ## Formats the sources (edits files)
	cargo fmt --all

.PHONY: bless
bless: ## Accepts what the mistakes' messages and the macros' expansions are now (edits files; read the diff)
	@scripts/bless

.PHONY: clean-servers
clean-servers: ## Removes the default test cluster and those whose run was killed
	@scripts/kafka clean
