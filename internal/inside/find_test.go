package inside

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// recorded is a trial that was recorded on a real kernel (Linux 6.18, 2 CPUs, a tick of 4 ms), in microseconds.
func recorded(t *testing.T, name string) Trial {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		CPUs             int
		Tick, Light, End time.Duration
		UsedFull         time.Duration `json:"used_full"`
		Used             time.Duration
		Gaps             [][5]time.Duration
	}
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	const us = time.Microsecond
	out := Trial{CPUs: f.CPUs, Tick: f.Tick * us, Light: f.Light * us, End: f.End * us, UsedFull: f.UsedFull * us, Used: f.Used * us}
	for _, g := range f.Gaps {
		out.Gaps = append(out.Gaps, Gap{CPU: int(g[0]), Ran: g[1] * us, Start: g[2] * us, End: g[3] * us, Used: g[4] * us})
	}
	return out
}

// Real quotas, alone and beside threads that burn: quota and period in ms, and how many periods the kernel counted as
// throttled from before the trial until after it.
func TestRealQuotas(t *testing.T) {
	for name, want := range map[string]struct {
		quota, period float64
		throttled     int
	}{
		"quota-20-100":           {20, 100, 11},
		"quota-50-100-beside-1":  {50, 100, 11},
		"quota-5-20":             {5, 20, 51},
		"quota-5-10":             {5, 10, 101},
		"quota-5-20-beside-2":    {5, 20, 0}, // of longer looks, so the kernel's count is of more than the trial
		"quota-20-100-beside-2":  {20, 100, 0},
		"quota-150-100-beside-2": {150, 100, 0},
	} {
		trial := recorded(t, name)
		f := Find(trial)
		if f.Limited == nil || !*f.Limited {
			t.Errorf("%s: no limit found: %s", name, f.Why)
			continue
		}
		ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
		if math.Abs(ms(f.Period)-want.period) > 1 || math.Abs(ms(f.Quota)/want.quota-1) > 0.05 {
			t.Errorf("%s: quota %v, period %v", name, f.Quota, f.Period)
		}
		if s := f.TrialStops(trial); want.throttled > 0 && math.Abs(float64(s.Periods-want.throttled)) > max(1,
			0.02*float64(want.throttled)) {
			t.Errorf("%s: %d stops, the kernel counted %d", name, s.Periods, want.throttled)
		}
	}
}

// Hosts without a quota for us, idle or busy: no stop, and no limit claimed. The neighbour has a quota of its own and a weight
// with which it takes every CPU at the beginning of each of its periods: what it leaves ends on a lattice.
func TestNoQuota(t *testing.T) {
	for name, known := range map[string]bool{
		"none-idle": true, "none-beside-2": false, "none-busy-host": false, "none-busy-host-beside-2": false,
		"none-neighbour-with-quota": false,
	} {
		trial := recorded(t, name)
		f := Find(trial)
		if f.Limited != nil && (*f.Limited || !known) || f.Limited == nil && (known || f.Why == "") {
			t.Errorf("%s: %+v", name, f)
		}
		if s := f.TrialStops(trial); s != (Stops{}) {
			t.Errorf("%s: stops %+v", name, s)
		}
	}
	all := silences(recorded(t, "none-neighbour-with-quota").Gaps, 2)
	if _, ok := findLattice(all, 4*time.Millisecond, LongestPeriod(time.Second)); !ok {
		t.Error("the neighbour makes no lattice: the rule of half the work is not tried")
	}
}

// Turns at the ticks of the kernel's clock are a lattice of the tick, and of nothing longer.
func TestTicksAreNoQuota(t *testing.T) {
	const tick = 4 * time.Millisecond
	var all []silence
	at, step := time.Duration(0), uint64(1)
	for range 80 {
		step = step*6364136223846793005 + 1442695040888963407 // of Knuth: the same turns in each run
		length := tick * time.Duration(1+step>>62)
		at += length + tick*time.Duration(1+step>>60&3)
		all = append(all, silence{start: at - length, end: at})
	}
	if l, ok := findLattice(all, tick, LongestPeriod(time.Second)); ok {
		t.Errorf("%+v", l)
	}
}

// A watch of a minute, with a period that is known to a twentieth of a millisecond at first, is followed to its end.
func TestFollow(t *testing.T) {
	const period = 33_333 * time.Microsecond
	trial := Trial{CPUs: 1, End: time.Second}
	var w Watch
	for k := 1; k <= 1800; k++ {
		end := time.Duration(k)*period + time.Duration(k%7-3)*100*time.Microsecond
		g := Gap{Ran: end - 12*time.Millisecond, Start: end - 10*time.Millisecond, End: end}
		if end < time.Second {
			trial.Gaps = append(trial.Gaps, g)
		} else {
			w.Gaps = append(w.Gaps, g)
		}
	}
	f := Finding{Period: period + 50*time.Microsecond, Quota: 10 * time.Millisecond, at: lattice{period: period + 50*time.Microsecond}}
	if lost := f.Stops(w.Gaps, time.Second, time.Minute).Periods; lost > len(w.Gaps)/2 {
		t.Fatalf("%d stops without following: the test tries nothing", lost)
	}
	s := f.Follow(trial, w).Stops(w.Gaps, time.Second, time.Minute)
	if s.Periods != len(w.Gaps) {
		t.Errorf("%d stops of %d", s.Periods, len(w.Gaps))
	}
	if mean := s.Total / time.Duration(s.Periods); mean < 10*time.Millisecond || mean > 12*time.Millisecond {
		t.Errorf("%v each", mean)
	}
}

// Late looks that end anywhere are no stops, however many.
func TestLateByChance(t *testing.T) {
	f := Finding{Period: 20 * time.Millisecond, at: lattice{period: 20 * time.Millisecond}}
	var gaps []Gap
	for k := range 3000 {
		end := time.Duration(k) * 3700 * time.Microsecond
		gaps = append(gaps, Gap{Ran: end - 3*time.Millisecond, Start: end - 2*time.Millisecond, End: end})
	}
	if s := f.Stops(gaps, 0, 11*time.Second); s.Periods > 0 {
		t.Errorf("%d of 550 periods", s.Periods)
	}
}

// A stop of several periods counts in each of them, as in nr_throttled, and its length is whole.
func TestLongStop(t *testing.T) {
	f := Finding{Period: 20 * time.Millisecond, at: lattice{period: 20 * time.Millisecond}}
	s := f.Stops([]Gap{{Ran: 45 * time.Millisecond, Start: 47 * time.Millisecond, End: 100 * time.Millisecond}}, 0, time.Second)
	if s.Periods != 3 || s.Total != 54*time.Millisecond || s.Longest != 54*time.Millisecond {
		t.Errorf("%+v", s)
	}
}

func TestSilences(t *testing.T) {
	ms := time.Millisecond
	gaps := []Gap{
		{CPU: 0, Ran: 0, Start: 0, End: 10 * ms, Used: 1},
		{CPU: 1, Ran: 4 * ms, Start: 5 * ms, End: 12 * ms, Used: 2},
		{CPU: 1, Ran: 20 * ms, Start: 20 * ms, End: 30 * ms},
	}
	if got := silences(gaps, 2); !slices.Equal(got, []silence{{4 * ms, 10 * ms, 1}}) {
		t.Errorf("%+v", got)
	}
	if got := silences(gaps[2:], 1); len(got) != 1 {
		t.Errorf("of one CPU: %+v", got)
	}
	if f := Find(Trial{CPUs: 2, Light: 1, End: 2}); f.Limited != nil {
		t.Error("nothing was used, and no limit is claimed to be there or not")
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte("aaaabbbbccccddddeeee"), int64(4))
	f.Fuzz(func(t *testing.T, data []byte, tick int64) {
		trial := Trial{CPUs: 1, Tick: time.Duration(tick % 1e8).Abs(), Light: time.Second, End: 2 * time.Second}
		at := time.Duration(0)
		for i := 0; i+2 < len(data) && i < 300; i += 3 {
			start := at + time.Duration(data[i])*time.Millisecond/4
			at = start + time.Duration(data[i+1])*time.Millisecond/4
			trial.Gaps = append(trial.Gaps, Gap{Ran: start, Start: start, End: at, Used: time.Duration(data[i+2])})
		}
		found := Find(trial)
		if found.Limited == nil && found.Why == "" {
			t.Fatal("no reason")
		}
		found = found.Follow(trial, Watch{Gaps: trial.Gaps})
		if s := found.Stops(trial.Gaps, 0, trial.End); s.Periods < 0 || s.Total < 0 || s.Total > at {
			t.Fatalf("%+v of %v", s, at)
		}
	})
}
