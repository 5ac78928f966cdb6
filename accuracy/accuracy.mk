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
