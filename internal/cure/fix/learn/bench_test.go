package learn

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// The bounds for a recording of 5 s and 200 threads, on one core: until the cause is told, and for all remedies.
const (
	findingBound = time.Second
	choiceBound  = 3 * time.Second
)

// recorded is a recording of 5 s and 200 threads.
func recorded(b *testing.B) []byte {
	const ms = time.Millisecond
	s := recordingtest.New(16).Limit(400*ms, 100*ms).Process("java")
	w := s.Threads("http-worker", 200)
	s.Repeat(100, 50*ms, func(at time.Duration) {
		for i := range 40 {
			s.Work(at+time.Duration(i)*200*time.Microsecond, 3*ms, w[(int(at/(50*ms))*40+i)%len(w)])
		}
	})
	var file bytes.Buffer
	run := s.Run(5 * time.Second)
	if err := run.Write(&file); err != nil {
		b.Fatal(err)
	}
	return file.Bytes()
}

// against reports which part of a bound each repetition needed, by the clock and in CPU time. On a busy host the clock's is larger.
func against(b *testing.B, bound time.Duration, do func() error) {
	before := used(b)
	for b.Loop() {
		if err := do(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/bound.Seconds(), "of-bound")
	b.ReportMetric((used(b)-before).Seconds()/float64(b.N)/bound.Seconds(), "cpu-of-bound")
}

// used is the CPU time of this process.
func used(b *testing.B) time.Duration {
	var rusage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &rusage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(rusage.Utime.Nano() + rusage.Stime.Nano())
}

// BenchmarkFirstFinding does what lies between a recording and the cause that fix tells.
func BenchmarkFirstFinding(b *testing.B) {
	file := recorded(b)
	against(b, findingBound, func() error {
		if _, err := live.Recording(bytes.NewReader(file)); err != nil {
			return err
		}
		_, _, err := forecast.ReadWithRuns(bytes.NewReader(file))
		return err
	})
}

// BenchmarkChoose forecasts all remedies and chooses.
func BenchmarkChoose(b *testing.B) {
	load, err := forecast.Read(bytes.NewReader(recorded(b)))
	if err != nil {
		b.Fatal(err)
	}
	against(b, choiceBound, func() error {
		f, err := policy.Forecast(load, nil, false, nil)
		if err == nil {
			policy.Choose(f, policy.Terms{})
		}
		return err
	})
}
