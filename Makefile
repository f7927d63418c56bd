# `make run` and `make test` set up what they need the first time; see README.md.

SHELL := /bin/bash
BIN := .venv/bin
SECONDS_OF_LOAD ?= 30
FAULT ?=

.PHONY: run test test-jvm jvm-tools lint types layers check bench lock clean

run: .venv/ready
	$(BIN)/reactive-runtime stress --threads 12 --seconds $(SECONDS_OF_LOAD) --out runs --verify $(if $(FAULT),--fault $(FAULT))

test: .venv/ready
	$(BIN)/python -m pytest

# The original kit, and RxJava, on the package: a group of `make test`, which skips it where the tools are missing.
test-jvm: jvm-tools .venv/ready
	$(BIN)/python -m pytest tests/jvm

jvm-tools:
	@command -v mvn >/dev/null || { echo "test-jvm: Maven is needed: there is no mvn on the PATH (Debian: apt-get install maven)" >&2; exit 2; }
	@command -v javac >/dev/null || { echo "test-jvm: a JDK is needed: there is no javac on the PATH (Debian: apt-get install openjdk-17-jdk-headless)" >&2; exit 2; }

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

layers: .venv/ready
	$(BIN)/lint-imports

check: lint types layers

bench: .venv/ready
	for workload in fused boundary subscriptions memory recorder trace_pipeline; do $(BIN)/python benchmarks/$$workload.py || exit 1; done

# Writes down the versions that set-up installs. Needs uv, which is not installed by set-up.
lock:
	uv pip compile --universal --quiet --no-header --no-annotate --extra dev --python-version 3.11 pyproject.toml --output-file requirements.lock

clean:
	rm -rf .venv runs build dist

.venv/ready: pyproject.toml requirements.lock .ci/setup
	.ci/setup
