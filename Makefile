# One command per wish. Needs only Python (3.11 or later), its venv module and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# One process for each core, and one thread for each process: BLAS threads that wait for each other's cores made a fit of
# .1 s take 4 s.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist worksteal --quiet

# Bytecode is kept, whatever the environment says: without it each process compiles the package and all tests again, which is
# 7 s of 17 s before the first test, and .2 s of each program that tests start.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo docs pictures lint test test-quick test-slow test-all test-without-numba test-matrix peers reproduce stale-pages format clean \
	bench bench-paper bench-prediction bench-probabilities bench-profile bench-growth bench-tuned bench-sizes bench-level-sets \
	bench-small-ridge bench-rare-classes bench-many-classes bench-functions bench-large bench-dask bench-kernel-gap bench-compare bench-price bench-tolerance bench-random bench-constants

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The stamp is older than pyproject.toml exactly when the dependencies may have changed.
$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

demo: $(INSTALLED) ## fit, print and draw the examples
	$(BIN)/python -m infinitask.demo

lint: $(INSTALLED) ## style, types, import directions
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Side by side: the linters keep one core busy for half a minute.
test: $(INSTALLED) ## lint and the quick tests: what must hold before every commit
	@$(MAKE) --no-print-directory --jobs 2 lint test-quick

test-quick: $(INSTALLED)
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-slow: $(INSTALLED) ## the tests that `make test` leaves out
	$(PYTEST) -m slow $(PYTEST_ARGS)

test-all: test test-slow ## all tests: what must hold before a pull request

# Where numba is missing, NumPy computes everything. The rooms that have compiled code are tried that way.
test-without-numba: $(INSTALLED) ## the quick tests of losses, objective and solvers, without compiled code
	INFINITASK_COMPILED=0 $(PYTEST) -m "not slow" $(PYTEST_ARGS) tests/losses tests/objective tests/solvers

test-matrix: ## the quick tests with the oldest and newest dependencies, on each Python found
	$(PYTHON) tools/test_matrix.py $(PYTEST_ARGS)

# Peers are optional: one that does not install here is left out, and the suite says so.
peers: $(INSTALLED) ## install what the suite compares with, as far as it installs
	@grep -v '^#' benchmarks/peers.txt | while read -r peer; do \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$peer" || echo "not installed: $$peer"; \
	done

bench: peers ## everything side by side with what one would use instead
	cd benchmarks && ../$(BIN)/python -m suite

bench-compare: $(INSTALLED) ## is anything slower than at the commit BASE?
	$(BIN)/python benchmarks/compare.py $(or $(BASE),HEAD)

bench-price: peers ## seconds beside opponents, losses beside the commit BASE: make bench-price PART=quality
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[data]"
	$(BIN)/python benchmarks/price.py $(PART) $(if $(BASE),--base $(BASE))

bench-tolerance: $(INSTALLED) ## held-out losses and seconds of the defaults for several tolerances
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[data]"
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/tolerance.py

bench-growth: $(INSTALLED) ## time and memory as n, m and r grow
	$(BIN)/python benchmarks/growth.py

bench-tuned: $(INSTALLED) ## what the self-tuned model costs as the rows grow
	$(BIN)/python benchmarks/tuned_growth.py

bench-sizes: $(INSTALLED) ## seconds and memory of each model, for 100 to 100 000 rows
	$(BIN)/python benchmarks/sizes.py

bench-level-sets: $(INSTALLED) ## level sets by one fit beside a hundred refits of a one-class SVM
	$(BIN)/python benchmarks/level_set_speed.py

bench-kernel-gap: $(INSTALLED) ## how far Nyström models are from the kernel's own, by rank, and what knowing costs
	$(BIN)/python benchmarks/kernel_gap.py

bench-large: $(INSTALLED) ## many rows: beside LightGBM, as rows grow, and from a file: make bench-large PART=growth
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[parquet]"
	$(BIN)/python benchmarks/larger_than_memory.py $(PART)

bench-rare-classes: $(INSTALLED) ## decisions for all trade-offs by one fit beside twenty fits of SVC
	$(BIN)/python benchmarks/rare_classes.py

bench-many-classes: $(INSTALLED) ## ten digits and three wines beside SVC and logistic regression, under matrices of costs
	$(BIN)/python benchmarks/many_classes.py

bench-functions: $(INSTALLED) ## curves as targets beside point-wise, joint and score regressions
	$(BIN)/python benchmarks/function_targets.py

bench-small-ridge: $(INSTALLED) ## fits with a small λ beside the commit BASE, on a path, and with many rows
	$(BIN)/python benchmarks/small_ridge.py $(or $(BASE),HEAD)

bench-dask: $(INSTALLED) ## two Dask workers beside one, traffic, and killed workers
	$(BIN)/python benchmarks/dask_workers.py

bench-profile: $(INSTALLED) ## where the time of a fit goes
	$(BIN)/python benchmarks/profile_fit.py

bench-prediction: $(INSTALLED) ## rows per second, and one row at a time
	$(BIN)/python benchmarks/prediction.py

bench-paper: $(INSTALLED) ## the paper's largest experiment, timed
	$(BIN)/python benchmarks/paper_kappa.py

bench-probabilities: $(INSTALLED) ## probabilities beside calibrated SVMs and logistic regression
	$(BIN)/python benchmarks/probabilities.py

bench-constants: $(INSTALLED) ## which named constants matter: make bench-constants ROOMS="fitting tasks"
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/constants.py $(or $(ROOMS),fitting)

bench-random: $(INSTALLED) ## the gap and the time on 300 random problems, the slowest ones by name
	$(BIN)/python tests/support/random_problems.py

# The gallery is run; a warning is an error, and so is a link that leads nowhere.
docs: $(VENV)/.documented ## the documentation with its gallery, in docs/_build/html
	INFINITASK_DOCS_JOBS=$(or $(DOCS_JOBS),2) OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python tools/check_links.py docs/_build/html
	@echo "open docs/_build/html/index.html"

$(VENV)/.documented: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@

pictures: $(INSTALLED) ## the pictures of the README and of the first pages of the documentation
	$(BIN)/python tools/pictures.py

stale-pages: $(INSTALLED) ## pages with figures, and the commits to their code since then
	$(BIN)/python -m tools.stale_pages

reproduce: $(INSTALLED) ## the paper's tables and figures: make reproduce NAME="table1 --quick"
	$(BIN)/python -m experiments $(or $(NAME),--help)

format: $(INSTALLED) ## put the code into the house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove the environment, the caches and what was built
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	rm -rf docs/_build docs/gallery docs/api/generated docs/api/examples docs/sg_execution_times.rst
	find src tests experiments examples benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +
