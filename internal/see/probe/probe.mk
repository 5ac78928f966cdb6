# The BPF programs of probe and scheduler. The objects are in the tree: users need none of this.
GO ?= go

##@ Write what is made from the code
.PHONY: generate
generate: ## compile the BPF programs anew (clang, llvm, libbpf-dev)
	@command -v clang-14 >/dev/null || { echo "clang 14 is missing: apt-get install clang-14 llvm-14 libbpf-dev" >&2; exit 1; }
	@$(GO) generate ./internal/see/probe ./internal/widthcap/scx
	@for d in internal/see/probe internal/widthcap/scx; do (cd $$d && LC_ALL=C sha256sum $$(ls bpf/*.[ch] | LC_ALL=C sort) bpf_bpfel.o > bpf/SHA256SUMS); done

# PROBE_FORM=width, all, recording, cold, reader or requests measures this alone.
PROBE_FORM ?= .
##@ Measure again
.PHONY: bench-probe
bench-probe: ## what the probe costs per switch and wake-up, and a ping-pong by it (as root)
	@$(GO) test -run '^$$' -bench 'Overhead/$(PROBE_FORM)' -benchtime 1x -timeout 10m ./internal/see/probe
