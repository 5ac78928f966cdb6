package simulate

import (
	"strings"
	"testing"
	"time"
)

type duration = time.Duration

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

const collected = `version: 1
duration: 4s
host: {cpus: 8, hz: 1000}
cgroups: {a: {quota: 100ms}}
workloads:
  web: {kind: service, cgroup: a, threads: 2, work: 5ms, arrivals: {per_second: 20}}
  gc: {kind: gc, cgroup: a, of: web, threads: THREADS, work: 80ms, every: 1s}
`

// 80 ms of collecting within a quota of 100: by one thread, 80 ms; by eight, 10
// ms if the quota lasts. By 8 with a work beyond the quota: stopped until the
// refill, and the service answers nothing meanwhile.
func TestCollections(t *testing.T) {
	gc := func(replace ...string) (pause, served float64) {
		text := collected
		for i := 0; i < len(replace); i += 2 {
			text = strings.ReplaceAll(text, replace[i], replace[i+1])
		}
		o := run(t, parseText(t, text), 1)
		if o.Workloads["gc"].Count != 3 || o.Workloads["gc"].CPUSeconds != nil {
			t.Errorf("%v: %+v", replace, o.Workloads["gc"])
		}
		return *o.Workloads["gc"].P50, *o.Workloads["web"].Max
	}
	pause, served := gc("THREADS", "1")
	near(t, "one thread", pause, 80, 0.02)
	if served < 10 {
		t.Errorf("a request waited only %v ms", served)
	}
	pause, _ = gc("THREADS", "{per_limit_cpu: 1}", "quota: 100ms", "quota: 800ms")
	near(t, "eight threads, all eight CPUs", pause, 10, 0.05)
	// Eight per CPU: who finds nothing to do makes way for those that have some.
	pause, _ = gc("THREADS", "64", "quota: 100ms", "quota: 800ms")
	if pause > 30 {
		t.Errorf("64 threads on eight CPUs: %v ms", pause)
	}
	pause, served = gc("THREADS", "8", "work: 80ms", "work: 160ms")
	if pause < 50 || pause > 110 || served < pause/2 {
		t.Errorf("beyond the quota: %v ms, requests up to %v ms", pause, served)
	}
}

// By requests: every so many.
func TestCollectionByRequests(t *testing.T) {
	o := run(t, parseText(t, strings.NewReplacer("THREADS", "2", "every: 1s", "requests: 10", "80ms", "1ms").Replace(collected)), 1)
	if web, gc := o.Workloads["web"].Count, o.Workloads["gc"].Count; gc != web/10 {
		t.Errorf("%d requests, %d collections", web, gc)
	}
}

// A thread that a lock keeps waiting is at a safepoint: the collection does not
// wait for it, and it does not get the lock meanwhile.
func TestCollectionWithALock(t *testing.T) {
	text := strings.NewReplacer("THREADS", "2", "threads: 2, work: 5ms, arrivals: {per_second: 20}",
		"pools: {p: {threads: 4}}, classes: {c: {pool: p, work: 5ms, locked: 0.9, arrivals: {per_second: 150}}}",
		"every: 1s", "every: 100ms", "80ms", "5ms", "quota: 100ms", "quota: 800ms").Replace(collected)
	o := run(t, parseText(t, text), 1)
	if gc := o.Workloads["gc"]; gc.Count < 38 || *gc.Max > 5 {
		t.Errorf("%+v", gc)
	}
	near(t, "requests", float64(o.Workloads["web"].Count), 600, 0.1)
}
