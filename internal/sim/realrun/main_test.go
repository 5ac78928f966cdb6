package realrun

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload/jvm"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// envVictim makes the test binary run an experiment below the scope that it
// names, to be killed.
const envVictim = "UNTHROTTLE_EXPERIMENT_VICTIM"

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	mains := map[string]func() int{threads.Command: threads.Main, service.Command: service.Main,
		loadgen.Command: loadgen.Main, jvm.Command: jvm.Main}
	if len(os.Args) > 1 && mains[os.Args[1]] != nil {
		os.Exit(mains[os.Args[1]]())
	}
	if scope := os.Getenv(envVictim); scope != "" {
		os.Exit(victim(scope))
	}
	os.Exit(m.Run())
}

// everything is a scenario with nested cgroups and a workload of each kind.
const everything = `version: 1
duration: 1500ms
host: {cpus: 2}
cgroups:
  pod: {quota: 150ms}
  app: {parent: pod, quota: 50ms, weight: 200}
  one: {parent: pod, cpus: "1"}
workloads:
  burners: {kind: burn, cgroup: app, threads: 2}
  sleeper: {kind: sleeper, cgroup: app, sleep: 5ms}
  pool: {kind: sleep-run, cgroup: one, threads: 2, run: {exponential: 1ms}, sleep: {uniform: [5ms, 15ms]}}
  fib: {kind: fib, cgroup: one, threads: 2}
  calls: {kind: kernel, cgroup: one, run: 2ms, sleep: 20ms}
  neighbour: {kind: neighbour, threads: 2, on: 10ms, off: 90ms}
  web:
    kind: service
    cgroup: one
    pools: {http: {threads: 2}}
    classes:
      get: {pool: http, work: 500us, arrivals: {per_second: 100}}
      ping: {work: 50us, arrivals: {per_second: 20, gaps: equal}}
    timeout: 500ms
    retries: {max: 1}
    phases: [{for: 500ms, factor: 2}, {for: 1s, factor: 1}]
  capped: {kind: service, threads: 1, work: 100us, arrivals: {per_second: 200}, rate_limit: {per_second: 20, burst: 5}}
  gc: {kind: gc, cgroup: one, of: web, threads: 2, work: 5ms, every: 200ms}
`

func parsed(t testing.TB, text string) scenario.Scenario {
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// options are of a scope of the test's own.
func options(t *testing.T) (Options, *cgrouptest.Tree) {
	tree := cgrouptest.New(t)
	tree.Make("inner") // on v2: makes the top hand its controllers on
	return Options{Host: tree.Host, Scope: tree.Top, Seed: 1}, tree
}

// victim runs for long, and says when it is under way.
func victim(scope string) int {
	h, err := cgroup.Open("/proc")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s, err := scenario.Parse("victim", []byte(strings.Replace(everything, "duration: 1500ms", "duration: 10m", 1)))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go func() {
		for {
			time.Sleep(50 * time.Millisecond)
			children, _ := h.Children(cgroup.CPU, scope)
			for _, c := range children {
				app := cgroup.Join(cgroup.Join(c, "pod"), "app")
				if inside, err := h.Procs(cgroup.CPU, app); err == nil && len(inside) == 2 {
					fmt.Println("under way")
					return
				}
			}
		}
	}()
	_, err = Run(context.Background(), s, Options{Host: h, Scope: scope})
	fmt.Println(err)
	return 1
}
