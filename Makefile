# `make run` and `make test` set up what they need the first time; see README.md.

SHELL := /bin/bash
BIN := .venv/bin
SECONDS_OF_LOAD ?= 30
FAULT ?=
READY := .venv/ready$(if $(filter-out dev,$(GROUP)),-$(GROUP))
NIGHTLY_SECONDS ?= 600
NIGHTS ?= 30
VERDICTS ?= 365

# Tests start hundreds of processes; without compiled files each would compile the package anew, 80 ms of it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run faults faults-nightly stress nightly soak judge-nightly kills-nightly values-nightly pyspark-nightly connectors test test-core test-threads test-free-threaded test-free-threaded-smoke test-run-parallel stress-free-threaded bench-free-threaded thread-sanitizer test-spark test-jvm test-browser test-rest java jvm-tools browser-tools hazards textbook found explore-nightly oracle-nightly lint types types-mypy types-pyright types-docs layers check workflows bench bench-against bench-explore scale docs docs-links lock clean

run: $(READY) java
	$(BIN)/reactive-runtime stress --threads 12 --seconds $(SECONDS_OF_LOAD) --out runs --verify --report runs/report.html $(if $(FAULT),--fault $(FAULT))

# How long it takes until each planted fault is named, with five seeds.
faults: $(READY)
	$(BIN)/python benchmarks/faults.py

# The scenarios that a change should pass, judged as they are done; all of them, for long, judged by Spark.
stress: $(READY)
	$(BIN)/reactive-runtime stress --tag smoke --seconds 8 --repeat 4 --out runs

# What has become slower than on the nights before is a failure too; of those, NIGHTS traces and VERDICTS verdicts stay.
nightly: $(READY)
	$(BIN)/reactive-runtime stress --threads 12 --seconds $(NIGHTLY_SECONDS) --out runs --verify --fail-on-regression --report runs/report.html --report runs/summary.md --junit runs/stress.xml; status=$$?; \
	$(BIN)/reactive-runtime prune runs --nights $(NIGHTS) --verdicts $(VERDICTS) || [ $$status -ne 0 ] || status=2; exit $$status

# What the planted faults are made from, for a minute.
faults-nightly: $(READY)
	TEXTBOOK_SECONDS=60 $(BIN)/python -m pytest tests/stress/test_faults.py

# Ten minutes of all scenarios in turn: no violation, and threads and memory come back to where they began.
soak: $(READY)
	$(BIN)/python benchmarks/soak.py --seconds $(NIGHTLY_SECONDS)

# The fast judge beside the reference: 2,000 random lists of traces of each kind, in every plan of Spark. Then traces
# whose verdict is known, on local[2] and on a cluster of two workers.
judge-nightly: $(READY)
	JUDGE_TRACES=2000 $(BIN)/python -m pytest tests/judging tests/spark/test_traces.py --timeout 900
	$(BIN)/python benchmarks/scale.py --unit 1000000 --runs 10 --run-records 100000 --one 100000 --rounds 1

# Random rows of 2,000 random schemas: out of Spark and in again, unchanged.
values-nightly: $(READY) java
	VALUE_EXAMPLES=2000 $(BIN)/python -m pytest tests/spark/test_values.py

# The connectors on the oldest PySpark that pyproject.toml allows, in an environment of its own; `make test` has the newest.
OLDEST := .venv-oldest-pyspark
OLD_TESTS := frames spools values connectors ends tasks sinks
$(OLDEST)/ready: pyproject.toml requirements.lock $(READY)
	$(BIN)/python -m venv $(OLDEST)
	oldest=$$(sed -n 's/^spark = .*"pyspark>=\([0-9.]*\),.*/\1/p' pyproject.toml) && sed "s/^pyspark==.*/pyspark==$$oldest.0/" requirements.lock > $(OLDEST)/requirements.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(OLDEST)/requirements.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

pyspark-nightly: $(OLDEST)/ready java
	$(OLDEST)/bin/python -m pytest $(OLD_TESTS:%=tests/spark/test_%.py)

# Kills at random moments, 40 in all of stress, 20 of verify and 20 of verify --follow, 20 of each side of a feed; and
# what only the night has.
kills-nightly: connectors $(READY)
	TRACE_KILLS=40 $(BIN)/python -m pytest -m "" tests/spark/test_kills.py
	FEED_KILLS=20 $(BIN)/python -m pytest -m "" tests/spark/test_sinks.py -k killed
	$(BIN)/python -m pytest -m nightly --ignore tests/spark/test_kills.py

# Jars of Delta, Iceberg and Kafka, and the versions of PySpark that they are for: a gigabyte, in build/connectors. Needs Maven.
connectors: $(READY) java
	$(BIN)/python tests/spark_jars.py

# Side by side; plain `pytest` runs them one after the other. First what waits most of the time, for a JVM, a process or
# a timeout, with two workers a core; then what computes, with one.
WORKERS ?= $(shell getconf _NPROCESSORS_ONLN)
WAITING := $(wildcard tests/stress tests/spark tests/jvm tests/interop tests/oracle tests/docs tests/tck tests/exits tests/report tests/installed tests/judging tests/examples tests/test_docs.py)
# A test that its own limit (at most 1,000 s by day) does not end, since a `finally` of it waits as well, ends its worker:
# all stacks are printed, the test is named as failed, and the others go on.
HANGS := -o faulthandler_timeout=1100 -o faulthandler_exit_on_timeout=true
PYTEST := $(BIN)/python -m pytest --dist loadgroup $(HANGS)
test: $(READY) java
	status=0; \
	$(PYTEST) --numprocesses $$((2 * $(WORKERS))) $(WAITING) || status=$$?; \
	$(PYTEST) --numprocesses $(WORKERS) tests $(WAITING:%=--ignore %) || status=$$?; \
	exit $$status

# The original kit, and RxJava, on the package: a group of `make test`, which skips it where the tools are missing.
test-jvm: jvm-tools $(READY)
	$(BIN)/python -m pytest tests/jvm tests/oracle

# A part of `make test` each, for a job of its own. The second needs no Spark, no JVM and no browser: GROUP=test is enough.
test-core: $(READY)
	$(BIN)/python -m pytest -q tests/core tests/test_style.py tests/test_docstrings.py

THREADS := core connections models nesting operators tck explore exits testing
test-threads: $(READY)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup $(THREADS:%=tests/%) --ignore tests/operators/test_typing.py

# The same on a Python without a GIL, which is looked for and, where that is possible, built: .ci/free-threaded.
# A PYTHON_FT that is given, and that the environment was not made from, has it made anew.
FREE := .venv-free-threaded
WHICH := -c 'import sys; print(sys.base_prefix, sys.version)' 2>/dev/null
OTHER_FT := $(if $(PYTHON_FT),$(shell [ "$$("$(PYTHON_FT)" $(WHICH))" = "$$($(FREE)/bin/python $(WHICH))" ] || echo other-ft))
.PHONY: other-ft
other-ft:
$(FREE)/ready-test: pyproject.toml requirements.lock .ci/setup .ci/free-threaded $(OTHER_FT)
	python=$$(.ci/free-threaded) && $(if $(OTHER_FT),rm -rf $(FREE) && )VENV=$(FREE) GROUP=test PYTHON=$$python .ci/setup

# All tests but those that need Spark, a JVM, a browser, a type checker or the site. The explorer collects garbage for
# each program; without a GIL that goes through the whole heap, which is small in a process that has run nothing else.
FREE_TESTS := $(THREADS:%=tests/%) $(addprefix tests/,stress judging interop docs/test_marbles.py docs/test_names.py examples/test_flow_programs.py examples/test_found.py examples/test_game.py installed/test_plugin.py report/test_page.py $(addprefix spark/test_,arguments.py job_limits.py kills.py regressions.py spools.py) test_docs.py test_docstrings.py test_style.py test_workflow.py)
FREE_PYTEST := PYTHON_GIL=0 $(FREE)/bin/python -m pytest -m "not (nightly or spark or jvm or tools)" --dist loadgroup $(HANGS) --ignore tests/operators/test_typing.py
FREE_WAITING = $(filter $(WAITING) $(WAITING:%=%/%),$(FREE_TESTS))
FREE_EXPLORING = $(filter tests/explore,$(FREE_TESTS))
FREE_COMPUTING = $(filter-out $(FREE_WAITING) $(FREE_EXPLORING),$(FREE_TESTS))
test-free-threaded: $(FREE)/ready-test
	status=0; \
	$(if $(FREE_WAITING),$(FREE_PYTEST) --numprocesses $$((2 * $(WORKERS))) $(FREE_WAITING) || status=$$?;) \
	$(if $(FREE_EXPLORING),$(FREE_PYTEST) --numprocesses $(WORKERS) $(FREE_EXPLORING) || status=$$?;) \
	$(if $(FREE_COMPUTING),$(FREE_PYTEST) --numprocesses $(WORKERS) $(FREE_COMPUTING) || status=$$?;) \
	exit $$status

# The part of it that is most about threads, in a few minutes: for each change.
test-free-threaded-smoke: $(FREE)/ready-test
	PYTHON_GIL=0 $(FREE)/bin/python -m pytest -q --numprocesses $(WORKERS) --dist loadgroup tests/connections tests/core tests/operators/test_shared_errors.py tests/operators/test_kill_switch_races.py tests/stress/test_harness.py tests/stress/test_planted.py
	PYTHON_GIL=0 $(FREE)/bin/reactive-runtime stress --tag smoke --seconds 10 --out runs

# Each test on four threads at once: what it asserts holds whatever other flows of the process do. Those that look at
# what went to the hook, which the process has one of, or that need an executor for themselves, run alone, as do those
# that change the package for the whole process: that turn fusing off, or check who owns a drain. A million elements
# four times over take longer than their test waits.
$(FREE)/ready-run-parallel: $(FREE)/ready-test
	$(FREE)/bin/python -m pip install --quiet --disable-pip-version-check pytest-run-parallel==0.10.0
	touch $@

RUN_PARALLEL := tests/core tests/operators/test_shared_errors.py
test-run-parallel: $(FREE)/ready-run-parallel
	PYTHON_GIL=0 $(FREE)/bin/python -m pytest -q -p no:xdist -m "not (nightly or spark or jvm or tools)" -o "thread_unsafe_fixtures=$$(printf 'dropped\nother\nsubject')" -o "thread_unsafe_functions=$$(printf 'reactive_runtime._core.fusion.fuse.fusing\nreactive_runtime.debugging.ownership_checked')" --parallel-threads 4 $(RUN_PARALLEL) --deselect tests/core/test_bad_input.py::test_an_executor_that_runs_tasks_where_they_are_submitted_needs_no_stack

# All scenarios under load, without a GIL.
stress-free-threaded: $(FREE)/ready-test
	PYTHON_GIL=0 $(FREE)/bin/reactive-runtime stress --threads 12 --seconds $(NIGHTLY_SECONDS) --out runs --verify --engine local

# The same on a build that ThreadSanitizer looks at; the build takes a quarter of an hour, once.
thread-sanitizer: $(READY)
	python=$$(.ci/thread-sanitizer) && $(BIN)/python benchmarks/thread_sanitizer.py $$python --seconds $(SECONDS_OF_LOAD)

# What threads are good for, beside a build with a GIL; then how soon the planted races are found by either.
bench-free-threaded: $(READY) $(FREE)/ready-test
	status=0; \
	PYTHON_GIL=0 $(FREE)/bin/python benchmarks/free_threaded.py --beside $(BIN)/python || status=$$?; \
	PYTHON_GIL=0 $(FREE)/bin/python benchmarks/finding.py --python $(BIN)/python || status=$$?; \
	exit $$status

test-spark: $(READY) java
	$(BIN)/python -m pytest tests/spark tests/stress tests/judging

test-browser: browser-tools $(READY)
	$(BIN)/python -m pytest tests/report tests/docs

# What is in none of the groups above: the installed wheel, the examples, and what the pages say.
test-rest: $(READY)
	$(BIN)/python -m pytest tests/installed tests/examples tests/interop tests/test_docs.py tests/test_workflow.py tests/operators/test_typing.py

browser-tools: $(READY)
	@command -v chromium >/dev/null || { echo "test: a browser is needed: there is no chromium on the PATH (Debian: apt-get install chromium)" >&2; exit 2; }

java: $(READY)
	@.ci/java

jvm-tools:
	@command -v mvn >/dev/null || { echo "test-jvm: Maven is needed: there is no mvn on the PATH (Debian: apt-get install maven)" >&2; exit 2; }
	@command -v javac >/dev/null || { echo "test-jvm: a JDK is needed: there is no javac on the PATH (Debian: apt-get install openjdk-17-jdk-headless)" >&2; exit 2; }

# The lessons, each with a schedule that shows the hazard, found there and then.
hazards: $(READY)
	$(BIN)/python -m examples.hazards

# The textbook's publisher in nine steps: what the kit breaks in each, and what the explorer does.
textbook: $(READY)
	$(BIN)/python -m examples.stream_publisher

# Races that the explorer found in packages of PyPI, which it installs into build/found.
found: $(READY)
	$(BIN)/python -m examples.found $$($(BIN)/python -c "from examples.found import FINDS; print(*FINDS)")

# The explorer on everything: searches go to their end, samples have 5,000 schedules.
explore-nightly: $(READY)
	EXPLORE_SCHEDULES=5000 $(BIN)/python -m pytest tests/explore tests/connections --timeout 3600

# Random chains of operators, here, in RxJava and in Reactor; a seed of its own each night. Prints the count by operator.
ORACLE_CHAINS ?= 20000
oracle-nightly: jvm-tools $(READY)
	PYTHONPATH=tests:. $(BIN)/python -m oracle --chains $(ORACLE_CHAINS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Two checkers, since each sees what the other does not, over all that is Python; then how many of the public names have a type that is certain.
types: types-mypy types-pyright

types-mypy: $(READY)
	$(BIN)/mypy
	MYPYPATH=. $(BIN)/mypy --explicit-package-bases stress examples
	MYPYPATH=tests:. $(BIN)/mypy --explicit-package-bases tests
	MYPYPATH=benchmarks:tests $(BIN)/mypy --explicit-package-bases benchmarks

types-pyright: $(READY)
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	PYTHONPATH=$(CURDIR) $(BIN)/basedpyright --pythonpath $(BIN)/python --verifytypes reactive_runtime --ignoreexternal --outputjson | $(BIN)/python -c "import json, sys; score = json.load(sys.stdin)['typeCompleteness']['completenessScore']; print(f'types: {score:.2%} of the public names are known'); sys.exit(score < 0.99)"

# The Python blocks of the README and of docs.
types-docs: $(READY)
	$(BIN)/python -m pytest -q tests/test_docs.py -k type_checkers

layers: $(READY)
	$(BIN)/lint-imports

# Under a minute: what to run before each commit. Two at a time, each with its output in one piece, where make can do that.
check: $(READY)
	$(MAKE) --no-print-directory -j 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) lint types-pyright types-mypy types-docs layers test-core

# The workflow of .github, by actionlint. Needs Go, which builds it; no package of Python or Debian has it.
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
workflows:
	@command -v go >/dev/null || { echo "workflows: Go is needed: there is no go on the PATH (Debian: apt-get install golang-go)" >&2; exit 2; }
	go run $(ACTIONLINT)

# Ours beside the peers, in one run; then what was reached, as a table and as a picture.
bench: $(READY)
	rm -f benchmarks/results.jsonl
	for workload in fused operators timeouts boundary subscriptions memory recorder load trace_pipeline bulk connectors summary; do $(BIN)/python benchmarks/$$workload.py || exit 1; done

# The package beside itself as it was: REV=main, or any commit. Each work in turn, ratios now / then.
bench-against: $(READY)
	$(BIN)/python benchmarks/against.py $(or $(REV),$(error bench-against: name a revision: make bench-against REV=HEAD~1))

# What the verdict costs on 10, 20, 40 million records, on 100 skewed runs, and on a cluster of two workers here; and
# whether each is right. A subscription of 8 million records is judged one at a time: four verdicts of a minute and more
# each, which SCALE="--one 0" leaves out. SCALE="--unit 100000 --runs 3 --run-records 100000 --one 100000" does the same
# with little.
scale: $(READY)
	$(BIN)/python benchmarks/scale.py $(SCALE)

# The explorer beside two others. They get an environment of their own; one of them needs Python 3.12 (BENCH_PYTHON=...).
BENCH_PYTHON ?= $(firstword $(foreach name,python3.13 python3.12 python3,$(shell $(name) -c 'import sys; print(sys.executable)' 2>/dev/null)))
bench-explore:
	$(BENCH_PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --disable-pip-version-check --editable '.[greenlet]' frontrun==0.7.0
	.venv-bench/bin/pip install --quiet --disable-pip-version-check interleave-test==0.1.0 || echo "interleave-test needs Python 3.12: name one with BENCH_PYTHON"
	.venv-bench/bin/python benchmarks/explore.py

# The site, in build/site: every warning is an error. `docs-links` also asks the addresses outside of it.
docs: $(READY)
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d build/doctrees docs build/site
	@echo "docs: build/site/index.html"

docs-links: $(READY)
	$(BIN)/python -m sphinx -q -W --keep-going -b linkcheck -d build/doctrees docs build/links

# Writes down the versions that set-up installs. Needs uv 0.7 or newer, which is not installed by set-up.
lock:
	uv pip compile --universal --quiet --no-header --no-annotate --all-extras --group dev --python-version 3.11 pyproject.toml --output-file requirements.lock

clean:
	rm -rf .venv .venv-bench .venv-oldest-pyspark $(FREE) runs build dist

$(READY): pyproject.toml requirements.lock .ci/setup
	.ci/setup
