package host

import (
	"strconv"
	"testing"
	"testing/fstest"
	"time"
)

func TestTimes(t *testing.T) {
	text := "cpu  100 10 50 9000 77 5 5 30 60 0\ncpu0 1 2\n"
	want := Times{All: 92770 * time.Millisecond, Idle: 90770 * time.Millisecond, Steal: 300 * time.Millisecond}
	got, err := ReadTimes(fstest.MapFS{"proc/stat": &fstest.MapFile{Data: []byte(text)}})
	if err != nil || got != want || got.Busy() != 2*time.Second {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := ReadTimes(fstest.MapFS{}); err == nil {
		t.Error("read where there is none")
	}
	for _, bad := range []string{"", "intr 1 2 3 4 5 6 7 8 9\n", "cpu 1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n", "cpu 1 2 3 4 x 6 7 8\n", "cpu 1 2 3 -4 5 6 7 8\n"} {
		if got, err := ParseTimes(bad); err == nil || got != (Times{}) {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

// A host of 1024 CPUs has had 300 years of CPU time after four months.
func TestTimesOfALargeHost(t *testing.T) {
	for _, ticks := range []int{0, 1 << 32, 1 << 40, 1 << 50} {
		at := func(busy int) Times {
			got, err := ParseTimes("cpu " + strconv.Itoa(ticks+busy) + " 0 0 " + strconv.Itoa(ticks) + " 0 0 0 0\n")
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if d := at(700).Busy() - at(0).Busy(); d != 7*time.Second {
			t.Errorf("after %d ticks: busy for %v, want 7s", ticks, d)
		}
	}
}

func FuzzParseTimes(f *testing.F) {
	f.Add("cpu  100 10 50 9000 77 5 5 30 60 0\ncpu0 1 2\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParseTimes(text); err != nil && len(err.Error()) > 400 {
			t.Errorf("at length: %v", err)
		}
	})
}
