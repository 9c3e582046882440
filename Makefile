# make demo | test | lint | bench | instructions | build | clean.  Needs Python >= 3.10 with venv, a C++17 compiler
# and make; all else comes from PyPI into .venv.  ISAS=v4 builds one instruction set only; PYTHON=python3.12 chooses the
# interpreter.

PYTHON ?= python3
ISAS ?= auto
PYTEST_ARGS ?= -n 2

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --prefer-binary
CPP_SOURCES := CMakeLists.txt $(shell find engine/include engine/src engine/bindings -name '*.[ch]pp' 2>/dev/null)
CPP_FILES := $(shell find engine tests/engine -name '*.[ch]pp' 2>/dev/null)

.PHONY: demo test test-engine test-python lint bench instructions build format clean
.DELETE_ON_ERROR:

demo: build $(STAMPS)/demo
	$(BIN)/revolute demo $(DEMO_ARGS)

test: test-engine test-python

# the C++ tests are built for v2, which runs on every machine; those of packs also for v3 and v4 where this machine has them
test-engine: $(STAMPS)/tools
	$(BIN)/cmake -S . -B build/engine-tests -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DCMAKE_BUILD_TYPE=Release \
	  -DREVOLUTE_BUILD_MODULES=OFF -DREVOLUTE_BUILD_TESTS=ON
	$(BIN)/cmake --build build/engine-tests
	$(BIN)/ctest --test-dir build/engine-tests --output-on-failure

test-python: build $(STAMPS)/test
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# mypy reads the types of what the tests import as well
lint: $(STAMPS)/lint $(STAMPS)/test build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CPP_FILES)
	[ ! -x $(BIN)/buf ] || $(BIN)/buf lint proto

format: $(STAMPS)/lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP_FILES)

bench: build $(STAMPS)/test
	$(BIN)/python -m benchmarks.run $(BENCH_ARGS)

# instructions of a step beside the checked-in counts; needs valgrind. INSTRUCTIONS_ARGS=--update checks new ones in
instructions: build $(STAMPS)/test
	$(BIN)/python -m benchmarks.instructions $(INSTRUCTIONS_ARGS)

build: $(STAMPS)/engine

clean:
	rm -rf $(VENV) build dist

# .venv with the build tools; they are shared by every build, so that CMake's cache stays valid
$(STAMPS)/tools:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) 'scikit-build-core>=1.0' 'pybind11>=3.0' hatchling editables cmake ninja
	mkdir -p $(STAMPS) && touch $@

# the choice of instruction sets, rewritten only when it changes
$(STAMPS)/isas: FORCE | $(STAMPS)/tools
	@echo '$(ISAS)' | cmp -s - $@ || echo '$(ISAS)' > $@

.PHONY: FORCE
FORCE:

# Python sources are live (editable); C++ changes rebuild the modules
$(STAMPS)/engine: pyproject.toml client/pyproject.toml $(CPP_SOURCES) $(STAMPS)/isas
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation -C cmake.define.REVOLUTE_ISAS='$(ISAS)' -e ./client -e .
	touch $@

# the package is installed by now, so pip adds only what the extra names; pybullet is there for its robot files
$(STAMPS)/demo $(STAMPS)/test $(STAMPS)/lint: $(STAMPS)/%: pyproject.toml | $(STAMPS)/engine
	$(PIP) --only-binary pybullet 'revolute-server[$*]'
	touch $@
