# `make help` lists the targets. Each installs what it needs on first use; the programs they run are in .ci.

SHELL := /bin/bash
.DEFAULT_GOAL := help

export BIN ?= .venv/bin
export WORKERS ?= $(shell getconf _NPROCESSORS_ONLN)
export SECONDS_OF_LOAD ?= 30
export NIGHTLY_SECONDS ?= 600
export NIGHTS ?= 30
export VERDICTS ?= 365
export FREE := .venv-free-threaded
export OLDEST := .venv-oldest-pyspark
FAULT ?=
PART ?=
SIZE ?=
READY := .venv/ready$(if $(filter-out dev,$(GROUP)),-$(GROUP))

# Tests start hundreds of processes; without compiled files each would compile the package anew, 80 ms of it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run stress show service check test test-part test-operator test-free-threaded nightly bench scale bench-against docs connectors workflows lock clean
.PHONY: java jvm-tools browser-tools other-ft

# What a part needs beside the environment.
NEEDS_test-spark := java
NEEDS_test-jvm := jvm-tools
NEEDS_test-browser := browser-tools
NEEDS_nightly-values := java
NEEDS_nightly-pyspark := java $(OLDEST)/ready
NEEDS_nightly-kills := connectors
NEEDS_nightly-oracle := jvm-tools
NEEDS_nightly-run-parallel := $(FREE)/ready-run-parallel
NEEDS_nightly-free-threaded := $(FREE)/ready-test
NEEDS_nightly-smoke := $(FREE)/ready-test
NEEDS_bench-free-threaded := $(FREE)/ready-test

help: ## list the targets
	@awk -f .ci/help.awk $(MAKEFILE_LIST)

##@ Use it

run: $(READY) java ## load on all scenarios, judged by Spark, with a report; FAULT=lost-demand plants a fault
	$(BIN)/reactive-runtime stress --threads 12 --seconds $(SECONDS_OF_LOAD) --out runs --verify --report runs/report.html $(if $(FAULT),--fault $(FAULT))

stress: $(READY) ## the scenarios that each change should pass, in seconds
	$(BIN)/reactive-runtime stress --tag smoke --seconds 8 --repeat 4 --out runs

show: $(READY) ## an example: NAME=hazards, textbook or found
	.ci/show $(NAME)

service: $(READY) ## a whole back-end with its servers, and a page that shows it live; PORT=8000
	.ci/servers redis-server >/dev/null && .ci/servers postgresql-15 >/dev/null
	$(BIN)/python -m examples.service $(or $(PORT),8000)

##@ Change it

check: $(READY) ## before each commit, a minute: lint, mypy, pyright, pages, layers, core; or one of these as PART
	$(MAKE) --no-print-directory -j 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) $(addprefix check-,$(or $(PART),lint pyright mypy pages layers core))

check-%: $(READY)
	.ci/check $*

test-operator: $(READY) ## the tests of one operator, in seconds: NAME=map
	.ci/tests operator $(or $(NAME),$(error test-operator: name an operator: make test-operator NAME=map))

test: $(READY) java ## all tests
	.ci/tests all

test-part: $(READY) $(NEEDS_test-$(PART)) ## a part of them: PART=core, threads, spark, jvm, browser or rest
	.ci/tests $(or $(PART),$(error test-part: name a part: make test-part PART=core))

test-free-threaded: $(FREE)/ready-test ## the tests on a Python without a GIL: PYTHON_FT=python3.14t FREE_TESTS=tests/core
	.ci/tests free-threaded $(FREE_TESTS)

nightly: $(READY) $(NEEDS_nightly-$(PART)) ## what takes long: PART=stress, explore, judge, …; .ci/nightly lists them
	.ci/nightly $(or $(PART),stress)

bench: $(READY) $(NEEDS_bench-$(PART)) ## figures of the docs: PART=fused, against (REV=main), explore, scale, …
	.ci/bench $(PART)

scale: $(READY) java ## a year of nights, small: planning, compacting, skew …; SIZE=full, and PART=records, planning, …
	.ci/scale $(SIZE) $(PART)

bench-against: $(READY) ## six programs beside asyncio, aiostream, reactivex, RxJava …: bench PART=beside
	.ci/bench beside

##@ Keep house

docs: $(READY) ## the site, in build/site; PART=links asks the addresses outside of it too
	$(BIN)/python -m sphinx -q -W --keep-going -b $(if $(PART),linkcheck,html) -d build/doctrees docs build/$(or $(PART),site)

connectors: $(READY) java ## the jars of Delta, Iceberg and Kafka that PART=kills needs: a gigabyte, by Maven
	$(BIN)/python tests/spark_jars.py

workflows: ## the workflow of .github, by actionlint; needs Go
	@.ci/tools go
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

lock: ## requirements.lock anew, after a change of pyproject.toml; needs uv 0.7 or newer
	uv pip compile --universal --quiet --no-header --no-annotate --all-extras --group dev --python-version 3.11 pyproject.toml --output-file requirements.lock

clean: ## remove environments, runs and builds
	rm -rf .venv .venv-bench $(OLDEST) $(FREE) runs build dist

# The environments, and the tools that stand outside of them.

$(READY): pyproject.toml requirements.lock .ci/setup
	.ci/setup

# A PYTHON_FT other than the one that the environment was made from has it made anew.
WHICH := -c 'import sys; print(sys.base_prefix, sys.version)' 2>/dev/null
OTHER_FT := $(if $(PYTHON_FT),$(shell [ "$$("$(PYTHON_FT)" $(WHICH))" = "$$($(FREE)/bin/python $(WHICH))" ] || echo other-ft))
other-ft:
$(FREE)/ready-test: pyproject.toml requirements.lock .ci/setup .ci/free-threaded $(OTHER_FT)
	python=$$(.ci/free-threaded) && $(if $(OTHER_FT),rm -rf $(FREE) && )VENV=$(FREE) GROUP=test PYTHON=$$python .ci/setup

$(FREE)/ready-run-parallel: $(FREE)/ready-test
	$(FREE)/bin/python -m pip install --quiet --disable-pip-version-check pytest-run-parallel==0.10.0
	touch $@

$(OLDEST)/ready: pyproject.toml requirements.lock .ci/oldest-pyspark $(READY)
	.ci/oldest-pyspark

java: $(READY)
	@.ci/java

jvm-tools:
	@.ci/tools jvm

browser-tools:
	@.ci/tools browser
