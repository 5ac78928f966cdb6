package simulate

import (
	"testing"
	"time"
)

// A request ends with the reply of whichever thread works on it last. One without a reply takes until the end. No thread reads
// data before it arrived.
func TestRequests(t *testing.T) {
	s := parseText(t, "version: 1\nduration: 1s\nhost: {cpus: 2}\ncgroups: {app: {}}\nworkloads: {app: {kind: burn, "+
		"cgroup: app, threads: 2}}\n")
	s.Workloads[0].Kind = Replayed
	const ms = time.Millisecond
	r := Replay{
		Threads: []ReplayThread{
			{Steps: []ReplayStep{
				{Kind: StepUntil, For: 100 * ms}, {Kind: StepReply, Thread: -1}, {Kind: StepRun, For: 10 * ms}, {Kind: StepWake, Thread: 1},
				{Kind: StepRun, For: 5 * ms}, {Kind: StepReply, Thread: 1}, {Kind: StepRead, For: 50 * ms},
				{Kind: StepRun, For: 5 * ms}, {Kind: StepReply, Thread: 3}, {Kind: StepRead, For: 300 * ms},
				{Kind: StepRun, For: 5 * ms}, {Kind: StepReply, Thread: 4}, {Kind: StepReply, Thread: 5},
				{Kind: StepEnd},
			}},
			{Steps: []ReplayStep{{Kind: StepAwait}, {Kind: StepRun, For: 20 * ms}, {Kind: StepReply, Thread: 0}, {Kind: StepEnd}}},
		},
		Requests: []ReplayRequest{{At: 90 * ms}, {At: 200 * ms}, {At: 400 * ms}, {At: 50 * ms}, {At: 300 * ms},
			{At: 60 * ms, After: 2, Gap: 180 * ms}, {At: 500 * ms, After: 4}},
	}
	result, err := RunReplay(s, &r, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{40 * ms, 0, 600 * ms, 70 * ms, 5 * ms, 5 * ms, NotSent} {
		if got := result.Requests[i]; got < want-ms/10 || got > want+ms/10 || want == NotSent && got != want {
			t.Errorf("request %d took %v, want %v", i, got, want)
		}
	}
	for _, wrong := range []ReplayRequest{{At: -1}, {After: 1}, {After: -1}, {Gap: -1}} {
		r.Requests[0] = wrong
		if _, err := RunReplay(s, &r, Options{Seed: 1}); err == nil {
			t.Errorf("request %+v is replayed", wrong)
		}
	}
}
