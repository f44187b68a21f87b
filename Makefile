# SPDX-License-Identifier: MIT
#
# Treadle: one repository that weaves a book and tangles a library.
#
#   make         the library, a first training, the Python package, book.pdf
#   make test    every test; the last line is "N passed, N failed"
#   make help    what else a person types
#
# The chapters are the sources.  They are tangled into generated/ when make
# reads the included file $(TANGLED); make then starts again and sees every
# generated file.  Chapter "The loom" of the book explains each target.

SHELL       := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS   += --no-builtin-rules
JOBS        ?= $(shell nproc 2>/dev/null || echo 1)
ifeq ($(MAKELEVEL)$(findstring j,$(firstword -$(MAKEFLAGS))),0)
MAKEFLAGS   += -j$(JOBS)
endif

VERSION := 0.1.0

# What a person may set, here with its default ------------------------------

ifeq ($(origin CC),default)
CC := gcc
endif
PYTHON  ?= /usr/bin/python3
PREFIX  ?= /usr/local
DESTDIR ?=
OPENMP  ?= $(shell echo 'int main(void){return 0;}' | \
             $(CC) -fopenmp -x c - -o /dev/null 2>/dev/null && echo 1 || echo 0)
SIMD    ?= 1
NVCC    ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA    ?= $(if $(NVCC),1,0)
DEPS    ?= yes
BUILD   ?= build
OPT     ?= -O3
V       ?= 0

# What the targets below set for themselves (KEEP=1 tangles past errors) -----

CHAPTERS  ?= $(sort $(wildcard chapters/*/*.nw exercises/*/answer.nw))
GENERATED ?= generated
TANGLED   ?= $(BUILD)/tangled.mk
UPTO      :=
LINES     := no
SANITIZE  :=
WERROR    ?=
KEEP      ?=
WEB       ?= $(if $(wildcard .git),yes,no)

say = $(if $(filter 1,$(V)),,@printf '  %-6s %s\n' $(1) '$(2)' &&)

# Tangle --------------------------------------------------------------------

tangle_command = $(PYTHON) loom/tangle --out $(GENERATED) \
  $(if $(UPTO),--upto $(UPTO)) $(if $(filter yes,$(LINES)),--lines) \
  $(if $(KEEP),--keep-going) $(CHAPTERS)

.PHONY: tangle
ifeq ($(WEB),yes)
$(TANGLED): $(CHAPTERS) $(wildcard chapters/collectors) loom/tangle loom/web.py | deps-core
	@mkdir -p $(@D)
	@$(tangle_command)
	@touch $@
tangle: | deps-core
	@$(tangle_command)
else
$(TANGLED): | $(if $(filter test quick-test test-programs debug coverage prefix,$(MAKECMDGOALS)),deps-core,deps-build)
	@mkdir -p $(@D)
	@echo "No .git here: generated/ and book.pdf are used as they came, nothing is tangled or woven."
	@touch $@
tangle:
	@echo "No .git here: generated/ is used as it came (make WEB=yes tangles all the same)."
endif

untangled_goals := exercises size hint reset answer help tangle clean deps deps-build deps-core deps-book deps-peers deps-mlir data uninstall lint
ifneq ($(if $(MAKECMDGOALS),$(filter-out $(untangled_goals),$(MAKECMDGOALS)),all),)
include $(TANGLED)
endif

# Compilers and flags -------------------------------------------------------

CCACHE   := $(shell command -v ccache 2>/dev/null)
COMPILER := $(if $(CCACHE),$(CCACHE) )$(CC)
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wpointer-arith -Werror=implicit-function-declaration $(if $(WERROR),-Werror)
NUMERICS := -fno-math-errno -fno-trapping-math -ffp-contract=fast
# Lines are enough to debug optimised code, and spare a quarter of the time.
FLAGS    := -std=c11 $(OPT) $(if $(filter -O0,$(OPT)),-g,-g1) -pthread $(NUMERICS) $(WARNINGS) \
            $(if $(filter 1,$(OPENMP)),-fopenmp) \
            $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
            $(if $(filter yes,$(LINES)),-Wno-misleading-indentation) \
            $(CFLAGS)
LIBFLAGS := $(FLAGS) -D_GNU_SOURCE -fPIC -fvisibility=hidden -I$(GENERATED)/include -I$(GENERATED)/src
TESTFLAGS := -Wno-missing-prototypes -I$(GENERATED)/include -I$(GENERATED)/src -I$(GENERATED)/tests -Itests/c
USERFLAGS := $(FLAGS) -I$(GENERATED)/include
LIBS     := -lz -lm -lpthread

# One object per kernel file and instruction set; SIMD=0 and other machines: `base`.
MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
levels_x86_64  := v1 v2 v3 v4
levels_aarch64 := neon
ISAS           := $(or $(if $(filter 1,$(SIMD)),$(levels_$(MACHINE))),base)
isa_flags_v1   := -march=x86-64
isa_flags_v2   := -march=x86-64-v2
isa_flags_v3   := -march=x86-64-v3
isa_flags_v4   := -march=x86-64-v4
isa_defines    := $(foreach isa,$(ISAS),-DTD_HAVE_ISA_$(isa)=1)
LIBFLAGS       += $(isa_defines)
TESTFLAGS      += $(isa_defines)

# A changed flag rebuilds what was compiled with the old one.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(COMPILER) $(LIBFLAGS)' | cmp -s - $@ || \
	  printf '%s\n' '$(COMPILER) $(LIBFLAGS)' > $@
FORCE:

# `make` alone trains as soon as it can: what the training does without waits.
TRAINING := $(BUILD)/classifier.log
FIRST    := $(if $(filter all,$(or $(MAKECMDGOALS),all)),$(TRAINING))

# Library -------------------------------------------------------------------

SOURCES := $(wildcard $(GENERATED)/src/*/*.c)
KERNELS := $(wildcard $(GENERATED)/src/ops/kernels/*.c)
HEADERS := $(wildcard $(GENERATED)/include/treadle/*.h)
# What takes longest comes first, so that no core waits for it at the end.
OBJECTS := $(foreach isa,$(filter $(ISAS),v4 v3 v2 v1 neon base),$(KERNELS:$(GENERATED)/src/%.c=$(BUILD)/obj/%.$(isa).o)) \
           $(SOURCES:$(GENERATED)/src/%.c=$(BUILD)/obj/%.o)

.PHONY: lib
lib: $(BUILD)/libtreadle.a $(if $(OBJECTS),$(BUILD)/libtreadle.so)

$(BUILD)/obj/%.o: $(GENERATED)/src/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(COMPILER) $(LIBFLAGS) -MMD -MP -c -o $@ $<

# The formulas' primitives as a string, for the code that a program writes.
$(BUILD)/obj/compiler/emit-c.o: LIBFLAGS += -I$(BUILD)/obj
$(BUILD)/obj/compiler/emit-c.o: $(BUILD)/obj/primitives-text.inc
$(BUILD)/obj/primitives-text.inc: $(GENERATED)/src/ops/kernels/primitives.h
	@mkdir -p $(@D)
	@sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< > $@

define isa_rule
$(BUILD)/obj/%.$(1).o: $(GENERATED)/src/%.c $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(call say,CC,$$< ($(1)))$(COMPILER) $(LIBFLAGS) $(isa_flags_$(1)) -fwrapv -Wno-pass-failed -DTD_ISA_NAME=$(1) -MMD -MP -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call isa_rule,$(isa))))

# The list of objects is a prerequisite, so that a removed file is noticed.
$(BUILD)/objects: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(OBJECTS)' | cmp -s - $@ || printf '%s\n' '$(OBJECTS)' > $@

$(BUILD)/libtreadle.a: $(OBJECTS) $(BUILD)/objects
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $(OBJECTS)

$(BUILD)/libtreadle.so: $(OBJECTS) $(BUILD)/objects
	$(call say,LINK,$@)$(CC) -shared -Wl,-soname,libtreadle.so,-Bsymbolic-functions $(FLAGS) -o $@ $(OBJECTS) $(LIBS)

# Device plug-ins -----------------------------------------------------------
#
# The kernels are compiled by nvcc for real devices, and by the compiler of
# the library for the emulated one: plainly, and checked (chapter "cuda").

KERNEL_FILES := $(wildcard $(GENERATED)/cuda/*.cu)
EMULATED     := $(if $(wildcard $(GENERATED)/cuda/emulator.cc),emulate emulate_checked)
PLUGINS      := $(EMULATED:%=$(BUILD)/libtreadle_%.so) \
                $(if $(filter 1,$(CUDA)),$(if $(KERNEL_FILES),$(BUILD)/libtreadle_cuda.so))
PLUGOPT      ?= -Og
PLUGFLAGS    := -std=c++17 $(PLUGOPT) -g1 -pthread -fPIC -fvisibility=hidden -fwrapv -ffp-contract=fast \
                -Wall -Wextra -Wno-unknown-warning-option -Wno-unknown-pragmas -Wno-type-limits -Wno-bool-compare \
                -Wno-int-in-bool-context $(if $(WERROR),-Werror) -I$(GENERATED)/include
# Code for the cards that are found or that CUDA_ARCH="75 90" names; without any,
# one portable form, PTX, which a driver translates when it first loads it.
ifeq ($(CUDA),1)
CUDA_ARCH ?= $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -u)
endif
PTX          := -gencode arch=compute_75,code=compute_75
GENCODE      ?= $(or $(strip $(foreach arch,$(CUDA_ARCH),-gencode arch=compute_$(arch),code=sm_$(arch))),$(PTX))
# Kernels call before each access what the sanitizer would; the emulator itself does not.
checked_emulate_checked = -DTD_CHECKED $(if $(filter %/emulator.cc,$<),,-fsanitize=thread)

.PHONY: plugins
plugins: $(PLUGINS)

define emulated_rule
$(BUILD)/obj/$(1)/%.o: $(GENERATED)/cuda/% $(BUILD)/flags | $(FIRST)
	@mkdir -p $$(@D)
	$$(call say,CXX,$$< ($(1)))$(CCACHE) $(CXX) -x c++ $(PLUGFLAGS) $$(checked_$(1)) -MMD -MP -c -o $$@ $$<

$(BUILD)/libtreadle_$(1).so: $(patsubst $(GENERATED)/cuda/%,$(BUILD)/obj/$(1)/%.o,$(KERNEL_FILES)) \
                             $(BUILD)/obj/$(1)/emulator.cc.o
	$$(call say,LINK,$$@)$(CXX) -shared -pthread -o $$@ $$^
endef
$(foreach kind,$(EMULATED),$(eval $(call emulated_rule,$(kind))))

# Kernels with a bug each, under the watch (chapter "watching").
$(BUILD)/obj/emulate_checked/planted.cu.o: $(GENERATED)/tests/planted.cu $(BUILD)/flags | $(FIRST)
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(CCACHE) $(CXX) -x c++ $(PLUGFLAGS) $(checked_emulate_checked) -I$(GENERATED)/cuda -MMD -MP -c -o $@ $<

$(BUILD)/libplanted.so: $(BUILD)/obj/emulate_checked/planted.cu.o $(BUILD)/obj/emulate_checked/emulator.cc.o
	$(call say,LINK,$@)$(CXX) -shared -pthread -o $@ $^

$(BUILD)/obj/cuda/%.o: $(GENERATED)/cuda/% $(BUILD)/flags | $(FIRST)
	@mkdir -p $(@D)
	$(call say,NVCC,$<)$(NVCC) -std=c++17 -O3 $(GENCODE) -diag-suppress 186 -I$(GENERATED)/include \
	  -Xcompiler -fPIC,-fvisibility=hidden -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(BUILD)/libtreadle_cuda.so: $(patsubst $(GENERATED)/cuda/%,$(BUILD)/obj/cuda/%.o,$(KERNEL_FILES))
	$(call say,LINK,$@)$(NVCC) -shared -o $@ $^

# Example programs ----------------------------------------------------------

EXAMPLES := $(patsubst $(GENERATED)/examples/%.c,$(BUILD)/examples/%,$(wildcard $(GENERATED)/examples/*.c))

.PHONY: examples
examples: $(EXAMPLES)
$(BUILD)/examples/%: $(GENERATED)/examples/%.c $(BUILD)/libtreadle.a $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(COMPILER) $(USERFLAGS) -I$(GENERATED)/src -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libtreadle.a $(LIBS)

# Benchmarks: all of bench/ is one program -----------------------------------

BENCH := $(wildcard $(GENERATED)/bench/*.c)

$(BUILD)/bench: $(BENCH) $(wildcard $(GENERATED)/bench/*.h $(GENERATED)/bench/*.inc) $(HEADERS) \
                $(BUILD)/libtreadle.a $(BUILD)/flags
	$(call say,CC,$@)$(COMPILER) $(FLAGS) $(TESTFLAGS) -o $@ $(BENCH) $(BUILD)/libtreadle.a $(LIBS)

# Python package ------------------------------------------------------------

STAGE      := $(BUILD)/python/treadle
PY_CONFIG   = $(shell $(PYTHON) -c 'import sysconfig as s; print(s.get_paths()["include"], s.get_config_var("EXT_SUFFIX"))' 2>/dev/null)
EXTENSION   = $(STAGE)/_C$(word 2,$(PY_CONFIG))
PY_SOURCES := $(wildcard $(GENERATED)/python/*.c)
PY_OBJECTS := $(PY_SOURCES:$(GENERATED)/python/%.c=$(BUILD)/obj/python/%.o)
PY_FILES   := $(shell cd $(GENERATED)/python 2>/dev/null && find treadle -name '*.py' -o -name '*.pyi' -o -name py.typed 2>/dev/null)
PY_STAGED  := $(PY_FILES:treadle/%=$(STAGE)/%)

.PHONY: python
python: $(BUILD)/python/staged

$(BUILD)/obj/python/%.o: $(GENERATED)/python/%.c $(BUILD)/flags | $(FIRST)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(COMPILER) $(USERFLAGS) -fPIC -fvisibility=hidden -I$(GENERATED)/python \
	  -Wno-missing-field-initializers -Wno-cast-function-type -Wno-missing-prototypes -Wno-unused-parameter \
	  -I$(word 1,$(PY_CONFIG)) -MMD -MP -c -o $@ $<

$(STAGE)/libtreadle.so: $(BUILD)/libtreadle.so
	@mkdir -p $(@D)
	@cp $< $@.new && mv $@.new $@

$(STAGE)/%: $(GENERATED)/python/treadle/%
	@mkdir -p $(@D)
	@cp $< $@.new && mv $@.new $@

link_extension = $(CC) -shared $(FLAGS) -o $(EXTENSION).new $(PY_OBJECTS) -L$(STAGE) -ltreadle \
  '-Wl,-rpath,$$ORIGIN' && mv $(EXTENSION).new $(EXTENSION)

$(BUILD)/python/staged: $(PY_OBJECTS) $(PY_STAGED) $(if $(PY_OBJECTS),$(STAGE)/libtreadle.so) $(BUILD)/objects
	@mkdir -p $(STAGE)
	$(if $(PY_OBJECTS),$(call say,LINK,$(EXTENSION))$(link_extension))
	@cd $(STAGE) && find . -name '*.py*' -type f ! -path '*/__pycache__/*' | sed 's|^\./||' | sort | \
	  comm -23 - <(printf '%s\n' $(PY_FILES:treadle/%=%) | sort) | xargs -r rm -v --
	@$(PYTHON) -m compileall -q $(STAGE)
	@touch $@

# Tests ---------------------------------------------------------------------

# TESTS="tensors graph" restricts every kind of test to files so named.
TESTS     ?=
MEMCHECK  := tensors
RACES      = stress $(if $(TESTS),$(RACES_LONG))
# What `make test` leaves to `make test-long`, unless TESTS asks for it: valgrind
# of what allocates most, the address sanitizer beside compilers, the emulator,
# reductions, long graphs and training, the thread sanitizer but for the stress,
# MLIR, kernels sanitized at every level, an operator that is made up, the tests of
# the exercises' grader, each of which compiles something, what the C back end
# makes with every program optimised, and three times as many examples of what
# holds for every operator, every dtype in every layout, races that last three
# times as long.
MEMCHECK_LONG := allocation elementwise graph memory parallel data rules modules losses optimisers
ASAN_LONG := compile cuda reductions mlir networks matmul steady graph tracing gradcheck
RACES_LONG := parallel threads graph memory random
PLAIN_LONG := mlir
PYTHON_LONG := properties bad_input matrix threads jit
OPTIMISED := compile
LEVELS    := elementwise reductions matmul activations optimisers losses random levels
# Of what takes long, THIRD=0, 1 or 2 does a third: .ci/run takes turns.
third      = $(if $(THIRD),$(shell printf '%s\n' $(1) | awk 'NR % 3 == $(THIRD)'),$(1))
selected   = $(if $(1),$(sort $(foreach t,$(1),$(foreach f,$(2),$(if $(findstring /test_$(t),$(f)),$(f))))),$(2))
needed     = $(if $(1),$(shell $(PYTHON) loom/needs $(if $(UPTO),--upto $(UPTO)) $(CHAPTERS) -- $(1) 2>/dev/null))

C_TESTS   := $(filter-out $(WITHOUT),$(call selected,$(TESTS),$(call needed,$(sort $(wildcard tests/c/test_*.c $(GENERATED)/tests/test_*.c)))))
PY_TESTS  := $(call selected,$(TESTS),$(call needed,$(sort $(wildcard tests/python/test_*.py $(GENERATED)/tests/test_*.py))))
LOOM_TESTS := $(if $(filter yes,$(WEB)),$(call selected,$(TESTS),$(wildcard tests/loom/test_*.py)))
programs   = $(patsubst tests/c/%.c,$(1)/tests/c/%,$(patsubst $(GENERATED)/tests/%.c,$(1)/tests/chapters/%,$(2)))
PROGRAMS  := $(call programs,$(BUILD),$(C_TESTS))
MEMCHECKED := $(call selected,$(MEMCHECK),$(C_TESTS))
RACED     := $(if $(RACES),$(call selected,$(RACES),$(filter tests/%,$(C_TESTS))))
LONG      := $(if $(TESTS),,$(call selected,$(ASAN_LONG),$(C_TESTS)))
LATER     := $(if $(TESTS),,$(call selected,$(PLAIN_LONG),$(C_TESTS)))
GRADER    := $(filter %/test_exercises.py,$(LOOM_TESTS))
MADE_UP   := $(filter %/test_row.py,$(LOOM_TESTS))

run_tests = $(PYTHON) loom/test --build $(BUILD) --jobs $(JOBS) --stage $(BUILD)/python --cc '$(CC)'

# What is tested is compiled as users get it; what tests, quickly.
compile_test = $(COMPILER) $(FLAGS) $(if $(filter -O0,$(OPT)),,$(if $(findstring /chapters/,$@),-O1,-O0)) $(TESTFLAGS) -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libtreadle.a -lcmocka $(LIBS)

$(BUILD)/tests/c/%: tests/c/%.c $(BUILD)/libtreadle.a $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(compile_test)

$(BUILD)/tests/chapters/%: $(GENERATED)/tests/%.c $(BUILD)/libtreadle.a $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(compile_test)

# The same web in another build directory, with other flags.
again = +$(MAKE) --no-print-directory DEPS=no BUILD=$(BUILD)/$(1) TANGLED=$(TANGLED) TESTS='$(TESTS)'

# For one level of instructions, under the address sanitizer at -Og, and under
# that of threads at -O0: each halves the time that compiling takes.
asan  = $(call again,asan) OPT=-Og SANITIZE=address,undefined SIMD=0
tsan  = $(call again,tsan) OPT=-O0 SANITIZE=thread OPENMP=0 SIMD=0 CFLAGS='$(CFLAGS) -g1'

.PHONY: test test-cuda test-long test-programs asan-programs tsan-programs asan-python tsan-python asan-stress tsan-stress test-sanitized quick-test
test-programs: $(PROGRAMS)
asan-programs: lib
	@$(asan) $(if $(LONG),WITHOUT='$(LONG)') test-programs
tsan-programs: lib
	@$(if $(RACED),$(tsan) TESTS='$(RACES)' test-programs)

# The package in the same two directories, after the programs if both are asked for.
asan-python: lib | $(filter asan-programs,$(MAKECMDGOALS))
	@$(asan) python
tsan-python: lib | $(filter tsan-programs,$(MAKECMDGOALS))
	@$(tsan) python

asan-stress: asan-python
	@$(asan) TESTS=stress test-programs
tsan-stress: tsan-python
	@$(tsan) TESTS=stress test-programs

# Files of tests/python that are run with each, and the C program that takes
# as long as TREADLE_STRESS says; TESTS="autograd" runs others.
STRESSED := $(filter %/test_stress.c,$(C_TESTS))
ASAN_PYTHON ?= stress threads out_of_memory exceptions matrix properties bad_functions
TSAN_PYTHON ?= stress threads
test-sanitized: asan-python tsan-python $(if $(STRESSED),asan-stress tsan-stress)
	@$(run_tests) \
	  --sanitized $(foreach kind,asan tsan,$(call programs,$(BUILD)/$(kind),$(STRESSED))) \
	  --asan-python $(call selected,$(or $(TESTS),$(ASAN_PYTHON)),$(PY_TESTS)) \
	  --tsan-python $(call selected,$(or $(TESTS),$(TSAN_PYTHON)),$(PY_TESTS))

# The library with one more chapter, in which test_row.py looks for its rows.
.PHONY: row row-programs
row: lib
	$(if $(MADE_UP),@$(call with_row,row-programs))
with_row = +$(MAKE) --no-print-directory DEPS=no BUILD=$(BUILD)/row TANGLED=$(BUILD)/row/tangled.mk \
  GENERATED=$(BUILD)/row/generated CHAPTERS='$(CHAPTERS) tests/loom/99-made-up.nw' OPT=-O0 PLUGOPT=-O0 SIMD=0 TESTS='gradcheck rules' $(1)
row-programs: python $(BUILD)/libtreadle_emulate.so $(patsubst %,$(BUILD)/tests/chapters/test_%,gradcheck rules)

PLANTED := $(if $(wildcard $(GENERATED)/tests/planted.cu),$(BUILD)/libplanted.so)
test: test-programs python asan-programs tsan-programs $(if $(TESTS),row) $(EMULATED:%=$(BUILD)/libtreadle_%.so) $(PLANTED)
	@$(run_tests) \
	  $(if $(GRADER),--exercises prove-changed) \
	  --plain $(call programs,$(BUILD),$(filter-out $(LATER),$(C_TESTS))) --pytest $(PY_TESTS) $(if $(TESTS),$(LOOM_TESTS),$(filter-out $(GRADER) $(MADE_UP),$(LOOM_TESTS))) --headers $(HEADERS) \
	  --sanitized $(call programs,$(BUILD)/asan,$(filter-out $(LONG),$(C_TESTS))) $(call programs,$(BUILD)/tsan,$(RACED)) \
	  --valgrind $(call programs,$(BUILD),$(MEMCHECKED))

test-long: test-programs python row $(EMULATED:%=$(BUILD)/libtreadle_%.so) $(PLANTED)
	@$(asan) TESTS='$(call third,$(ASAN_LONG))' test-programs
	@$(tsan) TESTS='$(call third,$(RACES_LONG))' test-programs
	@$(call again,levels) OPT=-O1 SANITIZE=address,undefined SIMD=1 TESTS='$(call third,$(LEVELS))' test-programs
	@TREADLE_LONG=1 $(run_tests) --plain $(call programs,$(BUILD),$(call third,$(LATER) $(call selected,$(OPTIMISED),$(C_TESTS)))) --pytest $(call third,$(GRADER) $(MADE_UP) $(call selected,$(PYTHON_LONG),$(PY_TESTS))) \
	  --valgrind $(call programs,$(BUILD),$(call selected,$(call third,$(MEMCHECK_LONG)),$(C_TESTS))) \
	  --sanitized $(call programs,$(BUILD)/asan,$(call selected,$(call third,$(ASAN_LONG)),$(C_TESTS))) $(call programs,$(BUILD)/tsan,$(call selected,$(call third,$(RACES_LONG)),$(filter tests/%,$(C_TESTS)))) $(call programs,$(BUILD)/levels,$(call selected,$(call third,$(LEVELS)),$(C_TESTS)))

# The C tests on a 64-bit ARM, cross-compiled and emulated: but for those that need cmocka
# or zlib in earnest, LAPACK, or a process that forks or starts itself again.
NEON      := $(and $(shell command -v qemu-aarch64),$(shell command -v aarch64-linux-gnu-gcc))
NEON_NOT  := allocation data leaks linalg memory no_library parallel seeds steady stress cuda mlir
NEON_RUN   = $(call third,$(filter-out $(call selected,$(NEON_NOT),$(C_TESTS)),$(C_TESTS)))
STAND_IN  := $(abspath $(BUILD))/neon/stand-in
$(STAND_IN)/libz.a: tests/neon/stand-in.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(NEON) -std=c11 -O1 -Wall -Wextra -Wno-unused-parameter -c -o $(@D)/stand-in.o $< && \
	  rm -f $@ && ar rcs $@ $(@D)/stand-in.o && cp $@ $(@D)/libcmocka.a && ln -sf $(NEON) $(@D)/cc

.PHONY: test-neon
ifneq ($(NEON),)
test-neon: $(STAND_IN)/libz.a
	@$(call again,neon) CC=$(NEON) CFLAGS='$(CFLAGS) -L$(STAND_IN)' WITHOUT='$(filter-out $(NEON_RUN),$(C_TESTS))' test-programs
	@PATH=$(STAND_IN):$$PATH $(run_tests) --under 'qemu-aarch64 -L /usr/aarch64-linux-gnu' --plain $(call programs,$(BUILD)/neon,$(NEON_RUN))
else
test-neon:
	@echo "test-neon: skipped, for it needs aarch64-linux-gnu-gcc and qemu-aarch64 (make deps-peers)."
endif

# The kernels on each plug-in there is, and on the device if there is one.
test-cuda: test-programs python $(PLUGINS)
	@status=0; for plugin in $(PLUGINS); do echo "  $$plugin"; \
	  case $$plugin in *_cuda.so) nvidia-smi -L || continue;; esac; \
	  TREADLE_PLUGIN=$$plugin $(BUILD)/tests/c/test_cuda 2>&1 | grep -v '^.  *\(RUN\|OK\)' || status=1; done; exit $$status

# Every operator beside PyTorch's (chapter "loom"): that of the Python PEER,
# the newest if `make deps-peers` put it here; GOLDEN=1 keeps its numbers.
PEER ?= $(or $(wildcard .peers/bin/python),$(PYTHON))
PEERED := $(wildcard $(addprefix tests/python/test_,arrow.py saving.py checkpoints.py models.py precision.py seeing.py linalg.py trainings.py))   # these skip what is only beside newer peers
.PHONY: conformance
conformance: python
	@PYTHONPATH=$(BUILD)/python TREADLE_BUILD=$(BUILD) PYTHONDONTWRITEBYTECODE=1 TREADLE_CUDA=0 $(PEER) tests/conformance/report.py \
	  --write $(BUILD)/conformance.txt $(if $(GOLDEN),--golden tests/conformance/golden.json) $(OPS)
	$(if $(OPS),,@PYTHONPATH=$(BUILD)/python TREADLE_CUDA=0 $(PEER) tests/python/test_fuzz.py --torch --programs $(or $(TREADLE_PROGRAMS),10000))
	$(if $(OPS),,@PYTHONPATH=$(BUILD)/python TREADLE_STAGE=$(BUILD)/python $(PEER) -m pytest -q -p no:cacheprovider $(PEERED))

# Random programs: compiled beside eager, gradients beside differences.
.PHONY: test-fuzz
test-fuzz: python
	@PYTHONPATH=$(BUILD)/python TREADLE_CUDA=0 $(PYTHON) tests/python/test_fuzz.py --programs $(or $(TREADLE_PROGRAMS),50000) \
	  --seed $(or $(TREADLE_SEED),2)

# Files that somebody spoilt, TREADLE_FUZZ seconds for each kind, under the address
# sanitizer: those that are read in C by one program, PyTorch's in Python.
.PHONY: test-fuzz-files
test-fuzz-files: lib asan-python
	@$(call again,asan) OPT=-Og SANITIZE=address,undefined SIMD=0 TESTS=seeds test-programs
	@printf '%s\n' idx csv cifar safetensors columns | TREADLE_FUZZ=$(or $(TREADLE_FUZZ),60) \
	  xargs -P $(JOBS) -I '{}' env TREADLE_FUZZ_ONLY='{}' UBSAN_OPTIONS=halt_on_error=1 $(BUILD)/asan/tests/c/test_seeds
	@TREADLE_FUZZ=$(or $(TREADLE_FUZZ),60) $(run_tests) --asan-python tests/python/test_seeds.py

# Only once, only plain: what the chapter prefixes run.
quick-test: test-programs python examples $(EMULATED:%=$(BUILD)/libtreadle_%.so) $(PLANTED)
	@$(run_tests) \
	  --plain $(PROGRAMS) --pytest $(PY_TESTS) --headers $(HEADERS)

# One directory serves all prefixes, so that going from one to the next recompiles
# only what chapter N+1 changes.
.PHONY: prefix
prefix:
	@[ -n "$(TO)" ] || { echo "usage: make prefix TO=graph"; exit 2; }
	@rm -f $(BUILD)/prefix/tangled.mk
	@+$(MAKE) --no-print-directory DEPS=no BUILD=$(BUILD)/prefix TANGLED=$(BUILD)/prefix/tangled.mk \
	  GENERATED=$(BUILD)/prefix/generated UPTO=$(TO) OPT=-O1 SIMD=0 quick-test

# gdb, the sanitizers and gcov then speak of chapters/NN-name.nw:line.
in_lines = +$(MAKE) --no-print-directory DEPS=no BUILD=$(BUILD)/$(1) TANGLED=$(BUILD)/$(1)/tangled.mk \
  GENERATED=$(BUILD)/$(1)/generated LINES=yes

.PHONY: debug coverage
debug:
	@$(call in_lines,debug) OPT=-O0 SANITIZE=address,undefined examples test-programs
	@echo "Debug build in $(BUILD)/debug: gdb and the sanitizers name chapters/*.nw."
coverage:
	@$(call in_lines,coverage) OPT='-O0 --coverage -fprofile-update=atomic' quick-test
	@loom/coverage $(BUILD)/coverage

# Exercises -------------------------------------------------------------------

# A student's file in place of an answer: only what it changes is compiled, for
# the first instruction set, with the sanitizers, and linked before the rest.
EX   ?=
WORK ?= work
export COMPILER GENERATED BUILD LIBS WORK ISAS
export ISA       := $(firstword $(ISAS))
export ISA_FLAGS := $(isa_flags_$(firstword $(ISAS)))
export FLAGS_OF_A_VARIANT = $(filter-out -Werror%,$(LIBFLAGS)) -O1 -Wno-misleading-indentation -fsanitize=address,undefined \
  -fno-sanitize-recover=all -fno-omit-frame-pointer
export KERNELS_OF_A_VARIANT = $(CCACHE) $(CXX) -x c++ $(filter-out -Werror,$(PLUGFLAGS)) $(checked_emulate_checked) \
  -fno-omit-frame-pointer

.PHONY: notebook.pdf exercises hint reset answer check watch prove-exercises
exercises:
	@$(PYTHON) loom/exercises list $(EX)
hint reset answer:
	@$(PYTHON) loom/exercises $@ $(EX)
# Holes in the plug-in's kernels: the other kernels of the plug-in are there.
PLUGGED := $(if $(shell grep -l 'TD_DEVICE_CUDA' $(wildcard exercises/$(or $(EX),*)/check.c) /dev/null),$(BUILD)/libtreadle_emulate_checked.so)
check watch: lib $(PLANTED) $(PLUGGED) $(if $(wildcard exercises/$(EX)/check.py),python)
	@$(PYTHON) loom/exercises $@ $(EX)
prove-exercises: lib $(PLANTED) $(PLUGGED) $(if $(wildcard exercises/$(or $(EX),*)/check.py),python)
	@THIRD=$(THIRD) $(PYTHON) loom/exercises prove $(EX)

# The book's measured parts --------------------------------------------------

.PHONY: bench bench-compare figures transcripts
# PEERS=1: in Python, beside the newest PyTorch and NumPy; CSV=file keeps the table.
bench: $(BUILD)/bench $(if $(PEERS),python)
	@$(if $(PEERS),BUILD=$(BUILD) $(PEER) loom/bench-peers $(if $(CSV),--csv '$(CSV)'),$(BUILD)/bench) $(CASES)

# OLD is another build's bench, or its folder.
OLD ?=
bench-compare: $(BUILD)/bench
	@[ -n "$(OLD)" ] || { echo "usage: make bench-compare OLD=program-or-build-folder [CASES=\"add gemm\"]"; exit 2; }
	@GENERATED=$(GENERATED) $(PYTHON) loom/bench-compare '$(OLD)' $(BUILD)/bench $(CASES)

# With COMPARE=1 nothing is written: what computes and does not time is run
# again, on all processors, and held against what the book shows.
again_or_compare = BUILD=$(BUILD) PYTHON=$(PYTHON) CC=$(CC) xargs -n 1 $(if $(COMPARE),-P $$(nproc))

figures: lib examples python $(BUILD)/bench $(EMULATED:%=$(BUILD)/libtreadle_%.so)
	@printf '%s\n' $(sort $(wildcard figures/data/*.sh)) | $(again_or_compare) loom/figure $(if $(COMPARE),--compare)

transcripts: lib examples python $(BUILD)/bench $(EMULATED:%=$(BUILD)/libtreadle_%.so) $(PLANTED) | deps-mlir
	@printf '%s\n' $(call third,$(sort $(wildcard figures/transcripts/*.sh figures/transcripts/*.py))) | $(again_or_compare) loom/transcript $(if $(COMPARE),--compare)

.PHONY: lint size data
lint: tangle
	@$(PYTHON) loom/lint $(if $(NUMBERS),--numbers) $(CHAPTERS)

# Tokens of the library, without comments (FILES=1: of the largest files, too).
size: tangle
	@$(PYTHON) loom/size $(if $(FILES),--files) $(GENERATED)

data:
	@$(PYTHON) loom/data $(or $(TREADLE_DATA),data)

# Install and ship ------------------------------------------------------------

PC := $(BUILD)/treadle.pc
$(PC): treadle.pc.in $(BUILD)/flags FORCE
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@PRIVATE@|$(PRIVATE)|' $< > $@

# What a program that links libtreadle.a statically must name as well.
PRIVATE := $(if $(filter 1,$(OPENMP)),-fopenmp) $(LIBS) -ldl
# Plug-ins are installed if they were built: nvcc takes its minutes only when asked.
INSTALLED := $(wildcard $(PLUGINS))

.PHONY: install uninstall dist
install: lib $(PC)
	install -d $(DESTDIR)$(PREFIX)/include/treadle $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/treadle
	install -m 644 $(BUILD)/libtreadle.a $(DESTDIR)$(PREFIX)/lib
	install -m 755 $(BUILD)/libtreadle.so $(INSTALLED) $(DESTDIR)$(PREFIX)/lib
	install -m 644 $(PC) $(DESTDIR)$(PREFIX)/lib/pkgconfig
	$(if $(wildcard book.pdf),install -d $(DESTDIR)$(PREFIX)/share/doc/treadle && \
	  install -m 644 book.pdf $(DESTDIR)$(PREFIX)/share/doc/treadle)

uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/include/treadle $(DESTDIR)$(PREFIX)/share/doc/treadle
	rm -f $(DESTDIR)$(PREFIX)/lib/libtreadle.a $(DESTDIR)$(PREFIX)/lib/libtreadle.so \
	  $(DESTDIR)$(PREFIX)/lib/libtreadle_{cuda,emulate,emulate_checked}.so $(DESTDIR)$(PREFIX)/lib/pkgconfig/treadle.pc

# What git tracks, and the book: enough to build without noweb and TeX.
TARBALL := treadle-$(VERSION)
ifeq ($(WEB),yes)
dist: tangle book.pdf
	@{ git ls-files; echo book.pdf; } | sort -u | tar -czf $(BUILD)/$(TARBALL).tar.gz --transform 's|^|$(TARBALL)/|' \
	  --mtime=@$$(git log -1 --format=%ct) --owner=0 --group=0 --numeric-owner -T -
	@ls -l $(BUILD)/$(TARBALL).tar.gz
endif

# Everything a person gets from `make` --------------------------------------

.PHONY: all
all: $(TRAINING) lib python plugins book.pdf

# The first example, trained on real images: Fashion-MNIST of the Debian
# package, or what TREADLE_DATA names.  The log is complete or not there.
$(TRAINING): $(BUILD)/examples/classifier
	@echo "  TRAIN  $< (log: $@)"
	@$< | tee $@.new && mv $@.new $@

ifeq ($(WEB),yes)
include $(wildcard book.pdf.mk)
book.pdf: | deps-book $(FIRST)
else
.PHONY: book.pdf
book.pdf:
	@[ -f $@ ] || { echo "No .git here and no book.pdf: nothing is woven."; exit 1; }
endif

-include $(shell find $(BUILD)/obj $(BUILD)/tests $(BUILD)/examples -name '*.d' 2>/dev/null)

.PHONY: deps deps-build deps-core deps-book deps-peers deps-mlir
deps: deps-core deps-book
deps-build deps-core deps-book deps-peers deps-mlir:
	@$(if $(filter yes,$(DEPS)),loom/deps $(@:deps-%=%),:)

.PHONY: clean
clean:
	rm -rf $(BUILD)

.PHONY: help
help:
	@cat loom/help
