# Every target makes what it needs, from nothing but Python: see `make help`.

PYTHON ?= python3
VENV ?= .venv

PIP = "$(VENV)/bin/python" -m pip --disable-pip-version-check -qq

.DEFAULT_GOAL := help
.PHONY: help demo reproduce test coverage fuzz lint bench clean
.DELETE_ON_ERROR:

help:
	@echo "make demo       a comparison, a certificate and a picture, in seconds"
	@echo "make reproduce  some of the paper's experiments with few repeats, in minutes"
	@echo "make test       all tests and the examples in the docstrings"
	@echo "make coverage   the same, with the share of the source that they run"
	@echo "make fuzz       attacks with random seeds, for 30 minutes; goes on where it ended"
	@echo "make lint       style, types and borders"
	@echo "make bench      speed against other solvers"
	@echo "make clean      remove the environment and everything that was made"
	@echo
	@echo "Each sets up its own environment in $(VENV) on first use."
	@echo "Another Python (3.11 or later): make PYTHON=python3.13 test"

demo: $(VENV)/.has-tables
	@"$(VENV)/bin/neverworse" demo

# Data sets that come with packages, so that nothing is downloaded. The timing takes longer.
reproduce: $(VENV)/.has-paper
	@"$(VENV)/bin/neverworse" reproduce robustness curves table --repeats 5 \
	  --datasets BCI COIL2 Digit1 g241c g241d SPECT SPECTF USPS WDBC --out build/reproduction

test: $(VENV)/.has-test
	MPLBACKEND=Agg "$(VENV)/bin/python" -m pytest -n auto --doctest-modules src/neverworse tests

coverage: $(VENV)/.has-test
	MPLBACKEND=Agg "$(VENV)/bin/python" -m pytest -n auto --doctest-modules --cov=neverworse \
	  --cov-report=term:skip-covered --cov-fail-under=95 src/neverworse tests

fuzz: $(VENV)/.has-test
	"$(VENV)/bin/python" -m tests.fuzz

lint: $(VENV)/.has-lint
	"$(VENV)/bin/ruff" check
	"$(VENV)/bin/ruff" format --check
	"$(VENV)/bin/mypy"
	"$(VENV)/bin/lint-imports"

bench: $(VENV)/.has-bench
	"$(VENV)/bin/python" benchmarks/run.py

# Only what was made here: of VENV, nothing that is no virtual environment; of the demo, its files.
clean:
	@if [ -e "$(VENV)/pyvenv.cfg" ]; then rm -rf "$(VENV)"; fi
	@rm -rf build dist src/neverworse.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find $(wildcard src tests benchmarks) -type d -name __pycache__ -prune -exec rm -rf {} +
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
# mypy reads the types of matplotlib, so linting needs the plots as well.
$(VENV)/.has-lint: EXTRAS = lint,plots
$(VENV)/.has-%: EXTRAS = $*
$(VENV)/.has-%: $(VENV)/.made pyproject.toml
	@echo "Installing neverworse[$(EXTRAS)] in $(VENV) ..."
	@$(PIP) install --editable ".[$(EXTRAS)]"
	@touch "$@"
