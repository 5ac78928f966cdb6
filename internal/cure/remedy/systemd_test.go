package remedy

import (
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// Where systemd owns a cgroup, its properties are set; below a unit's own
// cgroup, and what systemd has no property for, files are.
func TestUnitsAreChangedThroughSystemd(t *testing.T) {
	for name, c := range map[string]struct {
		v    cgroup.Version
		r    Request
		want []string
		warn string
	}{
		"pin, v2": {cgroup.V2, Request{Kind: Pin},
			[]string{"/db.service AllowedCPUs set 2-3", "/db.service CPUQuotaPerSecUSec set infinity",
				"/other.slice AllowedCPUs remove_cpus 2-3", "/plain cpuset.cpus remove_cpus 2-3"}, ""},
		"pin, v1": {cgroup.V1, Request{Kind: Pin},
			[]string{"/db.service CPUQuotaPerSecUSec set infinity", "/db.service cpuset.cpus set 2-3",
				"/other.slice cpuset.cpus remove_cpus 2-3", "/plain cpuset.cpus remove_cpus 2-3"}, "past systemd"},
		"raise": {cgroup.V2, Request{Kind: Raise, To: 2.5}, []string{"/db.service CPUQuotaPerSecUSec set 2500000"}, ""},
		"weight, v1": {cgroup.V1, Request{Kind: Weight, WeightFromLimit: true},
			[]string{"/db.service CPUQuotaPerSecUSec set infinity", "/db.service CPUWeight set 200"}, ""},
		"burst": {cgroup.V2, Request{Kind: Burst}, []string{"/db.service cpu.max.burst set 200000"}, "past systemd"},
	} {
		t.Run(name, func(t *testing.T) {
			f := tree(t, c.v, map[string]float64{"/db.service": 2, "/other.slice": 0, "/plain": 0})
			f.Systemd = true
			for _, path := range []string{"/db.service", "/other.slice"} {
				g := f.Groups[path]
				g.Unit = cgroup.Base(path)
				f.Groups[path] = g
			}
			root := f.Sets["/"]
			root.Subtree = []cgroup.Controller{cgroup.CPU, cgroup.CPUSet}
			f.Sets["/"] = root
			p, err := Make(f, target("/db.service", ""), c.r)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, ch := range p.Changes {
				got = append(got, ch.Path+" "+ch.File+" "+string(ch.Op)+" "+ch.To)
				if (ch.Kind == change.KindSystemd) != (ch.Unit != "") {
					t.Errorf("%+v: kind and unit do not fit", ch)
				}
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if c.warn != "" && !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, c.warn) }) {
				t.Errorf("no warning %q in %q", c.warn, p.Warnings)
			}
		})
	}
	f := tree(t, cgroup.V2, map[string]float64{"/db.service": 2})
	f.Systemd = true
	p, err := Make(f, target("/db.service", ""), Request{Kind: Raise})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, "a daemon-reload may undo") }) {
		t.Errorf("without D-Bus it is not said that a reload may undo it: %q", p.Warnings)
	}
}
