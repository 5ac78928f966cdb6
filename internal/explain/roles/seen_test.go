package roles

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Counters alone part threads by the length of their runs, and what is forked from what was there before.
func TestOf(t *testing.T) {
	const sec = time.Second
	loop := Seen{PID: 7, TID: 7, Comm: "node", CPU: sec / 10, Runs: 300}
	worker := func(tid uint32) Seen { return Seen{PID: 7, TID: tid, Comm: "node", CPU: 2 * sec, Runs: 40} }
	for name, c := range map[string]struct {
		threads []Seen
		argv    []string
		goes    bool
		want    string
	}{
		"an event loop and its workers":    {threads: []Seen{loop, worker(8), worker(9)}, want: "node, node (workers)"},
		"a Go program":                     {threads: []Seen{loop, worker(8), worker(9)}, goes: true, want: "node"},
		"a thread that only looks around":  {threads: []Seen{{PID: 7, TID: 7, Comm: "node", CPU: sec / 1000, Runs: 900}, worker(8)}, want: "node"},
		"threads of one queue":             {threads: []Seen{worker(8), worker(9), worker(10)}, want: "node"},
		"a child with long runs":           {threads: []Seen{loop, {PID: 9, TID: 9, Comm: "node", CPU: sec, Runs: 2, Born: true}}, want: "node, node (child)"},
		"children that do the same":        {threads: []Seen{loop, {PID: 9, TID: 9, Comm: "node", CPU: sec, Runs: 2000, Born: true}}, want: "node"},
		"a session with long runs":         {threads: []Seen{{PID: 7, TID: 8, Comm: "node", CPU: sec, Runs: 2000}, worker(9)}, want: "node, node (long runs)"},
		"a title that tells what it is":    {threads: []Seen{loop}, argv: []string{"postgres: checkpointer "}, want: "postgres: checkpointer"},
		"what never slept is one long run": {threads: []Seen{{PID: 7, TID: 8, Comm: "node", CPU: sec, Runs: 2000}, {PID: 7, TID: 9, Comm: "node", CPU: sec}}, want: "node, node (long runs)"},
	} {
		asked := 0
		r := Of(c.threads, map[uint32]Process{7: {Name: "node", Argv: c.argv}, 9: {Name: "node"}},
			func(_ uint32, comm string) string { return comm }, func(uint32) bool { asked++; return c.goes })
		var found []string
		for _, s := range c.threads {
			if pool := r.Pool(s.TID, s.Comm); !slices.Contains(found, pool) {
				found = append(found, pool)
			}
		}
		slices.Sort(found)
		if got := strings.Join(found, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if asked > 0 && !strings.Contains(c.want, "(") && !c.goes {
			t.Errorf("%s: a program is looked at without need", name)
		}
	}
}
