package forecast

import (
	"testing"
)

// A row that combines two remedies is shown where its interval lies below both of theirs.
func TestACombinationIsShownWhereItWins(t *testing.T) {
	parts := []Remedy{{Name: Narrow}, {Name: Burst, Burst: 80 * ms}}
	combined := Remedy{Name: Narrow, Burst: 80 * ms}
	row := func(r Remedy, low, high float64) Row { return Row{Remedy: r, JudgedRange: &Range{low, high}} }
	busier := Row{Remedy: combined, HostLoad: 0.9}
	for name, c := range map[string]struct {
		rows []Row
		kept bool
	}{
		"better than both": {[]Row{row(parts[0], 7.1, 8.8), row(combined, 2.4, 3.9), row(parts[1], 28, 57), busier}, true},
		"not than narrow":  {[]Row{row(parts[0], 3.8, 8.8), row(combined, 2.4, 3.9), row(parts[1], 28, 57), busier}, false},
		"not than burst":   {[]Row{row(parts[0], 7.1, 8.8), row(combined, 2.4, 3.9), row(parts[1], 2, 5), busier}, false},
		"a part cannot be": {[]Row{row(parts[0], 7.1, 8.8), row(combined, 2.4, 3.9), {Remedy: parts[1], Refused: "no"}, busier}, true},
		"nothing is known": {[]Row{row(parts[0], 7.1, 8.8), {Remedy: combined}, row(parts[1], 28, 57), busier}, false},
		"cannot be":        {[]Row{row(parts[0], 7.1, 8.8), {Remedy: combined, Refused: "no"}, row(parts[1], 28, 57), busier}, false},
	} {
		m := &maker{f: &Forecast{Rows: c.rows}, all: make([][]result, len(c.rows))}
		m.leaveOut()
		want := 2
		if c.kept {
			want = 4
		}
		if len(m.f.Rows) != want || len(m.all) != want {
			t.Errorf("%s: %d rows", name, len(m.f.Rows))
		}
	}
	if text := combined.Text(0.8); text != "narrow, burst 80ms" || combined.Parameters()["burst_seconds"] != 0.08 {
		t.Errorf("%q, %v", text, combined.Parameters())
	}
}

// Narrow with a burst keeps the period and the quota of a limit with a fraction.
func TestNarrowWithBurst(t *testing.T) {
	r := Remedy{Name: Narrow, Burst: 26 * ms}
	l := loadOf(t, bursts())
	s, err := l.scenarioWith(r)
	if err != nil {
		t.Fatal(err)
	}
	was, is := l.recordedScenario.Cgroups[l.binding].Limit, s.Cgroups[l.binding]
	if was.Burst = r.Burst; is.Limit != was || is.Width != 1 {
		t.Errorf("%+v, want %+v", is, was)
	}
	for limit, rows := range map[float64]int{1: 1, 0.8: 2, 2.5: 2} {
		if got := NarrowEffect.Rows(Container{Limit: limit}); len(got) != rows {
			t.Errorf("limit %g: %+v", limit, got)
		}
	}
}
