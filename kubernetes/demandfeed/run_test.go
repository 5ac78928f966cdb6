package demandfeed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/unthrottle/unthrottle/internal/demand/nodedemand"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// api is an API server that keeps what is applied, and counts.
type api struct {
	*fake.FakeDynamicClient
	metadata        *metadatafake.FakeMetadataClient
	t               *testing.T
	there           map[string]*unstructured.Unstructured
	asked, writes   int
	refuses, silent error
	// uid is that of each node, nodeAsked how often one was asked for.
	uid       types.UID
	nodeAsked int
	noNode    error
}

// nodeUID is that of each node, unless a test makes one anew.
const nodeUID = "11111111-2222-3333-4444-555555555555"

func newAPI(t *testing.T) *api {
	a := &api{t: t, there: map[string]*unstructured.Unstructured{}, uid: nodeUID,
		metadata: metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()),
		FakeDynamicClient: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{Resource: nodedemand.Kind + "List"})}
	a.PrependReactor("get", nodedemand.Plural, func(of k8stesting.Action) (bool, runtime.Object, error) {
		name := of.(k8stesting.GetAction).GetName()
		a.asked++
		switch {
		case a.silent != nil:
			return true, nil, a.silent
		case a.there[name] == nil:
			return true, nil, apierrors.NewNotFound(Resource.GroupResource(), name)
		}
		return true, a.there[name], nil
	})
	a.metadata.PrependReactor("get", nodes.Resource, func(of k8stesting.Action) (bool, runtime.Object, error) {
		a.nodeAsked++
		n := &metav1.PartialObjectMetadata{}
		n.SetName(of.(k8stesting.GetAction).GetName())
		n.SetUID(a.uid)
		return true, n, a.noNode
	})
	a.PrependReactor("patch", nodedemand.Plural, func(of k8stesting.Action) (bool, runtime.Object, error) {
		p := of.(k8stesting.PatchAction)
		a.writes++
		if a.refuses != nil {
			return true, nil, a.refuses
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(p.GetPatch()); err != nil || p.GetPatchType() != types.ApplyPatchType || u.GetName() != p.GetName() {
			t.Errorf("%s of %s: %v", p.GetPatchType(), p.GetName(), err)
		}
		a.there[p.GetName()] = u
		return true, u, nil
	})
	return a
}

// told is what a node tells at a time.
func told(until time.Time, cpus int) nodedemand.Spec {
	c := nodedemand.Container{Namespace: "shop", Pod: "cart-0", Container: "app", Service: "shop/cart/app", MostCPUs: cpus}
	for range phases.Count {
		c.Phases = append(c.Phases, nodedemand.Phase{180, float64(cpus) / 3})
	}
	return nodedemand.Spec{Version: nodedemand.Version, Until: until, Containers: []nodedemand.Container{c}}
}

// world is a writer, what it reads and what it said.
type world struct {
	*writer
	api  *api
	spec nodedemand.Spec
	left []error
	err  error
	log  bytes.Buffer
}

func newWorld(t *testing.T, a *api) *world {
	w := &world{api: a}
	w.writer = &writer{Options: Options{Client: a, Metadata: a.metadata, Node: "n1", Every: time.Minute,
		Log:  slog.New(slog.NewTextHandler(&w.log, nil)),
		Read: func(time.Time) (nodedemand.Spec, []error, error) { return w.spec, w.left, w.err }}}
	return w
}

// sees has the writer look so long after noon, and tells how often it has written by then.
func (w *world) sees(after time.Duration, spec nodedemand.Spec) int {
	w.spec = spec
	w.look(context.Background(), noon.Add(after))
	return w.api.writes
}

// Each slot is written once, equal figures not again until they would be too old, and none without rows.
func TestWrites(t *testing.T) {
	a := newAPI(t)
	w := newWorld(t, a)
	const minute = time.Minute
	for i, c := range []struct {
		at   time.Duration
		spec nodedemand.Spec
		want int
	}{
		{0, nodedemand.Of(), 0},                         // no rows
		{minute, told(noon, 2), 1},                      // the first
		{2 * minute, told(noon, 2), 1},                  // nothing new
		{6 * minute, told(noon.Add(5*minute), 2), 1},    // a slot with equal figures
		{7 * minute, told(noon.Add(5*minute), 3), 2},    // others
		{8 * minute, told(noon.Add(5*minute), 4), 2},    // once for a slot
		{11 * minute, told(noon.Add(10*minute), 4), 3},  // the next slot
		{16 * minute, told(noon.Add(15*minute), 4), 3},  // equal
		{21 * minute, told(noon.Add(20*minute), 4), 4},  // equal, and the object would be too old
		{40 * minute, told(noon.Add(20*minute), 4), 4},  // the agent is silent: so is the object
		{41 * minute, told(noon.Add(-20*minute), 4), 4}, // its files are gone
	} {
		if got := w.sees(c.at, c.spec); got != c.want {
			t.Errorf("%d: %d writes, want %d", i, got, c.want)
		}
	}
	if a.asked != 1 || len(a.there) != 1 || strings.Count(w.log.String(), "\n") != 1 ||
		!strings.Contains(w.log.String(), "writes no rows") || !strings.Contains(w.log.String(), "since=2026-03-01T12:20:00Z") {
		t.Errorf("asked %d times, wrote %d objects, said %s", a.asked, len(a.there), &w.log)
	}
	var spec nodedemand.Spec
	text, err := json.Marshal(a.there["n1"].Object["spec"])
	if err != nil || json.Unmarshal(text, &spec) != nil || spec.Check() != nil || spec.Containers[0].MostCPUs != 4 {
		t.Errorf("%v: %s", err, text)
	}
	if owners := a.there["n1"].GetOwnerReferences(); len(owners) != 1 || owners[0].APIVersion != "v1" || owners[0].Kind != "Node" ||
		owners[0].Name != "n1" || owners[0].UID != nodeUID {
		t.Errorf("its owners are %+v: the cluster would not delete it with its Node", owners)
	}
	again := newWorld(t, a) // after a start
	if got := again.sees(22*minute, told(noon.Add(20*minute), 4)); got != 4 || a.asked != 2 {
		t.Errorf("what is there is written again: %d writes, asked %d times", got, a.asked)
	}
	if got := again.sees(23*minute, told(noon.Add(25*minute), 5)); got != 5 {
		t.Errorf("%d writes", got)
	}
}

// What another one left there that is of a time to come, or cannot be read, is replaced.
func TestReplaces(t *testing.T) {
	future, err := object("n1", nodeUID, told(noon.Add(24*time.Hour), 2))
	if err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]*unstructured.Unstructured{
		"future": future, "unreadable": {Object: map[string]any{"spec": map[string]any{"until": 7}}},
	} {
		a := newAPI(t)
		a.there["n1"] = there
		if w := newWorld(t, a); w.sees(time.Minute, told(noon, 2)) != 1 || w.log.Len() > 0 {
			t.Errorf("%s: %d writes: %s", name, a.writes, &w.log)
		}
	}
}

// A Node that was deleted and made anew owns the object at the next slot, also if all figures are the same. It is asked for once a slot.
func TestNodeMadeAnew(t *testing.T) {
	const minute = time.Minute
	for name, collected := range map[string]bool{"the old object is gone": true, "the old object is there still": false} {
		a := newAPI(t)
		w := newWorld(t, a)
		if got := w.sees(minute, told(noon, 2)); got != 1 {
			t.Fatalf("%s: %d writes", name, got)
		}
		if a.uid = "made-anew"; collected {
			delete(a.there, "n1")
		}
		if got := w.sees(2*minute, told(noon, 2)); got != 1 || a.nodeAsked != 1 {
			t.Errorf("%s: in the same slot %d writes, the Node asked for %d times", name, got, a.nodeAsked)
		}
		if got := w.sees(6*minute, told(noon.Add(5*minute), 2)); got != 2 || a.nodeAsked != 2 {
			t.Fatalf("%s: %d writes, the Node asked for %d times", name, got, a.nodeAsked)
		}
		if owners := a.there["n1"].GetOwnerReferences(); len(owners) != 1 || owners[0].UID != a.uid {
			t.Errorf("%s: its owners are %+v: the cluster deletes it", name, owners)
		}
		a.noNode = apierrors.NewNotFound(nodes.GroupResource(), "n1")
		if w.sees(11*minute, told(noon.Add(10*minute), 3)) != 2 || !strings.Contains(w.log.String(), "Node n1: ") {
			t.Errorf("%s: %d writes for a Node that is gone: %s", name, a.writes, &w.log)
		}
		if a.noNode = nil; w.sees(12*minute, told(noon.Add(10*minute), 3)) != 3 {
			t.Errorf("%s: it is not written once the Node is there again", name)
		}
	}
	// After a start, what is there counts only if the Node that is there now owns it.
	a := newAPI(t)
	older, err := object("n1", "older", told(noon, 2))
	if err != nil {
		t.Fatal(err)
	}
	a.there["n1"] = older
	if w := newWorld(t, a); w.sees(minute, told(noon, 2)) != 1 || a.there["n1"].GetOwnerReferences()[0].UID != nodeUID {
		t.Errorf("%d writes: an object of the Node before counts as this one's", a.writes)
	}
}

// What is refused is told once, and tried again.
func TestRefused(t *testing.T) {
	resource := Resource.GroupResource()
	for want, refuses := range map[string]error{
		"demand.enabled=true gives its service account": apierrors.NewForbidden(resource, "n1", errors.New("no right")),
		"install the chart with demand.enabled=true":    apierrors.NewNotFound(resource, ""),
		"n1: connection refused":                        errors.New("connection refused"),
	} {
		a := newAPI(t)
		w := newWorld(t, a)
		a.refuses = refuses
		for i := range 3 {
			if got := w.sees(time.Duration(i)*time.Minute, told(noon, 2)); got != i+1 {
				t.Errorf("%s: %d writes after %d looks", want, got, i+1)
			}
		}
		if said := w.log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, want) {
			t.Errorf("said %q, want once %q", said, want)
		}
		if a.refuses = nil; w.sees(4*time.Minute, told(noon, 2)) != 4 || a.there["n1"] == nil {
			t.Errorf("%s: it is not written once that is allowed", want)
		}
		if a.refuses = refuses; w.sees(11*time.Minute, told(noon.Add(10*time.Minute), 2)) != 5 || strings.Count(w.log.String(), "\n") != 2 {
			t.Errorf("%s: a new refusal is told again: %s", want, &w.log)
		}
	}
	for want, err := range map[string]error{
		"demand.enabled=true gives its service account": apierrors.NewForbidden(nodes.GroupResource(), "n1", errors.New("no right")),
		"--node must be the name":                       apierrors.NewNotFound(nodes.GroupResource(), "n1"),
	} {
		a := newAPI(t)
		a.noNode = err
		if w := newWorld(t, a); w.sees(time.Minute, told(noon, 2)) != 0 || !strings.Contains(w.log.String(), want) ||
			!strings.Contains(w.log.String(), "Node n1: ") {
			t.Errorf("%d writes although it is not known which Node owns it: %s", a.writes, &w.log)
		}
	}
	a := newAPI(t)
	a.silent = errors.New("read tcp 10.0.0.1:40123: timeout")
	if w := newWorld(t, a); w.sees(time.Minute, told(noon, 2)) != 0 || !strings.Contains(w.log.String(), "timeout") {
		t.Errorf("%d writes although it is not known what is there: %s", a.writes, &w.log)
	}
}

// What is wrong with the rows is told, and only what is unsound as a whole is not written.
func TestRowsAreWrong(t *testing.T) {
	a := newAPI(t)
	w := newWorld(t, a)
	w.left = []error{errors.New("a.parquet: damaged")}
	if w.sees(time.Minute, told(noon, 2)) != 1 || !strings.Contains(w.log.String(), "a.parquet: damaged") {
		t.Errorf("%d writes: %s", a.writes, &w.log)
	}
	w.left, w.err = nil, errors.New("files of rows: permission denied")
	if w.sees(6*time.Minute, nodedemand.Spec{}) != 1 || !strings.Contains(w.log.String(), "permission denied") {
		t.Errorf("%d writes: %s", a.writes, &w.log)
	}
	w.err = nil
	if w.sees(11*time.Minute, told(noon.Add(10*time.Minute), -1)) != 1 || !strings.Contains(w.log.String(), "mostCPUs: -1") {
		t.Errorf("%d writes: %s", a.writes, &w.log)
	}
}

func TestRun(t *testing.T) {
	a := newAPI(t)
	ctx, cancel := context.WithCancel(t.Context())
	reads := 0
	o := Options{Client: a, Metadata: a.metadata, Node: "n1", Every: time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Read: func(time.Time) (nodedemand.Spec, []error, error) {
			if reads++; reads == 3 {
				cancel()
			}
			return told(noon, 2), nil, nil
		}}
	if err := Run(ctx, o); err != nil || reads < 3 || a.there["n1"] == nil {
		t.Errorf("%v after %d reads", err, reads)
	}
	o.Node = ""
	if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "NODE_NAME") {
		t.Error(err)
	}
	if o.Node, o.Every = "n1", 0; Run(t.Context(), o) == nil {
		t.Error("no time between two looks")
	}
	if offset("n1", time.Minute) == offset("n2", time.Minute) || offset("n1", time.Minute) >= time.Minute {
		t.Error("nodes look at the same time")
	}
}

// Rows that do not come, or no longer, are told once each time.
func TestQuiet(t *testing.T) {
	w := newWorld(t, newAPI(t))
	said := func() int { return strings.Count(w.log.String(), "writes no rows") }
	for _, c := range []struct {
		minute, until, want int
	}{{1, 0, 0}, {15, 0, 0}, {17, 0, 1}, {18, 0, 1}, {20, 20, 1}, {35, 20, 1}, {36, 20, 2}, {40, 20, 2}} {
		spec := nodedemand.Of()
		if c.until > 0 {
			spec = told(noon.Add(time.Duration(c.until)*time.Minute), 2)
		}
		if w.sees(time.Duration(c.minute)*time.Minute, spec); said() != c.want {
			t.Errorf("minute %d: said %d times, want %d: %s", c.minute, said(), c.want, &w.log)
		}
	}
}
