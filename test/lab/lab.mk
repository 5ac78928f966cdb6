# The lab: a many-CPU Linux under QEMU, without KVM. See docs/lab.md.
GO ?= go
OUT ?= .cache/test
LAB := bin/lab
LAB_FIXTURES := test/lab/testdata/sysfs

##@ The lab, a guest with many CPUs
.PHONY: lab
lab: ## bin/lab, which boots a many-CPU Linux: bin/lab run -- nproc
	@CGO_ENABLED=0 $(GO) build -o $(LAB) ./test/lab/cmd/lab

.PHONY: lab-fetch
lab-fetch: lab ## fetch QEMU and the default kernel into ~/.cache/unthrottle/lab
	@$(LAB) fetch

.PHONY: lab-test
lab-test: lab ## the tests that need many CPUs or cgroup v2, in one guest
	@$(LAB) test --timeout 25m --package-timeout 8m

# For `make check-all`: failed tests are for test/lab/cmd/skips to judge; a lab that
# could not test (125) fails here. What the host's run took is not repeated where it does not say require.EachCgroup;
# `make test-all` repeats it all.
.PHONY: lab-test-json
lab-test-json: lab
	@mkdir -p $(OUT) && rm -f $(OUT)/lab.json*
	@echo "== tests in the lab"
	@cat $(foreach run,kernel long,$(wildcard $(OUT)/$(run).json)) </dev/null >$(OUT)/taken.json
	@rc=0; $(LAB) test --timeout 25m --package-timeout 8m --env UNTHROTTLE_CHECK_ALL=1 $(if $(SHORT),--taken $(OUT)/taken.json) --json $(OUT)/lab.json || rc=$$?; [ $$rc -le 1 ] || exit $$rc

LAB_TOPOLOGIES ?= .
.PHONY: lab-topologies
lab-topologies: lab ## boot every topology of lab list, check it, keep its sysfs tree
	@run() { echo "== $$1"; $(LAB) test --smp $$2 --l3 $$3 --timeout 8m --run 'TestTopology$$' \
	  --env UNTHROTTLE_LAB_CAPTURE=$$1 --out $(LAB_FIXTURES) ./test/lab/experiments; }; \
	$(LAB) list --topologies | grep -E "^($(LAB_TOPOLOGIES))" | while read -r name smp l3; do run $$name $$smp $$l3 </dev/null; done

# A guest whose clock runs LAB_SLOW times slower than the host's: its milliseconds mean something (docs/lab.md, "Slow time").
LAB_SLOW ?= 20
LAB_SLOW_SMP ?= 16
LAB_SLOW_TESTS ?= TestSeed003InMilliseconds
.PHONY: lab-slow
lab-slow: lab ## 32 burning threads beside one that sleeps, on 16 CPUs in slow time: latencies in ms (6 minutes of both CPUs)
	@$(LAB) test --smp $(LAB_SLOW_SMP) --slow $(LAB_SLOW) --run '$(LAB_SLOW_TESTS)' ./test/lab/experiments

.PHONY: lab-java
lab-java: lab ## JVMs with libs/java follow a limit that changes, on cgroup v2 (needs a JDK of 17 and Maven; 5 minutes)
	@test/lab/java.sh $(LAB)

LAB_KERNELS ?= $(shell $(LAB) list --kernels)
LAB_KERNEL_TESTS ?= TestLimit|TestQuota|TestGuest|TestCounts|TestMoves|TestRecording|TestStopsInSchedstat|TestRealQuota
.PHONY: lab-kernels
lab-kernels: lab ## the bandwidth checks, the probe and look on every kernel of lab list
	@failed=; for k in $(LAB_KERNELS); do echo "== $$k"; \
	  $(LAB) test --kernel $$k --env UNTHROTTLE_ALL=1 --run '$(LAB_KERNEL_TESTS)' ./test/lab/experiments ./internal/see/probe ./internal/explain/sampled/sampler || failed="$$failed $$k"; done; \
	  [ -z "$$failed" ] || { echo "failed on:$$failed" >&2; exit 1; }

# Outside CI: builds two kernels. See "A kernel that loses slices" in docs/lab.md.
LAB_SLICES := $(OUT)/slices.json
.PHONY: lab-kernel-affected
lab-kernel-affected: lab ## build 6.1 with 4.18's slice expiry put back, and confirm what it loses
	@mkdir -p $(OUT); built=$$(test/lab/kernels/build.sh) || exit $$?; \
	check() { echo "== $$1: slices $$2"; rm -f $(LAB_SLICES); rc=0; \
	  $(LAB) test --kernel $$1 --run 'TestSlices$$' --json $(LAB_SLICES) --env UNTHROTTLE_EXPERIMENT_SLICES=$$2 ./test/lab/experiments || rc=$$?; \
	  grep -o '[0-9]* CPUs, slices .* throttled' $(LAB_SLICES); return $$rc; }; \
	check 6.1 kept && for k in $$built; do check $$k $${k##*-} || exit $$?; done
