package prober

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const ms = time.Millisecond

// simulated asks one container at each phase of a millisecond, and counts what one kubelet would see on average.
// stopped tells of each millisecond whether the container is stopped in it.
func simulated(t Timing, answer time.Duration, stopped []bool) (missed, failed float64, lowest time.Duration) {
	wait, period := int(t.Timeout/ms), int(t.Period/ms)
	running := make([]time.Duration, len(stopped)+1) // until each moment
	for i, s := range stopped {
		running[i+1] = running[i]
		if !s {
			running[i+1] += ms
		}
	}
	for phase := range period {
		inARow := 0
		for at := phase; at+wait < len(stopped); at += period {
			// It begins in the middle of its millisecond: nothing changes within one.
			if runs := (running[at+wait] + running[at+wait+1] - running[at] - running[at+1]) / 2; runs >= answer {
				inARow = 0
				continue
			}
			missed++
			if inARow++; inARow == t.Threshold {
				failed++
				inARow = 0
			}
		}
	}
	lowest = t.Timeout
	for at := 0; at+wait <= len(stopped); at++ {
		lowest = min(lowest, running[at+wait]-running[at])
	}
	return missed / float64(period), failed / float64(period), lowest
}

// drawn are stops of a container, most of them at the end of a period of its quota, some as long as many periods.
func drawn(rng *rand.Rand, length int) []bool {
	stopped := make([]bool, length)
	share := rng.Float64()
	for at := 0; at < length; at += 100 {
		from, to := at+100-rng.IntN(1+int(100*share)), at+100
		if rng.IntN(20) == 0 {
			from, to = at, at+rng.IntN(3000)
		}
		for i := from; i < min(to, length); i++ {
			stopped[i] = true
		}
	}
	return stopped
}

// TestExactStops: of exact stops both figures are those of a simulation of every phase.
func TestExactStops(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	missed, failed := 0, 0
	for range 60 {
		timing := Timing{Timeout: time.Duration(100+rng.IntN(1500)) * ms, Threshold: 1 + rng.IntN(4)}
		timing.Period = []time.Duration{200 * ms, 1000 * ms, 2000 * ms}[rng.IntN(3)]
		answer := time.Duration(1+rng.IntN(200)) * ms
		stopped := drawn(rng, 20_000+rng.IntN(500))
		w := New(timing, []time.Duration{answer})
		for from, i := 0, 1; i <= len(stopped); i++ {
			if i < len(stopped) && stopped[i] == stopped[from] {
				continue
			}
			for from < i { // long enough not to be joined, and not always whole
				to := min(i, from+1+rng.IntN(3000))
				if length := time.Duration(to-from) * ms; stopped[from] {
					w.addAlone(span{length, length})
				} else {
					w.addAlone(span{length, 0})
				}
				from = to
			}
		}
		wantMissed, wantFailed, wantLowest := simulated(timing, answer, stopped)
		name := fmt.Sprintf("%+v, answer %v", timing, answer)
		f := w.Figures()[0]
		if f.MissesLow != f.MissesHigh || f.FailuresLow != f.FailuresHigh {
			t.Errorf("%s: two figures of exact stops: %+v", name, f)
		}
		if math.Abs(f.MissesLow-wantMissed) > 1e-9 || math.Abs(f.FailuresLow-wantFailed) > 1e-9 {
			t.Errorf("%s: %+v, simulated %v and %v", name, f, wantMissed, wantFailed)
		}
		if low, high := w.Lowest(); low != high || low != wantLowest {
			t.Errorf("%s: the lowest is %v to %v, simulated %v", name, low, high, wantLowest)
		}
		if want := time.Duration(len(stopped))*ms - timing.Timeout; w.Observed() != want {
			t.Errorf("%s: observed %v, want %v", name, w.Observed(), want)
		}
		if wantMissed > 0 {
			missed++
		}
		if wantFailed > 0 {
			failed++
		}
	}
	if missed < 30 || failed < 15 {
		t.Errorf("in %d cases a probe misses, in %d a row fails: the test compares nothing", missed, failed)
	}
}

// addAlone adds a span without joining it to others.
func (w *Watch) addAlone(s span) {
	w.flush()
	w.pending = s
	w.flush()
}

// TestSums: where only the sum of each piece is known, what was simulated lies between the figures.
func TestSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	apart, missed := 0, 0
	for range 60 {
		timing := Timing{Timeout: time.Duration(500+rng.IntN(1500)) * ms, Threshold: 1 + rng.IntN(3), Period: 1000 * ms}
		answer := time.Duration(1+rng.IntN(300)) * ms
		stopped := drawn(rng, 20_000)
		w := New(timing, []time.Duration{answer})
		piece := []int{7, 25, 100, 130}[rng.IntN(4)]
		for from := 0; from < len(stopped); from += piece {
			to, sum := min(from+piece, len(stopped)), time.Duration(0)
			for _, s := range stopped[from:to] {
				if s {
					sum += ms
				}
			}
			if sum > 0 || to == len(stopped) { // what has no stop is no call
				w.Add(time.Duration(to)*ms, time.Duration(to-from)*ms, sum)
			} else if from == 0 {
				w.Add(time.Duration(to)*ms, time.Duration(to)*ms, 0)
			}
		}
		w.flush()
		wantMissed, wantFailed, wantLowest := simulated(timing, answer, stopped)
		f := w.Figures()[0]
		if f.MissesLow > wantMissed+1e-9 || f.MissesHigh < wantMissed-1e-9 || f.FailuresLow > wantFailed+1e-9 ||
			f.FailuresHigh < wantFailed-1e-9 {
			t.Errorf("%+v, answer %v, pieces of %d ms: %+v, simulated %v and %v", timing, answer, piece, f, wantMissed,
				wantFailed)
		}
		if low, high := w.Lowest(); low > wantLowest || high < wantLowest {
			t.Errorf("%+v: the lowest is %v to %v, simulated %v", timing, low, high, wantLowest)
		}
		if f.MissesLow < f.MissesHigh {
			apart++
		}
		if f.MissesLow > 0 {
			missed++
		}
	}
	if apart < 20 || missed < 20 {
		t.Errorf("in %d cases the figures are apart, in %d some miss is certain: the test compares nothing", apart,
			missed)
	}
}

// TestWorkedExample is that of the package.
func TestWorkedExample(t *testing.T) {
	w := New(Timing{Timeout: time.Second, Period: 10 * time.Second, Threshold: 3}, Answers(HTTPGet, time.Second))
	w.Add(0, time.Minute, 0)
	for i := range 1440 {
		w.Add(time.Duration(i)*time.Minute+940*ms, 940*ms, 940*ms)
	}
	w.Add(1440*time.Minute, ms, 0)
	got := w.Figures()
	if f := got[1]; math.Abs(f.MissesLow-20.16) > 1e-9 || f.MissesHigh != f.MissesLow || f.FailuresHigh != 0 {
		t.Errorf("an answer of 100 ms: %+v", f)
	}
	if got[0] != (Figures{}) {
		t.Errorf("a prompt answer: %+v", got[0])
	}
	if low, high := w.Lowest(); low != 60*ms || high != 60*ms {
		t.Errorf("the lowest is %v to %v", low, high)
	}
}

// TestCut: what is not known to follow makes no row, and no wait goes over it.
func TestCut(t *testing.T) {
	w := New(Timing{Timeout: time.Second, Period: time.Second, Threshold: 2}, []time.Duration{ms})
	for i := range 5 {
		w.Add(time.Duration(i)*time.Hour+1500*ms, 1500*ms, 1500*ms)
		w.Cut()
	}
	f := w.Figures()[0]
	if f.MissesLow != 2.5 || f.FailuresHigh != 0 || w.Observed() != 2500*ms {
		t.Errorf("%+v, observed %v", f, w.Observed())
	}
}

// TestOverlap: what is added twice counts once.
func TestOverlap(t *testing.T) {
	w := New(Timing{Timeout: time.Second, Period: time.Second, Threshold: 1}, []time.Duration{ms})
	for _, end := range []time.Duration{2000, 2000, 2500, 2400, 3000} {
		w.Add(end*ms, 1000*ms, 1000*ms)
	}
	if f := w.Figures()[0]; f.MissesLow != 1 || w.Observed() != time.Second {
		t.Errorf("%+v, observed %v", f, w.Observed())
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		handler string
		timeout time.Duration
		want    string
	}{
		{HTTPGet, time.Second, "[1ms 100ms]"}, {GRPC, 30 * time.Second, "[1ms 3s]"},
		{Exec, time.Second, "[10ms 100ms]"},
		{TCPSocket, time.Second, "[]"}, {"", time.Second, "[]"},
	} {
		if got := fmt.Sprint(Answers(c.handler, c.timeout)); got != c.want {
			t.Errorf("%q, %v: %s, want %s", c.handler, c.timeout, got, c.want)
		}
	}
}

// TestBound: whatever is added, a watch keeps little.
func TestBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	w := New(Timing{Timeout: time.Second, Period: 10 * time.Second, Threshold: 3}, []time.Duration{500 * ms, 499 * ms})
	at := time.Duration(0)
	for range 200_000 {
		length := time.Duration(1+rng.IntN(int(10*ms))) * time.Nanosecond
		at += length
		w.Add(at, length, time.Duration(rng.Int64N(int64(length)+1)))
		if len(w.least.back) > 150 || len(w.least.misses[0].rows) > 600 || len(w.most.misses[1].rows) > 600 {
			t.Fatalf("%d segments, %d rows", len(w.least.back), len(w.least.misses[0].rows))
		}
	}
	if f := w.Figures()[0]; f.MissesHigh <= f.MissesLow {
		t.Errorf("%+v: nothing at the threshold", f)
	}
}

func BenchmarkAdd(b *testing.B) {
	w := New(Timing{Timeout: time.Second, Period: 10 * time.Second, Threshold: 3}, Answers(HTTPGet, time.Second))
	at := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		at += 100 * ms
		w.Add(at, 100*ms, 80*ms)
	}
}
