package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	judging "github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/objective"
)

// Where another quantile than p99 is judged, no part of a forecast and of its verdict goes by p99: the figure, its error, the search
// for the load that breaks a remedy, the notes and the words.
func TestAnotherQuantileIsJudged(t *testing.T) {
	const p95 = 0.95
	l := loadOf(t, burstsFor(20, "http-worker", 8*ms))
	o := Options{Seeds: 2, Seed: 1, From: 1, To: 3, Quantile: p95}
	f, err := Make(l, o)
	if err != nil {
		t.Fatal(err)
	}
	if f.Judged == nil || f.Judged.Quantile != p95 {
		t.Fatalf("judged: %+v", f.Judged)
	}
	pools := Objective{Objective: objective.Objective{Quantile: p95}}
	for i, row := range f.Rows {
		if row.Error == nil || row.HostLoad > 0 {
			continue
		}
		one, err := l.run(trial{remedy: row.Remedy, load: 1, seed: o.Seed})
		if err != nil {
			t.Fatal(err)
		}
		off := l.errorOf([]result{one}, f.Check, pools, Residual{})
		if want := l.rangeOf([]result{one}, "", p95, f.Check.P99, 0); off.judged == nil || want == nil || *off.judged != *want {
			t.Errorf("row %d: the error is %+v, that of p95 %+v", i, off.judged, want)
		}
		if off.judged == off.P99 {
			t.Errorf("row %d: the error is that of p99", i)
		}
	}
	if notes := strings.Join(f.Notes, " "); strings.Contains(notes, "p99") {
		t.Errorf("notes: %s", notes)
	}
	few, err := Make(loadOf(t, burstsFor(4, "http-worker", 8*ms)), Options{Seeds: 1, Seed: 1, Quantile: p95})
	if err != nil || few.Judged == nil {
		t.Fatalf("few: %+v, %v", few, err)
	}
	if notes := strings.Join(few.Notes, " "); few.Judged.Quantile < p95 == !strings.Contains(notes, "tell no p95") {
		t.Errorf("few samples, judged by %v: %s", few.Judged.Quantile, notes)
	}
	var before, after []float64
	for i := range 400 {
		before, after = append(before, 20+float64(i%97)), append(after, 10+float64(i%89)/2)
	}
	j := judging.Judge(judging.Evidence{Quantile: f.Judged.Quantile, Before: slices.Clone(before), After: after})
	if j.Quantile != p95 || j.Verdict != judging.Better || strings.Contains(fmt.Sprint(j.Why), "p99") {
		t.Errorf("verdict: %+v", j)
	}
}
