# Part of the Makefile: forecasts against what came, outside CI.
# Each of DRAWS random workloads takes some 65 s. What was run is kept in .cache/accuracy-forecast.jsonl, and a later run
# goes on from there.

.PHONY: accuracy-forecast
accuracy-forecast: need-go ## docs/accuracy-forecast.md: forecasts of random workloads, then each remedy for real (as root)
	@UNTHROTTLE_DRAWS=$(or $(DRAWS),20) $(GO) test -tags accuracy -count=1 -timeout 0 -v -run '^TestAccuracy$$' ./forecast
