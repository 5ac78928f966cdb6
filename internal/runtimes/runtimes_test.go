package runtimes

import (
	"slices"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

func rowOf(t *testing.T, rows []Row, setting string) Row {
	t.Helper()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Setting == setting })
	if i < 0 {
		t.Fatalf("no row of %s", setting)
	}
	return rows[i]
}

// Each runtime at four limits on 8 CPUs and on 2: what it gets, and what it would decide by itself.
func TestPlan(t *testing.T) {
	known := threadpool.Known()
	for _, c := range []struct {
		setting        string
		limit          float64
		host           int
		value, wouldBe string
	}{
		{"JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount", 0.5, 8, "1", "1"},
		{"JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount", 1.5, 8, "1", "2"},
		{"JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount", 4, 2, "2", "2"},
		{"GOMAXPROCS", 0.5, 8, "1", "2"},
		{"GOMAXPROCS", 1.5, 8, "1", "2"},
		{"GOMAXPROCS", 4, 8, "4", "4"},
		{"TOKIO_WORKER_THREADS", 1.5, 8, "1", "1"},
		{"RAYON_NUM_THREADS", 4, 2, "2", "2"},
		{"UV_THREADPOOL_SIZE", 0.5, 8, "2", "4"},
		{"UV_THREADPOOL_SIZE", 4, 8, "4", "4"},
		{"NODE_OPTIONS --v8-pool-size", 1.5, 8, "1", "4"},
		{"DOTNET_PROCESSOR_COUNT", 1.5, 8, "1", "2"},
		{"OMP_NUM_THREADS", 1.5, 8, "1", "8"},
		{"OPENBLAS_NUM_THREADS", 4, 8, "4", "8"},
		{"PYTHON_CPU_COUNT", 0.5, 8, "1", "8"},
		{"RUBY_MAX_CPU", 1.5, 8, "1", "8"},
		{"ERL_FLAGS +S", 1.5, 8, "1:1", "1"},
		{"NGINX_ENTRYPOINT_WORKER_PROCESSES_AUTOTUNE", 1.5, 8, "1", "8"},
		{"--concurrency", 1.5, 8, "1", "1"},
	} {
		s := Plan(known, Limits{CPUs: c.limit, Host: c.host}, 2, nil, []string{"/usr/bin/envoy", "-c", "x"})
		if r := rowOf(t, s.Rows, c.setting); r.Value != c.value || r.WouldBe != c.wouldBe || !r.Set || r.Why == "" {
			t.Errorf("%s at %v of %d: %+v", c.setting, c.limit, c.host, r)
		}
	}
}

// What is written into the environment, and what the user has set stays.
func TestEnvironment(t *testing.T) {
	known := threadpool.Known()
	env := []string{"PATH=/bin", "GOMAXPROCS=7", "JAVA_TOOL_OPTIONS=-Xmx1g", "OMP_NUM_THREADS=", "NODE_OPTIONS=--v8-pool-size=3"}
	s := Plan(known, Limits{CPUs: 1, Host: 8}, 2, env, []string{"java", "-jar", "x"})
	for _, want := range []string{"PATH=/bin", "GOMAXPROCS=7", "JAVA_TOOL_OPTIONS=-Xmx1g -XX:ActiveProcessorCount=1", "OMP_NUM_THREADS=1",
		"NODE_OPTIONS=--v8-pool-size=3", "ERL_FLAGS=+S 1:1 +SDcpu 1:1"} {
		if !slices.Contains(s.Env, want) {
			t.Errorf("no %s in %q", want, s.Env)
		}
	}
	if n := len(s.Env); n != len(slices.Compact(slices.Sorted(slices.Values(s.Env)))) || !slices.Equal(s.Args, []string{"java", "-jar", "x"}) {
		t.Errorf("%q, %q", s.Env, s.Args)
	}
	if r := rowOf(t, s.Rows, "GOMAXPROCS"); r.Set || r.Value != "7" || r.Why != Kept {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"java", "-XX:ActiveProcessorCount=3"}, {"java"}} {
		more := []string{}
		if len(args) == 1 {
			more = append(more, "JDK_JAVA_OPTIONS=-XX:ActiveProcessorCount=3")
		}
		s := Plan(known, Limits{CPUs: 1, Host: 8}, 2, more, args)
		if r := rowOf(t, s.Rows, "JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount"); r.Value != "3" || r.Set {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if s := Plan(known, Limits{CPUs: 2, Host: 8}, 2, nil, []string{"envoy"}); !slices.Equal(s.Args, []string{"envoy", "--concurrency", "2"}) {
		t.Errorf("%q", s.Args)
	}
	if s := Plan(known, Limits{CPUs: 2, Host: 8}, 2, nil, []string{"envoy", "--concurrency", "5"}); len(s.Args) != 3 {
		t.Errorf("%q", s.Args)
	}
	if s := Plan(known, Limits{CPUs: 2, Host: 8}, 2, nil, nil); len(s.Args) != 0 || len(s.Rows) == 0 {
		t.Errorf("nothing to start: %+v", s)
	}
}

// Without a limit it is a multiple of the request; without that nothing is set.
func TestNoLimit(t *testing.T) {
	known := threadpool.Known()
	s := Plan(known, Limits{Request: 1.5, Host: 64}, 2, nil, []string{"x"})
	if r := rowOf(t, s.Rows, "GOMAXPROCS"); r.Value != "3" || r.WouldBe != "64" || !r.Set {
		t.Errorf("%+v", r)
	}
	s = Plan(known, Limits{Host: 64}, 2, []string{"A=b"}, []string{"x"})
	if r := rowOf(t, s.Rows, "GOMAXPROCS"); r.Set || r.Value != "64" || !slices.Equal(s.Env, []string{"A=b"}) {
		t.Errorf("%+v, %q", r, s.Env)
	}
}

func TestDecide(t *testing.T) {
	known := threadpool.Known()
	of := func(p Process, limit float64) Decision {
		t.Helper()
		p.Host, p.TGID = 8, 7
		all := Decide(known, p, limit)
		if len(all) != 1 {
			t.Fatalf("%d runtimes: %+v", len(all), all)
		}
		return all[0]
	}
	java := threadpool.Process{Exe: "/usr/bin/java", Cmdline: []string{"java"}}
	d := of(Process{Process: java}, 3.5)
	if d.Decided["processors"] != 4 || d.Fits["processors"] != 3 || d.Decided["gc_threads"] != 4 || d.Decided["common_pool"] != 3 || !d.Live || len(d.Told) != 0 ||
		!slices.Contains(d.Assumed, "gc_threads") || slices.Contains(d.Assumed, "processors") {
		t.Errorf("by its rule: %+v", d)
	}
	java.Cmdline = append(java.Cmdline, "-XX:ActiveProcessorCount=2")
	if d := of(Process{Process: java}, 3.5); d.Decided["processors"] != 2 || d.Decided["gc_threads"] != 2 || d.Live || d.Told["processors"] == "" || len(d.Assumed) != 0 {
		t.Errorf("told by a flag: %+v", d)
	}
	if d := of(Process{Process: java, Env: []string{"JAVA_TOOL_OPTIONS=-XX:ActiveProcessorCount=5"}}, 3.5); d.Decided["processors"] != 2 {
		t.Errorf("the command line counts before the variable: %+v", d)
	}
	java.Cmdline = []string{"java", "@file", "-XX:ConcGCThreads=7"}
	java.JVM = &threadpool.JVM{Version: "17.0.15", CompilerThreads: 9, Collector: "G1", Options: []string{"-XX:ActiveProcessorCount=2", "-XX:ParallelGCThreads=6"}}
	d = of(Process{Process: java, Env: []string{"_JAVA_OPTIONS=-XX:ActiveProcessorCount=5"}}, 3.5)
	if d.Decided["processors"] != 2 || d.Decided["gc_threads"] != 6 || d.Told["gc_threads"] != "-XX:ParallelGCThreads" || d.Decided["concurrent_gc_threads"] != 1 ||
		d.Decided["compiler_threads"] != 9 || !slices.Equal(d.Said, []string{"compiler_threads"}) || *d.Version != "17.0.15" || len(d.Assumed) != 0 {
		t.Errorf("what the JVM says of itself: %+v", d)
	}
	java.JVM = &threadpool.JVM{Collector: "Serial"}
	d = of(Process{Process: java}, 3.5)
	if _, has := d.Decided["concurrent_gc_threads"]; has || d.Decided["gc_threads"] != 1 || d.Decided["compiler_threads"] != 3 || !slices.Contains(d.Assumed, "compiler_threads") {
		t.Errorf("the serial collector: %+v", d)
	}
	d = of(Process{Process: threadpool.Process{Exe: "/app", Go: "go1.26.8"}, Env: []string{"GOMAXPROCS=5"}}, 1.5)
	if d.Decided["processors"] != 5 || d.Fits["processors"] != 1 || d.Version == nil || *d.Version != "go1.26.8" || d.Settings["processors"] != "GOMAXPROCS" {
		t.Errorf("Go: %+v", d)
	}
	budget := &threadpool.Budget{GOMAXPROCS: 3}
	d = of(Process{Process: threadpool.Process{Exe: "/app", Go: "go1.26.8", Budget: budget}}, 1.5)
	if d.Decided["processors"] != 3 || d.Told["processors"] != "libs/go" || !d.Live || d.Budget != budget {
		t.Errorf("Go with the library: %+v", d)
	}
	if d := of(Process{Process: threadpool.Process{Exe: "/app", Go: "go1.22.1"}}, 1.5); d.Decided["processors"] != 8 || d.Live {
		t.Errorf("old Go: %+v", d)
	}
	d = of(Process{Process: threadpool.Process{Exe: "/usr/bin/python3.11"}, Env: []string{"PYTHON_CPU_COUNT=3"}}, 0)
	if d.Decided["processors"] != 8 || len(d.Told) != 0 || len(d.Settings) != 0 {
		t.Errorf("Python that reads no variable: %+v", d)
	}
	for exe, want := range map[string]int{"/usr/bin/python3.13": 3, "/usr/bin/python3.9": 8, "/usr/bin/python": 3} {
		if d := of(Process{Process: threadpool.Process{Exe: exe}, Env: []string{"PYTHON_CPU_COUNT=3"}}, 0); d.Decided["processors"] != want {
			t.Errorf("%s: %+v", exe, d)
		}
	}
	if all := Decide(known, Process{Process: threadpool.Process{Exe: "/usr/bin/ruby3.1"}, Host: 8}, 1); all != nil {
		t.Errorf("Ruby before 3.3: %+v", all)
	}
	d = of(Process{Process: threadpool.Process{Exe: "/usr/bin/python3.13"}, Env: []string{"PYTHON_CPU_COUNT=nonsense"}}, 0)
	if d.Decided["processors"] != 8 || d.Fits["processors"] != 8 || d.Version == nil || *d.Version != "3.13" || len(d.Told) != 0 {
		t.Errorf("Python without a limit: %+v", d)
	}
	if all := Decide(known, Process{Process: threadpool.Process{Exe: "/bin/sh", Libraries: []string{}}, Host: 8}, 1); all != nil {
		t.Errorf("a shell: %+v", all)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add("JAVA_TOOL_OPTIONS", "-XX:ActiveProcessorCount=", "envoy")
	known := threadpool.Known()
	f.Fuzz(func(t *testing.T, name, value, arg string) {
		env, args := []string{name + "=" + value}, []string{"envoy", arg}
		s := Plan(known, Limits{CPUs: 1.5, Host: 8}, 2, env, args)
		again := Plan(known, Limits{CPUs: 1.5, Host: 8}, 2, s.Env, s.Args)
		if !slices.Equal(s.Env, again.Env) || !slices.Equal(s.Args, again.Args) {
			t.Fatalf("%q becomes %q, and then %q", env, s.Env, again.Env)
		}
	})
}
