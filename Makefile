# `make demo` and `make test` work on a fresh clone: both set up first.
# `make test PYTEST='-k name'` runs the tests of that name, without the linters.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
PYTEST ?=

.PHONY: setup demo page test lint clean

setup: $(STAMP)

$(STAMP): setup.py pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(STAMP)

demo: setup
	$(BIN)/python -m lstm_dssm_programs demo --output=build/demo

# A page for searching the demo's titles, at http://127.0.0.1:8501/.
page: setup
	test -d build/demo/models || $(MAKE) demo
	$(BIN)/python -m lstm_dssm_programs serve --models=build/demo/models \
	    --http_port=8501 --click_log=build/demo/clicks.tsv

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(if $(PYTEST),setup,lint)
	$(BIN)/python -m pytest $(or $(PYTEST),-n 2 --dist worksteal)

clean:
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
