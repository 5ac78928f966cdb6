package policy

import (
	"bytes"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// BenchmarkChoose forecasts all remedies of a recording of 5 s and 200 threads, on one core, and chooses. The bound of
// the issue is 3 s; "of-bound" is the part of it that was needed.
func BenchmarkChoose(b *testing.B) {
	const ms = time.Millisecond
	s := recordingtest.New(16).Limit(400*ms, 100*ms).Process("java")
	w := s.Threads("http-worker", 200)
	s.Repeat(100, 50*ms, func(at time.Duration) {
		for i := range 40 {
			s.Work(at+time.Duration(i)*200*time.Microsecond, 3*ms, w[(int(at/(50*ms))*40+i)%len(w)])
		}
	})
	var file bytes.Buffer
	r := s.Run(5 * time.Second)
	if err := r.Write(&file); err != nil {
		b.Fatal(err)
	}
	load, err := forecast.Read(&file)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := Forecast(load, nil, false, nil)
		if err != nil {
			b.Fatal(err)
		}
		if c := Choose(f, Terms{}); c.Why == "" {
			b.Fatal("no reason")
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/3, "of-bound")
}
