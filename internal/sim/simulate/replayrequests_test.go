package simulate

import (
	"testing"
	"time"
)

// A request ends with the reply of whichever thread works on it last. One without a reply takes until the end.
func TestRequests(t *testing.T) {
	s := parseText(t, "version: 1\nduration: 1s\nhost: {cpus: 2}\ncgroups: {app: {}}\nworkloads: {app: {kind: burn, "+
		"cgroup: app, threads: 2}}\n")
	s.Workloads[0].Kind = Replayed
	const ms = time.Millisecond
	r := Replay{
		Threads: []ReplayThread{
			{Steps: []ReplayStep{
				{Kind: StepUntil, For: 100 * ms}, {Kind: StepReply, Thread: -1}, {Kind: StepRun, For: 10 * ms}, {Kind: StepWake, Thread: 1},
				{Kind: StepRun, For: 5 * ms}, {Kind: StepReply, Thread: 1}, {Kind: StepEnd},
			}},
			{Steps: []ReplayStep{{Kind: StepAwait}, {Kind: StepRun, For: 20 * ms}, {Kind: StepReply, Thread: 0}, {Kind: StepEnd}}},
		},
		Requests: []time.Duration{90 * ms, 200 * ms, 400 * ms},
	}
	result, err := RunReplay(s, &r, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{40 * ms, 0, 600 * ms} {
		if got := result.Requests[i]; got < want-ms/10 || got > want+ms/10 {
			t.Errorf("request %d took %v, want %v", i, got, want)
		}
	}
	r.Requests[0] = -1
	if _, err := RunReplay(s, &r, Options{Seed: 1}); err == nil {
		t.Error("a request before the beginning is replayed")
	}
}
