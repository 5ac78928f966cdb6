package placefile_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/placing/placefile"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

func TestContainers(t *testing.T) {
	events, err := placefile.Containers("c.yaml", []byte(`
- {name: db, cpus: 8, full_cores: true, quota: 8}
- name: web
  cpus: 2.5
  class: hybrid
  lends: true
- {name: rt, cpus: 2, idle_siblings: true, stays: true}
- {name: db, leaves: true}
- {name: db, cpus: 4, class: floating}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 5 {
		t.Fatalf("%d events", len(events))
	}
	for i, ok := range []bool{
		events[0].Name == "db" && events[0].CPUs == 8 && events[0].FullCores && *events[0].Quota == 8 && events[0].Class == "",
		events[1].CPUs == 2.5 && events[1].Class == placement.Hybrid && events[1].SharesIdle && events[1].Quota == nil,
		events[2].IdleSiblings && events[2].Immovable != "",
		events[3].Leaves && events[3].Name == "db",
		events[4].Class == placement.Floating,
	} {
		if !ok {
			t.Errorf("entry %d: %+v", i, events[i])
		}
	}
	if events, err := placefile.Containers("c.yaml", nil, nil); err != nil || len(events) != 0 {
		t.Errorf("nothing: %v, %v", events, err)
	}
}

func TestContainersRefuses(t *testing.T) {
	for _, c := range []struct{ in, names string }{
		{"{name: a, cpus: 1}", "c.yaml:1: must be a list"},
		{"- [a]", "c.yaml:1: [0]: must be a mapping"},
		{"- {cpus: 1}", "c.yaml:1: [0]: name is missing"},
		{"- {name: a}", "c.yaml:1: [0]: cpus is missing"},
		{"- {name: a, cpus: 1}\n- {name: b, cpus: -1}", "c.yaml:2: [1].cpus: \"-1\": give a number"},
		{"- {name: a, cpus: lots}", "[0].cpus: \"lots\""},
		{"- {name: a, cpus: .nan}", "[0].cpus"},
		{"- {name: a, cpus: 1e9}", "[0].cpus"},
		{"- {name: a, cpus: 0x1p4}", `[0].cpus: "0x1p4": give a number of CPUs`},
		{"- {name: a, cpus: 1, quota: inf}", `[0].quota: "inf"`},
		{"- {name: a, cpus: 1, cpu: 2}", `unknown key "cpu": choose from name, cpus, class`},
		{"- {name: a, cpus: 1, cpus: 2}", "[0].cpus: is there twice"},
		{"- {name: a, cpus: 1, class: shared}", `[0].class: "shared": choose from exclusive, hybrid, floating, secondary`},
		{"- {name: a, cpus: 1, full_cores: yes}", `[0].full_cores: "yes": give true or false`},
		{"- {name: a, cpus: 1, class: floating, full_cores: true}", "floating containers have no cores of their own"},
		{"- {name: a, cpus: 2, full_cores: true, idle_siblings: true}", "leave out full_cores"},
		{"- {name: '', cpus: 2}", "[0].name"},
		{"- {name: a, cpus: 1}\n- {name: a, cpus: 1}", `c.yaml:2: [1].name: "a" is there already`},
		{"- {name: a, leaves: true}", `[0].name: "a" leaves, but it is not there`},
		{"- {name: a, cpus: 1}\n- {name: a, leaves: true, cpus: 1}", "[1].leaves: who leaves is named, and nothing more"},
		{"- &x {name: a, cpus: 1}\n- *x", "[1]: must be a mapping"},
		{"- {name: a, cpus: 1}\n---\n- {}", "more than one document"},
		{"- {name: a, cpus: [1]}", "[0].cpus: must be a single value"},
		{"a: [", "not YAML"},
		{"- {name: a, cpus: 1}\n- {name: \"b", "c.yaml:2: not YAML"},
		{"- [", "c.yaml:1: not YAML"},
		{"- {name: a, cpus: 1}\n- {name: \"b\x00\"}", "c.yaml:2: not YAML: control characters"},
		{"- {name: a, cpus: 1}\n\n- {name: \xff}", "c.yaml:3: not YAML: "},
		{"- {name: a, cpus: 1}\n- {name: *who}", "c.yaml:2: not YAML: unknown anchor 'who'"},
		{"- {name: a, cpus: 1}\n---\n- {}", "c.yaml:2: more than one document"},
		{"- {name: a, cpus: 1}\n---\n- {name: \"b", "c.yaml:3: not YAML"},
		{strings.Repeat("-\n", placefile.MaxEvents+1), "c.yaml:100001: 100001 entries"},
	} {
		_, err := placefile.Containers("c.yaml", []byte(c.in), nil)
		var bad *placefile.Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: error %v does not say %s", c.in, err, c.names)
		}
	}
	there := func(name string) bool { return name == "a" }
	if _, err := placefile.Containers("c.yaml", []byte("- {name: a, cpus: 1}\n- {name: a, leaves: true}"), there); err != nil {
		t.Errorf("one that is there already, resized, then leaving: %v", err)
	}
}

func TestCurrent(t *testing.T) {
	got, shared, err := placefile.Current("p.json", []byte(`{"containers":[
		{"name":"a","cpus":"0-3","by":"kubelet"},
		{"name":"b","cpus":"4-9","class":"hybrid","wanted":2.5},
		{"name":"c","cpus":"6-7","class":"floating","wanted":1.5,"dedicated":""},
		{"name":"d","cpus":"10","dedicated":"10","idle":"11","idle_siblings":true,"stays":true}],"shared":"6-9"}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"0-3", "4-5", "6-7", "10"} {
		if got[i].Current.String() != want {
			t.Errorf("%s has %s, want %s", got[i].Name, got[i].Current, want)
		}
	}
	if got[0].CPUs != 4 || got[1].CPUs != 2.5 || got[3].Idle.String() != "11" || got[3].Immovable == "" || shared.String() != "6-9" {
		t.Errorf("%+v, %s", got, shared)
	}
}

func TestMerge(t *testing.T) {
	current := []placement.Container{{Name: "a", CPUs: 6, Current: cpuset.New(0, 1, 2, 3, 4, 5)}}
	placefile.Merge(current, cpuset.New(2, 3, 4, 5),
		[]placement.Event{{Container: placement.Container{Name: "a", CPUs: 2.5, Class: placement.Hybrid}}})
	if got := current[0]; got.Current.String() != "0-1" || got.CPUs != 2.5 || got.Class != placement.Hybrid {
		t.Errorf("%+v", got)
	}
}

func TestCurrentRefuses(t *testing.T) {
	for _, c := range []struct{ in, names string }{
		{`{`, "p.json:1: not JSON"},
		{"{\n\"containers\": 1}", "p.json:2: containers: a number stands where an array belongs"},
		{"[]", "p.json:1: an array stands where an object belongs"},
		{`{}`, "containers: is missing"},
		{`{"containers":[{"cpus":"1"}]}`, "containers[0].name"},
		{`{"containers":[{"name":"a"}]}`, "containers[0].cpus: is missing"},
		{`{"containers":[{"name":"a","cpus":"x"}]}`, `containers[0].cpus: list "x"`},
		{`{"containers":[{"name":"a","cpus":"1"},{"name":"a","cpus":"2"}]}`, `containers[1].name: "a" is there twice`},
		{`{"containers":[{"name":"a","cpus":"1","class":"odd"}]}`, "containers[0].class"},
		{`{"containers":[{"name":"a","cpus":"1","idle":"9-1"}]}`, "containers[0].idle"},
		{`{"containers":[],"shared":"-"}`, "p.json:1: shared"},
		{"{\n\t\"containers\": [\n\t\t{\"name\": \"a\", \"cpus\": \"1\"},\n\t\t{\n\t\t\"name\": " +
			"\"b\",\n\t\t\"cpus\": \"1-\"}]}", "p.json:6: containers[1].cpus"},
		{"{\n\"containers\": [\n{\"name\": \"a\"}]}", "p.json:3: containers[0].cpus: is missing"},
	} {
		if _, _, err := placefile.Current("p.json", []byte(c.in)); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: error %v does not say %s", c.in, err, c.names)
		}
	}
}

func FuzzContainers(f *testing.F) {
	f.Add([]byte("- {name: a, cpus: 1}\n- {name: a, leaves: true}"))
	f.Add([]byte("- {name: b, cpus: 2.5, class: hybrid, full_cores: true}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		events, err := placefile.Containers("c.yaml", data, nil)
		if bad := new(placefile.Error); errors.As(err, &bad) && bad.Line == 0 {
			t.Fatalf("no line: %v", err)
		}
		if err == nil {
			for _, e := range events {
				if e.Name == "" || !e.Leaves && !(e.CPUs > 0) {
					t.Fatalf("%+v", e)
				}
			}
		}
	})
}

func FuzzCurrent(f *testing.F) {
	f.Add([]byte(`{"containers":[{"name":"a","cpus":"0-3","class":"hybrid","wanted":2.5}],"shared":"4-7"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		containers, _, err := placefile.Current("p.json", data)
		if err == nil {
			for _, c := range containers {
				if c.Name == "" {
					t.Fatalf("%+v", c)
				}
			}
		}
	})
}

func TestMachine(t *testing.T) {
	m, err := placefile.Machine("m.json", []byte(`{"cpus":[{"id":0,"socket":0},{"id":1,"socket":1}]}`))
	if err != nil || len(m.CPUs) != 2 {
		t.Fatal(m, err)
	}
	for _, c := range []struct{ in, names string }{
		{"{\n", "m.json:2: not JSON"},
		{"[]", "m.json:1: an array stands where an object belongs"},
		{"{\n\"cpus\": 1}", "m.json:2: cpus: a number stands where an array belongs"},
		{"{\"cpus\": [\n\t{\"id\": 0},\n\t{\"id\": \"x\"}]}", "m.json:3: cpus[1]: "},
		{"{\"cpus\": [\n{\"id\": 0},\n7]}", "m.json:3: cpus[1]: a number stands where an object belongs"},
		{"{\"cpus\": [\n{\"id\": 0}], \"numa_nodes\": [\n{\"id\": 0, \"cpus\": \"a\"}]}", "m.json:3: numa_nodes[0]: "},
		{`{}`, "m.json:1: cpus: none given"},
		{"{\n\"cpus\": []}", "m.json:2: cpus: none given"},
		{"{\"cpus\": [\n{\"id\": 0},\n{\"id\": 1},\n{\"id\": 0}]}", "m.json:4: CPU 0: given twice"},
		{"{\"cpus\": [\n{\"id\": 0},\n{\n\"id\": 9999}]}", "m.json:4: CPU id 9999"},
		{"{\"cpus\": [\n{\"id\": 0},\n{\"socket\": 0}]}", "m.json:3: CPU id -1"},
		{"{\"cpus\": [\n{\"id\": 0}], \"numa_nodes\": [\n{\"id\": 0, \"cpus\": \"0\"}]}", "m.json:3: NUMA node 0: cpus: 0"},
	} {
		if _, err := placefile.Machine("m.json", []byte(c.in)); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: error %v does not say %s", c.in, err, c.names)
		}
	}
}

func FuzzMachine(f *testing.F) {
	f.Add([]byte(`{"cpus":[{"id":0,"core":0,"die":1},{"id":1,"core":0,"die":2}],"numa_nodes":[{"id":0,"cpus":null}],"faults":["f"]}`))
	f.Add([]byte(`{"cpus":[{"id":0},{"id":0}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := placefile.Machine("m.json", data)
		if err == nil && (len(m.CPUs) == 0 || len(m.CPUs) > topology.MaxCPUs) {
			t.Fatalf("%d CPUs", len(m.CPUs))
		}
		if bad := new(placefile.Error); err != nil && !errors.As(err, &bad) {
			t.Fatalf("no *Error: %v", err)
		}
	})
}
