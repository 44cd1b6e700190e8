# Every target makes what it needs, from nothing but Python: see `make help`.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

PIP = "$(BIN)/python" -m pip --disable-pip-version-check -qq

.DEFAULT_GOAL := help
.PHONY: help demo reproduce test coverage fuzz lint docs check-pages bench \
  test-oldest test-newest dist release-check clean
.DELETE_ON_ERROR:

help:
	@echo "make demo       a comparison, a certificate and a picture, in seconds"
	@echo "make reproduce  some of the paper's experiments with few repeats, in minutes"
	@echo "make test       all tests and the examples in the docstrings"
	@echo "make test-oldest, test-newest   the same with the oldest versions, and with pre-releases"
	@echo "make coverage   the same, with the share of the source that they run"
	@echo "make fuzz       attacks with random seeds, for 30 minutes; continues where it stopped"
	@echo "make lint       style, types and borders"
	@echo "make docs       the site, with the gallery and the reference, in build/site"
	@echo "make check-pages   the site and all other pages under axe-core, if there are npm and Chromium"
	@echo "make bench      speed against other solvers"
	@echo "make dist       a wheel and an archive of the source, tried out in an empty environment"
	@echo "make clean      remove the environment and everything that was made"
	@echo
	@echo "Each sets up its own environment in $(VENV) on first use."
	@echo "Another Python (3.11 or later): make PYTHON=python3.13 test"

demo: $(VENV)/.has-tables
	@"$(BIN)/neverworse" demo

# Data sets that come with packages, so that nothing is downloaded. The timing takes longer.
reproduce: $(VENV)/.has-paper
	@"$(BIN)/neverworse" reproduce robustness curves table --repeats 5 \
	  --datasets BCI COIL2 Digit1 g241c g241d SPECT SPECTF USPS WDBC --out build/reproduction

# A worker on each core: threads of BLAS beside them would only wait for each other.
# Tests write and read UTF-8 without saying so; the package always says so (PLW1514 of ruff).
PYTEST = MPLBACKEND=Agg PYTHONUTF8=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 "$(BIN)/python" -m pytest -n auto --doctest-modules

test: $(VENV)/.has-test
	$(PYTEST) src/neverworse tests

# Each in an environment of its own.
test-oldest:
	$(MAKE) VENV="$(VENV)-oldest" PIPFLAGS="--constraint constraints-oldest.txt" test

test-newest:
	$(MAKE) VENV="$(VENV)-newest" PIPFLAGS="--pre --upgrade" test

coverage: $(VENV)/.has-test
	$(PYTEST) --cov=neverworse --cov-report=term:skip-covered --cov-fail-under=95 src/neverworse tests

fuzz: $(VENV)/.has-test
	PYTHONUTF8=1 "$(BIN)/python" -m tests.fuzz

lint: $(VENV)/.has-lint
	"$(BIN)/ruff" check
	"$(BIN)/ruff" format --check
	"$(BIN)/mypy"
	"$(BIN)/lint-imports"
	"$(BIN)/check-jsonschema" -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	"$(BIN)/check-jsonschema" -q --builtin-schema vendor.dependabot .github/dependabot.yml
	"$(BIN)/check-jsonschema" -q --builtin-schema vendor.citation-file-format CITATION.cff

# A warning is an error. DOCS_INTERSPHINX=1 links to the pages of other projects, and needs a network.
docs: $(VENV)/.has-docs
	MPLBACKEND=Agg "$(BIN)/python" -m sphinx -q -W --keep-going -b html docs build/site
	"$(BIN)/python" docs/check_site.py build/site

# Of the site, the pages that `make docs` wrote. Without axe-core or Chromium, everything is skipped.
check-pages: $(VENV)/.has-test
	@npm install --silent --no-save --prefix build/axe axe-core@4.14.0 || \
	  echo "axe-core could not be installed: there is no npm, or no network" >&2
	$(PYTEST) tests/pages/accessibility.py

bench: $(VENV)/.has-bench
	"$(BIN)/python" benchmarks/run.py

# The wheel is made from the archive, so that both are tried.
EMPTY = build/empty/$(notdir $(BIN))
dist: $(VENV)/.has-dist
	@rm -rf dist build/empty build/elsewhere
	"$(BIN)/python" -m build
	"$(BIN)/python" -m twine check --strict dist/*
	@"$(PYTHON)" -m venv build/empty && mkdir -p build/elsewhere
	"$(EMPTY)/python" -m pip --disable-pip-version-check -qq install "$$(ls dist/*.whl)[tables]"
	cd build/elsewhere && "../../$(EMPTY)/neverworse" demo > demo.txt && tail -n 3 demo.txt
	cd build/elsewhere && "../../$(EMPTY)/python" ../../tests/smoke.py

# Before anything is published under a tag such as v1.2.3
release-check:
	@grep -q '^__version__ = "$(TAG:v%=%)"$$' src/neverworse/__init__.py || { \
	  echo "The tag $(TAG) is not v and the version in src/neverworse/__init__.py" >&2; exit 1; }
	@grep -q '^## $(TAG:v%=%) ' CHANGELOG.md || { \
	  echo "CHANGELOG.md has no section for $(TAG)" >&2; exit 1; }

# Only what was made here: of VENV, nothing that is no virtual environment; of the demo, its files.
clean:
	@for venv in "$(VENV)" "$(VENV)-oldest" "$(VENV)-newest"; do \
	  if [ -e "$$venv/pyvenv.cfg" ]; then rm -rf "$$venv"; fi; done
	@rm -rf build dist docs/gallery docs/reference src/neverworse.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find $(wildcard src tests benchmarks docs examples) -type d -name __pycache__ -prune -exec rm -rf {} +
	@rm -f neverworse-demo/constraint-set.png neverworse-demo/patients.csv
	@rmdir neverworse-demo 2>/dev/null || true

$(VENV)/.made:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  found="$$("$(PYTHON)" --version 2>/dev/null || echo "not found")"; \
	  echo "neverworse needs Python 3.11 or later; $(PYTHON) is: $$found" >&2; \
	  echo "Choose another one, for example: make PYTHON=python3.13 $(MAKECMDGOALS)" >&2; \
	  exit 1; }
	@echo "Making a virtual environment in $(VENV) ..."
	@"$(PYTHON)" -m venv "$(VENV)" || { \
	  echo "No virtual environment without Python's module venv (Debian, Ubuntu: apt install python3-venv)" >&2; \
	  exit 1; }
	@touch "$@"

# One stamp for each extra, so that what is installed is not looked at again until it changes.
# mypy reads the types of matplotlib and Jinja2, so linting needs the tables as well.
$(VENV)/.has-lint: EXTRAS = lint,tables
$(VENV)/.has-%: EXTRAS = $*
$(VENV)/.has-%: $(VENV)/.made pyproject.toml
	@echo "Installing neverworse[$(EXTRAS)] in $(VENV) ..."
	@$(PIP) install $(PIPFLAGS) --editable ".[$(EXTRAS)]"
	@touch "$@"
