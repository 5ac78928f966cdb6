# Part of the Makefile: the simulator against this host's kernel, outside CI.
# DRAWS scenarios, REPEATS real runs of SECONDS each. What was run is kept in .cache/accuracy.jsonl, and a later run goes
# on from there, also after Ctrl-C.
# (DRAWS has no default here: another target has one of its own.)
REPEATS ?= 5
SECONDS ?= 10

##@ Measure again
.PHONY: accuracy
accuracy: need-go ## docs/results/accuracy.md: random scenarios for real and simulated (as root)
	@UNTHROTTLE_DRAWS=$(or $(DRAWS),40) UNTHROTTLE_REPEATS=$(REPEATS) UNTHROTTLE_SECONDS=$(SECONDS) \
	  $(GO) -C bench test -tags accuracy -count=1 -timeout 0 -run '^TestAccuracy$$' ./accuracy

# What stands on the page of the lab's kernels; two to three minutes each.
.PHONY: accuracy-lab
accuracy-lab: lab ## the simulator against the lab's kernels, for docs/results/accuracy.md
	@for k in 6.1 6.12 6.18; do echo "== $$k"; \
	  $(LAB) test --kernel $$k --run OnAllCPUs --env UNTHROTTLE_ALL=1 --env UNTHROTTLE_ALL_CPUS=1 --out .cache/allcpus --timeout 10m --package-timeout 8m ./internal/sim/simulate || exit $$?; done

# Part of the Makefile: the diagnosis against experiments, outside CI.
# MIXES of ingredients; each takes a few seconds per ingredient. What was run is kept in .cache/confusion.jsonl, and a
# later run goes on from there.
MIXES ?= 200

.PHONY: confusion
confusion: need-go ## docs/results/confusion.md: random mixes of causes on this host, what explain names first (as root)
	@UNTHROTTLE_MIXES=$(MIXES) $(GO) -C bench test -tags confusion -count=1 -timeout 0 -run '^TestConfusion$$' ./confusion

# Part of the Makefile: forecasts against what came, outside CI.
# Each of DRAWS random workloads is run 18 times for 9 s: nothing else should run meanwhile. The recordings are kept in
# .cache/forecast, and a later run goes on from there. FORECAST_PAGE_ONLY=1 forecasts them again, without a new run.

.PHONY: accuracy-forecast
accuracy-forecast: need-go ## docs/results/forecast.md: forecasts of random workloads, then each remedy for real (as root, 1 hour)
	@UNTHROTTLE_DRAWS=$(or $(DRAWS),20) UNTHROTTLE_PAGE_ONLY=$(FORECAST_PAGE_ONLY) $(GO) test -tags accuracy -count=1 -timeout 0 -v -run '^TestHeldOut$$' ./internal/sim/forecast
