# Part of the Makefile: the simulator against this host's kernel, outside CI.
# DRAWS scenarios, REPEATS real runs of SECONDS each. What was run is kept in .cache/accuracy.jsonl, and a later run goes
# on from there, also after Ctrl-C.
# (DRAWS has no default here: another target has one of its own.)
REPEATS ?= 5
SECONDS ?= 10

.PHONY: accuracy
accuracy: need-go ## docs/accuracy.md: random scenarios for real and simulated (as root)
	@UNTHROTTLE_DRAWS=$(or $(DRAWS),40) UNTHROTTLE_REPEATS=$(REPEATS) UNTHROTTLE_SECONDS=$(SECONDS) \
	  $(GO) test -tags accuracy -count=1 -timeout 0 -run '^TestAccuracy$$' ./accuracy

# What stands on the page of the lab's kernels; two to three minutes each.
.PHONY: accuracy-lab
accuracy-lab: lab ## the simulator against the lab's kernels, for docs/accuracy.md
	@for k in 6.1 6.12 6.18; do echo "== $$k"; \
	  $(LAB) test --kernel $$k --run OnAllCPUs --env UNTHROTTLE_ALL_CPUS=1 --out .cache/allcpus --timeout 10m --package-timeout 8m ./simulate || exit $$?; done
