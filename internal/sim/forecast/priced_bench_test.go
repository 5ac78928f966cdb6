package forecast

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/objective"
)

// BenchmarkPrice prices a recording of 6 s as the agent does. replays is how many it takes, cpu-ms the CPU time of all of them
// and of reading the recording.
func BenchmarkPrice(b *testing.B) {
	for _, seed := range []uint64{1, 3} {
		d := drawPriced(seed)
		r := d.recorded()
		b.Run(fmt.Sprintf("requests=%d", len(d.works)), func(b *testing.B) {
			b.ReportAllocs()
			replays, begin := 0, processCPU()
			for b.Loop() {
				each := func(of int, do func(int) error) error {
					replays += of
					for i := range of {
						if err := do(i); err != nil {
							return err
						}
					}
					return nil
				}
				if _, err := Price(loadOf(b, r), true, objective.Objective{}, each); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(replays)/float64(b.N), "replays/op")
			b.ReportMetric(float64((processCPU()-begin).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

func processCPU() time.Duration {
	var t unix.Timespec
	// It cannot fail: the clock of one's own process exists on all kernels.
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
