# `make help` lists the targets. Contributors run `make test`; continuous integration runs
# `make test verify`. CONTRIBUTING.md says what each is for, what it needs and how long it takes.
#
# Everything in `make test` is compiled with one set of flags, and so is everything with the race
# detector in `make verify`: the compiler's work is most of the time of a first run.

SHELL := /bin/sh
.DEFAULT_GOAL := help
# Stages run one by one, so that their output and their times mean something.
.NOTPARALLEL:

GO ?= go
# These binaries need no version control status, and git gives none in a checkout
# that belongs to another user.
export GOFLAGS := $(strip $(filter-out -buildvcs%,$(shell $(GO) env GOFLAGS)) -buildvcs=false)
export GOWORK := off

BIN := $(CURDIR)/.cache/bin
# Each stage adds its seconds to this file; the end of a run prints it.
export STAGES := $(CURDIR)/.cache/stages
STAGE := $(CURDIR)/tools/stage
TESTGATE := $(BIN)/testgate
FUZZGATE := $(BIN)/fuzzgate
STATICCHECK := $(BIN)/staticcheck
TYPECHECK := $(BIN)/typecheck
comma := ,
space := $(subst ,, )

# Modules with Go code. EXTRAS are the parts of the library that need more than the rest of it, and
# the examples that do.
# APISERVER starts kube-apiserver and etcd: its tests are among those of e2e, which builds these.
EXTRAS := $(patsubst %/go.mod,%,$(wildcard kates/*/go.mod kates/prometheus/*/go.mod fleet/*/go.mod examples/*/go.mod))
APISERVER := kates/katestest/apiserver
# GATEWAY are the tests of examples/gateway on a real API server, with traffic.
GATEWAY := $(patsubst %/go.mod,%,$(wildcard examples/gateway/e2e/go.mod))
# bench/krt is not among them: it has Istio's dependencies, which need other versions of Kubernetes'
# modules than all others, and four minutes to build. Only bench-derive builds it.
BENCHES := $(patsubst %/go.mod,%,$(wildcard bench/go.mod))
MODULES := . $(EXTRAS) $(APISERVER) $(GATEWAY) e2e tools $(BENCHES)
TESTED := $(EXTRAS) $(BENCHES)

# Tests check the order of locks.
TAGS := lockorder
# Arguments of every `go test`: a test that hangs fails, with all stacks.
TESTFLAGS ?=
# It is for tests that hang. On one core beside much other work the slowest package takes 18
# minutes.
UNIT_TIMEOUT ?= 30m
MUTANTS_TIMEOUT ?= 30m
E2E_TIMEOUT ?= 30m
E2E_FLAGS = -vet=off -tags $(TAGS) -count=1 -timeout $(E2E_TIMEOUT) $(TESTFLAGS)
# More than the cores: most of these tests wait most of the time.
E2E_PARALLEL ?= 6
EXAMPLE_TIME ?= 3s
MODEL_STEPS ?= 100000
# A step of each of the gateway's three models is two translations. It takes 1 to 2 ms of CPU, so
# 1,000,000 steps take half an hour of an idle core.
TENANT_STEPS ?= 200000
SOAK_STEPS ?= 1000000
SOAK_TIMEOUT ?= 3h
# How long each fuzz test runs, and how many inputs it tries in fuzz-smoke: in the time of a
# loaded machine it might try none.
FUZZTIME ?= 10m
FUZZ_SMOKE ?= 100x
FUZZ_ONLY ?=
# How long the run on three API servers takes, and its seed: another one each time.
SOAK_TIME ?= 1h
SOAK_SEED ?=

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

# The compiler, linters and tests collect garbage half as often, which saves a tenth of their time
# and costs memory. Benchmarks measure memory: they are not concerned.
test verify: export GOGC := 200

# A process with the race detector sleeps for a second before it exits, so that goroutines that are
# just reporting a race can end. Race has 150 of them.
race e2e e2e-race: export GORACE := atexit_sleep_ms=20

.PHONY: test
test: begin-test lint unit e2e-core readme examples end-test ## what a contributor runs before a commit

.PHONY: verify
verify: begin-verify needs safe race extras model mutants e2e gateway release-try end-verify ## the rest of what continuous integration runs, after test

begin-%:
	@mkdir -p .cache && : >"$(STAGES)"

end-%:
	@echo "=== make $* passed:" && cat "$(STAGES)" && awk '{s += $$1} END {print s, "s in all"}' "$(STAGES)"

.PHONY: lint
lint: fmt one-version vet vet-darwin staticcheck ## gofmt; go vet; types for macOS; staticcheck

.PHONY: fmt
fmt: ## fail if a file is not formatted as gofmt does
	@$(STAGE) gofmt sh -c 'unformatted=$$(find . -path "./.*" -prune -o -name "*.go" -exec gofmt -l {} +) || exit 1; \
		[ -z "$$unformatted" ] || { echo "not formatted:"; echo "$$unformatted"; exit 1; }'

# Of one version of each dependency, one form is compiled and checked for all modules.
.PHONY: one-version
one-version: ## fail if two modules here need two versions of another
	@$(STAGE) "one version of each module" sh -c 'several=$$(sed -n "s/^\(require\)*[[:space:]]*\([^[:space:]]*\.[^[:space:]]*\) \(v[^ ]*\).*/\2 \3/p" \
		$(MODULES:%=%/go.mod) | sort -u | cut -d" " -f1 | uniq -d); \
		[ -z "$$several" ] || { echo "modules need several versions (go work sync makes one of them):"; echo "$$several"; exit 1; }'

# Linters see all modules at once: what several modules import is checked once.
WORKSPACE := $(CURDIR)/.cache/go.work
.PHONY: workspace
workspace:
	@mkdir -p .cache && rm -f "$(WORKSPACE)" "$(WORKSPACE).sum"
	@cd .cache && GOWORK= $(GO) work init $(MODULES:%=../%)

# in_all runs a command on the packages of all modules.
in_all = env GOWORK="$(WORKSPACE)" $(1) $(MODULES:%=./%/...)

.PHONY: vet
vet: workspace ## go vet of all modules
	@$(STAGE) "go vet" $(call in_all,$(GO) vet -tags $(TAGS)$(comma)soak)

.PHONY: vet-darwin
vet-darwin: workspace ## parse and type-check all modules for macOS
	@$(GO) -C tools build -o "$(TYPECHECK)" ./typecheck
	@$(STAGE) "types for macOS" $(call in_all,"$(TYPECHECK)" -os darwin -tags $(TAGS)$(comma)soak)

.PHONY: staticcheck
staticcheck: workspace build-staticcheck ## staticcheck of all modules, at the version in tools/go.mod
	@$(STAGE) "staticcheck" $(call in_all,"$(STATICCHECK)" -tags $(TAGS)$(comma)soak)

# It needs the network: the tool, which is no part of tools/go.mod so that this stays small, and the
# data about vulnerabilities. It is no part of `make test` for that reason.
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

.PHONY: vulncheck
vulncheck: ## known vulnerabilities in every module; it needs the network
	@$(STAGE) "govulncheck" $(call in_each,$(MODULES)) $(GO) run $(GOVULNCHECK) -test ./...

# All packages that $(1) lists, and all tests but one, which breaks the library (make mutants).
unit_tests = sh -c 'packages=$$($(1)) || exit 1; \
	exec "$(TESTGATE)" "$$@" -vet=off -tags $(TAGS) -skip "^TestMutantsAreCaught$$" -timeout $(UNIT_TIMEOUT) $(TESTFLAGS) $$packages' sh

# internal/test/readme compiles documents: make readme.
.PHONY: unit
unit: build-testgate ## unit tests, with the check of the lock order
	@$(STAGE) "unit tests" $(call unit_tests,$(GO) list ./... | grep -v "/internal/test/readme$$") -name "unit tests" -slowest 10 --
	@$(STAGE) "tests of tools" sh -c 'cd tools && exec "$(TESTGATE)" -name "tests of tools" -- -vet=off $(TESTFLAGS) ./...'

# A package has goroutines of its own if its files or its tests start one, take a lock or talk
# through the network. The others have no race that the tests of their users would not show.
CONCURRENT := (^|[^[:alnum:]])go (func|[[:alnum:]_.]+\()|"sync|"testing/synctest"|\.Go\(|\.Parallel\(|"net/http|/katestest"
concurrent = $(GO) list -f "{{.ImportPath}} {{.Dir}}" ./... | grep -vE "/internal/test/(readme|mutants) " | \
	while read -r package dir; do if cat "$$dir"/*.go | grep -qE "$$CONCURRENT"; then echo "$$package"; fi; done

# The race detector looks at how goroutines meet, and not at a hundred cases of each property.
# Packages of many tests run in as many processes as there are cores.
.PHONY: race
race: export CONCURRENT := $(CONCURRENT)
race: build-testgate ## the unit tests of packages with goroutines, with the race detector, in another order each time
	@RAPID_CHECKS=10 $(STAGE) "unit tests with -race" $(call unit_tests,$(concurrent)) \
		-name "unit tests with -race" -slowest 40 -split 60 -- -race -shuffle=on

# With the tag kates_safe the library does without unsafe, but for the files in
# internal/test/rooms/unsafe_test.go that have no fallback.
SAFE := ./accumulator ./snapshot ./internal/engine/tables ./internal/base/words ./internal/client/wire \
	./internal/client/wire/tree ./internal/object/...

.PHONY: safe
safe: build-testgate ## build with the tag kates_safe; unit tests of what has a fallback; the scenarios
	@$(STAGE) "building with kates_safe" $(GO) build -tags kates_safe ./...
	@$(STAGE) "tests with kates_safe" "$(TESTGATE)" -name "tests with kates_safe" -- -vet=off -tags $(TAGS)$(comma)kates_safe \
		-timeout $(UNIT_TIMEOUT) $(TESTFLAGS) $(SAFE)
	@$(STAGE) "scenarios with kates_safe" "$(TESTGATE)" -name "scenarios with kates_safe" -- -vet=off -tags $(TAGS)$(comma)kates_safe \
		-run "^TestSuite$$" -timeout $(UNIT_TIMEOUT) $(TESTFLAGS) ./kates/katestest

.PHONY: extras
extras: nginx $(TESTED:%=extras-in-%) ## unit tests of the nested modules, and their examples for a few seconds
	@$(STAGE) "gateway" $(GO) -C examples/gateway run -tags $(TAGS) . -for $(EXAMPLE_TIME)
	@$(STAGE) "snapwatch" $(GO) -C examples/snapwatch run -tags $(TAGS) . --replay ../../testdata/recordings/drain.recording

# With the race detector, all that these modules need would be compiled once more.
$(TESTED:%=extras-in-%): extras-in-%: build-testgate
	@$(STAGE) "tests of $*" sh -c 'cd "$*" && exec "$(TESTGATE)" -name "tests of $*" -- -vet=off -tags $(TAGS) -shuffle=on -timeout $(UNIT_TIMEOUT) $(TESTFLAGS) ./...'

# The race detector makes the model tests five times as slow, so they run without it here.
# The unit tests run them with it, with fewer steps.
MODEL_TESTS = -v -count=1 -vet=off -tags $(TAGS) -run '^TestModel' $(TESTFLAGS) ./coherence ./accumulator ./internal/engine/agenda ./internal/engine/partition ./derive ./fleet ./internal/engine/plan

.PHONY: model
model: build-testgate ## the model tests, $(MODEL_STEPS) steps each
	@$(STAGE) "model tests" "$(TESTGATE)" -name "model tests" -list -- -timeout $(UNIT_TIMEOUT) $(MODEL_TESTS) -steps $(MODEL_STEPS)

.PHONY: tenants
tenants: build-testgate ## attacks on the gateway by objects of one namespace, $(TENANT_STEPS) of them
	@$(STAGE) "tenants of the gateway" sh -c 'cd examples/gateway && exec "$(TESTGATE)" -name "tenants of the gateway" -list -- -v -count=1 \
		-vet=off -tags $(TAGS) -run "^TestModel" -timeout $(UNIT_TIMEOUT) $(TESTFLAGS) ./translate -steps $(TENANT_STEPS)'

.PHONY: soak
soak: fuzz-smoke bench-smoke tenants soak-models e2e-race soak-servers ## long runs, and what verify has no time for

.PHONY: soak-models
soak-models: build-testgate ## the model tests, $(SOAK_STEPS) steps each, new cases each time
	@$(STAGE) "soak" "$(TESTGATE)" -name "soak" -list -- -timeout $(SOAK_TIMEOUT) $(MODEL_TESTS) -series 0 -steps $(SOAK_STEPS)

# Its output has the seed, and after each round the counts.
.PHONY: soak-servers
soak-servers: apiserver ## three API servers on one etcd under chaos, for $(SOAK_TIME) (SOAK_SEED)
	@$(STAGE) "three servers" sh -c 'cd e2e && exec $(GO) test -tags soak -count=1 -v -timeout 0 $(TESTFLAGS) \
		-run "^TestG4G5G6G7UnderChaosOfThreeServersOnOneEtcd$$" . -soak.time $(SOAK_TIME) $(if $(SOAK_SEED),-seed $(SOAK_SEED))'

# The compiler instruments all that is fuzzed, and all that it needs, which takes most of the time
# of fuzz-smoke. What fuzz tests have found interesting stays in the build cache, for the next run.
.PHONY: fuzz
fuzz: build-fuzzgate ## each fuzz test for $(FUZZTIME), or those with FUZZ_ONLY in their name
	@$(STAGE) "fuzzing" "$(FUZZGATE)" -time $(FUZZTIME) -only "$(FUZZ_ONLY)" -- $(TESTFLAGS)

.PHONY: fuzz-gateway
fuzz-gateway: build-fuzzgate ## the fuzz tests of examples/gateway, as fuzz does it
	@$(STAGE) "fuzzing the gateway" sh -c 'cd examples/gateway && exec "$(FUZZGATE)" -time $(FUZZTIME) -only "$(FUZZ_ONLY)" -- $(TESTFLAGS)'

.PHONY: fuzz-smoke
fuzz-smoke: build-fuzzgate ## each fuzz test, $(FUZZ_SMOKE) inputs
	@$(STAGE) "fuzzing a little" "$(FUZZGATE)" -time $(FUZZ_SMOKE) -only "$(FUZZ_ONLY)" -- $(TESTFLAGS)

.PHONY: mutants
mutants: build-testgate ## break the library on purpose, in up to 200 places, and see the tests of the guarantees fail
	@$(STAGE) "mutants" "$(TESTGATE)" -name "mutants" -- -v -vet=off -tags $(TAGS) -count=1 -timeout $(MUTANTS_TIMEOUT) $(TESTFLAGS) ./internal/test/mutants

.PHONY: apiserver
apiserver: ## build kube-apiserver and etcd for e2e, if not cached
	@$(STAGE) apiserver $(GO) -C $(APISERVER) run ./cmd/apiserver

# Tests in e2e/browser look at the status page in a real browser. Tests and the demonstration of
# examples/gateway serve traffic with a real nginx, whose module for Lua changes endpoints without a
# reload.
.PHONY: needs browser nginx
needs: ## install Debian's Chromium and nginx for verify, if they are missing and this is root
	@$(STAGE) "Chromium and nginx" tools/needs chromium nginx

browser: ## install Debian's Chromium for e2e, if there is no browser and this is root
	@tools/needs chromium

nginx: ## install Debian's nginx for examples/gateway, if there is none and this is root
	@tools/needs nginx

# Its packages wait most of the time, each for a control plane of its own: all three run at once.
.PHONY: gateway
gateway: apiserver nginx build-testgate ## examples/gateway on a real API server: traffic, and the Gateway API's conformance tests
	@for m in $(GATEWAY); do $(STAGE) "tests of $$m" sh -c 'cd "$$1" && \
		exec "$(TESTGATE)" -name "tests of $$1" -list -- -count=1 -vet=off -tags $(TAGS) -timeout $(E2E_TIMEOUT) -p 3 $(TESTFLAGS) ./...' sh "$$m" || exit 1; done

# The package e2e runs alone: its tests use the machine themselves.
.PHONY: e2e
e2e: apiserver browser build-testgate ## tests on a real API server: the core with the race detector, all others without
	@$(STAGE) "tests of $(APISERVER)" sh -c 'cd "$(APISERVER)" && \
		exec "$(TESTGATE)" -name "tests of $(APISERVER)" -- $(E2E_FLAGS) -p 2 ./...'
	@$(STAGE) "core of end-to-end tests with -race" sh -c 'cd e2e && \
		exec "$(TESTGATE)" -name "core of end-to-end tests with -race" -list -- -race $(E2E_FLAGS) -parallel $(E2E_PARALLEL) . -args -core -memory'
	@$(STAGE) "end-to-end tests" sh -c 'cd e2e && \
		exec "$(TESTGATE)" -name "end-to-end tests" -list -slowest 20 -- $(E2E_FLAGS) -parallel $(E2E_PARALLEL) . -args -rest'
	@$(STAGE) "more end-to-end tests" sh -c 'cd e2e && packages=$$($(GO) list ./...) || exit 1; \
		exec "$(TESTGATE)" -name "more end-to-end tests" -list -- $(E2E_FLAGS) -p 2 $$(echo "$$packages" | grep -v "/e2e$$")'

.PHONY: e2e-race
e2e-race: apiserver browser build-testgate ## all tests on a real API server with the race detector, a part of soak
	@$(STAGE) "tests of $(APISERVER) with -race" sh -c 'cd "$(APISERVER)" && \
		exec "$(TESTGATE)" -name "tests of $(APISERVER) with -race" -- -race $(E2E_FLAGS) -p 1 ./...'
	@$(STAGE) "end-to-end tests with -race" sh -c 'cd e2e && \
		exec "$(TESTGATE)" -name "end-to-end tests with -race" -list -slowest 20 -- -race $(E2E_FLAGS) -p 1 -parallel $(E2E_PARALLEL) ./...'

.PHONY: e2e-core
e2e-core: apiserver build-testgate ## the core of e2e, on a real API server and in memory, without the race detector
	@$(STAGE) "core of end-to-end tests" sh -c 'cd e2e && \
		exec "$(TESTGATE)" -name "core of end-to-end tests" -list -- $(E2E_FLAGS) -parallel $(E2E_PARALLEL) . -args -core -memory'

# The versions of Kubernetes that are pinned, or some of them: make versions KUBERNETES=1.34,1.36.
# All other targets run the newest, or what KATES_KUBERNETES says.
KUBERNETES ?= $(subst $(space),$(comma),$(sort $(notdir $(wildcard $(APISERVER)/internal/binaries/pins/*))))
VERSIONS := $(BIN)/versions

.PHONY: versions
versions: ## the core of e2e on each version of Kubernetes that is supported, and a table (KUBERNETES)
	@$(GO) -C tools build -o "$(VERSIONS)" ./versions
	@"$(VERSIONS)" "$(KUBERNETES)" $(MAKE) --no-print-directory e2e-core

# bench writes RESULTS.md and its data. It needs an idle machine for an hour or two. Most
# of the time goes to the clients that convert everything.
BENCH_SIZES ?= 1000 10000 50000
BENCH_RUNS ?= 5
BENCH_CONSUMERS ?=
BENCH_NOTE ?=
BENCH_FLAGS ?=
BENCH := $(BIN)/bench

.PHONY: bench
bench: apiserver build-bench ## measure kates beside other clients, into bench/RESULTS.md (BENCH_SIZES, BENCH_RUNS)
	@cd bench && $(STAGE) "benchmarks" "$(BENCH)" run -sizes "$(BENCH_SIZES)" -runs "$(BENCH_RUNS)" -consumers "$(BENCH_CONSUMERS)" \
		-note "$(BENCH_NOTE)" $(BENCH_FLAGS)

# This takes about 15 minutes on an idle machine.
BENCH_ROOTS ?= 5000
BENCH_OPERATOR_RUNS ?= 3
BENCH_OPERATORS ?=

.PHONY: bench-operator
bench-operator: apiserver build-bench ## measure the same operator on kates and on controller-runtime, into bench/RESULTS.md (BENCH_ROOTS, BENCH_OPERATOR_RUNS)
	@cd bench && $(STAGE) "operators" "$(BENCH)" operator -roots "$(BENCH_ROOTS)" -runs "$(BENCH_OPERATOR_RUNS)" -operators "$(BENCH_OPERATORS)" \
		-note "$(BENCH_NOTE)" $(BENCH_FLAGS)

# This takes about 10 minutes on an idle machine. A run has BENCH_CHANGES changes per second, for a
# minute.
BENCH_INGRESSES ?= 1000
BENCH_CHANGES ?= 200
BENCH_GATEWAY_RUNS ?= 3
BENCH_GATEWAYS ?=

.PHONY: bench-gateway
bench-gateway: apiserver nginx build-bench ## measure examples/gateway beside one on controller-runtime, into bench/RESULTS.md (BENCH_INGRESSES, BENCH_CHANGES, BENCH_GATEWAY_RUNS)
	@cd bench && $(STAGE) "gateways" "$(BENCH)" gateway -ingresses "$(BENCH_INGRESSES)" -rate "$(BENCH_CHANGES)" -runs "$(BENCH_GATEWAY_RUNS)" \
		-gateways "$(BENCH_GATEWAYS)" -note "$(BENCH_NOTE)" $(BENCH_FLAGS)

# A million pods take 10 GB with the informers, and about 6 minutes a run on an idle machine.
BENCH_CROWD ?= 1000000
BENCH_CROWD_RUNS ?= 3

.PHONY: bench-crowd
bench-crowd: build-bench ## measure clients of a server of a million pods, into bench/RESULTS.md (BENCH_CROWD, BENCH_CROWD_RUNS)
	@cd bench && $(STAGE) "a crowd" "$(BENCH)" crowd -pods "$(BENCH_CROWD)" -runs "$(BENCH_CROWD_RUNS)" -note "$(BENCH_NOTE)" $(BENCH_FLAGS)

# Filling the server takes most of the time: about 5 minutes on an idle machine.
BENCH_SHARDED ?= 50000
BENCH_SHARDED_RUNS ?= 3

.PHONY: bench-sharded
bench-sharded: apiserver build-bench ## measure replicas that share the pods of a server, into bench/RESULTS.md (BENCH_SHARDED, BENCH_SHARDED_RUNS)
	@cd bench && $(STAGE) "replicas that share" "$(BENCH)" sharded -pods "$(BENCH_SHARDED)" -runs "$(BENCH_SHARDED_RUNS)" -note "$(BENCH_NOTE)" $(BENCH_FLAGS)

# A run takes about 2 minutes of CPU; the first build of krt takes four. -krt= leaves krt out.
BENCH_DERIVE_RUNS ?= 5
KRT := $(BIN)/krt

.PHONY: bench-derive
bench-derive: build-krt build-bench ## measure package derive beside a plain loop, caches by hand and Istio's krt, into bench/RESULTS.md (BENCH_DERIVE_RUNS)
	@cd bench && $(STAGE) "results that are kept up to date" "$(BENCH)" derive -krt "$(KRT)" -runs "$(BENCH_DERIVE_RUNS)" -note "$(BENCH_NOTE)" $(BENCH_FLAGS)

# A run takes about 5 minutes of CPU.
BENCH_BUILD_RUNS ?= 1

.PHONY: bench-build
bench-build: build-bench ## measure first builds of programs that use the libraries, into bench/RESULTS.md (BENCH_BUILD_RUNS)
	@cd bench && $(STAGE) "first builds" "$(BENCH)" builds -runs "$(BENCH_BUILD_RUNS)" -note "$(BENCH_NOTE)" $(BENCH_FLAGS)

.PHONY: bench-report
bench-report: build-bench ## write bench/RESULTS.md again, from bench/results.json
	@cd bench && "$(BENCH)" report

.PHONY: bench-profile
bench-profile: apiserver build-bench ## CPU and heap profiles of kates at bootstrap and in churn, into a new folder (BENCH_SIZES: the last)
	@cd bench && "$(BENCH)" profile -sizes "$(BENCH_SIZES)" $(BENCH_FLAGS)

.PHONY: bench-smoke
bench-smoke: apiserver nginx build-bench ## see that the benchmarks work, with tiny numbers
	@cd bench && $(STAGE) "small benchmarks" "$(BENCH)" run -smoke -out ../.cache/bench-smoke
	@cd bench && $(STAGE) "small operators" "$(BENCH)" operator -smoke -out ../.cache/bench-smoke
	@cd bench && $(STAGE) "small shares" "$(BENCH)" sharded -smoke -out ../.cache/bench-smoke
	@cd bench && $(STAGE) "small crowd" "$(BENCH)" crowd -smoke -out ../.cache/bench-smoke
	@cd bench && $(STAGE) "small gateways" "$(BENCH)" gateway -smoke -out ../.cache/bench-smoke
	@cd bench && $(STAGE) "small graphs" "$(BENCH)" derive -smoke -out ../.cache/bench-smoke

.PHONY: examples
examples: ## run each example of the library's module for a few seconds
	@for e in quickstart tenants configmapgen pipeline; do \
		$(STAGE) "$$e" $(GO) run -tags $(TAGS) ./examples/$$e -for $(EXAMPLE_TIME) || exit 1; done

.PHONY: readme
readme: build-testgate ## compile the Go blocks of README.md and docs
	@$(STAGE) "README blocks" "$(TESTGATE)" -name "README blocks" -- -vet=off -tags $(TAGS) -count=1 ./internal/test/readme

# It works on copies: the tree stays as it is, and nothing is tagged or pushed.
VERSION ?=
RELEASE_DIR ?= $(CURDIR)/.cache/release/$(VERSION)
RELEASE := $(BIN)/release

.PHONY: release
release: apiserver build-release ## check, make and try a release, and print its tags: make release VERSION=v0.1.0 (RELEASE_DIR)
	@"$(RELEASE)" -version "$(VERSION)" -out "$(RELEASE_DIR)"

.PHONY: release-try
release-try: apiserver build-release ## make what is in the tree available as a release, get it as users do, and run their programs
	@$(STAGE) "a release, as users get it" "$(RELEASE)" -try

.PHONY: build-testgate build-fuzzgate build-staticcheck build-bench build-krt build-release
build-testgate:
	@$(GO) -C tools build -o "$(TESTGATE)" ./testgate

build-fuzzgate:
	@$(GO) -C tools build -o "$(FUZZGATE)" ./fuzzgate

build-release:
	@$(GO) -C tools build -o "$(RELEASE)" ./release

build-bench:
	@$(STAGE) "building bench" $(GO) -C bench build -o "$(BENCH)" .

build-krt:
	@$(STAGE) "building krt" $(GO) -C bench/krt build -o "$(KRT)" .

build-staticcheck:
	@$(STAGE) "building staticcheck" $(GO) -C tools build -o "$(STATICCHECK)" honnef.co/go/tools/cmd/staticcheck

.PHONY: clean
clean: ## remove what was built here (not the API server's cache)
	rm -rf .cache
