# unthrottle: four targets do most.
#   make demo        builds, and shows throttling and its end on this host (as root)
#   make test        tests the program on this host and its kernel
#   make check       linters and every test without a kernel experiment, before a commit
#   make check-all   all of these, the race detector, long tests, the lab: what continuous integration runs
SHELL := /bin/bash
, := ,
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# Everything is built without cgo, except for the race detector, which needs it: with cgo each package would be compiled twice.
export CGO_ENABLED := 0
# With -trimpath the tree's path is not compiled in, so that another clone finds what this one compiled in the cache.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell $(GO) env GOFLAGS 2>/dev/null)) -trimpath)
# Tests that draw their cases draw the same ones in each run, which fails for what has changed and not for what it drew.
# `make fuzz` draws others.
export RAPID_SEED ?= 1
BIN := bin
OUT := .cache/test
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# Fuzz targets of these packages run this long each in `make fuzz`.
FUZZTIME ?= 20s
FUZZ_PACKAGES ?= ./...
# Flags of `make demo`.
DEMO ?=

include test/lab/lab.mk
include bench/bench.mk
include bench/accuracy.mk
include internal/see/probe/probe.mk
include packaging/packaging.mk

# A line "##@ TITLE" begins a part of this list, or goes on with one.
##@ Use it
.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^##@ / {part = substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {if (!(part in of)) parts[++n] = part; of[part] = of[part] sprintf("  make %-19s %s\n", $$1, $$2)} \
	  END {for (i = 1; i <= n; i++) printf("%s%s:\n%s", (i > 1 ? "\n" : ""), parts[i], of[parts[i]])}' $(MAKEFILE_LIST)

.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null || { echo "Go is missing: install Go 1.26 or newer (Debian: apt-get install golang-go, or the archive from the Go project) and put it on PATH$${SUDO_USER:+; sudo has a PATH of its own: sudo env \"PATH=\$$PATH\" make $(MAKECMDGOALS)}" >&2; exit 1; }

.PHONY: build
build: need-go ## bin/unthrottle, static
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/unthrottle ./cmd/unthrottle

.PHONY: fleet
fleet: need-go ## bin/unthrottle-fleet, for 'unthrottle fleet': static, with DuckDB, so that it needs a C++ compiler
	@command -v g++ >/dev/null || command -v c++ >/dev/null || { echo "a C++ compiler is missing: apt-get install g++" >&2; exit 1; }
	@$(call fleet-program,$(abspath $(BIN))/unthrottle-fleet)

# The linker warns of what DuckDB has and nobody calls: it loads no extension and opens no socket. Other messages come through.
FLEET_STATIC = -linkmode external -extldflags "-static -Wl,--build-id=none"
fleet-program = CGO_ENABLED=1 $(2) $(GO) -C fleet build -trimpath -tags netgo,osusergo -ldflags '$(LDFLAGS) $(FLEET_STATIC)' -o $(1) ./cmd/unthrottle-fleet \
  2> >(grep -v -e 'in statically linked applications requires at runtime' -e 'libduckdb_static.a(' -e '^\# github.com/unthrottle' >&2)

.PHONY: demo
demo: build ## build, then show throttling and its end on this host (as root)
	@$(BIN)/unthrottle demo $(DEMO)

##@ Test a change
# The modules of the tree beside its own. Some only pin a tool and hold no package.
MODULES := $(patsubst %/go.mod,%,$(shell git ls-files '*/go.mod'))
TOOL_MODULES := tools/lint tools/nfpm tools/crictl tools/containerd tools/cni tools/prometheus tools/helm tools/kubernetes tools/prometheus-adapter tools/keda tools/vpa tools/descheduler
TESTED_MODULES := $(filter-out $(TOOL_MODULES) fleet,$(MODULES))
STATICCHECK = $(GO) tool -modfile=tools/lint/go.mod staticcheck

.PHONY: lint
lint: need-go ## gofmt, go vet and staticcheck, in every module
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "gofmt -w these files:"; echo "$$bad"; exit 1; fi
	@for m in . $(TESTED_MODULES); do $(GO) -C $$m vet -tags 'accuracy confusion' ./...; done
	@$(STATICCHECK) ./...
	@$(GO) -C bench tool -modfile=../tools/lint/go.mod staticcheck ./...
	@$(call with-c++,vet ./...)

# Generated files, the import table and the shown output are tests like any other. The go command caches what has not
# changed. vet has had its turn.
.PHONY: check
check: lint test-modules test-pure-json ## before a commit: lint, and every test that needs no kernel experiment (seconds where nothing changed)
	@$(GO) run ./test/lab/cmd/skips --failures $(OUT)/pure.json

# Tests of modules read files outside of their module, in which the go command sees no change: to it, another test is left out.
OUTSIDE = $(shell git ls-files -z docs/results examples cmd/unthrottle/testdata/schema internal/sim/forecast/budget.json | xargs -0 cat | sha256sum | cut -c1-16)
.PHONY: test-modules
test-modules: need-go
	@for m in $(TESTED_MODULES); do $(GO) -C $$m test -short -vet=off -skip '^outside-$(OUTSIDE)$$' ./... | sed -u '/^ok  /d; /no test files\]$$/d'; done
	@$(call with-c++,test -short -vet=off ./...) | sed -u '/^ok  /d; /no test files\]$$/d'
	@if command -v javac >/dev/null && command -v mvn >/dev/null; then $(MAKE) --no-print-directory $(JAVA_TESTED); \
	  else echo "libs/java: NOT DONE (mvn verify): a JDK of 17 or newer or Maven is missing: apt-get install openjdk-17-jdk-headless maven"; fi

# Maven tests again only what has changed since it passed; the pages hold programs that it runs. It prints what failed.
JAVA_TESTED := .cache/java/tested
$(JAVA_TESTED): docs/howto/in-your-jvm-code.md libs/go/pace/testdata/vectors.txt $(shell git ls-files libs/java)
	@mkdir -p $(@D) && mvn -B -ntp -q -f libs/java/pom.xml verify >$(@D)/output.txt 2>&1 || { cat $(@D)/output.txt; exit 1; }
	@sed -n 's|^NOT DONE: |libs/java: NOT DONE: |p' $(@D)/output.txt
	@touch $@

# $(1) is what go does in fleet, the module that embeds DuckDB.
with-c++ = if command -v g++ >/dev/null || command -v c++ >/dev/null; then CGO_ENABLED=1 $(GO) -C fleet $(1); \
  else echo "fleet: NOT DONE (go $(1)): a C++ compiler is missing: apt-get install g++"; fi

# PySpark brings Spark's own jars; its version and sums are in tools/spark.
SPARK := .cache/spark
$(SPARK)/bin/spark-submit: tools/spark/requirements.txt
	@command -v python3 >/dev/null || { echo "Python is missing: apt-get install python3-venv" >&2; exit 1; }
	@python3 -m venv $(SPARK) && $(SPARK)/bin/pip install --quiet --require-hashes --requirement $<
	@touch $@

.PHONY: spark
spark: need-go $(SPARK)/bin/spark-submit ## the fleet's questions on Apache Spark beside DuckDB: row for row equal (Java 17 or 21; 500 MB from PyPI, once; minutes)
	@PATH="$(CURDIR)/$(SPARK)/bin:$$PATH" UNTHROTTLE_MUST=spark CGO_ENABLED=1 $(GO) -C fleet test -vet=off -count=1 -timeout 60m -run Spark ./report

.PHONY: tidy
tidy: need-go ## every go.mod and go.sum is tidy (fetches what the modules' own tests import, once)
	@for m in . $(MODULES); do $(GO) -C $$m mod tidy -diff || { echo "in $$m: go mod tidy" >&2; exit 1; }; done

.PHONY: need-cc
need-cc:
	@command -v gcc >/dev/null || command -v cc >/dev/null || { echo "a C compiler is missing, and the race detector needs one: apt-get install gcc libc6-dev" >&2; exit 1; }

# go test's events go to a file; a line for each package that ran is shown. Failures are for test/lab/cmd/skips to judge.
define record
tee -a $(OUT)/$(1).json | sed -u -n '/(cached)/d; s/.*"Output":"\(ok\|FAIL\) *\\t\([^\\]*\)\\t\([^\\"]*\).*/  $(1)  \1  \2  \3/p' || true
endef

# At its end a program with the race detector waits a second for races that are yet to come, if it has goroutines left.
# That is one second for each package, and for each run of the program by its tests. A race is reported when it happens.
GORACE ?= atexit_sleep_ms=10
export GORACE

# UNTHROTTLE_ALL=1, as in `make test-all`, leaves nothing out: long rounds, tests with require.TestAll, each test in the lab.
SHORT := $(if $(filter 1,$(UNTHROTTLE_ALL)),,-short)

# The go command has the results of tests whose package and files are as they were: only what a change can reach runs again.
# A test that starts make or go names what these read (require.Inputs).
.PHONY: test-pure-json
test-pure-json: need-go
	@mkdir -p $(OUT) && rm -f $(OUT)/pure.json
	@echo "== tests without kernel experiments$(if $(SHORT),,$(,) all rounds)"
	@UNTHROTTLE_PURE=1 nice -n 19 $(GO) test $(SHORT) -vet=off -timeout 15m -json ./... | $(call record,pure)

# The race detector is for goroutines: it tests packages that start some themselves, or have a library that does. Tests that
# compute figures, for which it takes eight times as long, say require.Unraced.
STARTS := ^[[:space:]]+go [a-zA-Z]|\.(Go|AfterFunc|RunParallel)\([^)]|\.Parallel\(\)|"(net/http|testing/synctest|charm\.land/bubbletea|github\.com/cilium/ebpf
STARTS := $(STARTS)|github\.com/(coreos/go-systemd|godbus/dbus|prometheus/client_golang|unthrottle/unthrottle/internal/sim/parallel))
RACED = $(addprefix ./,$(sort $(dir $(shell git grep -lE '$(STARTS)' -- 'cmd/*.go' 'internal/*.go' 'test/lab/*.go'))))
RACED_BENCH = $(addprefix ./,$(sort $(patsubst bench/%,%,$(dir $(shell git grep -lE '$(STARTS)' -- 'bench/services/*.go' 'bench/truth/*.go' 'bench/wide/*.go')))))

.PHONY: test-race-json
test-race-json: need-go need-cc
	@mkdir -p $(OUT) && rm -f $(OUT)/race.json
	@echo "== tests without kernel experiments, race detector on"
	@UNTHROTTLE_PURE=1 CGO_ENABLED=1 nice -n 19 $(GO) test -race -short -vet=off -timeout 15m -json $(RACED) | $(call record,race)
	@UNTHROTTLE_PURE=1 CGO_ENABLED=1 nice -n 19 $(GO) -C bench test -race -short -vet=off -timeout 15m -json $(RACED_BENCH) | $(call record,race)

# Tests on this host's kernel, which each run tries anew. Those with t.Parallel wait most of the time, so that more of them
# run at once than there are CPUs. $(1) are flags, $(2) the arguments of lab needs, $(3) is the file of the events if it is not kernel.
on-this-kernel = $(GO) test $(1) -vet=off -count=1 -parallel 4 -timeout 15m -json $$($(LAB) needs $(2)) | $(call record,$(or $(3),kernel))

# They wait for events, whatever else runs: two packages at once, beside other tests. The race detector sees them in
# `make test-all`.
.PHONY: test-waiting-json
test-waiting-json: need-go $(if $(SHORT),,need-cc) lab
	@mkdir -p $(OUT) && rm -f $(OUT)/kernel.json*
	@echo "== tests on this host's kernel that wait$(if $(SHORT),,$(,) race detector on)"
	@$(if $(SHORT),,CGO_ENABLED=1) $(call on-this-kernel,$(if $(SHORT),,-race) -p 2,--beside)

# Those with require.Alone compare figures, and other work would be part of them: one package at a time, compiled before,
# and without the race detector.
.PHONY: test-measuring-json
test-measuring-json: need-go lab
	@echo "== tests on this host's kernel that measure"
	@needs=($$($(LAB) needs --alone)); $(GO) list -test -export -f '' "$${needs[@]:2}" >/dev/null || true
	@$(call on-this-kernel,-p 1,--alone)

# What `make test` leaves out of both: tests that take long (require.CheckAll), which `make test-all` has had by then, and those of
# modules.
.PHONY: test-long-waiting-json
test-long-waiting-json: need-go need-cc lab
	@mkdir -p $(OUT) && rm -f $(OUT)/long.json*
	@echo "== more tests on this host's kernel that wait"
	@$(if $(SHORT),UNTHROTTLE_CHECK_ALL=1 $(call on-this-kernel,-p 2,--check-all --beside,long))
	@CGO_ENABLED=1 $(GO) -C libs/go test -race -vet=off -count=1 -timeout 15m -json ./... | $(call record,long)

.PHONY: test-long-measuring-json
test-long-measuring-json: need-go lab
	@echo "== more tests on this host's kernel that measure"
	@$(if $(SHORT),UNTHROTTLE_CHECK_ALL=1 $(call on-this-kernel,-p 1,--check-all --alone,long))
	@$(GO) -C bench/threads test -vet=off -count=1 -timeout 15m -json ./... | $(call record,long)

# Tests that compute few cases elsewhere (require.Cases, require.Whole) compute all. Their names and packages:
WHOLE_TESTS = $(shell git grep -hE --show-function 'require\.(Cases|Whole)\>' -- '*_test.go' ':!test/lab/require' | sed -n 's/^func \(Test[A-Za-z0-9]*\).*/\1/p' | sort -u | paste -sd'|')
WHOLE_PACKAGES = $(addprefix ./,$(sort $(dir $(shell git grep -lE 'require\.(Cases|Whole)\>' -- '*_test.go' ':!test/lab/require'))))
.PHONY: test-whole-json
test-whole-json: need-go
	@mkdir -p $(OUT) && rm -f $(OUT)/whole.json
	@echo "== tests of many cases, with all of them"
	@UNTHROTTLE_CHECK_ALL=1 UNTHROTTLE_PURE=1 nice -n 19 $(GO) test -short -vet=off -timeout 15m -run '^($(WHOLE_TESTS))$$' -json $(WHOLE_PACKAGES) | $(call record,whole)

.PHONY: test-kernel-json
test-kernel-json: test-waiting-json
	@$(MAKE) --no-print-directory test-measuring-json

.PHONY: test-kernel
test-kernel: test-kernel-json ## the tests that need this host's kernel (as root)
	@$(GO) run ./test/lab/cmd/skips $(OUT)/kernel.json

# What computes ($(2)) while tests on this host's kernel wait ($(1)), on CPU time that nothing else wants. What it prints comes last.
define beside
@mkdir -p $(OUT); test/idle $(MAKE) --no-print-directory $(2) >$(OUT)/computing.txt 2>&1 & computing=$$!; \
  trap 'kill -- -$$computing 2>/dev/null || true; cat $(OUT)/computing.txt' EXIT; \
  $(MAKE) --no-print-directory $(1); \
  wait $$computing
endef

.PHONY: test-waiting-and-computing
test-waiting-and-computing:
	$(call beside,test-waiting-json,test-pure-json)

.PHONY: test-long-waiting-and-computing
test-long-waiting-and-computing:
	$(call beside,test-long-waiting-json,test-race-json $(if $(SHORT),test-whole-json))

# One part of a run, what it makes, and what it took.
define part
@began=$$(date +%s); $(MAKE) --no-print-directory $(2); \
  printf '%4d s  %s\n' $$(($$(date +%s) - began)) "$(1)" >>$(OUT)/parts.txt
endef

# A newcomer's: what it needs is Go, make and root, and the modules of the program alone. Experiments that measure run alone.
.PHONY: test
test: need-go lab ## the program's tests on this machine: those that compute, and those on this host's kernel (as root; seven minutes)
	@mkdir -p $(OUT) && rm -f $(OUT)/parts.txt
	$(call part,tests on this kernel that wait$(,) those that compute beside,test-waiting-and-computing)
	$(call part,tests on this kernel that measure,test-measuring-json)
	$(call part,failed tests again,again-kernel)
	@echo "== what each part took"; cat $(OUT)/parts.txt
	@$(GO) run ./test/lab/cmd/skips --failed-once .cache/failed-once.txt $(OUT)/pure.json $(OUT)/kernel.json

# The lab comes after what it leaves out, as this host has already tested it.
.PHONY: test-rest
test-rest: need-go need-cc lab ## what make test leaves to make check-all: lint, other modules, race detector, long tests, the lab
	@mkdir -p $(OUT) && rm -f $(OUT)/parts.txt
	$(call part,lint and the other modules,lint test-modules tidy)
	$(call part,more tests on this kernel that wait$(,) race detector and tests of many cases beside,test-long-waiting-and-computing)
	$(call part,more tests on this kernel that measure,test-long-measuring-json)
	$(call part,the lab,lab-test-json)
	$(call part,failed tests again,again-rest)
	@echo "== what each part took"; cat $(OUT)/parts.txt
	@$(GO) run ./test/lab/cmd/skips --failed-once .cache/failed-once-rest.txt \
	  $(foreach run,pure race $(if $(SHORT),whole) kernel long lab,$(OUT)/$(run).json)

.PHONY: check-all
check-all: ## what continuous integration runs: make test, then all that it leaves out (as root; half an hour)
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-rest

# Before a release, on an idle machine: an hour and a half on two CPUs.
.PHONY: test-all
test-all: ## before a release: make check-all with nothing left out, starved tests, slow time, every kernel of the lab
	@UNTHROTTLE_ALL=1 $(MAKE) --no-print-directory check-all
	@$(MAKE) --no-print-directory test-starved lab-slow lab-kernels

# Our own trade: each package's tests in a cgroup with a tenth of a CPU, ten packages at once; then beside four threads that
# burn. No test knows how fast the machine is. STARVED are the packages.
STARVED ?= ./...
starved-tests = for m in . $(if $(filter ./...,$(STARVED)),bench); do \
  UNTHROTTLE_PURE=1 $(GO) -C $$m test -short -vet=off -count=1 -timeout 60m $(1) $(STARVED) | sed -u '/^ok  /d; /no test files\]$$/d'; done
.PHONY: test-starved
test-starved: need-go ## every test without a kernel experiment, with a tenth of a CPU, then beside four burners (as root, ten minutes)
	@$(GO) list -test -export -f '' $(STARVED) >/dev/null
	@$(if $(filter ./...,$(STARVED)),$(GO) -C bench list -test -export -f '' ./... >/dev/null)
	@echo "== with a tenth of a CPU"
	@$(call starved-tests,-p 10 -exec $(CURDIR)/test/starved)
	@echo "== beside four burners"
	@burners=(); trap 'kill "$${burners[@]}"' EXIT; for _ in 1 2 3 4; do while :; do :; done & burners+=($$!); done; \
	  $(call starved-tests)

# An experiment that failed runs twice more, alone. test/lab/cmd/skips prints it, and fails unless it passed both times.
.PHONY: again-kernel
again-kernel: need-go
	@$(GO) run ./test/lab/cmd/again $(OUT)/kernel.json $(GO) test -vet=off -count=1 -timeout 15m -json -run '^TEST$$' PACKAGE

.PHONY: again-rest
again-rest: need-go lab
	@UNTHROTTLE_CHECK_ALL=1 $(GO) run ./test/lab/cmd/again $(OUT)/long.json $(GO) test -vet=off -count=1 -timeout 15m -json -run '^TEST$$' PACKAGE
	@$(GO) run ./test/lab/cmd/again $(OUT)/lab.json $(LAB) test --timeout 15m --package-timeout 8m --env UNTHROTTLE_CHECK_ALL=1 --run '^TEST$$' --json FILE PACKAGE

.PHONY: smoke
smoke: need-go need-cc ## every target in its shortest form, in a fresh clone of HEAD (as root, a few minutes)
	@$(GO) run ./test/smoke

# The agent's image of this machine's processor, as make image writes it.
AGENT_IMAGE := .cache/e2e/unthrottle.oci.tar
.PHONY: agent-image
agent-image: build
	@mkdir -p $(dir $(AGENT_IMAGE))
	@$(GO) -C tools/image run . --version e2e --arch $$($(GO) env GOARCH) --program $(abspath $(BIN))/unthrottle --output $(abspath $(AGENT_IMAGE))

CONTAINERD_PINS := tools/containerd/go.mod tools/containerd/go.sum
CONTAINERD := .cache/containerd/$(shell cat $(CONTAINERD_PINS) | sha256sum | cut -c1-16)
# The cache holds programs of one state only.
$(CONTAINERD)/containerd:
	@rm -rf .cache/containerd && mkdir -p $(CONTAINERD)
	@CGO_ENABLED=0 nice $(GO) -C tools/containerd build -trimpath -ldflags '-s -w' -o $(abspath $(CONTAINERD))/ \
	  $(addprefix github.com/containerd/containerd/v2/cmd/,containerd-shim-runc-v2 ctr containerd)

PROMETHEUS_PINS := tools/prometheus/go.mod tools/prometheus/go.sum
PROMETHEUS := .cache/prometheus/$(shell cat $(PROMETHEUS_PINS) | sha256sum | cut -c1-16)

.PHONY: mixin-test
mixin-test: need-go $(PROMETHEUS)/promtool ## rules and alerts of packaging/mixin by promtool (which takes minutes to build, once)
	@cd packaging/mixin && $(abspath $(PROMETHEUS))/promtool check rules rules.yaml alerts.yaml tests/stock.yaml
	@cd packaging/mixin && $(abspath $(PROMETHEUS))/promtool test rules tests/containers.yaml tests/agent.yaml

.PHONY: e2e-prometheus
e2e-prometheus: build $(PROMETHEUS)/promtool ## every rule and dashboard on a real Prometheus, beside a throttled container (as root, 2 minutes)
	@$(GO) run ./test/e2e -exe $(BIN)/unthrottle -prometheus $(PROMETHEUS) -only prometheus

# Without the clouds' service discovery: we scrape a fixed address. promtool is built last, so that it stands for both.
$(PROMETHEUS)/promtool:
	@rm -rf .cache/prometheus && mkdir -p $(PROMETHEUS)
	@for name in prometheus promtool; do CGO_ENABLED=0 nice $(GO) -C tools/prometheus build -trimpath -tags remove_all_sd -ldflags '-s -w' \
	  -o $(abspath $(PROMETHEUS))/ github.com/prometheus/prometheus/cmd/$$name; done

HELM_PINS := tools/helm/go.mod tools/helm/go.sum
HELM := .cache/helm/$(shell cat $(HELM_PINS) | sha256sum | cut -c1-16)/helm
$(HELM):
	@rm -rf .cache/helm && mkdir -p $(dir $(HELM))
	@CGO_ENABLED=0 nice $(GO) -C tools/helm build -trimpath -ldflags '-s -w' -o $(abspath $(HELM)) helm.sh/helm/v4/cmd/helm

$(BIN)/crictl: tools/crictl/go.sum
	@mkdir -p $(BIN)
	@CGO_ENABLED=0 $(GO) -C tools/crictl build -trimpath -ldflags '-s -w' -o ../../$(BIN)/crictl sigs.k8s.io/cri-tools/cmd/crictl
	@touch $(BIN)/crictl

# Needs Docker, Podman and containerd; each runs in folders of its own. crictl, helm and a containerd 2 of today take ten
# minutes of CPU time to build, once for each state of the files that pin them. E2E is further flags: E2E='-only chart'.
.PHONY: e2e
e2e: agent-image fleet $(BIN)/crictl $(CONTAINERD)/containerd $(HELM) ## beside real Docker, Podman and containerd: names, rows of the fleet and their report, fixes, drift, restore, NRI, the chart (as root, 4 minutes)
	@$(GO) run ./test/e2e -exe $(BIN)/unthrottle -crictl $(BIN)/crictl -containerd $(CONTAINERD) -image $(AGENT_IMAGE) -helm $(HELM) $(E2E)

# Kubernetes' programs and its etcd take half an hour of CPU time to build, once for each state of the files that pin them.
# kubelet is built last, so that it stands for all. Without the flags of the linker they call themselves v0.0.0.
KUBERNETES_PINS := tools/kubernetes/go.mod tools/kubernetes/go.sum
KUBERNETES := .cache/kubernetes/$(shell cat $(KUBERNETES_PINS) | sha256sum | cut -c1-16)
KUBERNETES_VERSION = $(shell $(GO) -C tools/kubernetes list -m -f '{{.Version}}' k8s.io/kubernetes)
KUBERNETES_LDFLAGS = -s -w $(foreach p,k8s.io/component-base/version k8s.io/client-go/pkg/version,-X $p.gitVersion=$(KUBERNETES_VERSION) \
  -X $p.gitMajor=$(word 1,$(subst ., ,$(KUBERNETES_VERSION:v%=%))) -X $p.gitMinor=$(word 2,$(subst ., ,$(KUBERNETES_VERSION))) \
  -X $p.gitTreeState=clean -X $p.gitCommit=unknown -X $p.buildDate=1970-01-01T00:00:00Z)
$(KUBERNETES)/kubelet:
	@rm -rf .cache/kubernetes && mkdir -p $(KUBERNETES)
	@CGO_ENABLED=0 nice $(GO) -C tools/kubernetes build -trimpath -ldflags '-s -w' -o $(abspath $(KUBERNETES))/etcd go.etcd.io/etcd/server/v3
	@for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubectl kubelet; do CGO_ENABLED=0 nice $(GO) -C tools/kubernetes build \
	  -trimpath -ldflags '$(KUBERNETES_LDFLAGS)' -o $(abspath $(KUBERNETES))/ k8s.io/kubernetes/cmd/$$name; done

CNI := .cache/cni/$(shell cat tools/cni/go.mod tools/cni/go.sum | sha256sum | cut -c1-16)
$(CNI)/bridge:
	@rm -rf .cache/cni && mkdir -p $(CNI)
	@CGO_ENABLED=0 $(GO) -C tools/cni build -trimpath -ldflags '-s -w' -o $(abspath $(CNI))/ \
	  $(addprefix github.com/containernetworking/plugins/plugins/,ipam/host-local main/loopback main/bridge)

# The image of the containers beside the agent.
SIDECAR_IMAGE := .cache/e2e/unthrottle-kubernetes.oci.tar
.PHONY: sidecar-image
sidecar-image: need-go
	@mkdir -p $(dir $(SIDECAR_IMAGE)) $(BIN)
	@CGO_ENABLED=0 $(GO) -C kubernetes build -trimpath -ldflags '-s -w' -o $(abspath $(BIN))/unthrottle-kubernetes ./cmd/unthrottle-kubernetes
	@$(GO) -C tools/image run . --name unthrottle-kubernetes --version e2e --arch $$($(GO) env GOARCH) --program $(abspath $(BIN))/unthrottle-kubernetes \
	  --output $(abspath $(SIDECAR_IMAGE))

# The part demand runs the scheduler too, if its image is there: make e2e-scheduler-image.
SCHEDULER_IMAGE = .cache/e2e/unthrottle-scheduler-e2e-linux-$(shell $(GO) env GOARCH).oci.tar
.PHONY: e2e-scheduler-image
e2e-scheduler-image:
	@$(MAKE) --no-print-directory scheduler-image DIST=.cache/e2e ARCHS=$$($(GO) env GOARCH) VERSION=e2e

# The test's program is the pods' service too, so that it is static.
.PHONY: e2e-kubernetes
e2e-kubernetes: agent-image sidecar-image $(BIN)/crictl $(CONTAINERD)/containerd $(HELM) $(KUBERNETES)/kubelet $(PROMETHEUS)/promtool ## on a real Kubernetes of one node: a throttled pod found, explained, forecast, fixed, resized; the chart upgraded and uninstalled (as root, 4 minutes)
	@CGO_ENABLED=0 $(GO) -C kubernetes build -trimpath -o $(abspath $(BIN))/kubectl-unthrottle ./cmd/kubectl-unthrottle
	@CGO_ENABLED=0 $(GO) run ./test/e2e -crictl $(BIN)/crictl -containerd $(CONTAINERD) -image $(AGENT_IMAGE) -sidecar $(SIDECAR_IMAGE) -helm $(HELM) \
	  $(addprefix -scheduler ,$(wildcard $(SCHEDULER_IMAGE))) -kubernetes $(KUBERNETES) -prometheus $(PROMETHEUS) -only kubernetes $(E2E)

# E2E_NODE is further flags of lab run, such as --kernel 6.12. NODE_ONLY says which checks run.
NODE_DIR := .cache/e2e/node
NODE_ONLY ?= systemd,node
NODE_RUN = $(LAB) run --node --smp 4 --memory 6144 --timeout 90m --file /lab/e2e=$(NODE_DIR) --out $(dir $(NODE_DIR)) $(E2E_NODE)
IN_NODE := /lab/e2e/bin/e2e -exe /lab/e2e/bin/unthrottle -only
.PHONY: e2e-node
e2e-node: lab agent-image sidecar-image $(BIN)/crictl $(CONTAINERD)/containerd $(HELM) $(KUBERNETES)/kubelet $(CNI)/bridge ## on a real node in the lab (Debian, systemd, cgroup v2, AppArmor, a kubelet with its defaults): units, then the chart in every tier (as root, mmdebstrap, on an idle host; an hour)
	@rm -rf $(NODE_DIR) && mkdir -p $(NODE_DIR)/bin
	@cp -l $(BIN)/unthrottle $(BIN)/crictl $(CONTAINERD)/* $(HELM) $(KUBERNETES)/* $(NODE_DIR)/bin/ && cp -lr $(CNI) $(NODE_DIR)/cni
	@cp $(AGENT_IMAGE) $(SIDECAR_IMAGE) $(NODE_DIR)/ && cp -r packaging $(NODE_DIR)/
	@CGO_ENABLED=0 $(GO) build -o $(NODE_DIR)/bin/e2e ./test/e2e
	@CGO_ENABLED=0 $(GO) -C kubernetes build -trimpath -o $(abspath $(NODE_DIR))/bin/kubectl-unthrottle ./cmd/kubectl-unthrottle
	@$(NODE_RUN) -- $(IN_NODE) $(NODE_ONLY) -crictl /lab/e2e/bin/crictl -containerd /lab/e2e/bin -kubernetes /lab/e2e/bin \
	  -cni /lab/e2e/cni -helm /lab/e2e/bin/helm -chart /lab/e2e/packaging/chart/unthrottle \
	  -image /lab/e2e/$(notdir $(AGENT_IMAGE)) -sidecar /lab/e2e/$(notdir $(SIDECAR_IMAGE)) -said /out/$(notdir $(KUBERNETES_SAID)) $(E2E)

# An emulated CPU that waits for the host's is charged for it. In slow time it need not wait.
KUBERNETES_SAID := .cache/e2e/tutorial.json
.PHONY: e2e-tutorial
e2e-tutorial: ## the tutorial of Kubernetes on that node, compared with its page (as e2e-node; DOCS=-update writes the page)
	@$(MAKE) --no-print-directory e2e-node NODE_ONLY=node E2E_NODE='--slow 4' E2E='-parts found,cured'
	@UNTHROTTLE_TUTORIAL=$(abspath $(KUBERNETES_SAID)) $(GO) test -count=1 -run '^TestKubernetesTutorial$$' ./test/docs $(DOCS)

# A guest for each: what its kernel is told, or what the checks mount.
NODES_HARD ?= e2e.plain lockdown=integrity sysctl.kernel.perf_event_paranoid=3 \
  sysctl.kernel.unprivileged_bpf_disabled=2 sysctl.kernel.kptr_restrict=2 e2e.no-btf ro,systemd.volatile=state
.PHONY: e2e-node-hard
e2e-node-hard: lab build ## on nodes that are locked down, without BTF, with a read-only root: what is left, and what is said (as root, mmdebstrap; 10 minutes)
	@rm -rf $(NODE_DIR) && mkdir -p $(NODE_DIR)/bin && cp -l $(BIN)/unthrottle $(NODE_DIR)/bin/ && cp -r packaging $(NODE_DIR)/
	@CGO_ENABLED=0 $(GO) build -o $(NODE_DIR)/bin/e2e ./test/e2e
	@failed=; for word in $(NODES_HARD); do $(NODE_RUN) --append "$$(echo $$word | tr , ' ')" -- $(IN_NODE) hard || failed="$$failed $$word"; done; \
	  [ -z "$$failed" ] || { echo "failed on:$$failed" >&2; exit 1; }

.PHONY: e2e-spans
e2e-spans: build ## spans of a service with OpenTelemetry's SDK, with what its quota stopped (as root, 10 seconds, on an idle host)
	@$(GO) -C test/otel run . -exe $(abspath $(BIN))/unthrottle

.PHONY: e2e-install
e2e-install: ## installs what make e2e runs, on Debian (as root; a package may start its service)
	@apt-get install -y --no-install-recommends docker.io podman conmon containerd runc busybox-static

.PHONY: e2e-policies
e2e-policies: need-go $(KUBERNETES)/kubelet ## ThrottlePolicies, readers, probes and the recommender on a real API server: schema, conditions, events, rights (3 minutes)
	@UNTHROTTLE_KUBERNETES_BIN=$(abspath $(KUBERNETES)) $(GO) -C kubernetes test -count=1 -timeout 15m -v ./realapi

.PHONY: e2e-rollout
e2e-rollout: need-go $(KUBERNETES)/kubelet $(PROMETHEUS)/promtool ## a policy's rollout over pods of two nodes on a real API server, judged by a real Prometheus; programs are killed in each step (3 minutes)
	@UNTHROTTLE_KUBERNETES_BIN=$(abspath $(KUBERNETES)) UNTHROTTLE_PROMETHEUS_BIN=$(abspath $(PROMETHEUS)) \
	  $(GO) -C kubernetes test -count=1 -timeout 20m -v -run '^TestRollout' ./realapi

.PHONY: e2e-scheduler
e2e-scheduler: need-go $(KUBERNETES)/kubelet ## unthrottle-scheduler places pods by measured demand, on a real API server (a quarter of an hour for the first build)
	@UNTHROTTLE_KUBERNETES_BIN=$(abspath $(KUBERNETES)) CGO_ENABLED=0 $(GO) -C kubernetes/scheduler test -count=1 -timeout 30m -v ./realapi

# The folder of a module that tools/NAME pins, which may not be on this machine yet: $(call module-dir,NAME,MODULE).
module-dir = $(GO) -C tools/$(1) mod download $(2) && $(GO) -C tools/$(1) list -m -f '{{.Dir}}' $(2)

# The Prometheus adapter, and KEDA's programs and definitions. KEDA's operator is built last, so that it stands for all.
ADAPTERS_PINS := $(foreach m,prometheus-adapter keda,tools/$m/go.mod tools/$m/go.sum)
ADAPTERS := .cache/adapters/$(shell cat $(ADAPTERS_PINS) | sha256sum | cut -c1-16)
$(ADAPTERS)/keda-operator:
	@rm -rf .cache/adapters && mkdir -p $(ADAPTERS)
	@CGO_ENABLED=0 nice $(GO) -C tools/prometheus-adapter build -trimpath -ldflags '-s -w' -o $(abspath $(ADAPTERS))/adapter \
	  sigs.k8s.io/prometheus-adapter/cmd/adapter
	@cp -r --no-preserve=mode "$$($(call module-dir,keda,github.com/kedacore/keda/v2))/config/crd/bases" $(ADAPTERS)/crd
	@for name in adapter operator; do CGO_ENABLED=0 nice $(GO) -C tools/keda build -trimpath -ldflags '-s -w' \
	  -o $(abspath $(ADAPTERS))/keda-$$name github.com/kedacore/keda/v2/cmd/$$name; done

# In a network of its own: KEDA's adapter serves its metrics on every address.
.PHONY: e2e-autoscaler
e2e-autoscaler: need-go $(KUBERNETES)/kubelet $(PROMETHEUS)/promtool $(ADAPTERS)/keda-operator ## the recipes for the Prometheus adapter and for KEDA scale a Deployment, on a real API server and Prometheus (2 minutes)
	@cp -lf $(PROMETHEUS)/prometheus $(PROMETHEUS)/promtool $(ADAPTERS)/
	@$(GO) -C kubernetes test -c -o $(abspath $(ADAPTERS))/realapi.test ./realapi
	@cd kubernetes/realapi && UNTHROTTLE_KUBERNETES_BIN=$(abspath $(KUBERNETES)) UNTHROTTLE_ADAPTERS_BIN=$(abspath $(ADAPTERS)) \
	  unshare --map-root-user --net sh -c 'ip link set lo up && exec $(abspath $(ADAPTERS))/realapi.test -test.v -test.run "^TestAutoscaler$$"'

# The Vertical Pod Autoscaler's programs and objects. The updater is built last, so that it stands for all.
VPA_PINS := tools/vpa/go.mod tools/vpa/go.sum
VPA := .cache/vpa/$(shell cat $(VPA_PINS) | sha256sum | cut -c1-16)
VPA_MODULE := k8s.io/autoscaler/vertical-pod-autoscaler
$(VPA)/updater:
	@rm -rf .cache/vpa && mkdir -p $(VPA)
	@cp -r --no-preserve=mode "$$($(call module-dir,vpa,$(VPA_MODULE)))/deploy" $(VPA)/deploy
	@for name in recommender admission-controller updater; do CGO_ENABLED=0 nice $(GO) -C tools/vpa build -trimpath -ldflags '-s -w' \
	  -o $(abspath $(VPA))/$$name $(VPA_MODULE)/pkg/$$name; done

# In a network of its own: the admission controller serves on every address. What the test builds there is built before, as that may
# need the network.
.PHONY: e2e-vpa
e2e-vpa: need-go $(KUBERNETES)/kubelet $(VPA)/updater ## the Vertical Pod Autoscaler's own programs replace and resize pods by a fleet's report, on a real API server (3 minutes)
	@$(GO) -C kubernetes test -c -o $(abspath $(VPA))/realapi.test ./realapi
	@$(GO) -C kubernetes build -o /dev/null ./cmd/unthrottle-kubernetes
	@cd kubernetes/realapi && UNTHROTTLE_KUBERNETES_BIN=$(abspath $(KUBERNETES)) UNTHROTTLE_VPA_BIN=$(abspath $(VPA)) \
	  unshare --map-root-user --net sh -c 'ip link set lo up && exec $(abspath $(VPA))/realapi.test -test.v -test.run "^TestVerticalPodAutoscaler$$"'

DESCHEDULER_PINS := tools/descheduler/go.mod tools/descheduler/go.sum
DESCHEDULER := .cache/descheduler/$(shell cat $(DESCHEDULER_PINS) | sha256sum | cut -c1-16)
$(DESCHEDULER)/descheduler:
	@rm -rf .cache/descheduler && mkdir -p $(DESCHEDULER)
	@CGO_ENABLED=0 nice $(GO) -C tools/descheduler build -trimpath -ldflags '-s -w' -o $(abspath $(DESCHEDULER))/ \
	  sigs.k8s.io/descheduler/cmd/descheduler

.PHONY: e2e-descheduler
e2e-descheduler: need-go $(KUBERNETES)/kubelet $(PROMETHEUS)/promtool $(DESCHEDULER)/descheduler ## the example for the descheduler evicts pods from a contended node, on a real API server and Prometheus (a minute)
	@UNTHROTTLE_KUBERNETES_BIN=$(abspath $(KUBERNETES)) UNTHROTTLE_PROMETHEUS_BIN=$(abspath $(PROMETHEUS)) \
	  UNTHROTTLE_DESCHEDULER_BIN=$(abspath $(DESCHEDULER)) $(GO) -C kubernetes test -count=1 -timeout 20m -v -run '^TestDescheduler$$' ./realapi

##@ Write what is made from the code
.PHONY: docs
docs: need-go ## write fresh output into README and docs (as root, on an idle host with cgroup v1)
	@UNTHROTTLE_ALL=1 $(GO) test -count=1 -timeout 15m ./test/docs -update

# Where the manual pages are written.
MAN ?= man
.PHONY: man
man: need-go ## man/: a manual page for each command
	@rm -rf $(MAN) && mkdir -p $(MAN) && SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) UNTHROTTLE_MAN=$(abspath $(MAN)) \
	  $(GO) test -count=1 -run '^TestManualPages$$' ./cmd/unthrottle >/dev/null && ls $(MAN) | wc -l | xargs echo "pages in $(MAN):"

##@ Test a change
.PHONY: size
size: ## how much there is to read: lines of code, words of pages
	@sh tools/size.sh

# Of cases that tests draw at random, so many per test, from a seed that a failure prints.
FUZZ_CHECKS ?= 1000
DRAWING = $(shell $(GO) list -f '{{$$p := .ImportPath}}{{range .TestImports}}{{if eq . "pgregory.net/rapid"}}{{$$p}}{{end}}{{end}} {{range .XTestImports}}{{if eq . "pgregory.net/rapid"}}{{$$p}}{{end}}{{end}}' $(FUZZ_PACKAGES))

.PHONY: fuzz
fuzz: need-go ## every fuzz target for FUZZTIME each, and FUZZ_CHECKS new cases of each test that draws them
	@$(if $(strip $(DRAWING)),UNTHROTTLE_PURE=1 RAPID_SEED=0 $(GO) test -vet=off -count=1 -timeout 2h $(sort $(DRAWING)) -args -rapid.checks=$(FUZZ_CHECKS))
	@$(GO) list $(FUZZ_PACKAGES) | while read -r pkg; do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; done; done
