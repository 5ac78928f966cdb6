# What observing costs: our sampler, a bare loop over the same files, and cAdvisor's library, on cgroups of its own.
# BENCH=--quick for the short form. Needs root and writable cgroups.
BENCH ?=

.PHONY: bench
bench: build ## what observing costs, beside a bare loop and cAdvisor's library (as root; BENCH=--quick: short)
	@mkdir -p $(BIN)
	@$(GO) -C bench/agent build -o ../../$(BIN)/bench .
	@$(GO) -C bench/agent build -o ../../$(BIN)/bench-cadvisor ./cadvisor
	@$(BIN)/bench -cadvisor $(BIN)/bench-cadvisor -unthrottle $(BIN)/unthrottle $(BENCH)
