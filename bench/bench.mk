# What observing costs: the whole agent; then our sampler, a bare loop over the same files, and
# cAdvisor's library, on cgroups of its own. BENCH=--quick for the short form, --smoke for the shortest, whose figures mean
# nothing. Needs root and writable cgroups.
BENCH ?=

# A study's program, from the module bench: $(call study-program,NAME). It runs in the tree's top folder.
study-program = mkdir -p $(BIN) && $(GO) -C bench build -o ../$(BIN)/$(1) ./$(1)

##@ Measure again
.PHONY: bench
bench: bench-build ## what the agent costs, beside a bare loop and cAdvisor's library; then bench-probe (as root; BENCH=--quick: short)
	@$(BIN)/bench -cadvisor $(BIN)/bench-cadvisor -unthrottle $(BIN)/unthrottle $(BENCH)
	@$(MAKE) --no-print-directory bench-probe

.PHONY: bench-build
bench-build: build
	@mkdir -p $(BIN)
	@$(GO) -C bench/agent build -o ../../$(BIN)/bench .
	@$(GO) -C bench/agent build -o ../../$(BIN)/bench-cadvisor ./cadvisor

.PHONY: results-cost
results-cost: bench-build ## docs/results/cost.md and README's figure: what the whole agent costs (as root, 15 minutes; BENCH=--quick)
	@$(BIN)/bench -unthrottle $(BIN)/unthrottle -runs bench/agent/runs.json -page docs/results/cost.md -readme README.md $(BENCH)

# What the remedies are worth on this host: docs/results/service.md. Needs root and writable cgroups; a host with nothing else
# on it, or the rows come out noisy. RESULTS_SCALE=quick for about a third of the time. RESULTS_PARTS=pools,spike measures
# these alone, in this order (pool,pools,gc,mixed,spike,price), none only writes the page, which has the last of each in
# bench/results/records.jsonl.gz.
RESULTS_SCALE ?= full
RESULTS_PARTS ?= pool,pools,gc,mixed,spike,price

.PHONY: results
results: build ## docs/results/service.md: what the remedies are worth on this host (as root, 40 minutes; RESULTS_SCALE=quick)
	@$(call study-program,results)
	@$(BIN)/results -exe $(BIN)/unthrottle -scale $(RESULTS_SCALE) -parts $(RESULTS_PARTS) -out docs/results/service.md

# Services that no package of Debian has, such as Kafka, from their makers' own jars.
.PHONY: service-jars
service-jars: ## the jars of Kafka, Cassandra, OpenSearch, HDFS and Spring Boot, for results-rivals (with Maven, 300 MB)
	@mvn -B -ntp -q -f bench/services/java/pom.xml package

.PHONY: results-rivals
results-rivals: build ## docs/results/rivals.md: other projects' rules and ours on the same services (as root, with their packages, an hour a service; RIVALS='-rounds 0': the page)
	@$(call study-program,rivals)
	@$(BIN)/rivals -exe $(abspath $(BIN))/unthrottle $(RIVALS)

# How many CPUs each way to hold a service needs for the same latency; what is there is not measured again.
SIZES ?=

.PHONY: results-sizes
results-sizes: build ## docs/results/sizes.md: how many CPUs quotas, bursts and exclusive CPUs need for the same latency (as root, with their packages, 5 minutes a service and round; SIZES='-rounds 0': the page)
	@$(call study-program,rivals)
	@$(BIN)/rivals -sizes -exe $(abspath $(BIN))/unthrottle $(SIZES)

# What batch work gets of idle CPUs; what is there is not measured again.
SECONDARY ?=

.PHONY: results-secondary
results-secondary: build ## docs/results/secondary.md: a service beside batch work under equal weights, quotas and remedies (as root, with their packages, 2 minutes a service and round; SECONDARY='-rounds 0': the page)
	@$(call study-program,secondary)
	@$(BIN)/secondary -exe $(abspath $(BIN))/unthrottle $(SECONDARY)

# The agent's trials that are spread over hours, on real services at once, while the agent is killed.
ROLLOUT ?=

.PHONY: results-rollout
results-rollout: build ## docs/results/rollout.md: the agent spreads trials over several services and is killed ten times (as root, with their packages, 2 hours; ROLLOUT='-for 0': the page)
	@$(call study-program,rollout)
	@$(BIN)/rollout -exe $(abspath $(BIN))/unthrottle $(ROLLOUT)

# Many bursty services on one host under the same limit in other periods: a part of docs/results/period.md. In a guest of 16 CPUs:
# MANY='-k 20 -for 8s -rounds 1', half an hour.
MANY ?=

.PHONY: results-many
results-many: build lab ## docs/results/period.md: twenty services on two CPUs, with long periods and without (as root, 10 minutes; MANY='-rounds 0': the page)
	@$(call study-program,many)
	@$(BIN)/many -exe $(abspath $(BIN))/unthrottle $(MANY)

# What the remedies are worth on 8 to 32 CPUs, in guests of the lab in slow time: docs/results/wide.md. It measures what is missing in
# bench/wide/records.jsonl.gz, in order of worth, for WIDE_FOR of a quiet host; a later run goes on from there, also after Ctrl-C.
# WIDE_FOR=0 only writes the page. Real services come after the shapes; WIDE='-services all' measures them alone (as root: their packages are
# put on a disk once), WIDE='-services nginx-wide,node-wide -rounds 3' some.
WIDE_FOR ?= 30m
WIDE ?=

.PHONY: wide-build
wide-build: build lab
	@$(call study-program,wide)

.PHONY: results-wide
results-wide: wide-build ## docs/results/wide.md: what the remedies are worth on 8 to 32 CPUs, for WIDE_FOR=30m; goes on where it ended
	@$(BIN)/wide -lab $(LAB) -for $(WIDE_FOR) $(WIDE)

# Experiments that others published on hosts with many CPUs, in guests of the lab in slow time; what is there does not run again.
PUBLISHED ?=

.PHONY: results-published
results-published: build lab ## docs/results/published.md: published experiments as described, on 32 CPUs in slow time (5 minutes each; PUBLISHED='-rounds 0': the page)
	@$(call study-program,published)
	@$(BIN)/published -lab $(LAB) -exe $(abspath $(BIN))/unthrottle $(PUBLISHED)

# What libs/go does for a net/http service on this host, and libs/java, once it is built, for one of Netty. It measures what is missing in bench/threads/records.jsonl.gz.
THREADS ?=

.PHONY: results-threads
results-threads: need-go ## docs/results/threads.md: a Go service and one of Netty under a limit, with and without the library (as root, 15 minutes; THREADS='-rounds 0': the page)
	@mkdir -p $(BIN)
	@$(GO) -C bench/threads build -o ../../$(BIN)/threads .
	@$(BIN)/threads $(THREADS)

# How long services take until they are ready under a limit. That of Netty needs libs/java to be built.
STARTUP ?=

.PHONY: results-startup
results-startup: need-go ## docs/results/startup.md: a start under a limit, with a burst and with a raised limit (as root, 5 minutes; STARTUP='-rounds 3')
	@$(call study-program,startup)
	@$(BIN)/startup $(STARTUP)

.PHONY: bench-placement
bench-placement: need-go ## our placement beside the kubelet's and nri-plugins', writes docs/results/placement.md (about 20 min)
	@mkdir -p $(BIN)
	@$(GO) -C bench/placement build -o ../../$(BIN)/bench-placement .
	@$(BIN)/bench-placement -out docs/results/placement.md $(BENCH)

# Random steps on nodes of all shapes, each checked by the validator that shares no code with the placer.
PLACEMENT_STEPS ?= 3000000

WORLD_ROUNDS ?= 1000000
WORLD_SEED ?= 0
WORLD_FOR ?=

.PHONY: soak-world
soak-world: need-go ## WORLD_ROUNDS seconds of an agent's life in a simulated world; WORLD_FOR=80s ends earlier, WORLD_SEED=n goes on
	UNTHROTTLE_WORLD_ROUNDS=$(WORLD_ROUNDS) UNTHROTTLE_WORLD_SEED=$(WORLD_SEED) UNTHROTTLE_WORLD_FOR=$(WORLD_FOR) $(GO) test -count 1 -timeout 0 -v -run '^TestWorld$$' ./internal/agent

.PHONY: soak-placement
soak-placement: need-go ## PLACEMENT_STEPS random steps of the placer, each checked (about 10 min)
	@PLACEMENT_STEPS=$(PLACEMENT_STEPS) $(GO) test -count=1 -timeout 2h \
	  -run 'TestRandomSteps|TestAgainstExactSearch' -v ./placement

BENCHTIME ?= 1s

.PHONY: bench-simulate
bench-simulate: need-go ## the simulator's events per second beside a bare heap's (x-heap: how many times slower), and the period model's
	@$(GO) test -run xx -bench . -benchtime $(BENCHTIME) ./internal/sim/simulate ./internal/sim/simulate/coarse

.PHONY: results-coarse
results-coarse: need-go ## docs/results/coarse.md: the error of the period model against the simulator (seconds)
	@$(GO) test -count=1 -run TestErrorAgainstSimulate ./internal/sim/simulate/coarse -update

FLEET_SERVICES ?= 200
FLEET_PRICED ?= 500

.PHONY: results-fleet
results-fleet: need-go ## docs/results/fleet.md: the error of what rows and recordings of a fleet tell against the simulator (half an hour of CPU time; FLEET_SERVICES=N FLEET_PRICED=N)
	@$(GO) test -count=1 -timeout 1h -run TestErrorAgainstSimulate ./internal/demand/periodmodel -update -services $(FLEET_SERVICES)
	@$(GO) test -count=1 -timeout 4h -run "TestPricesOf(OtherTimes|Periods)" ./internal/sim/forecast -update -services $(FLEET_PRICED)

# Real services: docs/results/fix.md (fix) and docs/results/truth.md (explain and forecast). Needs root, writable cgroups, and the services'
# packages; what is missing is said with the way to install it. A service measured to its end is a line of bench/truth/results.jsonl.gz, to be
# committed: the pages are made of these. A later run goes on with the services that have none. TRUTH=redis-bgsave,nginx-gzip measures these
# alone, also if they have a result.
TRUTH ?=
TRUTH_ROUNDS ?= 3
TRUTH_EACH ?= 5s

.PHONY: truth
truth: build ## docs/results/{fix,truth}.md: what is said of real services, what fix chooses, what each remedy brings (as root, 4 minutes each; TRUTH=NAME)
	@$(call study-program,truth)
	@$(BIN)/truth -exe $(BIN)/unthrottle -cases '$(TRUTH)' -rounds $(TRUTH_ROUNDS) -each $(TRUTH_EACH) -out docs/results/fix.md

.PHONY: truth-page
truth-page: need-go ## docs/results/{fix,truth}.md anew from the records of make truth
	@$(call study-program,truth)
	@$(BIN)/truth -page-only

.PHONY: truth-again
truth-again: build ## docs/results/truth.md: explains and forecasts the kept recordings of make truth again (a minute)
	@$(call study-program,truth)
	@$(BIN)/truth -exe $(BIN)/unthrottle -again

.PHONY: truth-sampled
truth-sampled: build ## docs/results/truth.md: what look says of real services, by samples and without BPF (as root, with their packages, 20 s each; TRUTH=NAME)
	@$(call study-program,truth)
	@$(BIN)/truth -exe $(BIN)/unthrottle -cases '$(TRUTH)' -sampled 60s

# The demand of real services, for generated fleets: each of bench/truth's that demanded (bench/truth/demand.go) names, for 21 s without a
# quota that it meets, then replayed on 32 CPUs. TRUTH=redis-bgsave,nginx-gzip records these alone; the others stay as they are.
.PHONY: truth-demand
truth-demand: build ## fleet/generate/recorded.json: the demand of real services, for 'fleet generate' (as root, a minute each; TRUTH=NAME)
	@$(call study-program,truth)
	@$(BIN)/truth -exe $(BIN)/unthrottle -cases '$(TRUTH)' -demand fleet/generate/recorded.json
