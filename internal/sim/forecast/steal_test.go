package forecast

import (
	"testing"
	"time"
)

// The kernel does not charge steal: the same threads are throttled less, and take as long.
func TestSteal(t *testing.T) {
	run := func(charged float64, remedy string) (*Load, result) {
		r := bursts()
		used := loadOf(t, r).recorded.cpu
		r.Footer.UsageNS = new(int64(charged * float64(used)))
		l := loadOf(t, r)
		result, err := l.run(trial{remedy: Remedy{Name: remedy}, load: 1, seed: 1})
		if err != nil || result.refused != nil {
			t.Fatal(err, result.refused)
		}
		if d := result.cpu - l.recorded.cpu; remedy == None && d.Abs() > time.Millisecond {
			t.Errorf("%v charged of %v: replayed %v of %v", charged, used, result.cpu, l.recorded.cpu)
		}
		return l, result
	}
	whole, all := run(1, None)
	stolen, less := run(0.7, None)
	if len(stolen.notes) != len(whole.notes)+1 {
		t.Errorf("notes %q", stolen.notes)
	}
	if less.stopped >= all.stopped || less.throttledPeriods > all.throttledPeriods {
		t.Errorf("stopped %v in %d periods, without steal %v in %d", less.stopped, less.throttledPeriods, all.stopped, all.throttledPeriods)
	}
	// 64 ms of work on 8 CPUs, 50 ms charged per period: with three tenths stolen it all fits in one.
	if less.throttledPeriods != 0 {
		t.Errorf("%d throttled periods, and 45 of 50 ms are charged", less.throttledPeriods)
	}
	// The width stays, and the rest of the quota below it lasts longer: 64 ms at 5 or at 7.1 in 10.
	_, all = run(1, Narrow)
	_, less = run(0.7, Narrow)
	if all.widest != 1 || less.widest != 1 || less.stopped > all.stopped*3/4 || less.stopped == 0 {
		t.Errorf("narrow: %d wide and stopped %v, without steal %d and %v", less.widest, less.stopped, all.widest, all.stopped)
	}
	// The forecast does not believe a counter that is ahead of the recording or far behind it.
	for given, want := range map[float64]float64{1.1: 1, 0.1: minCharged} {
		if l, _ := run(given, None); l.charged != want {
			t.Errorf("%v charged: %v is taken", given, l.charged)
		}
	}
}

// Of a recording that is too long to be replayed as a whole, the part that is was charged as the whole was.
func TestStealOfACutRecording(t *testing.T) {
	r := bursts()
	on := int64(0)
	for _, ns := range r.Footer.OnCPUNS {
		on += ns
	}
	r.Footer.UsageNS = new(on * 7 / 10)
	b, err := newBuilder(r.Header)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Events {
		b.add(&r.Events[i])
	}
	b.full = true
	l, err := b.finish(r.Footer)
	if err != nil {
		t.Fatal(err)
	}
	if on == 0 || l.charged < 0.65 || l.charged > 0.75 {
		t.Errorf("charged %v of %d ns", l.charged, on)
	}
}
