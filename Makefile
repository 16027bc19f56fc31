# One command per wish. Needs only Python (3.11 or later), its venv module and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test bench-paper bench-probabilities bench-random format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The stamp is older than pyproject.toml exactly when the dependencies may have changed.
$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

demo: $(INSTALLED) ## fit, print and draw the examples
	$(BIN)/python -m infinitask.demo

test: $(INSTALLED) ## style, types, import directions, tests: all that must hold
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

bench-paper: $(INSTALLED) ## the paper's largest experiment, timed
	$(BIN)/python benchmarks/paper_kappa.py

bench-probabilities: $(INSTALLED) ## probabilities beside calibrated SVMs and logistic regression
	$(BIN)/python benchmarks/probabilities.py

bench-random: $(INSTALLED) ## the gap and the time on 300 random problems, the slowest ones by name
	$(BIN)/python tests/random_problems.py

format: $(INSTALLED) ## put the code into the house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove the environment, the caches and what was built
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +
