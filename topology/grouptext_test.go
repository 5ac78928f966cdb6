package topology

import (
	"reflect"
	"strings"
	"testing"
)

// Groups are the same after a round trip: the number of each is its place.
func TestGroupText(t *testing.T) {
	const two = "cpus 0-7; socket 0-1,4-5|2-3,6-7; node 0-1,4-5||2-3,6-7; core 0,4|1,5|2,6|3,7"
	m, err := ParseGroupText(two)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.GroupText(); got != two {
		t.Errorf("%s\nbecomes\n%s", two, got)
	}
	c, _ := m.CPU(6)
	if want := (CPU{ID: 6, Online: true, Socket: 1, Die: Unknown, NUMANode: 2, L3: Unknown, Core: 2, Cluster: Unknown}); c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
	if len(m.NUMANodes) != 2 || m.NUMANodes[1].ID != 2 {
		t.Errorf("%+v", m.NUMANodes)
	}
	offline := Machine{CPUs: []CPU{{ID: 0, Online: true, Core: 0}, {ID: 1, Core: 1}}}
	if got := offline.GroupText(); strings.Contains(got, "1") {
		t.Errorf("a CPU that is offline is in %s", got)
	}
}

func TestGroupTextRefuses(t *testing.T) {
	for s, names := range map[string]string{
		"": "begin with no list", "cpus ": "no CPU", "cpus 0-": "missing", "cpus 0-3; rack 0-3": `"rack" is no level`,
		"cpus 0-3; core 0-1|1-2": "CPU 1 is in two groups",
		"cpus 0-3; core 0-4":     "CPU 4 is none", "cpus 0-3; core 0-3; core 0-3": "two groups", "cpus 0; node " +
			strings.Repeat("|", MaxNUMANodes): "more than 1024 groups",
		strings.Repeat("c", maxGroupText+1): "more than", "cpus 0;core 0": "core 0",
	} {
		if _, err := ParseGroupText(s); err == nil || !strings.Contains(err.Error(), names) || len(err.Error()) > 400 {
			t.Errorf("%.40q: error %v does not name %s", s, err, names)
		}
	}
}

func FuzzParseGroupText(f *testing.F) {
	for _, s := range []string{"cpus 0-7; socket 0-1,4-5|2-3,6-7; core 0,4|1,5|2,6|3,7", "cpus 0", "cpus 0-1; node |0-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseGroupText(s)
		if err != nil {
			return
		}
		again, err := ParseGroupText(m.GroupText())
		if err != nil || !reflect.DeepEqual(again.CPUs, m.CPUs) {
			t.Errorf("%q becomes %q, with %v", s, m.GroupText(), err)
		}
	})
}
