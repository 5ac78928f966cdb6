package threadpool

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func rowOf(t testing.TB, key string) Row {
	t.Helper()
	for _, r := range knownOnce().allRows() {
		if r.Key == key {
			return r
		}
	}
	t.Fatalf("no row %s", key)
	return Row{}
}

// TestSizesAsMeasured are the defaults that JVMs of the kinds named gave themselves for -XX:ActiveProcessorCount=n (JDK
// 17.0.15 and 25.0.3), and what other libraries made.
func TestSizesAsMeasured(t *testing.T) {
	for key, sizes := range map[string]map[float64]int{
		"hotspot-parallel-gc":    {1: 1, 2: 2, 4: 4, 8: 8, 16: 13, 32: 23, 64: 43},
		"hotspot-g1-concurrent":  {1: 1, 2: 1, 4: 1, 8: 2, 16: 3, 32: 6, 64: 11},
		"hotspot-g1-refine":      {1: 1, 16: 13},
		"hotspot-jit":            {1: 2, 2: 2, 4: 3, 8: 4, 16: 12, 32: 15, 64: 18},
		"hotspot-zgc-concurrent": {1: 1, 2: 1, 3: 1, 4: 1, 6: 2, 8: 2, 12: 3, 16: 4},
		"hotspot-zgc-pause":      {1: 1, 2: 2, 3: 2, 4: 3, 6: 4, 8: 5, 12: 8, 16: 10},
		"hotspot-shenandoah":     {1: 1, 2: 1, 4: 2, 6: 3, 8: 4, 12: 6, 16: 8, 32: 16},
		"jdk-common-pool":        {1: 1, 2: 1, 8: 7},
		"netty-nio":              {1: 2, 2: 4, 1.5: 4}, // 1.5 CPUs are 2 to a JVM
		"finagle-io":             {1: 8, 2: 8, 16: 32},
		"tokio-worker":           {1: 1, 1.5: 1, 3.9: 3}, // rounded down
		"go":                     {0.5: 1, 1.5: 2, 8: 8},
		"python-executor":        {2: 6, 64: 32},
		"zookeeper-selector":     {1: 1, 8: 2, 64: 5},
		"tomcat":                 {0.1: 200, 64: 200},
	} {
		row := rowOf(t, key)
		for n, want := range sizes {
			if got, ok := row.defaultThreads(n); !ok || got != want {
				t.Errorf("%s for %v CPUs: %d, %v; want %d", key, n, got, ok, want)
			}
		}
	}
	if n, ok := rowOf(t, "jdk-executors").defaultThreads(4); ok {
		t.Errorf("a pool without a formula: %d", n)
	}
	for _, n := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if got, ok := rowOf(t, "netty-nio").defaultThreads(n); ok {
			t.Errorf("%v CPUs: %d", n, got)
		}
	}
}

// For how many CPUs a default would be so many threads.
func TestCPUsOfADefault(t *testing.T) {
	for key, sizes := range map[string]map[int]int{
		"netty-nio":           {1: 1, 2: 1, 3: 2, 16: 8, 128: 64, 16384: 8192, 16385: 0},
		"finagle-io":          {2: 1, 8: 1, 9: 5, 32: 16},
		"jdk-common-pool":     {7: 8},
		"hotspot-parallel-gc": {42: 63, 43: 64},
		"tomcat":              {200: 0}, // whatever the CPUs
		"jdk-executors":       {8: 0},
	} {
		for threads, want := range sizes {
			if n, ok := rowOf(t, key).CPUsFor(threads); ok != (want > 0) || ok && n != want {
				t.Errorf("%s, %d threads: %d CPUs, want %d", key, threads, n, want)
			}
		}
	}
}

func TestExpectedRoundsAsRuntimesDo(t *testing.T) {
	got := map[string][]int{}
	for _, limit := range []float64{0.5, 1.5, 2, 0, 100} {
		for _, r := range knownOnce().runtimes {
			got[r.Key] = append(got[r.Key], r.cpus(limit, 8))
		}
	}
	for key, want := range map[string][]int{ // for limits of 0.5, 1.5, 2, none, more than the host's 8
		"jvm":          {1, 2, 2, 8, 8},
		"go":           {2, 2, 2, 8, 8},
		"go-old":       {8, 8, 8, 8, 8},
		"automaxprocs": {1, 1, 2, 8, 8},
		"dotnet":       {1, 2, 2, 8, 8},
		"rust":         {1, 1, 2, 8, 8},
		"libuv":        {1, 1, 2, 8, 8},
		"python":       {8, 8, 8, 8, 8},
		"openmp":       {8, 8, 8, 8, 8},
		"openblas":     {8, 8, 8, 8, 8},
		"tbb":          {1, 2, 2, 8, 8},
		"clickhouse":   {1, 2, 2, 8, 8},
		"envoy":        {1, 1, 2, 8, 8},
		"istio":        {1, 2, 2, 8, 8},
		"erlang":       {1, 1, 2, 8, 8},
		"nginx":        {8, 8, 8, 8, 8},
	} {
		if len(got[key]) != len(want) {
			t.Fatalf("%s: %v", key, got[key])
		}
		for i := range want {
			if got[key][i] != want[i] {
				t.Errorf("%s: %v, want %v", key, got[key], want)
				break
			}
		}
	}
	if n := knownOnce().runtimes[1].cpus(1, 1); n != 1 {
		t.Errorf("Go on a host with one CPU: %d", n)
	}
}

func TestAdvice(t *testing.T) {
	given := rowOf(t, "hotspot-parallel-gc")
	given.Given = "-XX:ParallelGCThreads=16"
	told := rowOf(t, "netty-nio")
	four := 4.0
	told.sees = &four
	for _, c := range []struct {
		row             Row
		threads, widest int
		limit           float64
		host            int
		want            string
	}{
		{rowOf(t, "netty-nio"), 32, 11, 2, 16,
			"Netty's NIO event loop: 32 threads and 11 at once are more than the limit of 2 CPUs: set " +
				"-Dio.netty.eventLoopThreads to 2 (default max(1, 2 * n), 4 for 2 CPUs), from its next start on."},
		{told, 8, 8, 2, 16,
			"Netty's NIO event loop: 8 threads and 8 at once are more than the limit of 2 CPUs: set " +
				"-Dio.netty.eventLoopThreads to 2 (default max(1, 2 * n), 8 for 4 CPUs that it was told), from its next start on."},
		{given, 16, 16, 2.5, 16,
			"HotSpot's parallel collector threads (G1, Parallel): 16 threads and 16 at once are more than the limit " +
				"of 2.5 CPUs: set -XX:ParallelGCThreads to 2 (it was started with -XX:ParallelGCThreads=16), from its next start on."},
		{rowOf(t, "tomcat"), 200, 32, 4, 16, // 200 threads were 32 wide: 25 are 4 wide
			"Tomcat's worker threads (Spring Boot): 200 threads and 32 at once are more than the limit of 4 CPUs: " +
				"set server.tomcat.threads.max to 25 (default 200: at least 10), while it runs, by maxThreads of the connector over JMX."},
		{rowOf(t, "hotspot-jit"), 15, 9, 1, 16, // refuses less than 2
			"HotSpot's JIT compilers: 15 threads and 9 at once are more than the limit of 1 CPU: set " +
				"-XX:CICompilerCount to 2 (default max(2, floor(log2(n) * log2(log2(n)) * 3 / 2)): C1 and C2 " +
				"together, started on demand, 2 for 1 CPU), from its next start on; at so small a limit that alone " +
				"does not end throttling."},
		{rowOf(t, "jdk-common-pool"), 15, 9, 4, 16, // the caller works too
			"the JDK's common pool (parallel streams, CompletableFuture): 15 threads and 9 at once are more than the " +
				"limit of 4 CPUs: set -Djava.util.concurrent.ForkJoinPool.common.parallelism to 3 (default max(1, n " +
				"- 1), 3 for 4 CPUs), while it runs, by ForkJoinPool.commonPool().setParallelism, JDK 19 and later."},
		{rowOf(t, "openblas"), 16, 16, 2, 16,
			"OpenBLAS: 16 threads and 16 at once are more than the limit of 2 CPUs: set OPENBLAS_NUM_THREADS to 2 " +
				"(default n, 16 for 16 CPUs), while it runs, by openblas_set_num_threads, threadpoolctl."},
		{rowOf(t, "netty-nio"), 4, 4, 0, 2, // no limit
			"Netty's NIO event loop is sized by -Dio.netty.eventLoopThreads (default max(1, 2 * n), 4 for 2 CPUs)."},
		{rowOf(t, "netty-nio"), 2, 2, 2, 16, ""},      // fits
		{rowOf(t, "tomcat"), 200, 3, 4, 16, ""},       // many threads, few at once
		{rowOf(t, "hotspot-single"), 3, 3, 1, 16, ""}, // nothing sizes it
		{Row{}, 3, 3, 1, 16, ""},                      // an unknown pool
	} {
		if got := c.row.Advice(c.threads, c.widest, c.limit, c.host); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.row.Key, got, c.want)
		}
	}
}

// TestFitProperties: for every row, a pool of the size advised is no wider than the limit allows, unless the setting
// takes no smaller value, or the row advises no less at any limit; advice is one line and never suggests more threads than there are.
func TestFitProperties(t *testing.T) {
	rows := knownOnce().allRows()
	rapid.Check(t, func(t *rapid.T) {
		r := rows[rapid.IntRange(0, len(rows)-1).Draw(t, "row")]
		threads := rapid.IntRange(1, 5000).Draw(t, "threads")
		widest := rapid.IntRange(1, threads).Draw(t, "widest")
		limit := rapid.Float64Range(0.01, 300).Draw(t, "limit")
		host := rapid.IntRange(1, 512).Draw(t, "host")
		fit, ok := r.FittingThreads(threads, widest, limit)
		if !ok || fit < 1 {
			t.Fatalf("%s: %d, %v", r.Key, fit, ok)
		}
		least, _ := r.FittingThreads(threads, widest, 0.01)
		if r.Class != Blocking && float64(fit) > math.Max(limit, float64(least)) {
			t.Fatalf("%s: %d threads for %v CPUs", r.Key, fit, limit)
		}
		// Blocking threads run at once in the proportion that they did.
		if most := math.Max(math.Ceil(limit), 1); r.Class == Blocking && float64(widest) > limit &&
			float64(fit)*float64(widest)/float64(threads) > most*float64(widest)/float64(threads)+limit {
			t.Fatalf("%s: %d of %d threads, %d at once, for %v CPUs", r.Key, fit, threads, widest, limit)
		}
		advice := r.Advice(threads, widest, limit, host)
		if advice == "" {
			return
		}
		if strings.ContainsAny(advice, "\n\x1b") || !strings.HasSuffix(advice, ".") || r.Setting == "" || threads <= fit {
			t.Fatalf("%s: %q", r.Key, advice)
		}
	})
}
