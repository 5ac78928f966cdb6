# What observing costs: our sampler, a bare loop over the same files, and cAdvisor's library, on cgroups of its own.
# BENCH=--quick for the short form. Needs root and writable cgroups.
BENCH ?=

.PHONY: bench
bench: build ## what observing costs, beside a bare loop and cAdvisor's library (as root; BENCH=--quick: short)
	@mkdir -p $(BIN)
	@$(GO) -C bench/agent build -o ../../$(BIN)/bench .
	@$(GO) -C bench/agent build -o ../../$(BIN)/bench-cadvisor ./cadvisor
	@$(BIN)/bench -cadvisor $(BIN)/bench-cadvisor -unthrottle $(BIN)/unthrottle $(BENCH)

# What the remedies are worth on this host: docs/results.md. Needs root and writable cgroups; a host with nothing else
# on it, or the rows come out noisy. RESULTS_SCALE=quick for about a third of the time.
RESULTS_SCALE ?= full

.PHONY: results
results: build ## docs/results.md: what the remedies are worth on this host (as root, 40 minutes; RESULTS_SCALE=quick)
	@$(GO) build -o $(BIN)/results ./bench/results
	@$(BIN)/results -exe $(BIN)/unthrottle -scale $(RESULTS_SCALE) -out docs/results.md
