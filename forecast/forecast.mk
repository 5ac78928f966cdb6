# Part of the Makefile: forecasts against what came, outside CI.
# Each of DRAWS random workloads is run 18 times for 9 s: nothing else should run meanwhile. The recordings are kept in
# .cache/forecast, and a later run goes on from there. FORECAST_PAGE_ONLY=1 forecasts them again, without a new run.

.PHONY: accuracy-forecast
accuracy-forecast: need-go ## docs/accuracy-forecast.md: forecasts of random workloads, then each remedy for real (as root, 1 hour)
	@UNTHROTTLE_DRAWS=$(or $(DRAWS),20) UNTHROTTLE_PAGE_ONLY=$(FORECAST_PAGE_ONLY) $(GO) test -tags accuracy -count=1 -timeout 0 -v -run '^TestHeldOut$$' ./forecast
