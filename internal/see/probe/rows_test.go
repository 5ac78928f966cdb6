package probe_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// rowsFor collects rows until enough returns true, or a minute has passed.
func rowsFor(t testing.TB, p *probe.Probe, enough func(rows []probe.PeriodRow) bool) (rows []probe.PeriodRow) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, p.PeriodRows(ctx, func(r probe.PeriodRow) error {
		if rows = append(rows, r); enough(rows) {
			cancel()
		}
		return nil
	}))
	if !enough(rows) {
		t.Fatalf("only %d rows in a minute: %+v", len(rows), rows)
	}
	return rows
}

// sums are the totals of rows.
type sums struct {
	length, width, stopped, throttled float64 // ns, CPUs x ns, ns, ns
}

// add adds rows up, after it has checked each one and that none is missing in between.
func add(t testing.TB, rows []probe.PeriodRow, c probe.Container) (s sums) {
	t.Helper()
	for i, r := range rows {
		if r.Cgroup != c.ID || r.LengthNS == 0 || r.StoppedShare < 0 || r.StoppedShare > 1 || r.Lost ||
			r.MeanWidth < 0 || r.MeanWidth > float64(r.MostWidth)+0.01 || r.MostWidth > cpus(t) {
			t.Errorf("row %d of %q, %d CPUs: %+v", i, c.Path, cpus(t), r)
		}
		if i > 0 && r.EndNS-r.LengthNS != rows[i-1].EndNS {
			t.Errorf("row %d begins at %d, the one before ends at %d", i, r.EndNS-r.LengthNS, rows[i-1].EndNS)
		}
		ns := float64(r.LengthNS)
		s.length += ns
		s.width += r.MeanWidth * ns
		s.stopped += r.StoppedShare * ns
		if r.Throttled {
			s.throttled += ns
		}
	}
	return s
}

// within reports whether rows have what was counted, except tail, which came after the last one.
func within(rows, counted, tail float64) bool {
	slack := 0.001*counted + 1e5 // a row has no more digits than its quotient
	return rows <= counted+slack && rows >= counted-tail-slack
}

// TestPeriodRows checks that every period has a row, and that together they agree with the counters.
func TestPeriodRows(t *testing.T) {
	require.EachCgroup(t, "the ids of cgroups and their quotas")
	p := shared(t)
	tr := cgrouptest.New(t)
	path := tr.Make("a")
	tr.Limit(path, 0.4)
	tr.Work(path, 4)
	c := container(t, tr, path)
	before, steal := usage(t, tr, path), stolen(t)
	watch(t, p, c)
	const want = 25
	rows := rowsFor(t, p, func(rows []probe.PeriodRow) bool { return len(rows) >= want })
	counts := read(t, p, c)
	after := usage(t, tr, path)
	steal = stolen(t) - steal

	// The first row begins at Watch.
	if rows[0].EndNS-rows[0].LengthNS != counts.SinceNS {
		t.Errorf("the first row begins at %d, counting at %d", rows[0].EndNS-rows[0].LengthNS, counts.SinceNS)
	}
	s := add(t, rows, c)
	tail := float64(counts.AtNS - rows[len(rows)-1].EndNS)
	if got := integral(counts.WidthNS); !within(s.width, got, tail*float64(cpus(t))) {
		t.Errorf("width x time is %.0f by %d rows, %.0f by the counters, %.0f ns later", s.width, len(rows), got, tail)
	}
	stopped := float64(*counts.StoppedNS)
	if !within(s.stopped, stopped, tail) {
		t.Errorf("stopped for %.0f ns by %d rows, %.0f by the counters, %.0f ns later", s.stopped, len(rows), stopped, tail)
	}
	if s.stopped < 0.1*s.length {
		t.Errorf("stopped for %.2f of the time; four threads share 0.4 CPUs", s.stopped/s.length)
	}
	used := float64(*after.Usage - *before.Usage)
	if may := 0.05*used + 4*float64(tick) + float64(steal) + tail*float64(cpus(t)); math.Abs(s.width-used) > may {
		t.Errorf("width x time is %.0f by the rows, the usage counter says %.0f", s.width, used)
	}

	// A late timer counts several periods together, so rows are compared by their length.
	const period = float64(100 * time.Millisecond)
	periods, throttled := float64(after.Periods-before.Periods), float64(after.ThrottledPeriods-before.ThrottledPeriods)
	if may := 3 + 0.1*periods + tail/period; math.Abs(s.length/period-periods) > may {
		t.Errorf("%d rows are %.1f periods long, the counter says %.0f", len(rows), s.length/period, periods)
	}
	if float64(len(rows)) > periods+1 {
		t.Errorf("%d rows of %.0f periods", len(rows), periods)
	}
	if may := 3 + 0.1*periods + tail/period; math.Abs(s.throttled/period-throttled) > may || s.throttled == 0 {
		t.Errorf("throttled in %.1f periods by the rows, the counter says %.0f", s.throttled/period, throttled)
	}
	t.Logf("%d rows, %.1f periods long (%.0f by the counter), throttled in %.1f (%.0f), stopped %.0f ms (%.0f), tail %.0f ms",
		len(rows), s.length/period, periods, s.throttled/period, throttled, s.stopped/1e6, stopped/1e6, tail/1e6)
}

// TestPeriodRowsOfAnAncestorsQuota checks that a container without a quota has rows while its pod's quota stops it.
func TestPeriodRowsOfAnAncestorsQuota(t *testing.T) {
	require.EachCgroup(t, "the ids of cgroups and their quotas")
	p := shared(t)
	tr := cgrouptest.New(t)
	pod, c := tr.Make("pod"), container(t, tr, tr.Make("pod/c"))
	free := container(t, tr, tr.Make("free")) // never stopped: no rows
	tr.Limit(pod, 0.3)
	tr.Work(c.Path, 3)
	watch(t, p, c)
	watch(t, p, free)
	const want = 15
	var first, last probe.Counts
	rows := rowsFor(t, p, func(rows []probe.PeriodRow) bool {
		last = read(t, p, c)
		if len(rows) == 1 {
			first = last
		}
		return len(rows) >= want
	})
	s := add(t, rows[1:], c) // from the first row's end to the last one's
	edge := float64(first.AtNS-rows[0].EndNS) + float64(last.AtNS-rows[len(rows)-1].EndNS)
	for what, pair := range map[string][2]float64{
		"width":   {s.width, integral(last.WidthNS) - integral(first.WidthNS)},
		"stopped": {s.stopped, float64(*last.StoppedNS - *first.StoppedNS)},
	} {
		if !near(pair[0], pair[1], 0.001, 1e5+edge*float64(cpus(t))) {
			t.Errorf("%s x time is %.0f by %d rows, %.0f by the counters; their ends are %.0f ns apart", what, pair[0],
				len(rows), pair[1], edge)
		}
	}
	if s.stopped < 0.1*s.length || s.throttled == 0 {
		t.Errorf("stopped for %.2f of the time; three threads share 0.3 CPUs: %+v", s.stopped/s.length, rows)
	}
	for _, r := range rows {
		if r.Throttled != (r.StoppedShare > 0) {
			t.Errorf("without a quota of its own, throttled means stopped: %+v", r)
		}
	}
}

// TestPeriodRowsEnd checks the ends: the sink's error, the context, Close. A second caller is refused.
func TestPeriodRowsEnd(t *testing.T) {
	p := open(t, probe.Options{})
	tr := cgrouptest.New(t)
	c := container(t, tr, tr.Make("a"))
	tr.Limit(c.Path, 0.3)
	tr.Work(c.Path, 2)
	must(t, p.Watch(c))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var busy error
	n := 0
	err := p.PeriodRows(ctx, func(probe.PeriodRow) error {
		n++
		busy = p.PeriodRows(ctx, func(probe.PeriodRow) error { return nil })
		return errBroken
	})
	if !errors.Is(err, errBroken) || n != 1 {
		t.Errorf("the sink failed at its first row: %v after %d", err, n)
	}
	if !errors.Is(busy, probe.ErrBusy) {
		t.Errorf("a second caller: %v", busy)
	}
	// It can be called again, and ends with its context.
	rowsFor(t, p, func(rows []probe.PeriodRow) bool { return len(rows) > 0 })
	err = p.PeriodRows(ctx, func(probe.PeriodRow) error { return p.Close() })
	if !errors.Is(err, probe.ErrClosed) {
		t.Errorf("closed while rows are taken: %v", err)
	}
	if err := p.PeriodRows(ctx, func(probe.PeriodRow) error { return nil }); !errors.Is(err, probe.ErrClosed) {
		t.Errorf("closed before: %v", err)
	}
}

func TestPeriodRowsNeedMoreThanWidth(t *testing.T) {
	p := open(t, probe.Options{WidthOnly: true})
	if err := p.PeriodRows(t.Context(), func(probe.PeriodRow) error { return nil }); err == nil {
		t.Error("rows although only width is counted")
	}
}
