# The commands of everyday work; `make help` lists them. The build itself is CMake's: the presets of
# CMakePresets.json build into build/<preset>.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# Compilers and tests that run at once.
JOBS ?= $(shell nproc)
export JOBS
# Where `make install` puts the program and the library.
PREFIX ?= /usr/local
# Seconds that `make load` takes.
LOAD_SECONDS ?= 30
# Seconds each fuzz target runs in `make fuzz`.
FUZZ_SECONDS ?= 60

PROGRAM := build/release/apps/cli/filigree
NVCC := $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
# The CUDA side is compiled wherever nvcc and cuBLASLt are, and its tests run wherever a GPU is too.
CUDA_ROOT := $(patsubst %/bin/nvcc,%,$(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(NVCC)))
CUBLASLT := $(wildcard $(CUDA_ROOT)/lib64/libcublasLt.so* $(CUDA_ROOT)/targets/*/lib/libcublasLt.so* \
  /usr/lib/*/libcublasLt.so*)
GPU := $(wildcard /dev/nvidia0)

# Each target is parallel inside; side by side they would only get in each other's way.
.NOTPARALLEL:
.PHONY: help build test demo check asan tsan format tidy fuzz fuzz-long faults faults-long install package
.PHONY: clean packages cuda load headers interop

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

packages:
	@tools/install-packages build

build: packages  ## build the program (installs missing Debian packages first)
	@tools/build release

demo: packages  ## build, then compare the bundled dense and sparse model: losses, maps, circuits
	@tools/build release filigree
	@$(PROGRAM) demo --out demo

# The browser is large and only runs: it is installed while the compilers work.
test: packages  ## build, check and run every test
	@tools/install-packages test & browser=$$!; tools/build release; built=$$?; \
	  wait $$browser && exit $$built
	@$(MAKE) cuda
	@echo "release: testing, $(JOBS) at a time"
	@ctest --preset release -j $(JOBS)

cuda: packages
ifeq ($(NVCC),)
else ifeq ($(CUBLASLT),)
	@echo "cuda: nvcc is here and cuBLASLt is not, so the CUDA side is not compiled (NVIDIA's libcublas-dev)"
else ifneq ($(GPU),)
	@tools/build cuda
	@echo "cuda: testing on the GPU"
	@ctest --preset cuda -L cuda --no-tests=ignore
else
	@echo "cuda: no GPU here, so the CUDA side is compiled, linked and not run"
	@tools/build cuda cuda_side
endif

check:  ## check layout, include directions, readers of JSON, ways to files and file sizes
	@tools/install-packages format
	@tools/check-includes
	@tools/check-json
	@tools/check-files
	@tools/check-sizes
	@tools/check-format

asan: packages  ## run the tests under AddressSanitizer and UBSan
	@tools/build asan
	@ctest --preset asan -j $(JOBS) -LE check

tsan: packages  ## run the unit tests under ThreadSanitizer
	@tools/build tsan
	@ctest --preset tsan -j $(JOBS) -L unit

format:  ## lay the sources out with clang-format
	@tools/install-packages format
	@tools/check-format --fix

tidy: build  ## run clang-tidy
	@tools/install-packages tidy
	@tools/check-tidy

fuzz: packages  ## fuzz the parsers, FUZZ_SECONDS (60) each, under the sanitizers
	@tools/build asan
	@FILIGREE_FUZZ_SECONDS=$(FUZZ_SECONDS) ctest --preset asan -j $(JOBS) -L fuzz -E driver --timeout 86400

# With clang's coverage; where there is no clang, with the driver that any compiler builds.
fuzz-long: packages  ## fuzz them with libFuzzer, FUZZ_SECONDS each, and count executions
	@tools/install-packages fuzz || true
	@if command -v clang++ >/dev/null; then \
	  tools/build libfuzzer $$(cd fuzz && ls fuzz_*.cpp | sed 's/\.cpp$$//') && fuzz/long $(FUZZ_SECONDS); \
	else $(MAKE) fuzz; fi

faults: packages  ## interrupt the commands at a share of their file operations, and resume
	@tools/build release fault_campaign
	@ctest --preset release -L faults -j $(JOBS) --output-on-failure

faults-long: packages  ## the same at all of them, 1,000 random kills, power cuts, lack of memory
	@tools/build release fault_campaign
	@tests/faults/long

interop: packages  ## compare with other programs, from PyPI in a virtual environment (FILIGREE_VENV)
	@tools/build release filigree
	@tests/interop/run

load: packages  ## ask the live page's server by 32 clients at once, LOAD_SECONDS (30) long
	@tools/build release serve_tests
	@FILIGREE_LOAD_SECONDS=$(LOAD_SECONDS) build/release/serve_tests --gtest_filter='*ThirtyTwoClients*' --gtest_brief=1

install: packages  ## install program, library and models below PREFIX (/usr/local)
	@PREFIX="$(PREFIX)" tools/build release filigree filigree_library
	@cmake --install build/release

package: packages  ## make the Debian packages filigree and libfiligree-dev
	@tools/install-packages package
	@PREFIX=/usr tools/build release filigree filigree_library
	@rm -rf build/release/packages
	@cd build/release && cpack >cpack.log || { cat cpack.log; exit 1; }
	@ls -1 build/release/packages/*.deb

clean:  ## remove everything that was built
	@rm -rf build
