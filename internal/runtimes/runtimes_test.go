package runtimes

import (
	"slices"
	"strings"
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
		s := Plan(known, Limits{CPUs: c.limit, Host: c.host}, 2, nil, nil, []string{"/usr/bin/envoy", "-c", "x"})
		if r := rowOf(t, s.Rows, c.setting); r.Value != c.value || r.WouldBe != c.wouldBe || !r.Set || r.Why == "" {
			t.Errorf("%s at %v of %d: %+v", c.setting, c.limit, c.host, r)
		}
	}
}

// What is written into the environment, and what the user has set stays.
func TestEnvironment(t *testing.T) {
	known := threadpool.Known()
	env := []string{"PATH=/bin", "GOMAXPROCS=7", "JAVA_TOOL_OPTIONS=-Xmx1g", "OMP_NUM_THREADS=", "NODE_OPTIONS=--v8-pool-size=3"}
	s := Plan(known, Limits{CPUs: 1, Host: 8}, 2, nil, env, []string{"java", "-jar", "x"})
	for _, want := range []string{"PATH=/bin", "GOMAXPROCS=7", "JAVA_TOOL_OPTIONS=-Xmx1g -XX:ActiveProcessorCount=1 -Dcom.twitter.finagle.netty4.numWorkers=2", "OMP_NUM_THREADS=1",
		"NODE_OPTIONS=--v8-pool-size=3", "ERL_FLAGS=+S 1:1 +SDcpu 1:1"} {
		if !slices.Contains(s.Env, want) {
			t.Errorf("no %s in %q", want, s.Env)
		}
	}
	if n := len(s.Env); n != len(slices.Compact(slices.Sorted(slices.Values(s.Env)))) ||
		!slices.Equal(s.Args, []string{"java", "-jar", "x"}) {
		t.Errorf("%q, %q", s.Env, s.Args)
	}
	if r := rowOf(t, s.Rows, "GOMAXPROCS"); r.Set || r.Value != "7" || r.Why != Kept {
		t.Errorf("%+v", r)
	}
	if s := Plan(known, Limits{CPUs: 2, Host: 8}, 2, nil, nil, []string{"envoy"}); !slices.Equal(s.Args,
		[]string{"envoy", "--concurrency", "2"}) {
		t.Errorf("%q", s.Args)
	}
	if s := Plan(known, Limits{CPUs: 2, Host: 8}, 2, nil, nil, []string{"envoy", "--concurrency", "5"}); len(s.Args) != 3 {
		t.Errorf("%q", s.Args)
	}
	if s := Plan(known, Limits{CPUs: 2, Host: 8}, 2, nil, nil, nil); len(s.Args) != 0 || len(s.Rows) == 0 {
		t.Errorf("nothing to start: %+v", s)
	}
}

// Pools of libraries get what fits, but not where the processors that the JVM is told make it right by themselves. Pools
// whose threads wait get as many as are asked for.
func TestPoolsOfLibraries(t *testing.T) {
	known := threadpool.Known()
	for _, c := range []struct {
		limit, tomcat float64
		env           string
		want          string // of what is set, in its order
	}{
		{1.5, 0, "", "-XX:ActiveProcessorCount=1 -Dcom.twitter.finagle.netty4.numWorkers=2"}, // two event loops of one processor
		{4, 0, "", "-XX:ActiveProcessorCount=4 -Dio.netty.eventLoopThreads=4 -Dcom.twitter.finagle.netty4.numWorkers=4"},
		{4, 0, "-XX:ActiveProcessorCount=2", "-XX:ActiveProcessorCount=2 -Dcom.twitter.finagle.netty4.numWorkers=4"},
		{4, 0, "-Dio.netty.availableProcessors=1", "-Dio.netty.availableProcessors=1 -XX:ActiveProcessorCount=4 " +
			"-Dcom.twitter.finagle.netty4.numWorkers=4"},
		{4, 2.5, "-Dio.netty.eventLoopThreads=9 -Dcom.twitter.finagle.netty4.numWorkers=9",
			"-Dio.netty.eventLoopThreads=9 -Dcom.twitter.finagle.netty4.numWorkers=9 -XX:ActiveProcessorCount=4 tomcat 10"},
		{0.1, 2.5, "-Dserver.tomcat.threads.max=3", "-Dserver.tomcat.threads.max=3 -XX:ActiveProcessorCount=1 " +
			"-Dcom.twitter.finagle.netty4.numWorkers=2"},
		{0.1, 2.5, "", "-XX:ActiveProcessorCount=1 -Dcom.twitter.finagle.netty4.numWorkers=2 tomcat 1"},
	} {
		env := []string{"JAVA_TOOL_OPTIONS=" + c.env}
		s := Plan(known, Limits{CPUs: c.limit, Host: 8, Each: map[string]float64{"tomcat": c.tomcat}}, 2, nil, env, []string{"java"})
		got, _ := threadpool.Variable(s.Env, "JAVA_TOOL_OPTIONS")
		if n, has := threadpool.Variable(s.Env, "SERVER_TOMCAT_THREADS_MAX"); has {
			got += " tomcat " + n
		}
		if got != c.want {
			t.Errorf("%v CPUs, %q: %q, want %q", c.limit, c.env, got, c.want)
		}
	}
	java := threadpool.Process{Exe: "/usr/bin/java", Cmdline: []string{"java", "Main", "-com.twitter.finagle.netty4.numWorkers=6"},
		JVM: &threadpool.JVM{Options: []string{"-Dcom.twitter.finagle.netty4.numWorkers=3", "-Dio.netty.eventLoopThreads=5"}}}
	d := Decide(known, Process{Process: java, Env: []string{"SERVER_TOMCAT_THREADS_MAX=7"}, Host: 8}, 4)[0]
	if d.Decided["finagle_threads"] != 6 || d.Fits["finagle_threads"] != 4 || d.Decided["netty_threads"] != 5 ||
		d.Told["netty_threads"] != "-Dio.netty.eventLoopThreads" || d.Decided["processors"] != 4 ||
		d.Decided["gc_threads"] != 4 || !d.Live {
		t.Errorf("%+v", d)
	}
	if _, has := d.Decided["tomcat_threads"]; has {
		t.Error("what fits threads that wait is not known")
	}
	if d := Decide(known, Process{Process: threadpool.Process{Exe: "/usr/bin/java"}, Host: 8}, 4)[0]; d.Fits["netty_threads"] != 0 {
		t.Errorf("a JVM that was told nothing of a library: %+v", d)
	}
}

// Every way to give a setting that its runtime takes: it stays, and it is what the runtime decided.
func TestEachSpelling(t *testing.T) {
	known := threadpool.Known()
	java := threadpool.Process{Exe: "/usr/bin/java"}
	node := threadpool.Process{Exe: "/usr/bin/node"}
	blas := threadpool.Process{Libraries: []string{"/usr/lib/libopenblas.so.0"}}
	python := threadpool.Process{Exe: "/usr/bin/python3.13"}
	erlang := threadpool.Process{Exe: "/usr/lib/erlang/bin/beam.smp"}
	for _, c := range []struct {
		process threadpool.Process
		env     string // variables, a line each
		args    string
		by      string // "": nothing is given
		figure  string
		decided int // 0: not known
	}{
		{blas, "OMP_NUM_THREADS=2", "x", "OMP_NUM_THREADS", "openblas_threads", 2},
		{blas, "OMP_NUM_THREADS=2,1", "x", "OMP_NUM_THREADS", "openblas_threads", 2},
		{blas, "OMP_NUM_THREADS=2\nGOTO_NUM_THREADS=3", "x", "GOTO_NUM_THREADS", "openblas_threads", 3},
		{blas, "OMP_NUM_THREADS=2\nGOTO_NUM_THREADS=3\nOPENBLAS_NUM_THREADS=4", "x", "OPENBLAS_NUM_THREADS", "openblas_threads", 4},
		{blas, "OMP_NUM_THREADS=2\nOPENBLAS_NUM_THREADS=0", "x", "OMP_NUM_THREADS", "openblas_threads", 2},
		{blas, "OPENBLAS_NUM_THREADS=100", "x", "OPENBLAS_NUM_THREADS", "openblas_threads", 8},
		{blas, "OPENBLAS_NUM_THREADS=", "x", "", "openblas_threads", 8},
		{threadpool.Process{Libraries: []string{"/usr/lib/libgomp.so.1"}}, "OMP_NUM_THREADS=4,3", "x",
			"OMP_NUM_THREADS", "openmp_threads", 4},
		{node, "NODE_OPTIONS=--v8_pool_size=3", "node", "NODE_OPTIONS --v8-pool-size", "v8_workers", 3},
		{node, `NODE_OPTIONS="--v8-pool-size=3"`, "node", "NODE_OPTIONS --v8-pool-size", "v8_workers", 3},
		{node, "NODE_OPTIONS=--v8-pool-size=3", "node --v8_pool_size 5", "--v8-pool-size", "v8_workers", 5},
		{node, "NODE_OPTIONS=--v8-pool-size=0", "node", "NODE_OPTIONS --v8-pool-size", "v8_workers", 1},
		{node, "UV_THREADPOOL_SIZE=2000", "node", "UV_THREADPOOL_SIZE", "libuv_pool", 1024},
		{node, "UV_THREADPOOL_SIZE=0", "node", "UV_THREADPOOL_SIZE", "libuv_pool", 1},
		{java, `JAVA_TOOL_OPTIONS="-XX:ActiveProcessorCount=7"`, "java", "JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount", "processors", 7},
		{java, `JAVA_TOOL_OPTIONS=-Da='b c' '-XX:ActiveProcessorCount=7'`, "java",
			"JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount", "processors", 7},
		{java, `JAVA_TOOL_OPTIONS=-Da="b -XX:ActiveProcessorCount=7"`, "java", "", "processors", 2},
		{java, "JDK_JAVA_OPTIONS=-XX:ActiveProcessorCount=3\nJAVA_TOOL_OPTIONS=-XX:ActiveProcessorCount=4", "java",
			"JDK_JAVA_OPTIONS -XX:ActiveProcessorCount", "processors", 3},
		{java, "JDK_JAVA_OPTIONS=-XX:ActiveProcessorCount=3",
			"java -XX:ActiveProcessorCount=5 -XX:ActiveProcessorCount=6", "-XX:ActiveProcessorCount", "processors", 6},
		{java, "_JAVA_OPTIONS=-XX:ActiveProcessorCount=3", "java -XX:ActiveProcessorCount=5",
			"_JAVA_OPTIONS -XX:ActiveProcessorCount", "processors", 3},
		{threadpool.Process{Exe: "/usr/bin/dotnet"}, "COMPlus_PROCESSOR_COUNT=4", "dotnet", "COMPlus_PROCESSOR_COUNT", "processors", 4},
		{threadpool.Process{Exe: "/usr/bin/dotnet"}, "COMPlus_PROCESSOR_COUNT=4\nDOTNET_PROCESSOR_COUNT=16", "dotnet",
			"DOTNET_PROCESSOR_COUNT", "processors", 16},
		{threadpool.Process{Exe: "/app", Holds: []string{"rust", "rayon"}}, "RAYON_RS_NUM_CPUS=3", "app",
			"RAYON_RS_NUM_CPUS", "rayon_threads", 3},
		{threadpool.Process{Exe: "/app", Holds: []string{"rust", "rayon"}}, "RAYON_RS_NUM_CPUS=3\nRAYON_NUM_THREADS=5",
			"app", "RAYON_NUM_THREADS", "rayon_threads", 5},
		{python, "PYTHON_CPU_COUNT=3", "python3 -X cpu_count=5 -c x", "-X cpu_count", "processors", 5},
		{python, "PYTHON_CPU_COUNT=3", "python3 -Xcpu_count=5 -c x", "-X cpu_count", "processors", 5},
		{python, "PYTHON_CPU_COUNT=3", "python3 -X dev -c x", "PYTHON_CPU_COUNT", "processors", 3},
		{python, "PYTHON_CPU_COUNT=3", "python3 -X cpu_count=default -c x", "-X cpu_count", "processors", 8},
		// Behind the script, class or jar a word is the program's own.
		{node, "", "node app.js --v8-pool-size=9", "", "v8_workers", 4},
		{node, "", "node -r ./a.js --v8-pool-size=9 app.js", "--v8-pool-size", "v8_workers", 9},
		{node, "", "node -- app.js --v8-pool-size=9", "", "v8_workers", 4},
		{java, "", "java -jar x.jar -XX:ActiveProcessorCount=9", "", "processors", 2},
		{java, "", "java -cp a:b Main -XX:ActiveProcessorCount=9", "", "processors", 2},
		{java, "", "java -cp a:b -XX:ActiveProcessorCount=9 Main", "-XX:ActiveProcessorCount", "processors", 9},
		{java, "", "java --module=m/Main -XX:ActiveProcessorCount=9", "", "processors", 2},
		{python, "", "python3 app.py -X cpu_count=9", "", "processors", 8},
		{python, "", "python3 -m app -X cpu_count=9", "", "processors", 8},
		{python, "", "python3 -uXcpu_count=9 app.py", "-X cpu_count", "processors", 9},
		{python, "", "python3 -W ignore -X cpu_count=9 app.py", "-X cpu_count", "processors", 9},
		{erlang, "ERL_FLAGS=+S2:2", "erl", "ERL_FLAGS +S", "schedulers", 2},
		{erlang, "ERL_FLAGS=+S 4:3", "erl", "ERL_FLAGS +S", "schedulers", 3},
		{erlang, "ERL_AFLAGS=+S 5", "erl +S :4", "+S", "schedulers", 4},
		{erlang, "ERL_ZFLAGS=+S 5:5\nERL_FLAGS=+S 4", "erl", "ERL_ZFLAGS +S", "schedulers", 5},
		{erlang, "ERL_FLAGS=+S 5", "erl", "ERL_FLAGS +S", "schedulers", 1}, // no more online than the CPUs that it counts
		{erlang, "ERL_FLAGS=+SP 50:50", "erl", "ERL_FLAGS +SP", "schedulers", 0},
		{erlang, "ERL_FLAGS=+SDcpu2:2", "erl", "ERL_FLAGS +SDcpu", "dirty_cpu_schedulers", 2},
	} {
		env, args := strings.Split(c.env, "\n"), strings.Fields(c.args)
		c.process.Cmdline = args
		i := slices.IndexFunc(known.Settings(), func(setting threadpool.Setting) bool {
			return setting.Decides == c.figure && setting.CanBeTold() && slices.Contains(known.RuntimesOf(&c.process), setting.Of)
		})
		if i < 0 {
			t.Fatalf("%+v: no such setting", c)
		}
		setting := known.Settings()[i]
		s := Plan(known, Limits{CPUs: 1.5, Host: 8}, 2, nil, env, args)
		row := s.Rows[slices.IndexFunc(s.Rows, func(r Row) bool {
			return r.Setting == setting.Name() && c.by == "" || r.Setting == c.by && r.Runtime == setting.Runtime
		})]
		if row.Set != (c.by == "") {
			t.Errorf("%q, %q: %+v", c.env, c.args, row)
		}
		if again, has := setting.Given(s.Env, s.Args); !has || c.by != "" && again.By.Name() != c.by {
			t.Errorf("%q, %q: started with %q, %q", c.env, c.args, s.Env, s.Args)
		}
		var d Decision
		for _, d = range Decide(known, Process{Process: c.process, Env: env, Host: 8}, 1.5) {
			if _, has := d.Fits[c.figure]; has {
				break
			}
		}
		if n, has := d.Decided[c.figure]; n != c.decided || has != (c.decided > 0) {
			t.Errorf("%q, %q: %+v, want %d", c.env, c.args, d, c.decided)
		}
		if told := d.Told[c.figure]; told != c.by && c.args != "python3 -X cpu_count=default -c x" {
			t.Errorf("%q, %q: told by %q, want %q", c.env, c.args, told, c.by)
		}
	}
}

// A value that the runtime ignores is no setting. One that leaves it to the runtime, or keeps it from starting, is the user's.
func TestIgnoredValues(t *testing.T) {
	known := threadpool.Known()
	for _, c := range []struct {
		env, args string
		setting   string
		set       bool
	}{
		{"GOMAXPROCS=abc", "x", "GOMAXPROCS", true},
		{"GOMAXPROCS=0x3", "x", "GOMAXPROCS", true},
		{"OMP_NUM_THREADS=0", "x", "OMP_NUM_THREADS", true},
		{"UV_THREADPOOL_SIZE=", "node", "UV_THREADPOOL_SIZE", false},
		{"TOKIO_WORKER_THREADS=0", "x", "TOKIO_WORKER_THREADS", false},
		{"PYTHON_CPU_COUNT=default", "python3", "PYTHON_CPU_COUNT", false},
		{"JAVA_TOOL_OPTIONS=-XX:ActiveProcessorCount=-1", "java", "JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount", false},
		{"", "java -Dio.netty.eventLoopThreads=abc Main", "-Dio.netty.eventLoopThreads", false}, // the variable is weaker
		{"JAVA_TOOL_OPTIONS=-Dio.netty.eventLoopThreads=abc", "java", "JAVA_TOOL_OPTIONS -Dio.netty.eventLoopThreads", true},
	} {
		s := Plan(known, Limits{CPUs: 4, Host: 8}, 2, nil, strings.Split(c.env, "\n"), strings.Fields(c.args))
		if row := rowOf(t, s.Rows, c.setting); row.Set != c.set {
			t.Errorf("%q, %q: %+v", c.env, c.args, row)
		}
	}
}

// Without a limit it is a multiple of the request; without that nothing is set.
func TestNoLimit(t *testing.T) {
	known := threadpool.Known()
	s := Plan(known, Limits{Request: 1.5, Host: 64}, 2, nil, nil, []string{"x"})
	if r := rowOf(t, s.Rows, "GOMAXPROCS"); r.Value != "3" || r.WouldBe != "64" || !r.Set {
		t.Errorf("%+v", r)
	}
	s = Plan(known, Limits{Host: 64, Unsure: "its weight says either"}, 2, nil, nil, []string{"x"})
	if r := rowOf(t, s.Rows, "GOMAXPROCS"); r.Set || !strings.Contains(r.Why, "its weight says either") {
		t.Errorf("%+v", r)
	}
	s = Plan(known, Limits{Host: 64}, 2, nil, []string{"A=b"}, []string{"x"})
	if r := rowOf(t, s.Rows, "GOMAXPROCS"); r.Set || r.Value != "64" || !slices.Equal(s.Env, []string{"A=b"}) {
		t.Errorf("%+v, %q", r, s.Env)
	}
}

func TestDecide(t *testing.T) {
	known := threadpool.Known()
	decisionOf := func(p Process, limit float64) Decision {
		t.Helper()
		p.Host, p.TGID = 8, 7
		decisions := Decide(known, p, limit)
		if len(decisions) != 1 {
			t.Fatalf("%d runtimes: %+v", len(decisions), decisions)
		}
		return decisions[0]
	}
	java := threadpool.Process{Exe: "/usr/bin/java", Cmdline: []string{"java"}}
	d := decisionOf(Process{Process: java}, 3.5)
	if d.Decided["processors"] != 4 || d.Fits["processors"] != 3 || d.Decided["gc_threads"] != 4 ||
		d.Decided["common_pool"] != 3 || !d.Live || len(d.Told) != 0 ||
		!slices.Contains(d.Assumed, "gc_threads") || slices.Contains(d.Assumed, "processors") {
		t.Errorf("by its rule: %+v", d)
	}
	java.Cmdline = append(java.Cmdline, "-XX:ActiveProcessorCount=2")
	if d := decisionOf(Process{Process: java}, 3.5); d.Decided["processors"] != 2 || d.Decided["gc_threads"] != 2 || d.Live ||
		d.Told["processors"] == "" || len(d.Assumed) != 0 {
		t.Errorf("told by a flag: %+v", d)
	}
	if d := decisionOf(Process{Process: java, Env: []string{"JAVA_TOOL_OPTIONS=-XX:ActiveProcessorCount=5"}},
		3.5); d.Decided["processors"] != 2 {
		t.Errorf("the command line counts before the variable: %+v", d)
	}
	java.Cmdline = []string{"java", "@file", "-XX:ConcGCThreads=7"}
	java.JVM = &threadpool.JVM{Version: "17.0.15", CompilerThreads: 9, Collector: "G1",
		Options: []string{"-XX:ActiveProcessorCount=2", "-XX:ParallelGCThreads=6"}}
	d = decisionOf(Process{Process: java, Env: []string{"_JAVA_OPTIONS=-XX:ActiveProcessorCount=5"}}, 3.5)
	if d.Decided["processors"] != 2 || d.Decided["gc_threads"] != 6 ||
		d.Told["gc_threads"] != "-XX:ParallelGCThreads" || d.Decided["concurrent_gc_threads"] != 1 ||
		d.Decided["compiler_threads"] != 9 || !slices.Equal(d.Said, []string{"compiler_threads"}) ||
		*d.Version != "17.0.15" || len(d.Assumed) != 0 {
		t.Errorf("what the JVM says of itself: %+v", d)
	}
	java.JVM = &threadpool.JVM{Collector: "Serial"}
	d = decisionOf(Process{Process: java}, 3.5)
	if _, has := d.Decided["concurrent_gc_threads"]; has || d.Decided["gc_threads"] != 1 ||
		d.Decided["compiler_threads"] != 3 || !slices.Contains(d.Assumed, "compiler_threads") {
		t.Errorf("the serial collector: %+v", d)
	}
	d = decisionOf(Process{Process: threadpool.Process{Exe: "/app", Go: "go1.26.8"}, Env: []string{"GOMAXPROCS=5"}}, 1.5)
	if d.Decided["processors"] != 5 || d.Fits["processors"] != 1 || d.Version == nil || *d.Version != "go1.26.8" ||
		d.Settings["processors"] != "GOMAXPROCS" {
		t.Errorf("Go: %+v", d)
	}
	budget := &threadpool.Budget{GOMAXPROCS: 3}
	d = decisionOf(Process{Process: threadpool.Process{Exe: "/app", Go: "go1.26.8", Budget: budget}}, 1.5)
	if d.Decided["processors"] != 3 || d.Told["processors"] != "libs/go" || !d.Live || d.Budget != budget {
		t.Errorf("Go with the library: %+v", d)
	}
	if d := decisionOf(Process{Process: threadpool.Process{Exe: "/app", Go: "go1.22.1"}}, 1.5); d.Decided["processors"] != 8 || d.Live {
		t.Errorf("old Go: %+v", d)
	}
	d = decisionOf(Process{Process: threadpool.Process{Exe: "/usr/bin/python3.11"}, Env: []string{"PYTHON_CPU_COUNT=3"}}, 0)
	if d.Decided["processors"] != 8 || len(d.Told) != 0 || len(d.Settings) != 0 {
		t.Errorf("Python that reads no variable: %+v", d)
	}
	for exe, want := range map[string]int{"/usr/bin/python3.13": 3, "/usr/bin/python3.9": 8, "/usr/bin/python": 3} {
		if d := decisionOf(Process{Process: threadpool.Process{Exe: exe}, Env: []string{"PYTHON_CPU_COUNT=3"}},
			0); d.Decided["processors"] != want {
			t.Errorf("%s: %+v", exe, d)
		}
	}
	if decisions := Decide(known, Process{Process: threadpool.Process{Exe: "/usr/bin/ruby3.1"}, Host: 8}, 1); decisions != nil {
		t.Errorf("Ruby before 3.3: %+v", decisions)
	}
	d = decisionOf(Process{Process: threadpool.Process{Exe: "/usr/bin/python3.13"}, Env: []string{"PYTHON_CPU_COUNT=nonsense"}}, 0)
	if d.Decided["processors"] != 8 || d.Fits["processors"] != 8 || d.Version == nil || *d.Version != "3.13" || len(d.Told) != 0 {
		t.Errorf("Python without a limit: %+v", d)
	}
	if decisions := Decide(known, Process{Process: threadpool.Process{Exe: "/bin/sh", Libraries: []string{}}, Host: 8},
		1); decisions != nil {
		t.Errorf("a shell: %+v", decisions)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add("JAVA_TOOL_OPTIONS", "-XX:ActiveProcessorCount=", "envoy")
	f.Add("JAVA_TOOL_OPTIONS", "\"-XX:ActiveProcessorCount=3", "envoy")
	f.Add("NODE_OPTIONS", "'a b' --v8_pool_size", "+S")
	f.Add("ERL_FLAGS", "+S +SP 3", "-X")
	known := threadpool.Known()
	f.Fuzz(func(t *testing.T, name, value, arg string) {
		env, args := []string{name + "=" + value}, []string{"envoy", arg}
		s := Plan(known, Limits{CPUs: 1.5, Host: 8}, 2, nil, env, args)
		again := Plan(known, Limits{CPUs: 1.5, Host: 8}, 2, nil, s.Env, s.Args)
		if !slices.Equal(s.Env, again.Env) || !slices.Equal(s.Args, again.Args) {
			t.Fatalf("%q becomes %q, and then %q", env, s.Env, again.Env)
		}
	})
}
