package forecast

import (
	"testing"
	"time"
)

// Of what the hypervisor took nothing is charged: the same threads are throttled less, and take as long.
func TestSteal(t *testing.T) {
	run := func(charged float64, remedy string) (*Load, Result) {
		r := bursts()
		used := loadOf(t, r).Recorded.CPU
		r.Footer.UsageNS = new(int64(charged * float64(used)))
		l := loadOf(t, r)
		result, err := l.Run(Trial{Remedy: Remedy{Name: remedy}, Load: 1, Seed: 1})
		if err != nil || result.Refused != nil {
			t.Fatal(err, result.Refused)
		}
		if d := result.CPU - l.Recorded.CPU; remedy == None && d.Abs() > time.Millisecond {
			t.Errorf("%v charged of %v: replayed %v of %v", charged, used, result.CPU, l.Recorded.CPU)
		}
		return l, result
	}
	whole, all := run(1, None)
	stolen, less := run(0.7, None)
	if len(stolen.Notes) != len(whole.Notes)+1 {
		t.Errorf("notes %q", stolen.Notes)
	}
	if less.Stopped >= all.Stopped || less.ThrottledPeriods > all.ThrottledPeriods {
		t.Errorf("stopped %v in %d periods, without steal %v in %d", less.Stopped, less.ThrottledPeriods, all.Stopped, all.ThrottledPeriods)
	}
	// 64 ms of work on 8 CPUs, 50 ms charged per period: with three tenths stolen it all fits in one.
	if less.ThrottledPeriods != 0 {
		t.Errorf("%d throttled periods, and 45 of 50 ms are charged", less.ThrottledPeriods)
	}
	// A width stays, and what is left of the quota below it lasts longer: 64 ms at 5 or at 7.1 in 10.
	_, all = run(1, Narrow)
	_, less = run(0.7, Narrow)
	if all.Widest != 1 || less.Widest != 1 || less.Stopped > all.Stopped*3/4 || less.Stopped == 0 {
		t.Errorf("narrow: %d wide and stopped %v, without steal %d and %v", less.Widest, less.Stopped, all.Widest, all.Stopped)
	}
	// A counter that is ahead of what was seen, or far behind, is not believed; that of nobody neither.
	for given, want := range map[float64]float64{1.1: 1, 0.1: leastCharged} {
		if l, _ := run(given, None); l.charged != want {
			t.Errorf("%v charged: %v is taken", given, l.charged)
		}
	}
}
