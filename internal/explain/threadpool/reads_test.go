package threadpool

import (
	"slices"
	"testing"
)

// What real runtimes made of values on two CPUs (TestValuesForReal starts them), and what the sources say of those that were not there.
// 0 is that the runtime decides, or does not start.
func TestReads(t *testing.T) {
	for key, values := range map[string]map[string]int{
		"go": {"3": 3, "+3": 3, "03": 3, "010": 10, "0": 0, "-1": 0, "": 0, "abc": 0, "0x5": 0, " 3": 0, "3 ": 0, "3.5": 0, "3_0": 0,
			"4294967299": 0},
		"jvm": {"3": 3, "03": 3, "010": 10, "0x5": 5, "0X5": 5, "5k": 5120, "1K": 1024, "0x1k": 1024, "0": 0, "-1": 0, "-0x5": 0, "+3": 0,
			"": 0, "abc": 0, "3 ": 0, "3.5": 0, "4294967299": 3, "-": 0, "99999999999999999999": 0, "99999999999999999k": 0},
		"jvm-gc":     {"0x5": 5, "abc": 0},
		"jvm-netty":  {"3": 3, " 3 ": 3, "+3": 3, "0": 1, "-1": 1, "abc": 0, "0x5": 0, "": 0},
		"rust-tokio": {"3": 3, "+3": 3, "03": 3, "0": 0, "-1": 0, "++3": 0, " 3": 0, "3 ": 0, "3_0": 0, "": 0},
		"rust-rayon": {"3": 3, "+3": 3, "03": 3, "0": 2, "-1": 0, "abc": 0, " 3": 0},
		"libuv": {"3": 3, "+3": 3, "010": 10, "0": 1, "": 1, "abc": 1, "0x5": 1, "-1": 1024, "2000": 1024, "5k": 5, " 3": 3, "3abc": 3,
			"4294967299": 3},
		"node-v8": {"3": 3, "+3": 3, "0": 1, "-1": 1, "abc": 1, "": 0, "3.5": 3, "4294967299": 3},
		"dotnet":  {"3": 3, "010": 10, "0x5": 0, "3abc": 3, " 3": 3, "+3": 3, "-1": 0, "65535": 65535, "65536": 0, "abc": 0, "": 0},
		"openmp": {"3": 3, "+3": 3, "010": 10, "0": 0, "-1": 0, " 3 ": 3, "3,1": 3,
			"3, 2 ": 3, "3,": 0, "3,0": 0, "3abc": 0, "4294967299": 3},
		"openblas": {"1": 1, "+1": 1, " 1": 1, "1k": 1, "1.5": 1, "1,2": 1, "0x1": 0, "0": 0, "-1": 0, "3": 2, "4294967297": 1},
		"python":   {"3": 3, "+3": 3, "03": 3, " 3": 3, "3 ": 0, "default": 0, "0": 0, "-1": 0, "abc": 0, "4294967299": 0},
		"ruby":     {"3": 3, "3abc": 3, "0": 0, "-1": 0},
		"erlang": {"1": 1, "3": 2, "-1": 1, "0": 2, "3abc": 2, "abc": 0, "2:1": 1,
			"4:3": 3, "2:-1": 1, "2:0": 2, "2:abc": 2, ":2": 2, "1:2": 0, ":": 0},
		"erlang-dirty": {"4:2": 2, "-1": 1, "-2": 0, "3:-2": 0},
		"nginx":        {"1": 0},
		"envoy":        {"3": 3, "0": 1, "010": 10, "0x5": 0, "abc": 0},
	} {
		i := slices.IndexFunc(knownOnce().settings, func(s Setting) bool { return s.Key == key })
		if i < 0 {
			t.Fatalf("no setting %s", key)
		}
		for value, want := range values {
			if n, ok := knownOnce().settings[i].Read(value, 0, 2); ok != (want > 0) || ok && n != want {
				t.Errorf("%s %q: %d, %t, want %d", key, value, n, ok, want)
			}
		}
	}
}

// The last number in GODEBUG counts, and a text that is none leaves what was before.
func TestGoDebug(t *testing.T) {
	for debug, want := range map[string]struct {
		rules   string
		follows bool
	}{
		"":                    {"go1.26", true},
		"containermaxprocs=0": {"go1.24", true},
		"containermaxprocs=0,updatemaxprocs=0,containermaxprocs=1": {"go1.26", false},
		"updatemaxprocs=0,updatemaxprocs=2":                        {"go1.26", true},
		"containermaxprocs=0,containermaxprocs=abc":                {"go1.24", true},
		"containermaxprocs=-1,updatemaxprocs=-1":                   {"go1.24", true},
		"containermaxprocs=00":                                     {"go1.24", true},
		"containermaxprocs,updatemaxprocs":                         {"go1.26", true},
	} {
		p := Process{Go: "go1.26", GoDebug: debug}
		if p.GoRules() != want.rules || p.FollowsLimit() != want.follows {
			t.Errorf("%q: %s, %t", debug, p.GoRules(), p.FollowsLimit())
		}
	}
}

// What a runtime was told is no other's.
func TestEachRuntimeSeesWhatItWasTold(t *testing.T) {
	p := &Process{Exe: "/usr/bin/java", Cmdline: []string{"java"}, CPUsItSees: map[string]float64{"go": 5}}
	if row := knownOnce().Match("GC Thread#0", p)[0]; row.sees != nil {
		t.Errorf("%v", *row.sees)
	}
	p.CPUsItSees["jvm"] = 3
	if row := knownOnce().Match("GC Thread#0", p)[0]; row.sees == nil || *row.sees != 3 {
		t.Errorf("%v", row.sees)
	}
}
