package spans

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

const ms = time.Millisecond

var begin = time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)

// cart is a recorded container with two stops by its own quota and one by its pod's.
func cart() *Container {
	c := &Container{Begin: begin, End: begin.Add(time.Second), Target: recording.Target{
		Path: "/kubepods/pod1/cri-containerd-" + strings.Repeat("5a", 32) + ".scope", Namespace: "shop", Pod: "cart-0", Container: "app"}}
	c.SetStops([]diagnose.Stop{
		{From: 500 * ms, To: 530 * ms, Cgroup: "/kubepods/pod1"},
		{From: 40 * ms, To: 100 * ms, Cgroup: "/x", Own: true},
		{From: 150 * ms, To: 200 * ms, Cgroup: "/x", Own: true},
		{From: 520 * ms, To: 540 * ms, Cgroup: "/x", Own: true},
	})
	return c
}

// traces is a file of one resource with a span for each pair of moments, in milliseconds from the recording's beginning.
func traces(resource string, moments ...[2]float64) string {
	var list []string
	for i, m := range moments {
		at := func(ms float64) int64 { return begin.UnixNano() + int64(ms*1e6) }
		list = append(list, fmt.Sprintf(
			`{"name":"s%d","startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[{"key":"k","value":{"intValue":"7"}}],"droppedLinksCount":3}`,
			i, at(m[0]), at(m[1])))
	}
	return `{"resourceSpans":[{"resource":{"attributes":[` + resource + `]},"schemaUrl":"u","scopeSpans":[{"spans":[` +
		strings.Join(list, ",") + `]}]}]}`
}

func attr(key, value string) string {
	return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, key, value)
}

// told are the attributes of ours of each span.
func told(t *testing.T, data []byte) (all []map[string]any) {
	t.Helper()
	var d struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					Attributes []struct {
						Key   string
						Value map[string]any
					}
				}
			}
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	for _, s := range d.ResourceSpans[0].ScopeSpans[0].Spans {
		of := map[string]any{}
		for _, a := range s.Attributes {
			for _, v := range a.Value {
				of[a.Key] = v
			}
		}
		all = append(all, of)
	}
	return all
}

func TestAdd(t *testing.T) {
	in := traces(attr("container.id", strings.Repeat("5a", 32)), [2]float64{30, 170}, [2]float64{100, 150},
		[2]float64{510, 535}, [2]float64{99.5, 120}, [2]float64{-50, 70},
		[2]float64{1100, 1200}, [2]float64{7, 7})
	out, n, err := cart().Add([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Count{Spans: 7, Told: 3, Outside: 1}); n != want {
		t.Errorf("%+v, want %+v", n, want)
	}
	for i, want := range []string{
		"stopped 80 of 140 ms by its own quota", "", "stopped 25 of 25 ms by the quota of /kubepods/pod1", "",
		"stopped at least 30 of 120 ms by its own quota", "", "",
	} {
		of := told(t, out)[i]
		if got, _ := of[Stopped].(string); got != want {
			t.Errorf("span %d: %q, want %q", i, got, want)
		}
		if of["k"] != "7" {
			t.Errorf("span %d lost what it had: %v", i, of)
		}
	}
	if got := told(t, out)[0]; got[StoppedMS] != 80.0 || got[StoppedBy] != ownQuota {
		t.Errorf("%v", got)
	}
	for _, kept := range []string{`"droppedLinksCount":3`, `"schemaUrl":"u"`} {
		if !strings.Contains(string(out), kept) {
			t.Errorf("%s is lost in %s", kept, out)
		}
	}
	again, _, err := cart().Add(out)
	if err != nil || string(again) != string(out) {
		t.Errorf("added twice: %v\n%s\n%s", err, again, out)
	}
}

func TestWhoseResource(t *testing.T) {
	named := func(service string) *Container { c := cart(); c.Service = service; return c }
	for _, c := range []struct {
		of       *Container
		resource string
		ours     bool
	}{
		{cart(), attr("k8s.pod.name", "cart-0") + "," + attr("k8s.container.name", "app"), true},
		{cart(), attr("k8s.pod.name", "cart-0") + "," + attr("k8s.container.name", "app") + "," +
			attr("k8s.namespace.name", "other"), false},
		{cart(), attr("k8s.pod.name", "cart-0"), false},
		{cart(), attr("container.id", strings.Repeat("5a", 6)), true},
		{cart(), attr("container.id", "5a"), false},
		{cart(), attr("service.name", "cart"), false},
		{named("cart"), attr("service.name", "cart"), true},
		{named("cart"), `{"key":"service.name","value":{"intValue":"3"}}`, false},
		{cart(), ``, false},
		{&Container{Begin: begin, End: begin.Add(time.Second)}, attr("k8s.pod.name", "") + "," + attr("container.id", ""), false},
	} {
		_, n, err := c.of.Add([]byte(traces(c.resource, [2]float64{0, 1})))
		if err != nil || (n.Spans == 1) != c.ours || n.Spans+n.Others != 1 {
			t.Errorf("%s: %+v, %v", c.resource, n, err)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	for in, says := range map[string]string{
		`{"resourceSpans":3}`:                               "resourceSpans",
		`{"resourceSpans":[{"resource":{"attributes":7}}]}`: "attributes",
		strings.Replace(traces(attr("service.name", "cart"), [2]float64{0, 1}), `"startTimeUnixNano":"`,
			`"startTimeUnixNano":"x`, 1): "scopeSpans[0]: spans[0]: startTimeUnixNano",
		strings.Replace(traces(attr("service.name", "cart"), [2]float64{0, 1}), `"endTimeUnixNano"`, `"end"`,
			1): "without endTimeUnixNano",
		`[]`: "array", ``: "unexpected end",
	} {
		c := cart()
		c.Service = "cart"
		if _, _, err := c.Add([]byte(in)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", in, err, says)
		}
	}
}

// Only time in which nothing ran is told of spans.
func TestWhole(t *testing.T) {
	stops := []diagnose.Stop{{From: 40 * ms, To: 100 * ms, Own: true}, {From: 90 * ms, To: 95 * ms, Cgroup: "/p"},
		{From: 200 * ms, To: 210 * ms, Own: true}}
	idle := []Idle{{0, 10 * ms}, {43 * ms, 60 * ms}, {61 * ms, 120 * ms}, {150 * ms, 200 * ms}, {210 * ms, 300 * ms}}
	want := []diagnose.Stop{{From: 43 * ms, To: 60 * ms, Own: true}, {From: 61 * ms, To: 100 * ms, Own: true},
		{From: 90 * ms, To: 95 * ms, Cgroup: "/p"}}
	if got := Whole(stops, idle); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What Export writes Add reads: each stop's span is stopped for as long as it lasts.
func TestExport(t *testing.T) {
	c := cart()
	out, err := c.Export()
	if err != nil {
		t.Fatal(err)
	}
	again, n, err := c.Add(out)
	if err != nil || n.Spans != 4 || n.Told != 4 {
		t.Fatalf("%+v, %v", n, err)
	}
	if got := told(t, again)[0]; got[Stopped] != "stopped 60 of 60 ms by its own quota" {
		t.Errorf("%v", got)
	}
	if same, _ := cart().Export(); string(same) != string(out) {
		t.Error("not the same again")
	}
}

// FuzzAdd: any text is refused or comes out as JSON.
func FuzzAdd(f *testing.F) {
	f.Add([]byte(traces(attr("service.name", "cart"), [2]float64{30, 170})))
	f.Add([]byte(`{"resource_spans":[null,{"scope_spans":[{"spans":[{"start_time_unix_nano":5,"end_time_unix_nano":"9"}]}]}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		c := cart()
		c.Service = "cart"
		out, _, err := c.Add(in)
		if err == nil && !json.Valid(out) {
			t.Fatalf("%q", out)
		}
	})
}
