//go:build accuracy

package forecast

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/agreement"
	"github.com/unthrottle/unthrottle/internal/sim/agreement/measure"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/study"
)

// The folder of the recordings, from which an interrupted test goes on, and the results.
const (
	heldOutFolder   = "../../../.cache/forecast"
	heldOutPage     = "../../../docs/results/forecast.md"
	calibrationFile = "calibration.json"
)

// heldOutList lists the runs.
var heldOutList = filepath.Join(heldOutFolder, "runs.jsonl")

func (r *heldOutRun) quiet() bool { return r.Noise.Steal <= mostSteal && r.Noise.Others <= mostOthers }

func (r *heldOutRun) noise() float64 { return r.Noise.Steal + r.Noise.Others }

// heldOutRun is one real run. Its recording lies beside the list, under its name.
type heldOutRun struct {
	Name  string          `json:"name"`
	Noise agreement.Noise `json:"noise"`
}

func nameOfRun(seed uint64, remedy string, repeat int) string {
	return fmt.Sprintf("%d-%s-%d", seed, remedy, repeat)
}

func fileOfRun(name string) string { return filepath.Join(heldOutFolder, name+".rec") }

// TestHeldOut records random workloads without and with each remedy, three times. It forecasts each from its
// first recording, and writes the error: make accuracy-forecast. UNTHROTTLE_FIRST and UNTHROTTLE_DRAWS choose
// the workloads.
func TestHeldOut(t *testing.T) {
	first, draws := uint64(require.Number(t, "UNTHROTTLE_FIRST", heldOutFirst)), require.Number(t, "UNTHROTTLE_DRAWS", heldOutDraws)
	if os.Getenv("UNTHROTTLE_PAGE_ONLY") == "" {
		runAll(t, first, draws)
	}
	all := forecastAll(t, first, draws)
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	text := heldOutMarkdown(all, strings.TrimSpace(string(release)), noisyRuns(t, first, draws))
	if err := study.WritePage(heldOutPage, text); err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(calibrate(all), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(calibrationFile, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// runAll makes the missing runs, those of one workload far apart in time.
func runAll(t *testing.T, first uint64, draws int) {
	require.Root(t)
	require.BPF(t)
	require.CPUs(t, 2)
	have, tries, least := triesOf(t)
	tree := cgrouptest.New(t)
	tree.Make("inner")
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for repeat := range heldOutRepeats {
		for seed := first; seed < first+uint64(draws); seed++ {
			for _, r := range heldOutRemedies {
				name := nameOfRun(seed, r.Name, repeat)
				for tries[name] < mostTries && (tries[name] == 0 || !least[name].quiet()) {
					if interrupted.Err() != nil {
						return
					}
					recording, noise := recordOne(t, tree, seed, r)
					run := heldOutRun{name, noise}
					if best := least[name]; best == nil || run.noise() < best.noise() {
						least[name] = &run
						writeFile(t, fileOfRun(name), recording)
					}
					if err := have.Add(run); err != nil {
						t.Fatal(err)
					}
					tries[name]++
					fmt.Fprintf(os.Stderr, "%s: steal %.1f %%, others %.1f %%\n", name, 100*run.Noise.Steal, 100*run.Noise.Others)
				}
			}
		}
	}
}

// triesOf returns how often each run was made, and the try in which other programs used least of the CPUs,
// whose recording stays.
func triesOf(t *testing.T) (have *study.Lines[heldOutRun], tries map[string]int, least map[string]*heldOutRun) {
	tries, least = map[string]int{}, map[string]*heldOutRun{}
	have, err := study.ReadLines[heldOutRun](heldOutList)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range have.All {
		tries[r.Name]++
		if best := least[r.Name]; best == nil || r.noise() < best.noise() {
			least[r.Name] = &r
		}
	}
	return have, tries, least
}

// noisyRuns counts the runs in which other programs used too much of the CPUs at every try.
func noisyRuns(t *testing.T, first uint64, draws int) (noisy count) {
	_, _, least := triesOf(t)
	for seed := first; seed < first+uint64(draws); seed++ {
		for _, r := range heldOutRemedies {
			for repeat := range heldOutRepeats {
				if run := least[nameOfRun(seed, r.Name, repeat)]; run != nil {
					noisy.add(!run.quiet())
				}
			}
		}
	}
	return noisy
}

// recordOne returns the recording of one run, and the CPU time of other programs.
func recordOne(t *testing.T, tree *cgrouptest.Tree, seed uint64, r Remedy) ([]byte, agreement.Noise) {
	text, _ := drawnWorkload(seed)
	s, err := scenario.Parse("drawn", []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	c := &s.Cgroups[0]
	c.Remedy = r.applied(c.Limit)
	watch := &recorded{host: tree.Host, target: "app"}
	_, noise, err := measure.Run(t.Context(), s, realrun.Options{Host: tree.Host, Scope: tree.Top, Seed: seed, Probe: watch})
	if err != nil {
		t.Fatal(err)
	}
	return watch.file.Bytes(), noise
}

func writeFile(t *testing.T, name string, data []byte) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// forecastAll forecasts each recorded workload, and adds the real results.
func forecastAll(t *testing.T, first uint64, draws int) []heldOut {
	made := make([]*heldOut, draws)
	var next atomic.Int64
	var working sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			for i := next.Add(1) - 1; i < int64(draws); i = next.Add(1) - 1 {
				made[i] = forecastOf(t, first+uint64(i))
			}
		})
	}
	working.Wait()
	var all []heldOut
	for _, h := range made {
		if h != nil {
			all = append(all, *h)
		}
	}
	return all
}

// forecastOf forecasts one workload; nil: it has no recording yet.
func forecastOf(t *testing.T, seed uint64) *heldOut {
	file, err := os.ReadFile(fileOfRun(nameOfRun(seed, None, 0)))
	if err != nil {
		return nil
	}
	_, pool := drawnWorkload(seed)
	l := loaded(t, file)
	f, err := Make(l, Options{Seeds: heldOutSeeds, Seed: 1,
		Objective: &Objective{Objective: objective.Objective{Quantile: 0.99, Bound: time.Hour}, Pool: pool}})
	if err != nil {
		t.Error(err)
		return nil
	}
	out := &heldOut{Draw: seed, Pool: pool}
	for _, r := range heldOutRemedies {
		row := heldOutRow{Remedy: r.Name}
		if !row.predicted(l, f, r, pool) {
			continue // such as a pin to as many CPUs as there are
		}
		for repeat := range heldOutRepeats {
			if file, err := os.ReadFile(fileOfRun(nameOfRun(seed, r.Name, repeat))); err == nil {
				if came, ok := figuresOf(loaded(t, file), pool); ok {
					row.Came = append(row.Came, came)
				}
			}
		}
		if len(row.Came) > 0 {
			out.Rows = append(out.Rows, row)
		}
	}
	if len(out.Rows) < 2 || out.Rows[0].Remedy != None {
		return nil
	}
	return out
}
