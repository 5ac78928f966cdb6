package simulate

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// The death spiral comes from its ingredients together, with every seed; without
// any one of them the service recovers, or nothing happens.
func TestDeathSpiral(t *testing.T) {
	outcomes := func(replace ...string) (workloadOutcomes []scenario.WorkloadOutcome) {
		s := parse(t, "death-spiral", replace...)
		for seed := uint64(1); seed <= 5; seed++ {
			workloadOutcomes = append(workloadOutcomes, run(t, s, seed).Workloads["web"])
		}
		return workloadOutcomes
	}
	for i, w := range outcomes() {
		if w.RecoverySeconds != nil || *w.Failed < 2*w.Count {
			t.Errorf("seed %d: %d answered, %d failed, recovered after %v s", i+1, w.Count, *w.Failed, w.RecoverySeconds)
		}
	}
	const retries, inflate = "    retries: {max: 1, backoff: 20ms}\n", "    inflate: 0.003\n"
	for name, replace := range map[string][]string{
		"retries":             {retries, ""},
		"work that inflates":  {inflate, ""},
		"retries and inflate": {retries, "", inflate, ""},
		"a long queue":        {"queue: 400", "queue: 20"},
		"the tight limit":     {"quota: 100ms", "quota: 200ms"},
	} {
		for i, w := range outcomes(replace...) {
			if w.RecoverySeconds == nil || *w.RecoverySeconds > 12 {
				t.Errorf("without %s, seed %d: %d answered, %d failed, and no recovery", name, i+1, w.Count, *w.Failed)
			}
		}
	}
	for i, w := range outcomes("factor: 3", "factor: 1") {
		if *w.Failed > 0 {
			t.Errorf("without the spike, seed %d: %d failed", i+1, *w.Failed)
		}
	}
}

// The small one, for real runs, has the same ingredients.
func TestDeathSpiralSmall(t *testing.T) {
	const retries, inflate = "    retries: {max: 1, backoff: 20ms}\n", "    inflate: 0.006\n"
	for name, replace := range map[string][]string{
		"": nil, "retries": {retries, ""}, "work that inflates": {inflate, ""},
		"a long queue": {"queue: 150", "queue: 20"}, "the tight limit": {"quota: 50ms", "quota: 100ms"},
	} {
		s := parse(t, "death-spiral-small", replace...)
		for seed := uint64(1); seed <= 5; seed++ {
			if w := run(t, s, seed).Workloads["web"]; (w.RecoverySeconds == nil) != (name == "") {
				t.Errorf("without %q, seed %d: %d answered, %d failed, recovered after %v s", name, seed, w.Count,
					*w.Failed, w.RecoverySeconds)
			}
		}
	}
}
