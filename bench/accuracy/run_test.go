//go:build accuracy

package accuracy_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bench/accuracy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/agreement"
	"github.com/unthrottle/unthrottle/internal/sim/agreement/measure"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/study"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	mains := map[string]func() int{threads.Command: threads.Main, service.Command: service.Main, loadgen.Command: loadgen.Main}
	if len(os.Args) > 1 && mains[os.Args[1]] != nil {
		os.Exit(mains[os.Args[1]]())
	}
	os.Exit(m.Run())
}

// Where results are kept, so that a run that was interrupted goes on, and the page that is generated.
const (
	file = "../../.cache/accuracy.jsonl"
	page = "../../docs/results/accuracy.md"
	// labFiles are what was compared in the lab.
	labFiles = "../../.cache/allcpus/*.json"
)

// mostTries is how many runs of a draw may be too noisy for one that is not, before it is left as not judged.
const mostTries = 4

// TestAccuracy makes the real runs that are missing, and writes the page: make accuracy.
func TestAccuracy(t *testing.T) {
	require.Root(t)
	draws, repeats := require.Number(t, "UNTHROTTLE_DRAWS", 40), require.Number(t, "UNTHROTTLE_REPEATS", 5)
	seconds := require.Number(t, "UNTHROTTLE_SECONDS", 10)
	h, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	m, err := measure.Machine(h, 2)
	if err != nil {
		t.Fatal(err)
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	about := accuracy.About{Machine: m, Release: string(release), Seconds: float64(seconds), Repeats: repeats,
		Seeds: simulatedSeeds, ClaimSeeds: claimSeeds}
	runs := accuracy.NewStudy(about)
	for seed := range uint64(draws) {
		d, err := agreement.New(seed, m)
		if err != nil {
			t.Fatal(err)
		}
		runs.Expect(d)
	}
	add := func(r agreement.Result) {
		if r.WakeCosts != nil {
			runs.AddWakeCosts(r.Machine, *r.WakeCosts)
		} else {
			runs.Add(r)
		}
	}
	have, err := study.ReadLines[agreement.Result](file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range have.All {
		add(r)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := realrun.Options{Host: h}
	// keep takes in a result; false: the run was interrupted, and is none.
	keep := func(r agreement.Result, err error) bool {
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := have.Add(r); err != nil {
			t.Fatal(err)
		}
		add(r)
		return true
	}
	for n := 0; ctx.Err() == nil && os.Getenv("UNTHROTTLE_PAGE_ONLY") == ""; n++ {
		d, ok := runs.Next(mostTries)
		if !ok {
			break
		}
		if n%accuracy.CalibrateEvery == 0 && !keep(measure.WakeCosts(ctx, m, o)) {
			break
		}
		o.Seed = uint64(runs.Runs(d)) + 1
		r, err := measure.Real(ctx, d, m, time.Duration(seconds)*time.Second, o)
		if !keep(r, err) {
			break
		}
		fmt.Fprintf(os.Stderr, "draw %d: steal %.1f %%, others %.1f %%; %s\n", d.Seed, 100*r.Noise.Steal,
			100*r.Noise.Others, runs.Progress())
	}
	claims, err := accuracy.Published{Read: readScenario, Run: runScenario, Seeds: claimSeeds, Real: readReal(t)}.Claims()
	if err != nil {
		t.Fatal(err)
	}
	text := runs.Markdown(simulated(t, time.Duration(seconds)*time.Second, runs.WakeCosts),
		accuracy.Beside{Published: claims, OnAllCPUs: labKernels(t)})
	if err := study.WritePage(page, text); err != nil {
		t.Fatal(err)
	}
}

// labKernels are the comparisons that `make accuracy-lab` left.
func labKernels(t *testing.T) (all []agreement.AllCPUs) {
	files, err := filepath.Glob(labFiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		var one agreement.AllCPUs
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &one)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, one)
	}
	return all
}

const simulatedSeeds = 20

// simulated makes a draw's simulated runs.
func simulated(t *testing.T, duration time.Duration,
	costs func(agreement.Draw) scenario.WakeCosts) func(agreement.Draw) []scenario.Outcome {
	return func(d agreement.Draw) (all []scenario.Outcome) {
		for seed := range uint64(simulatedSeeds) {
			r, err := simulate.Run(d.Simulated(duration, costs(d)), simulate.Options{Seed: seed + 1})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r.Outcome)
		}
		return all
	}
}

var update = flag.Bool("update", false, "write the published figures of docs/results/accuracy.md anew")

// claimSeeds are fewer than those of the draws: these scenarios are large.
const claimSeeds = 7

// The page's last part is what the simulator makes of the published figures.
func TestThePageHasThePublishedFigures(t *testing.T) {
	claims, err := accuracy.Published{Read: readScenario, Run: runScenario, Seeds: claimSeeds, Real: readReal(t)}.Claims()
	if err != nil {
		t.Fatal(err)
	}
	want := accuracy.PublishedSection(claims, claimSeeds)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(text), "\n## Against published figures\n")
	if !ok {
		t.Fatalf("%s has no published figures", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != head+want {
		t.Errorf("%s is out of date: go -C bench test -tags accuracy -run PublishedFigures ./accuracy -update; it would end in\n%s", page, want)
	}
}

// TestForReal runs the published request on this host's kernel and keeps what came, for the page: go -C bench test -tags accuracy
// -run ForReal ./accuracy -update. A run that noise disturbed is made again.
func TestForReal(t *testing.T) {
	require.Root(t)
	if !*update {
		t.Skip("-update makes the runs")
	}
	h, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	m, err := measure.Machine(h, 1)
	if err != nil {
		t.Fatal(err)
	}
	text, err := readScenario("conceptual")
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse("conceptual.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	r := accuracy.ForReal{Machine: m, Release: strings.TrimSpace(string(release)), At: time.Now().UTC()}
	const wanted = 20
	for tries := 0; len(r.Runs) < wanted; tries++ {
		if tries == mostTries*wanted {
			t.Fatalf("%d of %d runs in %d tries: the host is too busy", len(r.Runs), wanted, tries)
		}
		run, noise, err := measure.Run(t.Context(), s, realrun.Options{Host: h, Seed: uint64(tries) + 1})
		if err != nil {
			t.Fatal(err)
		}
		if why := noise.TooMuch(); why != "" {
			t.Log(why)
			continue
		}
		r.Runs = append(r.Runs, run.Outcome)
	}
	out, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(realFile, append(out, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
