# Part of the Makefile: the diagnosis against experiments, outside CI.
# MIXES of ingredients; each takes a few seconds per ingredient. What was run is kept in .cache/confusion.jsonl, and a
# later run goes on from there.
MIXES ?= 200

.PHONY: confusion
confusion: need-go ## docs/confusion.md: random mixes of causes on this host, what explain names first (as root)
	@UNTHROTTLE_MIXES=$(MIXES) $(GO) test -tags confusion -count=1 -timeout 0 -run '^TestConfusion$$' ./explain
