package simulate

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// A thread that waits for two others goes on with the later one, whichever that is, and takes no other wake-up for it.
func TestJoinedWait(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		first, second time.Duration // when the two are through
		early         bool          // and a third one wakes the thread before
	}{
		"the second last": {10 * ms, 70 * ms, false}, "the first last": {70 * ms, 10 * ms, false},
		"a wake-up of something else": {10 * ms, 70 * ms, true},
		"both before it waits":        {ms, 2 * ms, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := parseText(t, "version: 1\nduration: 1s\nhost: {cpus: 4}\ncgroups: {app: {}}\nworkloads: {waits: "+
				"{kind: burn, cgroup: app}, parts: {kind: burn, cgroup: app, threads: 3}}\n")
			for i := range s.Workloads {
				s.Workloads[i].Kind = Replayed
			}
			part := func(at time.Duration, nth int) ReplayThread {
				return ReplayThread{Steps: []ReplayStep{{Kind: StepUntil, For: at},
					{Kind: StepWake, Thread: 0, For: time.Duration(nth)}, {Kind: StepEnd}}}
			}
			other := ReplayThread{Steps: []ReplayStep{{Kind: StepEnd}}}
			if c.early {
				other = part(5*ms, 1)
			}
			r := Replay{Threads: []ReplayThread{
				{Steps: []ReplayStep{{Kind: StepRun, For: 4 * ms}, {Kind: StepAwait, Thread: 1}, {Kind: StepReply},
					{Kind: StepRun, For: ms}, {Kind: StepAwait}, {Kind: StepEnd}}},
				part(c.first, 0), part(c.second, 0), other,
			}, Requests: []ReplayRequest{{At: 0}}}
			result, err := RunReplay(s, &r, Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			want := max(c.first, c.second, 4*ms)
			if got := result.Requests[0]; got < want || got > want+ms {
				t.Errorf("it went on after %v, want %v", got, want)
			}
		})
	}
}

// A wait for fewer than no threads is refused.
func TestJoinedWaitIsChecked(t *testing.T) {
	s := scenario.Scenario{Host: scenario.Host{CPUs: 1}, Workloads: []scenario.Workload{{Kind: Replayed, Threads: 1}}}
	r := Replay{Threads: []ReplayThread{{Steps: []ReplayStep{{Kind: StepAwait, Thread: -1}}}}}
	if err := r.check(&s); err == nil {
		t.Error("it is taken")
	}
}
