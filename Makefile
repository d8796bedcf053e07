# `make demo` and `make test` work on a fresh clone: both set up first.
# `make test PYTEST='-k name'` runs the tests of that name, without the linters.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
PYTEST ?=
ARGS ?=

DOCS_STAMP := $(VENV)/docs-installed
TOOLS := build/tools/bin
SPHINXOPTS ?=

.PHONY: setup demo page benchmark test test-slow lint coverage docs dist hashes \
    audit sbom nox clean

setup: $(STAMP)

$(STAMP): setup.py pyproject.toml constraints.txt
	@echo "Set-up, once: installing TensorFlow and what else is needed into" \
	    "$(VENV) takes some minutes and 3.5 GB."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	@touch $(STAMP)

demo: setup
	@$(BIN)/python tools/demo.py --output=build/demo

# A page for searching the demo's titles, at http://127.0.0.1:8501/.
page: setup
	test -d build/demo/models || $(MAKE) demo
	$(BIN)/python tools/serve.py --models=build/demo/models \
	    --http_port=8501 --click_log=ubi:build/demo/page-log

# Speed: `make benchmark ARGS='--suite=train,encode'`, see docs/results/performance.md.
benchmark: setup
	TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m benchmarks $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(if $(PYTEST),setup,lint)
	$(BIN)/python -m pytest $(or $(PYTEST),-n 2 --dist worksteal)

# Those that take minutes each: kill loops, full disks, several processes, load.
test-slow: setup
	$(BIN)/python -m pytest -m slow $(PYTEST)

# Branch coverage of the tests, and the lines that none of them runs.
coverage: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term \
	    --cov-report=html:build/coverage $(PYTEST)

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,docs]"
	touch $(DOCS_STAMP)

# The site, to be read from build/docs/index.html. Runs the notebook:
# `make docs SPHINXOPTS='-D nb_execution_mode=off'` leaves that out.
docs: $(DOCS_STAMP)
	$(BIN)/python -m sphinx -W --keep-going -E -q $(SPHINXOPTS) docs build/docs
	$(BIN)/python docs/check_links.py build/docs

# Source distribution and wheels of the last commit, built twice and compared.
dist: setup
	$(BIN)/python release/make_dist.py dist

# The pinned packages with the SHA-256 of each file that this Python and this
# machine need: `pip install --require-hashes -r build/requirements-hashed.txt`.
hashes: setup
	$(BIN)/python release/hashed_requirements.py build/requirements-hashed.txt

# Tools in an environment of their own: their packages are not pinned here.
$(TOOLS)/nox:
	$(PYTHON) -m venv build/tools
	$(TOOLS)/python -m pip install --quiet nox pip-audit cyclonedx-bom

# Known vulnerabilities of the pinned packages. It asks a database in the network,
# and fails where that does not know a package.
audit: hashes $(TOOLS)/nox
	$(TOOLS)/pip-audit --strict --disable-pip --require-hashes \
	    -r build/requirements-hashed.txt || \
	    { echo "audit: a vulnerability was found, or the database could not be" \
	    "asked (see above); then nothing is proven"; exit 1; }

# The bill of materials of the environment, in CycloneDX's form.
sbom: setup $(TOOLS)/nox
	$(TOOLS)/cyclonedx-py environment --output-reproducible \
	    --output-file build/sbom.cdx.json $(BIN)/python
	@echo "wrote build/sbom.cdx.json"

# The tests on each Python that this machine has, with the newest packages; those
# with the oldest that pyproject.toml allows: `make nox NOX='-s "tests-3.12(oldest)"'`.
nox: $(TOOLS)/nox
	$(TOOLS)/nox $(NOX)

clean:
	rm -rf build dist docs/generated *.egg-info .mypy_cache .pytest_cache .ruff_cache
