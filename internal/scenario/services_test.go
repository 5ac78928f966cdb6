package scenario

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const goodService = `version: 1
duration: 10s
host: {cpus: 20}
cgroups:
  app: {quota: 150ms}
spike: {at: 4s, for: 2s, factor: 3}
workloads:
  web:
    kind: service
    cgroup: app
    io: 2
    pools:
      http: {threads: {per_host_cpu: 2}, queue: 100}
      jobs: {threads: {per_limit_cpu: 1}, queues: per-thread}
    classes:
      get: {pool: http, work: {exponential: 1ms}, arrivals: {per_second: 100}, touches: 50, locked: 0.1}
      job: {pool: jobs, work: 10ms, arrivals: {per_second: 8, burst: 4, gaps: equal}}
      ping: {work: 100us, arrivals: {at: [1s, 2s]}}
    shared: 8MiB
    inflate: 0.01
    timeout: 1s
    retries: {max: 2, budget: 0.5}
    rate_limit: {per_second: 400, burst: 20}
    phases: [{for: 5s, factor: 1}, {for: 1s, factor: 2}]
  collector: {kind: gc, cgroup: app, of: web, threads: {per_host_cpu: 1}, work: 40ms, requests: 500}
`

func TestService(t *testing.T) {
	s, err := Parse("good.yaml", []byte(goodService))
	if err != nil {
		t.Fatal(err)
	}
	web, collector := s.Workloads[0], s.Workloads[1]
	want := Server{
		IO:    2,
		Pools: []Pool{{Name: "http", Threads: 40, Queue: 100}, {Name: "jobs", Threads: 2, Queue: defaultQueue, PerThread: true}},
		Classes: []Class{
			{Name: "get", Pool: 0, Work: Duration{Shape: Exponential, Mean: time.Millisecond},
				Arrivals: Arrivals{PerSecond: 100, Burst: 1}, Touches: 50, Locked: 0.1},
			{Name: "job", Pool: 1, Work: Fixed(10 * time.Millisecond), Arrivals: Arrivals{PerSecond: 8, Burst: 4, Regular: true}},
			{Name: "ping", Pool: -1, Work: Fixed(100 * time.Microsecond),
				Arrivals: Arrivals{At: []time.Duration{time.Second, 2 * time.Second}, Burst: 1}},
		},
		Shared: 8 << 20, Inflate: 0.01, Timeout: time.Second,
		Retries: Retries{Max: 2, Budget: 0.5, Backoff: defaultBackoff}, RateLimit: RateLimit{PerSecond: 400, Burst: 20},
	}
	if !reflect.DeepEqual(*web.Server, want) || web.Threads != 42 {
		t.Errorf("\n got %+v\nwant %+v", *web.Server, want)
	}
	if c := collector.Collector; collector.Threads != 20 || c.Service != 0 || c.Requests != 500 || c.Work != 40*time.Millisecond {
		t.Errorf("%+v", c)
	}
	// The spike from 4 to 6 s cuts both phases; the last one lasts to the end.
	phases := []Phase{{4 * time.Second, 1}, {time.Second, 3}, {time.Second, 6}, {4 * time.Second, 2}}
	if !reflect.DeepEqual(web.Phases, phases) {
		t.Errorf("phases %v, want %v", web.Phases, phases)
	}
}

// Names may contain dots: keys of one workload are not those of another one.
func TestNamesWithDots(t *testing.T) {
	if _, err := Parse("dots.yaml", []byte(dotted)); err == nil ||
		!strings.Contains(err.Error(), "dots.yaml:5: workloads.web: arrivals is missing") {
		t.Errorf("%v", err)
	}
	long := strings.Replace(goodService, "workloads:\n", "workloads:\n  web.queue: {kind: burn}\n  web.threads: {kind: burn}\n", 1)
	if s, err := Parse("dots.yaml", []byte(long)); err != nil || len(s.Workloads) != 4 {
		t.Errorf("%v", err)
	}
}

// dotted lacks arrivals, whatever its first workload is called.
const dotted = "version: 1\nhost: {cpus: 1}\nworkloads:\n  web.arrivals: {kind: burn}\n  web: {kind: service, threads: 1, work: 1ms}\n"

func TestBadService(t *testing.T) {
	for _, test := range []struct{ old, new, want string }{
		{"{threads: {per_host_cpu: 2}, queue: 100}", "{queue: 100}", "threads is missing"},
		{"threads: {per_host_cpu: 2}", "threads: 0", "workloads.web.pools.http.threads: \"0\": give a whole number from 1"},
		{"threads: {per_host_cpu: 2}", "threads: {per_host_cpu: 2, per_limit_cpu: 1}", "choose one of per_host_cpu"},
		{"threads: {per_host_cpu: 2}", "threads: {per_core: 2}", "unknown key \"per_core\""},
		{"queue: 100", "queue: 0", "from 1 to 1000000"},
		{"queues: per-thread", "queues: per-thread, queue: 1", "less than one for each of 2 threads"},
		{"queues: per-thread", "queues: many", "choose from shared, per-thread"},
		{"pool: http", "pool: https", "there is no such pool"},
		{"      http: {", "      a-name-that-is-too-long: {", "1 to 15 characters"},
		{"locked: 0.1", "locked: 2", "a number from 0 to 1"},
		{"inflate: 0.01", "inflate: -1", "a number from 0 to 1"},
		{"shared: 8MiB", "shared: 8GB", "give 0 to 256MiB"},
		{"shared: 8MiB", "shared: 1GiB", "give 0 to 256MiB"},
		{"    shared: 8MiB\n", "", "there is none: give shared"},
		{"    timeout: 1s\n", "", "give timeout too"},
		{"timeout: 1s", "timeout: 0s", "give a time from"},
		{"max: 2", "max: 0", "from 1 to 100"},
		{"burst: 4, gaps: equal", "burst: 0", "from 1 to 10000"},
		{"at: [1s, 2s]", "at: [1s, 2s], burst: 2", "at says itself when"},
		{"{for: 5s, factor: 1}", "{for: 0s, factor: 1}", "give a time from"},
		{"{for: 5s, factor: 1}", "{for: 5s, factor: -1}", "a number from 0 to 1000"},
		{"[{for: 5s, factor: 1}, {for: 1s, factor: 2}]", "[]", "give a list of 1 to 32 phases"},
		{"    io: 2\n", "    io: 2\n    threads: 3\n", "belongs into a pool or class"},
		{"of: web", "of: app", "there is no such service"},
		{"of: web", "of: collector", "there is no such service"},
		{"of: web", "of: web, every: 1s", "either requests or every"},
		{", requests: 500", "", "either requests or every"},
		{"work: 40ms", "work: {exponential: 40ms}", "one time"},
		{"kind: gc, cgroup: app", "kind: gc", "give both the same cgroup"},
		{"spike: {at: 4s", "spike: {at: 9s", "the scenario ends at 10s"},
		{"requests: 500}", "requests: 500}\n  again: {kind: gc, cgroup: app, of: web, threads: 1, work: 1ms, every: 1s}", "another collector"},
	} {
		refused(t, goodService, test.old, test.new, 0, test.want)
	}
	alone := "version: 1\nhost: {cpus: 1}\nspike: {at: 1s, for: 1s, factor: 2}\nworkloads: {b: {kind: burn}}\n"
	if _, err := Parse("alone.yaml", []byte(alone)); err == nil || !strings.Contains(err.Error(), "there is no service") {
		t.Errorf("a spike of nothing: %v", err)
	}
}
