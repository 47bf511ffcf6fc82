# The README's two commands are `make run` and `make test`; both set up all they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
KERNELS := $(wildcard src/artlas/kernels/cpp/*/*.cpp src/artlas/kernels/cpp/*/*.hpp)

.PHONY: run test fast bench lint format clean
run: $(READY)
	$(BIN)/artlas demo

test: $(READY)
	$(BIN)/python -m pytest

# Under a minute, without data or a browser: for the loop of edit and test.
fast: $(READY)
	$(BIN)/python -m pytest -m fast

bench: $(READY)
	$(BIN)/python -m benchmarks.run --out benchmarks/results/bench.json

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(KERNELS)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(KERNELS)

# torch first and pinned: an unpinned one brings gigabytes of CUDA. The build tools are installed
# beside it, so that no isolated build environment fetches anything of its own.
$(TOOLS): constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q torch==2.13.0
	$(BIN)/python -m pip install -q -c constraints.txt scikit-build-core nanobind cmake ninja
	@touch $@

$(READY): $(TOOLS) pyproject.toml reproduction/pyproject.toml CMakeLists.txt $(KERNELS)
	$(BIN)/python -m pip install -q -c constraints.txt --no-build-isolation -e ".[dev]" -e "./reproduction[wl,pot]"
	@touch $@

clean:
	rm -rf $(VENV) build
