package simulate

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/test/study"
)

// spikeRemedies are lines of the cgroup in the scenario of the death spiral, for a limit of N CPUs: Q is its quota in 100 ms, Q3 that in
// 300 ms, Q10 in 1 s; C2 and C20 are credits of 200 ms and 2 s for each of its CPUs.
var spikeRemedies = []struct{ name, cgroup string }{
	{"100 ms", "quota: Q"}, {"burst, 100 ms", "quota: Q, burst: Q"}, {"burst, 300 ms", "quota: Q3, period: 300ms, burst: Q3"},
	{"1 s", "quota: Q10, period: 1s"}, {"burst, 1 s", "quota: Q10, period: 1s, burst: Q10"},
	{"narrow, no credit", "quota: Q, remedy: {kind: narrow}"},
	{"narrow, credit of 200 ms a CPU", "quota: Q, remedy: {kind: narrow, credit: C2}"},
	{"narrow, credit of 2 s a CPU", "quota: Q, remedy: {kind: narrow, credit: C20}"},
	{"pin", "quota: Q, remedy: {kind: pin, cpus: N}"}, {"no limit", "quota: Q, remedy: {kind: weight}"},
}

// spiked says when the service of examples/scenarios/death-spiral.yaml, made for a limit of so many CPUs on a host with more, recovered
// from a spike, in seconds after it; negative: not within 14 s. ingredients are replaced in the file.
func spiked(t *testing.T, cgroup string, limit, hostCPUs int, seed uint64, ingredients ...string) float64 {
	t.Helper()
	text, err := os.ReadFile("../../../examples/scenarios/death-spiral.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ms := func(n int) string { return fmt.Sprintf("%dms", n*limit) }
	line := strings.NewReplacer("Q10", ms(1000), "Q3", ms(300), "Q", ms(100), "C20", ms(2000), "C2", ms(200),
		"N", fmt.Sprint(limit)).Replace(cgroup)
	all := append([]string{"app: {quota: 100ms}", "app: {" + line + "}", "{cpus: 2}", fmt.Sprintf("{cpus: %d}", hostCPUs),
		"threads: 8, queue: 400", fmt.Sprintf("threads: %d, queue: %d", 8*limit, 400*limit),
		"per_second: 133", fmt.Sprintf("per_second: %d", 133*limit),
		"inflate: 0.003", fmt.Sprintf("inflate: %g", 0.003/float64(limit))}, ingredients...)
	s, err := scenario.Parse("spike", []byte(strings.NewReplacer(all...).Replace(string(text))))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	r, err := Run(s, Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	if back := r.Outcome.Workloads["web"].RecoverySeconds; back != nil {
		return *back
	}
	return -1
}

// Ingredients of the spike, as they stand in the file and are replaced.
var (
	noRetries = []string{"    retries: {max: 1, backoff: 20ms}\n", ""}
	budgeted  = []string{"{max: 1, backoff: 20ms}", "{max: 1, budget: 0.1, backoff: 20ms}"}
	longSpike = []string{"duration: 20s", "duration: 29s", "for: 3s, factor: 3", "for: 12s, factor: 3"}
)

// TestSpikeAndTheWayBack: a burst in a period of a second takes a spike in that the same quota in 100 ms never recovers from, as long as
// what was saved lasts; bounding the width without credit does not help. With -update-periods it writes the page.
func TestSpikeAndTheWayBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		remedy    int
		recovers  bool
		different []string
	}{{0, false, nil}, {4, true, nil}, {4, false, longSpike}, {5, false, nil}, {9, true, longSpike}} {
		of := spikeRemedies[c.remedy]
		if back := spiked(t, of.cgroup, 1, 2, 1, c.different...); back >= 0 != c.recovers {
			t.Errorf("%s, %v: recovered after %v s", of.name, c.different, back)
		}
	}
	if !*updatePeriods {
		return
	}
	columns := []struct {
		name        string
		ingredients []string
	}{{"retries", nil}, {"retries within a budget of 10 %", budgeted}, {"no retries", noRetries}, {"12 s, retries", longSpike},
		{"12 s, no retries", slices.Concat(longSpike, noRetries)}}
	page := ""
	for _, host := range []struct{ limit, cpus int }{{1, 2}, {2, 8}, {8, 32}} {
		page += fmt.Sprintf("\nA limit of %d of %d CPUs:\n\n| remedy |", host.limit, host.cpus)
		for _, c := range columns {
			page += " " + c.name + " |"
		}
		page += "\n|---|" + strings.Repeat("---|", len(columns)) + "\n"
		for _, of := range spikeRemedies {
			page += "| " + of.name + " |"
			for _, c := range columns {
				page += " " + recoveredText(t, of.cgroup, host.limit, host.cpus, c.ingredients) + " |"
			}
			page += "\n"
		}
	}
	if err := study.WriteBetween("../../../docs/results/period.md", "spikes", strings.TrimSpace(page)); err != nil {
		t.Fatal(err)
	}
}

// recoveredText is when it recovered with three seeds.
func recoveredText(t *testing.T, cgroup string, limit, cpus int, ingredients []string) string {
	t.Helper()
	var times []string
	for seed := range uint64(3) {
		back := spiked(t, cgroup, limit, cpus, seed+1, ingredients...)
		text := fmt.Sprint(back)
		if back < 0 {
			text = "never"
		}
		times = append(times, text)
	}
	if len(slices.Compact(slices.Clone(times))) == 1 {
		return times[0]
	}
	return strings.Join(times, ", ")
}
