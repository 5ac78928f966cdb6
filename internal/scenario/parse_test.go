package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

const good = `version: 1
host: {cpus: 4}
cgroups:
  pod: {quota: 100ms, cpus: 0-2}
  app:
    parent: pod
    quota: 50ms
    burst: 20ms
workloads:
  work:
    kind: sleep-run
    cgroup: app
    threads: 3
    run: {uniform: [1ms, 9ms]}
    sleep: 10ms
  web: {kind: service, cgroup: pod, threads: 2, work: 3ms, arrivals: {at: [0s, 5ms]}}
`

func TestParse(t *testing.T) {
	s, err := Parse("good.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if s.Duration != defaultDuration || s.Host.CPUs != 4 || s.Host.HZ != 250 || s.Host.Rules.Kernel != DefaultKernel {
		t.Errorf("%+v", s.Host)
	}
	if len(s.Cgroups) != 2 || s.Cgroups[1].Name != "app" || s.Cgroups[1].Parent != 0 ||
		s.Cgroups[1].Limit.Period != bandwidth.DefaultPeriod {
		t.Errorf("%+v", s.Cgroups)
	}
	if got := s.Effective(&s.Cgroups[1]).String(); got != "0-2" {
		t.Errorf("app may use %s, its parent 0-2", got)
	}
	work := s.Workloads[0]
	if work.Cgroup != 1 || work.Threads != 3 || work.Run.Shape != Uniform || work.Run.High != 9*time.Millisecond {
		t.Errorf("%+v", work)
	}
	pool, class, simple := s.Workloads[1].Server.Simple()
	if at := class.Arrivals.At; !simple || len(at) != 2 || at[1] != 5*time.Millisecond || pool.Queue != defaultQueue || pool.Threads != 2 {
		t.Errorf("%+v", s.Workloads[1])
	}
}

// A parent may stand after its child.
func TestParentsFirst(t *testing.T) {
	text := "version: 1\nhost: {cpus: 1}\ncgroups: {a: {parent: b}, b: {parent: c}, c: {}}\nworkloads: {w: {kind: burn, cgroup: a}}\n"
	s, err := Parse("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, c := range s.Cgroups {
		if c.Parent >= i {
			t.Errorf("%s stands before its parent", c.Name)
		}
		names = append(names, c.Name)
	}
	if !reflect.DeepEqual(names, []string{"c", "b", "a"}) || s.Workloads[0].Cgroup != 2 {
		t.Error(names, s.Workloads)
	}
}

// refused spoils a good text in one place, and wants that told with its line; 0: any.
func refused(t *testing.T, good, old, spoilt string, line int, want string) {
	t.Helper()
	if !strings.Contains(good, old) {
		t.Fatalf("%q is not in the good one", old)
	}
	_, err := Parse("bad.yaml", []byte(strings.Replace(good, old, spoilt, 1)))
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("%s: %v", spoilt, err)
		return
	}
	if !strings.Contains(err.Error(), want) || e.Line == 0 || line > 0 && e.Line != line {
		t.Errorf("%s:\n got %v\nwant line %d: ...%s", spoilt, err, line, want)
	}
}

func TestBadInput(t *testing.T) {
	for _, test := range []struct {
		old, new string // in good
		line     int
		want     string
	}{
		{"version: 1", "version: 2", 1, "this unthrottle reads version 1"},
		{"version: 1\n", "", 1, "version is missing"},
		{"host:", "hosts:", 2, `unknown key "hosts": choose from about, cgroups, duration, host`},
		{"cpus: 4", "cpus: 0", 2, "host.cpus: \"0\": give a whole number from 1 to 1024"},
		{"cpus: 4", "cpus: 2000", 2, "from 1 to 1024"},
		{"cpus: 4", "cpus: 4, cpus: 5", 2, "is there twice"},
		{"cpus: 4", "cpus: 4, hz: 300000", 2, "choose from 100, 250, 300, 1000, continuous"},
		{"cpus: 4", "cpus: 4, kernel: \"2.6\"", 2, "give one from 3.16 on"},
		{"cpus: 4", "cpus: 4, kernel: \"5.10\"", 8, "20ms is a setting that kernel 5.10 does not have: it came with 5.14"},
		{"cpus: 4", "cpus: 4, constants: {slice: 5ms}", 2, "no such constant: choose from sched_cfs_bandwidth_slice"},
		{"cpus: 4", "cpus: 4, constants: {min_cfs_rq_runtime: 5}", 2, "give a time with its unit"},
		{"quota: 50ms", "quota: 0s", 7, "cgroups.app.quota: 0s: give a time from"},
		{"quota: 50ms", "quota: -5ms", 7, "cgroups.app.quota: -5ms"},
		{"quota: 50ms", "quota: 50", 7, "give a time with its unit, such as 10ms"},
		{"quota: 50ms", "quota: 500us", 7, "below the least of 1ms"},
		{"burst: 20ms", "burst: 60ms", 8, "cgroups.app.burst: 60ms is above the quota 50ms"},
		{"    quota: 50ms\n", "", 7, "cgroups.app.burst: 20ms: there is no quota"},
		{"burst: 20ms", "period: 2s", 8, "not within 1ms to 1s"},
		{"burst: 20ms", "period: 900us", 8, "not within 1ms to 1s"},
		{"burst: 20ms", "period: 20000500ns", 8, "cgroups.app.period: 20.0005ms is no whole number of microseconds"},
		{"parent: pod", "remedy: {kind: period, period: 20000500ns}", 6, "no whole number of microseconds"},
		{"parent: pod", "parent: pop", 6, "there is no such cgroup"},
		{"parent: pod", "parent: app", 6, "a circle"},
		{"{quota: 100ms, cpus: 0-2}", "{quota: 100ms, parent: app}", 6, "a circle"},
		{"cpus: 0-2", "cpus: 0-9", 4, "the host has CPUs 0-3"},
		{"cpus: 0-2", "cpus: x", 4, "as the kernel writes them"},
		{"quota: 50ms\n    burst: 20ms", "cpus: \"3\"", 7, "none of the parent's CPUs"},
		{"cgroup: app", "cgroup: nope", 12, "there is no such cgroup"},
		{"kind: sleep-run", "kind: sleeprun", 11, "choose from burn, fib, gc, jvm, kernel, neighbour"},
		{"threads: 3", "threads: 0", 13, "from 1 to 65536"},
		{"threads: 3", "fast: 3", 13, "kind sleep-run does not have this"},
		{"    sleep: 10ms\n", "", 10, "sleep is missing: kind sleep-run needs it"},
		{"[1ms, 9ms]", "[9ms, 1ms]", 14, "1ms: give a time from 9ms"},
		{"{uniform: [1ms, 9ms]}", "{normal: 1ms}", 14, "unknown key \"normal\": choose from exponential, uniform"},
		{"{uniform: [1ms, 9ms]}", "{uniform: [1ms, 9ms], exponential: 1ms}", 14, "choose one of"},
		{"{uniform: [1ms, 9ms]}", "[1ms]", 14, "must be a single value"},
		{"sleep: 10ms", "sleep: 0s", 15, "give a time from"},
		{"[0s, 5ms]", "[5ms, 0s]", 16, "give a time from 5ms"},
		{"{at: [0s, 5ms]}", "{at: [0s], per_second: 5}", 16, "give either per_second or at"},
		{"{at: [0s, 5ms]}", "{per_second: .nan}", 16, "give a number above 0"},
		{"{at: [0s, 5ms]}", "{per_second: 0x1p4}", 16, "give a number above 0"},
		{"work: 3ms", "work: 3ms, queue: 10000000", 16, "from 0 to 1000000"},
		{"  work:\n", "  \"bad name\":\n", 10, "a name has 1 to 63 of the characters"},
		{"  work:\n", "  work: &x\n", 10, "anchors and aliases are not read"},
		{"parent: pod", "remedy: {kind: pin, cpus: 4}", 6, "pin to 4 of 4 CPUs leaves none for others"},
		{"parent: pod", "remedy: {kind: burst}", 6, "burst is missing: kind burst needs it"},
		{"parent: pod", "remedy: {kind: burst, burst: 90ms}", 6, "burst 90ms is above the quota"},
		{"parent: pod", "remedy: {kind: weight, cpus: 2}", 6, "kind weight does not have this"},
		{"workloads:", "---\nworkloads:", 9, "more than one document"},
	} {
		refused(t, good, test.old, test.new, test.line, test.want)
	}
}

func TestV1RefusesAChildAboveItsParent(t *testing.T) {
	text := "version: 1\nhost: {cpus: 4, cgroup_version: 1}\ncgroups:\n  a: {quota: 50ms}\n  b: {parent: a}\n  c:\n  " +
		"  parent: b\n    quota: 60ms\nworkloads: {w: {kind: burn}}\n"
	_, err := Parse("v1.yaml", []byte(text))
	if err == nil || !strings.Contains(err.Error(), "v1.yaml:8: cgroups.c.quota: 0.6 CPUs are more than the 0.5 of a") {
		t.Error(err)
	}
	if _, err := Parse("v2.yaml", []byte(strings.Replace(text, "cgroup_version: 1", "cgroup_version: 2", 1))); err != nil {
		t.Error("v2 allows it: ", err)
	}
}

func TestBounds(t *testing.T) {
	head := "version: 1\nhost: {cpus: 1024}\n"
	var deep, wide, hungry, readers, unread strings.Builder
	for i := range 12 {
		deep.WriteString("  c" + string(rune('a'+i)) + ": {parent: c" + string(rune('b'+i)) + "}\n")
	}
	deep.WriteString("  cm: {}\n")
	for i := range maxWorkloads + 1 {
		wide.WriteString("  w" + strings.Repeat("x", i%60) + string(rune('a'+i/60)) + ": {kind: burn}\n")
	}
	for i := range 40 {
		hungry.WriteString("  w" + string(rune('A'+i%26)) + string(rune('a'+i/26)) +
			": {kind: service, threads: 1, work: 1ms, queue: 1000000, arrivals: {per_second: 1}}\n")
	}
	for i := range 3 {
		readers.WriteString("  w" + string(rune('a'+i)) + ": {kind: service, threads: 1, io: 30000, work: 1ms, " +
			"arrivals: {per_second: 1}}\n")
	}
	for i := range 30 { // 6.4 MB of requests on their way each, and 3.2 MB that I/O threads have not read
		unread.WriteString("  w" + string(rune('A'+i%26)) + string(rune('a'+i/26)) +
			": {kind: service, threads: 1, timeout: 1ms, queue: 1, work: 1ms, arrivals: {per_second: 1}}\n")
	}
	for name, test := range map[string]struct{ text, want string }{
		"deep":    {head + "cgroups:\n" + deep.String() + "workloads: {w: {kind: burn}}\n", "nested more than 8 deep"},
		"wide":    {head + "workloads:\n" + wide.String(), "more than 256 workloads"},
		"readers": {head + "workloads:\n" + readers.String(), "more than 65536 threads in all"},
		"unread":  {head + "workloads:\n" + unread.String(), "and 256 are allowed"},
		"hungry":  {head + "workloads:\n" + hungry.String(), "and 256 are allowed"},
		"long":    {strings.Repeat("#", MaxFile+1), "larger than"},
		"empty":   {"", "empty"},
		"none":    {head + "workloads: {}\n", "nothing would run"},
		"list":    {"[1, 2]", "must be a mapping"},
		"broken":  {"version: [", "not YAML"},
	} {
		if _, err := Parse(name, []byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRemedied(t *testing.T) {
	text := strings.Replace(good, "parent: pod", "parent: pod\n    remedy: {kind: pin, cpus: 2}", 1) + "  other: {kind: burn}\n"
	text = strings.Replace(text, "cgroups:\n", "cgroups:\n  beside: {cpus: 1-3}\n", 1)
	s, err := Parse("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, refused := s.Remedied()
	if refused != nil {
		t.Fatal(refused)
	}
	by := map[string]Cgroup{}
	for _, c := range r.Cgroups {
		by[c.Name] = c
	}
	if by["app"].CPUs.String() != "1-2" || by["beside"].CPUs.String() != "3" || r.Host.Reserved.String() != "1-2" {
		t.Errorf("%+v", r)
	}
	if by["app"].Limit.Limited() || by["pod"].Limit.Limited() {
		t.Error("a quota is left at or above the pinned cgroup")
	}
	for _, c := range s.Cgroups {
		if c.Name == "pod" && !c.Limit.Limited() {
			t.Error("the scenario itself was changed")
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(goodService))
	f.Add([]byte(goodShards))
	f.Add([]byte(dotted))
	f.Add([]byte(twoPins))
	f.Add([]byte(raised))
	files, _ := filepath.Glob("../../examples/scenarios/*.yaml")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			f.Add(data)
		}
	}
	for _, text := range []string{"", "a: &a [*a]", "version: 1\nhost: {cpus: 1}\nworkloads: {w: {kind: fib, " +
		"threads: 1}}", "? [x]\n: y", "---\n---\n", "!!binary x"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("fuzz.yaml", data)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 0 || len(err.Error()) > 4000 {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		if s.Host.CPUs < 1 || s.Memory() > maxMemory || len(s.Workloads) == 0 {
			t.Fatalf("%+v", s)
		}
		if _, refused := s.Remedied(); refused != nil {
			t.Fatal(refused)
		}
	})
}
