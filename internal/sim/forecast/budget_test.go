package forecast

import (
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// ofGo makes the processes of a recording Go programs.
func ofGo(r recording.Recording) recording.Recording {
	r.Header.Processes = []recording.Process{{TGID: 1, Go: "go1.26.0"}}
	return r
}

func TestLanguages(t *testing.T) {
	processes := []recording.Process{{Go: "go1.26.0"}, {Libraries: []string{"/usr/lib/libc.so.6"}}, {Go: "go1.25.0"},
		{Libraries: []string{"/opt/java/lib/server/libjvm.so"}}}
	if got := languagesOf(processes); !slices.Equal(got, []string{LanguageGo, LanguageJVM}) {
		t.Errorf("%q", got)
	}
	if got := languagesOf(processes[1:2]); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// budgetRow is the row of the library in a forecast, and that of leaving it; nil: there is none.
func budgetRow(t *testing.T, l *Load, o Options) (budget, none *Row) {
	t.Helper()
	f, err := Make(l, o)
	if err != nil {
		t.Fatal(err)
	}
	if f.Cheapest >= 0 && f.Rows[f.Cheapest].Remedy.OfService() {
		t.Errorf("the cheapest remedy is %+v, which no plan can do", f.Rows[f.Cheapest].Remedy)
	}
	for i := range f.Rows {
		switch f.Rows[i].Remedy.Name {
		case Budget:
			budget = &f.Rows[i]
		case None:
			none = &f.Rows[i]
		}
	}
	return budget, none
}

// Work of 8 ms is held back so that no period is throttled, at no more CPUs at once than there are permits. The row has the error
// of real runs.
func TestBudgetHoldsWorkBack(t *testing.T) {
	budget, none := budgetRow(t, loadOf(t, ofGo(bursts())), Options{Seeds: 3, Seed: 1, Calibration: Tested()})
	if budget == nil {
		t.Fatal("no row")
	}
	if none.Figures.ThrottledPeriods == 0 || budget.Figures.ThrottledPeriods > none.Figures.ThrottledPeriods/4 {
		t.Errorf("%v periods throttled, %v without", budget.Figures.ThrottledPeriods, none.Figures.ThrottledPeriods)
	}
	if budget.Remedy.CPUs != 1 || budget.Figures.Widest > 2 || !budget.Remedy.InCode() || budget.Remedy.Modelled() {
		t.Errorf("%+v, widest %d", budget.Remedy, budget.Figures.Widest)
	}
	if off := budget.Figures.CPU + budget.Figures.Unfinished - none.Figures.CPU - none.Figures.Unfinished; off < -ms || off > ms {
		t.Errorf("%v of work more or less", off)
	}
	if budget.Error == nil || budget.Error.Tested < minTested {
		t.Errorf("error %+v", budget.Error)
	}
}

// A program that has the library, work that is short, and the runtime's own threads have no such row.
func TestNoBudgetWhereItBringsNothing(t *testing.T) {
	had := ofGo(bursts())
	had.Header.Processes[0].Budget = &recording.Budget{}
	short := ofGo(burstsOf("http-worker", 900*time.Microsecond))
	for name, r := range map[string]recording.Recording{"in force": had, "short work": short,
		"the runtime's own": ofGo(burstsOf("VirtualThread-unparker", 8*ms)), "of another language": bursts()} {
		if row, _ := budgetRow(t, loadOf(t, r), Options{Seeds: 1, Seed: 1}); row != nil {
			t.Errorf("%s: %+v", name, row)
		}
	}
}
