# make demo | test | images | lint | docs | bench | instructions | build | clean.  Needs Python >= 3.10 with venv, a C++17 compiler
# and make; all else comes from PyPI into .venv.  ISAS=v4 builds and tests one instruction set only; PYTHON=python3.12
# chooses the interpreter.

PYTHON ?= python3
ISAS ?= auto
# Four workers keep two cores busy, since tests of servers wait most of their time. With worksteal a worker gets
# neighbouring tests, so what the tests of a file share is set up once.
PYTEST_ARGS ?= -n 4 --dist worksteal --durations=30

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --prefer-binary
CPP_SOURCES := CMakeLists.txt $(shell find engine/include engine/src engine/bindings -name '*.[ch]pp' 2>/dev/null)
# what depends on the instruction set: packs beside one environment, dynamics beside MuJoCo, gradients, scalar functions
ISA_TESTS := $(addprefix tests/revolute_engine/test_,batch_equals_alone.py checkpoints.py contact_neighbours.py \
  convex_contacts.py dynamics.py gradients.py jacobian.py jvp.py native.py parameter_neighbours.py random_models.py)
CPP_FILES := $(shell find engine tests/engine -name '*.[ch]pp' 2>/dev/null)

.PHONY: demo test test-engine test-python test-long test-isas images lint docs bench instructions build format clean
.DELETE_ON_ERROR:

demo: build $(STAMPS)/demo
	$(BIN)/revolute demo $(DEMO_ARGS)

test: test-engine test-python test-isas

# the C++ tests, in the build folder of the modules, whose objects they share; compiling leaves the cores to what runs beside it
test-engine: build
	nice $(BIN)/cmake --build build/cp* --target engine_tests
	$(BIN)/ctest --test-dir build/cp* --output-on-failure -j 2

# threads of numpy and torch spin while they wait, on cores that other tests need
test-python test-long test-isas: export OMP_NUM_THREADS = 1
# tests that repeat what chance decides do so more often
test-long: export REVOLUTE_LONG_TESTS = 1

test-python test-long: build $(STAMPS)/test
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# ISA_TESTS with each further instruction set that is built and that this machine has; test-python uses the best one. These
# tests compute all the time.
test-isas: build $(STAMPS)/test
	set -e; others=$$($(BIN)/python -c 'from revolute_engine import native; print(*native.available_levels()[1:])'); \
	for isa in $$others; do \
	  echo "tests of the engine with instruction set $$isa"; \
	  REVOLUTE_ISA=$$isa $(BIN)/python -m pytest $(PYTEST_ARGS) -n 2 -q -k 'not grpc and not http' $(ISA_TESTS); \
	done

# docker/check.sh says where images cannot be built
images: build
	docker/check.sh

lint: $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/tables.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/clang-format --dry-run --Werror $(CPP_FILES)
	[ ! -x $(BIN)/buf ] || $(BIN)/buf lint proto

# the site in build/site; NO_MKDOCS_2_WARNING silences an advertisement
docs: $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

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
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation -C cmake.define.REVOLUTE_ISAS='$(ISAS)' \
	  -C cmake.define.REVOLUTE_BUILD_TESTS=ON -e ./client -e .
	touch $@

# the package is installed by now, so pip adds only what the extra names; pybullet is there for its robot files.
# What the tests import comes before lint, since mypy reads its types.
$(STAMPS)/lint: $(STAMPS)/test
$(STAMPS)/demo $(STAMPS)/test $(STAMPS)/lint $(STAMPS)/docs: $(STAMPS)/%: pyproject.toml | $(STAMPS)/engine
	$(PIP) --only-binary pybullet 'revolute-server[$*]'
	touch $@
