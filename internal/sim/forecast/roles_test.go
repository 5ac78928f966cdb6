package forecast

import (
	"testing"
	"time"

	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// A server of 400 short requests a second and the process that it forked to save have one name. They are two pools, and
// the server is judged: its p99 grows by the larger factor.
func TestRolesOfOneName(t *testing.T) {
	s := rt.New(2).Limit(50*ms, 100*ms).Process("redis-server")
	both := s.Threads("worker", 2) // of one name, but for the number that pools fold
	server, saver := both[:1], both[1:]
	s.Repeat(800, 5*ms/2, func(at time.Duration) { s.Work(at, 200*time.Microsecond, server...) })
	s.Work(0, 2*time.Second, saver...)
	r := s.Run(2 * time.Second)
	l := loadOf(t, r)
	names := map[string]int{}
	for _, p := range l.Pools {
		names[p.Name] = p.threads
	}
	if names["worker-*"] != 1 || names["worker-* (long runs)"] != 1 {
		t.Fatalf("pools %v", names)
	}
	f, err := Make(l, Options{Seeds: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if f.Judged == nil || f.Judged.Pool != "worker-*" {
		t.Fatalf("judged %+v", f.Judged)
	}
	for _, row := range f.Rows {
		if row.Remedy.Name == Pin && (row.Judged == nil || *row.Judged > *f.Rows[0].Judged/3) {
			t.Errorf("pinned %v, left %v: a pin ends the stops", row.Judged, f.Rows[0].Judged)
		}
	}
}

// Threads that do the same work stay one pool, however their runs vary.
func TestOneRoleOfOneName(t *testing.T) {
	s := rt.New(4).Limit(100*ms, 100*ms).Process("java")
	w := s.Threads("http-worker", 6)
	s.Repeat(200, 10*ms, func(at time.Duration) {
		i := int(at / (10 * ms))
		s.Work(at, time.Duration(1+i%7)*ms, w[i%len(w)])
	})
	for _, p := range loadOf(t, s.Run(2*time.Second)).Pools {
		if p.Name == "http-worker-* (long runs)" {
			t.Errorf("pool %q of %d threads", p.Name, p.threads)
		}
	}
}
