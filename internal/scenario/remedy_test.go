package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// What narrow and period make of a limit of half a CPU, and of whole ones.
func TestNarrowAndPeriod(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		quota, remedy string
		limit         bandwidth.Limit
		width         int
		credit        time.Duration
		refused       string
	}{
		{"50ms", "{kind: narrow}", bandwidth.Limit{Quota: 5 * ms, Period: 10 * ms, Burst: 5 * ms}, 1, 0, ""},
		{"5ms", "{kind: narrow}", bandwidth.Limit{Quota: ms, Period: 20 * ms, Burst: ms}, 1, 0, ""},
		{"200ms", "{kind: narrow}", bandwidth.Limit{Quota: bandwidth.NoQuota, Period: 100 * ms}, 2, 0, ""},
		{"200ms", "{kind: narrow, credit: 30ms}", bandwidth.Limit{Quota: bandwidth.NoQuota, Period: 100 * ms}, 2, 30 * ms, ""},
		{"250ms", "{kind: narrow, credit: 30ms}", bandwidth.Limit{Quota: bandwidth.NoQuota, Period: 100 * ms}, 3, 30 * ms, ""},
		{"250ms", "{kind: narrow, credit: 30ms, widest: 3}", bandwidth.Limit{Quota: bandwidth.NoQuota, Period: 100 * ms}, 3, 30 * ms, ""},
		{"250ms", "{kind: narrow, credit: 30ms, widest: 2}", bandwidth.Limit{}, 0, 0, "widest 2 is below the limit of 2.5 CPUs"},
		{"250ms", "{kind: narrow, widest: 3}", bandwidth.Limit{}, 0, 0, "give credit too"},
		{"250ms", "{kind: narrow, credit: 30ms, burst: 1ms}", bandwidth.Limit{}, 0, 0, "needs a quota that stays"},
		{"150ms", "{kind: narrow, burst: 30ms}", bandwidth.Limit{Quota: 150 * ms, Period: 100 * ms, Burst: 30 * ms}, 2, 0, ""},
		{"200ms", "{kind: narrow, burst: 30ms}", bandwidth.Limit{}, 0, 0, "needs a quota that stays"},
		{"50ms", "{kind: period, period: 20ms}", bandwidth.Limit{Quota: 10 * ms, Period: 20 * ms, Burst: 10 * ms}, 0, 0, ""},
		{"50ms", "{kind: period, period: 1ms}", bandwidth.Limit{}, 0, 0, "below the least of 1ms"},
		{"50ms", "{kind: period}", bandwidth.Limit{}, 0, 0, "period is missing"},
		{"50ms", "{kind: period, period: 2s}", bandwidth.Limit{}, 0, 0, "1ms to 1s"},
		{"50ms", "{kind: raise, factor: 2, credit: 1ms}", bandwidth.Limit{}, 0, 0, "does not have this"},
	} {
		burst := "20ms"
		if test.quota == "5ms" {
			burst = "5ms"
		}
		text := strings.NewReplacer("quota: 50ms", "quota: "+test.quota, "burst: 20ms", "burst: "+burst, "parent: pod",
			"remedy: "+test.remedy).Replace(good)
		s, err := Parse("x", []byte(text))
		if test.refused != "" {
			if err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("%s: %v", test.remedy, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.remedy, err)
			continue
		}
		r, refused := s.Remedied()
		if refused != nil {
			t.Fatal(refused)
		}
		for _, c := range r.Cgroups {
			if c.Name == "app" && (c.Limit != test.limit || c.Width != test.width || c.Credit != test.credit) {
				t.Errorf("%s of %s: %+v", test.remedy, test.quota, c)
			}
		}
	}
	nested := strings.Replace(good, "cpus: 0-2}", "remedy: {kind: narrow}}", 1)
	if _, err := Parse("x", []byte(nested)); err == nil || !strings.Contains(err.Error(), "app below it has a limit of its own") {
		t.Errorf("%v", err)
	}
	// With credit the limits below stay.
	s, err := Parse("x", []byte(strings.Replace(nested, "kind: narrow", "kind: narrow, credit: 1s", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if r, refused := s.Remedied(); refused != nil || r.Cgroups[0].Cap == 0 || !r.Cgroups[1].Limit.Limited() {
		t.Errorf("%+v, %v", r.Cgroups, refused)
	}
}

const twoPins = `version: 1
host: {cpus: 2}
cgroups:
  a: {quota: 50ms, remedy: {kind: pin, cpus: 1}}
  b: {quota: 50ms, remedy: {kind: pin, cpus: 1}}
workloads: {x: {kind: burn}}
`

// Neither the root nor workloads of an ancestor use pinned CPUs. A pin that leaves another workload no CPU
// is refused.
func TestPinLeavesCPUsToOthers(t *testing.T) {
	const above = "version: 1\nhost: {cpus: 4}\ncgroups:\n  p: {quota: 400ms}\n  q: {}\n  a: {parent: p, quota: " +
		"200ms, remedy: {kind: pin, cpus: 2}}\n  b: {parent: a, quota: 50ms}\n" +
		"workloads: {w: {kind: burn, cgroup: p}, a: {kind: burn, cgroup: a}, b: {kind: burn, cgroup: b}, q: {kind: " +
		"burn, cgroup: q}, root: {kind: burn}}\n"
	for name, test := range map[string]struct {
		text    string
		cpus    string // of the workloads, in order
		refused string
	}{
		"two pins and the root":  {twoPins, "", "bad.yaml:5: cgroups.b.remedy: pin to 1 CPUs leaves none for workload x"},
		"two pins, no other use": {strings.Replace(twoPins, "burn}", "burn, cgroup: b}", 1), "0", ""},
		"a workload above":       {above, "0-1 2-3 2-3 0-1 0-1", ""},
		"pins within one another": {
			strings.Replace(above, "quota: 50ms", "quota: 50ms, remedy: {kind: pin, cpus: 1}", 1), "0-1 2 3 0-1 0-1", ""},
		"nothing for a workload above": {strings.Replace(above, "p: {quota: 400ms}", "p: {quota: 400ms, cpus: 2-3}", 1),
			"", "pin to 2 CPUs leaves none for workload w"},
		"nothing within": {
			strings.Replace(above, "quota: 50ms", "quota: 50ms, remedy: {kind: pin, cpus: 2}", 1), "",
			"pin to 2 CPUs leaves none for workload a"},
	} {
		s, err := Parse("bad.yaml", []byte(test.text))
		if test.refused != "" {
			if err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r, refused := s.Remedied()
		if refused != nil {
			t.Fatal(refused)
		}
		var cpus []string
		for i := range r.Workloads {
			cpus = append(cpus, r.CPUsOf(&r.Workloads[i]).String())
		}
		if got := strings.Join(cpus, " "); got != test.cpus {
			t.Errorf("%s: CPUs %s, want %s", name, got, test.cpus)
		}
	}
}

const raised = `version: 1
host: {cpus: 4, cgroup_version: 1}
cgroups:
  p: {quota: 200ms}
  a: {parent: p, quota: 150ms, remedy: {kind: raise, factor: 2}}
workloads: {w: {kind: burn, cgroup: a}}
`

// What the kernel refuses of cgroup v1 no remedy may bring about.
func TestV1RefusesRemediesAboveTheParent(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(raised, old, new, 1) }
	for name, test := range map[string]struct{ text, refused string }{
		"raised above":    {raised, "x:5: cgroups.a.remedy: 3 CPUs are more than the 2 of p: cgroup v1 refuses that"},
		"raised up to":    {with("factor: 2", "factor: 1.3"), ""},
		"raised together": {with("p: {quota: 200ms}", "p: {quota: 200ms, remedy: {kind: raise, factor: 1.5}}"), ""},
		"lowered below": {strings.NewReplacer("p: {quota: 200ms}",
			"p: {quota: 200ms, remedy: {kind: raise, factor: 0.5}}", ", remedy: {kind: raise, factor: 2}",
			"").Replace(raised), "cgroups.p.remedy: a below it: 1.5 CPUs are more than the 1 of p"},
		"the same in any period": {strings.NewReplacer("p: {quota: 200ms}",
			"p: {quota: 200ms, remedy: {kind: period, period: 29ms}}", "150ms, remedy: {kind: raise, factor: 2}",
			"200ms").Replace(raised), ""},
		"cgroup v2": {with("cgroup_version: 1", "cgroup_version: 2"), ""},
	} {
		_, err := Parse("x", []byte(test.text))
		if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
