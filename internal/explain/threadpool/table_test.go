package threadpool

import (
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// knownOnce is Known, read once for all tests.
var knownOnce = sync.OnceValue(Known)

// process is what an example says of its process; nil: nothing.
func (e example) process() *Process {
	if e.Exe == "" && e.Maps == nil && e.Args == nil && e.Go == "" && e.Holds == nil {
		return nil
	}
	p := &Process{Exe: e.Exe, Libraries: e.Maps, Cmdline: e.Args, Go: e.Go, Holds: e.Holds}
	if e.Thread == "" {
		p.Comm = e.Comm
		if len(e.Maps) > 0 {
			p.Unnamed = path.Base(e.Maps[0])
		}
	}
	if p.Libraries == nil {
		p.Libraries = []string{}
	}
	return p
}

func keys(rows []Row) []string {
	var all []string
	for _, r := range rows {
		all = append(all, r.Key)
	}
	return all
}

// TestEveryRowByItsRealNames looks every example up: as measured, whole, and as both ways of shortening make it.
func TestEveryRowByItsRealNames(t *testing.T) {
	table := knownOnce()
	if n := len(table.allRows()); n < 100 {
		t.Fatalf("%d rows", n)
	}
	for _, row := range table.allRows() {
		if len(row.examples) == 0 {
			t.Errorf("%s has no example", row.Key)
		}
		seen := map[string]bool{} // names that an example is of
		for _, e := range row.examples {
			comms := []string{e.Comm}
			if e.Thread != "" {
				first, middle := Shorten(e.Thread)
				comms = append(comms, e.Thread, first)
				if row.Runtime == "jvm" {
					comms = append(comms, middle)
				}
				if e.Comm != "" && e.Comm != first {
					t.Errorf("%s: %q cut is %q, measured %q", row.Key, e.Thread, first, e.Comm)
				}
			}
			for _, comm := range comms {
				if comm == "" {
					continue
				}
				rows := table.Match(comm, e.process())
				if !slices.Contains(keys(rows), row.Key) {
					t.Errorf("%q of %+v: %v, want %s among them", comm, e, keys(rows), row.Key)
				}
			}
			for _, form := range row.forms {
				if _, ok := form.match(e.Thread); ok || form.program {
					seen[form.text] = true
				}
			}
		}
		for _, name := range row.Names {
			if !seen[name] {
				t.Errorf("%s: no example is of %q", row.Key, name)
			}
		}
	}
}

// TestBestRow is what is told first, where several rows or none fit.
func TestBestRow(t *testing.T) {
	table := knownOnce()
	java := &Process{Exe: "/usr/lib/jvm/java-17/bin/java",
		Libraries: []string{"/usr/lib/jvm/java-17/lib/server/libjvm.so"}, Cmdline: []string{"java"}}
	native := &Process{Exe: "/usr/bin/app", Libraries: []string{"/lib/libc.so.6"}, Cmdline: []string{"app"}}
	numpy := &Process{Comm: "python3", Exe: "/usr/bin/python3.11",
		Libraries: []string{"/x/numpy.libs/libscipy_openblas64_-ff.so", "/x/libgomp-a3.so.1.0.0"}, Cmdline: []string{"python3"}}
	started := func(by string) *Process { p := *numpy; p.Unnamed = by; return &p }
	for _, c := range []struct {
		comm string
		p    *Process
		want string // all keys, best first
	}{
		{"GC Thread#3", java, "hotspot-parallel-gc"},
		{"GC Thread#3", nil, "hotspot-parallel-gc"},
		{"ForkJoinPool-1-", java, "jdk-fork-join jdk-virtual-threads"},
		{"ForkJoi..rker-1", java, "jdk-common-pool jdk-fork-join jdk-virtual-threads"},
		{"finagle/netty4-", java, "finagle-io"},
		{"finagle/netty4/", java, "finagle-accept"},
		{"finagle..boss-1", java, "finagle-accept"},
		{"finagle..load-1", java, "finagle-offload"},
		{"data-plane-kafk", java, "kafka-request-handlers kafka-network"},
		{"data-plane-kafka-network-thread-0-ListenerName(PLAINTEXT)-PLAINTEXT-0", java, "kafka-network"},
		{"elasticsearch[node][write][T#12]", java, "elasticsearch-write"},
		{"grpc-default-wo", java, "grpc-worker"},
		{"grpc-default-bo", java, "grpc-boss"},
		{"qtp1424788681-3", java, "jetty jetty-selectors"},
		{"http-nio-8080-e", java, "tomcat"},
		{"http-nio-8080-P", java, "tomcat-io"},
		{"http-ni..exec-1", java, "tomcat"},
		{"http-ni..eptor", java, ""}, // not 15 bytes: not a shortened name
		{"http-ni..ceptor", java, "tomcat-io"},
		{"io-compute-bloc", java, "cats-blocker"},
		{"io-compute-0", java, "cats-compute"},
		{"parallel-1", java, "reactor-parallel"},
		{"parallel-1", native, ""}, // of another library
		{"parallel-1", nil, ""},
		{"nioEventLoopGro", native, "netty-nio"}, // a name of its own: perhaps a native image
		{"rocksdb:low", java, "rocksdb"},
		{"connection", &Process{Exe: "/usr/sbin/mysqld"}, "mysql-connection"},
		{"connection", native, ""},
		{"TCPHandler", &Process{Exe: "/usr/bin/clickhouse-server"}, "clickhouse-connection"},
		{"python3", numpy, "python-executor-unnamed"}, // a library that is mapped need not own them
		{"python3", started("libscipy_openblas64_-ff.so"), "openblas"},
		{"python3.11", started("libgomp-a3.so.1.0.0"), "openmp"},
		{"python3", started("onnxruntime_pybind11_state.so"), ""},
		{"python3", started("python3.11"), "python-executor-unnamed"},
		{"node", &Process{Exe: "/usr/bin/node", Unnamed: "libuv.so.1.0.0"}, "libuv-unnamed"},
		{"node", &Process{Exe: "/usr/bin/node", Unnamed: "libnode.so.108"}, "node-v8-unnamed"},
		{"worker", numpy, ""},
		{"node", &Process{Exe: "/usr/bin/node", Libraries: []string{}}, "libuv-unnamed node-v8-unnamed"},
		{"app", &Process{Exe: "/srv/app", Go: "go1.26.8"}, "go"},
		{"app", &Process{Exe: "/srv/app", Go: "go1.24.1"}, "go-old"},
		{"app", &Process{Exe: "/srv/app", Go: "go1.26.8 X:boringcrypto"}, "go"},
		{"app", &Process{Exe: "/srv/app", Go: "devel go1.27-3f2a"}, "go"},
		{"app", &Process{Exe: "/srv/app"}, ""},
		{"a-rather-long-p", &Process{Exe: "/srv/a-rather-long-program", Go: "go1.26"}, "go"},
		{"main-thread", &Process{Comm: "main-thread", Exe: "/srv/app", Holds: []string{"rayon"}}, "rayon"},
		{"tokio-runtime-w", native, "tokio-worker tokio-blocking"},
		{"", java, ""},
	} {
		if got := strings.Join(keys(table.Match(c.comm, c.p)), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.comm, got, c.want)
		}
	}
	for _, name := range table.strangers {
		if got := keys(table.Match(name, nil)); got != nil {
			t.Errorf("stranger %q: %v", name, got)
		}
		if got := keys(table.Match(name, native)); got != nil {
			t.Errorf("stranger %q in a process of none of the kinds: %v", name, got)
		}
	}
}

func TestBecauseAndGiven(t *testing.T) {
	p := &Process{Exe: "/usr/bin/java", Libraries: []string{"/x/libjvm.so"},
		Cmdline: []string{"java", "-XX:ParallelGCThreads=8\x1b[2J", "-jar", "x.jar"}}
	rows := knownOnce().Match("GC Thread#1", p)
	if len(rows) != 1 {
		t.Fatal(keys(rows))
	}
	if want := "its name, and the program is java"; rows[0].Because != want {
		t.Errorf("because %q, want %q", rows[0].Because, want)
	}
	if want := `-XX:ParallelGCThreads=8\x1b[2J`; rows[0].Given != want {
		t.Errorf("given %q, want %q", rows[0].Given, want)
	}
	if rows := knownOnce().Match("GC Thread#1", nil); rows[0].Because != "its name" || rows[0].Given != "" {
		t.Errorf("without a process: %q, %q", rows[0].Because, rows[0].Given)
	}
}

// TestDoubt: where a name fits several pools, advice says so.
func TestDoubt(t *testing.T) {
	table := knownOnce()
	for _, c := range []struct {
		comm, want string
		p          *Process
	}{
		{"nioEventLoopGro", ", from its next start on.", nil},
		{"data-plane-kafk", "; its name may as well be of Kafka broker's network threads.", nil},
		{"elasticsearch[n", "; its name may as well be of Elasticsearch's writes or Elasticsearch's search coordination or 5 others.", nil},
		{"elasticsearch[node][search][T#1]", ", from its next start on.", nil},
		{"python3", "; its name may as well be of Python's unnamed threads (main thread, ThreadPoolExecutor, or one per request).",
			&Process{Comm: "python3", Exe: "/usr/bin/python3.11", Cmdline: []string{"python3", "-m", "uvicorn"}}},
	} {
		if got := table.Match(c.comm, c.p)[0].Advice(64, 32, 2, 64); !strings.HasSuffix(got, c.want) {
			t.Errorf("%q: %s\nwant at its end %s", c.comm, got, c.want)
		}
	}
}

// A JVM's options from variables and files count as those of its command line do.
func TestGivenByTheJVMItself(t *testing.T) {
	one := 1.0
	p := Process{Cmdline: []string{"java"},
		JVM: &JVM{Options: []string{"-XX:ActiveProcessorCount=1", "-XX:ParallelGCThreads=1"}, Processors: &one}}
	row := knownOnce().Match("GC Thread#0", &p)[0]
	if row.Given != "-XX:ParallelGCThreads=1" || row.sees == nil || *row.sees != 1 {
		t.Errorf("%q, %v", row.Given, row.sees)
	}
}

func TestGiven(t *testing.T) {
	for _, c := range []struct {
		comm    string
		cmdline []string
		want    string
	}{
		{"wrk:worker_0", []string{"envoy", "--concurrency", "4", "-c", "x"}, "--concurrency 4"},
		{"wrk:worker_0", []string{"envoy", "--concurrency=4"}, "--concurrency=4"},
		{"wrk:worker_0", []string{"envoy", "--concurrency"}, ""},
		{"erts_sched_1", []string{"beam.smp", "+S", "4:4"}, "+S 4:4"},
		{"erts_sched_1", []string{"beam.smp", "+S4:4"}, "+S4:4"},
		{"erts_sched_1", []string{"/usr/lib/erlang/bin/beam.smp", "-S", "4:4", "-S", "2", "--", "-root", "-S", "9"}, "+S 2"},
		{"erts_sched_1", []string{"erl", "+S", "4:4", "-extra", "+S", "9"}, "+S 4:4"},
		{"nioEventLoopGro", []string{"java", "-Dio.netty.eventLoopThreads=3", "-Dio.netty.eventLoopThreads=4"},
			"-Dio.netty.eventLoopThreads=4"},
		{"C2 CompilerThre", []string{"java", "-XX:-UseDynamicNumberOfCompilerThreads", "-jar"}, ""},
		{"nioEventLoopGro", []string{"java", "-Dio.netty.availableProcessors=3"}, "-Dio.netty.availableProcessors=3"},
		{"nioEventLoopGro", []string{"java", "-Dio.netty.eventLoopThreads=" + strings.Repeat("9", 1000)},
			"-Dio.netty.eventLoopThreads=" + strings.Repeat("9", maxShown-2) + "…"},
	} {
		if got := knownOnce().Match(c.comm, &Process{Cmdline: c.cmdline})[0].Given; got != c.want {
			t.Errorf("%q: %q, want %q", c.cmdline, got, c.want)
		}
	}
}

func TestIOThread(t *testing.T) {
	for comm, want := range map[string]bool{"nioEventLoopGro": true, "http-nio-8080-e": false, "GC Thread#0": false} {
		if got := knownOnce().Match(comm, nil)[0].IOThread(); got != want {
			t.Errorf("%q: %v", comm, got)
		}
	}
}

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	good := "pools:\n  - {key: k, names: [abc], library: l, class: io, formula: n, source: s"
	for _, c := range []struct{ text, want string }{
		{good + "}", ""},
		{"", ""},
		{good + ", colour: red}", "field colour not found"},
		{good + "}\n  - {key: k, names: [abc], library: l, class: io, formula: n, source: s}", `pool "k": needs a unique key`},
		{strings.Replace(good, "io", "it", 1) + "}", `pool "k": class "it": known are [io app`},
		{strings.Replace(good, "abc", "'{s}'", 1) + "}", "matches everything"},
		{strings.Replace(good, "abc", "'a{q}'", 1) + "}", "gaps are"},
		{strings.Replace(good, "abc", strings.Repeat("a", 64), 1) + "}", "at most 63"},
		{strings.Replace(good, "abc", "'{program}'", 1) + "}", "needs evidence"},
		{strings.Replace(good, "formula: n", "formula: 2*cores", 1) + "}", "unknown figure cores: known are n"},
		{strings.Replace(good, ", formula: n", "", 1) + "}", "formula or default"},
		{good + ", runtime: jvm}", `runtime "jvm" is not in the table`},
		{good + ", fit: n}", "fit: formula"},
		{good + ", least: -1}", "least -1"},
		{good + ", helps: k}", `helps "k": no row above`},
		{good + ", when: {exe: ['[']}}", "when: pattern"},
		{good + ", when: {go_from: '1.25'}}", "no version of Go"},
		{"runtimes: [{key: x, cpus: limit}, {key: x, cpus: limit}]", `runtime "x": needs a unique key`},
		{"runtimes: [{key: x, cpus: n}]", "runtime x: cpus: formula"},
		{"settings: [{key: k, runtime: x, decides: d, env: E, formula: n, fit: limit, why: w, source: s}]",
			`runtime "x" is not in the table`},
		{"runtimes: [{key: x, cpus: limit}]\nsettings: [{key: k, runtime: x, env: E, formula: n, fit: limit, why: w, " +
			"source: s}]", "needs decides"},
		{"runtimes: [{key: x, cpus: limit}]\nsettings: [{key: k, runtime: x, decides: d, formula: n, fit: limit, " +
			"why: w, source: s}]", "needs env or argument"},
		{"runtimes: [{key: x, cpus: limit}]\nsettings: [{key: k, runtime: x, decides: d, argument: --a, formula: n, " +
			"fit: limit, why: w, source: s}]", "program for its argument"},
		{"runtimes: [{key: x, cpus: limit}]\nsettings: [{key: k, runtime: x, decides: d, env: E, formula: n, fit: n, " +
			"why: w, source: s}]", `setting "k": fit: formula`},
		{"runtimes: [{key: x, cpus: limit}]\nsettings: [{key: k, runtime: x, decides: d, follows: j, pool: p}]",
			"follows a setting above it"},
		{"runtimes: [{key: x, cpus: limit}]\nsettings: [{key: k, runtime: x, decides: d, env: E, formula: n, fit: " +
			"limit, since: new, why: w, source: s}]", "no version"},
		{"runtimes: [{key: x, cpus: limit}]\nsettings: [{key: k, runtime: x, decides: d, env: E, library: l, pool: p, fit: " +
			"limit, why: w, source: s}]", "needs library, and a pool with a formula"},
		{"pools: 3", "YAML"},
		{"\x00", "YAML"},
		{strings.Repeat(" ", maxTable+1), "at most"},
	} {
		_, err := decode([]byte(c.text))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%.80q: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%.80q: %v, want %q", c.text, err, c.want)
		}
	}
}

// What `sized` sets a library's pool to is what explain says that fits it.
func TestOneFitOfALibrary(t *testing.T) {
	n := 0
	for _, s := range knownOnce().Settings() {
		row, ok := knownOnce().Row(s.Pool)
		if s.Pool == "" || s.Each != "" {
			continue
		}
		n++
		for _, limit := range []float64{0.3, 1, 1.5, 2, 3.7, 8} {
			if fit, limited := row.FittingThreads(100, 50, limit); !ok || !limited || fit != s.Fits(limit, 8) {
				t.Errorf("%s at %v CPUs: %d, and of its pool %d", s.Key, limit, s.Fits(limit, 8), fit)
			}
		}
	}
	if n < 2 {
		t.Errorf("%d settings of libraries", n)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(string(known))
	f.Add("pools:\n  - {key: k, names: ['a{n}{s}'], library: l, class: io, formula: 'max(n, 2*(n-1))', source: s}")
	f.Add("runtimes: [{key: x, cpus: 'limit/0'}]")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := decode([]byte(text))
		if err != nil {
			return
		}
		for _, r := range table.runtimes {
			r.cpus(1.5, 8)
		}
		for _, r := range table.allRows() {
			for _, name := range append(r.Names, "a1", "elastic..][T#3]") {
				table.Match(name, &Process{Comm: name, Exe: name, Libraries: []string{name}})
			}
			if n, ok := r.defaultThreads(2.5); ok && (n < 1 || n > maxThreads) {
				t.Fatalf("%s: %d threads", r.Key, n)
			}
			r.Advice(8, 4, 1.5, 8)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	table := knownOnce()
	p := &Process{Exe: "/usr/bin/java", Libraries: []string{"/x/libjvm.so"}}
	b.ReportAllocs()
	for b.Loop() {
		table.Match("elasticsearch[n", p)
	}
}
