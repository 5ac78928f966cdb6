package place

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/placement"
)

func placed(t *testing.T) placement.Outcome {
	t.Helper()
	m := topologytest.Shape{Sockets: 2, CoresPerL3: 4, Threads: 2}.Machine(t)
	arrive := func(name string, cpus float64, class placement.Class) placement.Event {
		return placement.Event{Container: placement.Container{Name: name, CPUs: cpus, Class: class}}
	}
	idle := arrive("idle", 1, placement.Exclusive)
	idle.IdleSiblings = true
	out, err := placement.Run(placement.State{Machine: m}, []placement.Event{
		arrive("db\x1b[2J", 4, placement.Exclusive), arrive("web", 2.5, placement.Hybrid), idle,
		arrive("api", 1.5, placement.Floating), arrive("huge", 99, placement.Exclusive)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPlace(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, placed(t), Options{Width: 100, ASCII: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Socket 0, NUMA node 0, L3 0  aa aa bb c-", "Socket 1, NUMA node 1, L3 1  .. .. .. ..",
		"exclusive", "in L3 0", "and the shared", "siblings left idle", "least busy CPUs",
		"huge: 99 CPUs wanted", "Socket crossings: 0 avoidable, 0 forced", "Largest request that still fits: 6 CPUs",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("a stranger's escape got through:\n%q", b.String())
	}
}

// TestPlacementJSON pins the names of the contract.
func TestPlacementJSON(t *testing.T) {
	text, err := json.Marshal(NewJSON(placed(t)))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Containers []map[string]any `json:"containers"`
		Shared     *string          `json:"shared"`
		Refused    []map[string]any `json:"refused"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Containers) != 4 || got.Shared == nil || len(got.Refused) != 1 {
		t.Fatalf("%s", text)
	}
	for _, key := range []string{"name", "cpus", "sockets", "numa_nodes", "l3s", "cores_shared", "avoidable", "why"} {
		if _, ok := got.Containers[0][key]; !ok {
			t.Errorf("containers: %s is missing", key)
		}
	}
	if got.Refused[0]["name"] != "huge" || !strings.Contains(got.Refused[0]["why"].(string), "99 CPUs wanted") {
		t.Errorf("refused: %v", got.Refused[0])
	}
	if cpus, _ := got.Containers[1]["cpus"].(string); !strings.Contains(cpus, "2,6") && cpus == "" {
		t.Errorf("hybrid: %v", got.Containers[1])
	}
	empty, err := json.Marshal(NewJSON(placement.Outcome{}))
	if err != nil || !strings.HasPrefix(string(empty), `{"containers":[],"shared":"","refused":[]`) {
		t.Errorf("%s, %v", empty, err)
	}
}

func TestPlaceMoves(t *testing.T) {
	o := placed(t)
	score := o.Score
	o.After = &score
	o.Moves = []placement.Move{
		{Container: "a", From: cpuset.New(1), To: cpuset.New(2), Cost: 1, Step: true},
		{Container: "b", From: cpuset.New(3), To: cpuset.New(4), Cost: 1, Gain: 2, Overlaps: true},
		{Container: "c", From: cpuset.New(5), To: cpuset.New(6), Cost: 1},
	}
	o.Refused = []placement.Refused{{Name: "x", Err: errors.New("placement: no")}}
	var b bytes.Buffer
	if err := Write(&b, o, Options{Width: 120}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1  a from 1 to 2: 1 CPU moved, a step aside",
		"2 groups fewer; shares CPUs until the next move is done", "makes way", "x: no"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	o.Moves = nil
	b.Reset()
	if err := Write(&b, o, Options{}); err != nil || !strings.Contains(b.String(), "No moves would repair more.") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
