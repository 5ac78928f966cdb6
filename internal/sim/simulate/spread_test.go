package simulate

import (
	"testing"
	"time"
)

// stealing is a host with two threads on each CPU. One of the threads on CPU 0 has a
// quota, and stays there.
const stealing = `
version: 1
duration: 1ms
host: {cpus: 2, hz: 100, kernel: "6.18"}
cgroups:
  a: {quota: 5ms, period: 100ms, cpus: "0"}
  b: {}
workloads:
  limited: {kind: burn, cgroup: a, threads: 1}
  free: {kind: burn, cgroup: b, threads: 3}
`

// TestStealingChargesFirst: the CPU from which a thread is taken is charged before, and
// chooses anew if that uses its quota up (dequeue_entity, update_curr).
func TestStealingChargesFirst(t *testing.T) {
	s := parseText(t, stealing)
	for seed := range uint64(40) {
		h, err := newHost(&s, seed)
		if err != nil {
			t.Fatal(err)
		}
		h.run()
		running := h.cpus[0].cur
		if h.works[h.threads[running].work].Name != "limited" {
			continue // chance has put another one first
		}
		before := h.threads[running].entity.vruntime
		h.now += 7 * time.Millisecond
		stolen := h.steal(1, 0)
		if stolen < 0 {
			t.Fatal("nothing was stolen")
		}
		if got := h.threads[running].entity.vruntime - before; got != int64(7*time.Millisecond) {
			t.Errorf("the thread that ran was charged for %v, it ran for 7ms", time.Duration(got))
		}
		h.repick()
		if !h.groups[1].bw.Throttled(0) || h.cpus[0].cur == running {
			t.Errorf("5ms of quota are used up, and thread %d runs on", running)
		}
		return
	}
	t.Fatal("no seed lets the thread with a quota run first")
}
