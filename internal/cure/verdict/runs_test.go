package verdict

import (
	"strings"
	"testing"
	"time"
)

// runs are n runs of 10 s, of cpu ms each, whose response is factor times that; every tenth is ten times as long.
func runs(n int, cpu, factor float64) Runs {
	r := Runs{Window: 10 * time.Second}
	for i := range n {
		response := cpu * factor
		if i%10 == 0 {
			response *= 10
		}
		r.WokenMs = append(r.WokenMs, float64(i)*10_000/float64(n))
		r.CPUMs, r.ResponseMs = append(r.CPUMs, cpu), append(r.ResponseMs, response)
	}
	return r
}

func TestJudgeRuns(t *testing.T) {
	for _, tc := range []struct {
		name          string
		before, after Runs
		verdict       string
		quantile      float64
		perCPU        bool
		says          string
	}{
		{"shorter", runs(1000, 2, 10), runs(1000, 2, 2), Better, 0.99, false, "p99 from 200 ms"},
		{"longer", runs(1000, 2, 2), runs(1000, 2, 10), Worse, 0.99, false, "p99 from 40 ms"},
		{"the same", runs(1000, 2, 5), runs(1000, 2, 5), NoChange, 0.99, false, "1000 and 1000 samples"},
		{"less than a tenth is no change", runs(1000, 2, 5), runs(1000, 2, 4.7), NoChange, 0.99, false, ""},
		{"too few for p99", runs(200, 2, 10), runs(200, 2, 2), Better, 0.95, false, "p95 from"},
		{"far too few", runs(5, 2, 10), runs(5, 2, 2), Unverified, 0.99, false, "too few"},
		{"none", runs(1000, 2, 10), Runs{Window: time.Second}, Unverified, 0.99, false, "0 after"},
		// Half of the load came: responses are half as long by themselves. By run nothing changed.
		{"less work", runs(1000, 4, 5), runs(1000, 2, 5), NoChange, 0.99, true, "0.4 CPUs of work came before and 0.2 after"},
		{"less work, and shorter by run too", runs(1000, 4, 10), runs(1000, 2, 5), Better, 0.99, true, "times its CPU time"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := JudgeRuns(Evidence{}, 0.99, tc.before, tc.after)
			if j.Verdict != tc.verdict || j.Quantile != tc.quantile || j.PerCPU != tc.perCPU || !strings.Contains(j.Why, tc.says) {
				t.Errorf("%s, quantile %v, per CPU %v: %s", j.Verdict, j.Quantile, j.PerCPU, j.Why)
			}
		})
	}
}
