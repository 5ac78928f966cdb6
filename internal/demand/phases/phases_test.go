package phases

import (
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand/packing"
)

func TestOf(t *testing.T) {
	for at, want := range map[string]int{
		"2026-03-01T00:00:00Z": 0, "2026-03-01T02:59:59Z": 0, "2026-03-01T03:00:00Z": 1, "2026-03-01T23:59:59Z": 7,
		"2026-03-01T01:00:00+02:00": 7,
	} {
		moment, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := Of(moment); got != want {
			t.Errorf("%s is in phase %d, want %d", at, got, want)
		}
	}
}

// The worked example; a phase without rows counts as the busiest.
func TestMoments(t *testing.T) {
	var d Day
	d[1].Level(4, 1)
	d[1].Level(0, 3)
	d[2].Level(1, 2)
	wants, most := d.Moments()
	for k, m := range wants {
		want := packing.Moments{Mean: 1, Variance: 3, Third: 6}
		if k == 2 {
			want = packing.Moments{Mean: 1}
		}
		if m != want {
			t.Errorf("phase %d: %+v, want %+v", k, m, want)
		}
	}
	if most != 4 {
		t.Errorf("at most %v CPUs, want 4", most)
	}
	if wants, most := new(Day).Moments(); most != 0 || wants[0] != (packing.Moments{}) {
		t.Errorf("of no rows: %v, %v", wants, most)
	}
}

// Sums and moments tell the same.
func TestFromMoments(t *testing.T) {
	var s Sums
	for cpus, microseconds := range map[int32]int64{0: 700, 2: 200, 9: 100} {
		s.Level(cpus, microseconds)
	}
	got := FromMoments(s.Moments(), s.Microseconds, s.Most)
	for name, pair := range map[string][2]float64{"CPUs": {got.CPUs, s.CPUs}, "squares": {got.Squares, s.Squares},
		"cubes": {got.Cubes, s.Cubes}, "time": {got.Microseconds, s.Microseconds}, "most": {float64(got.Most), float64(s.Most)}} {
		if math.Abs(pair[0]-pair[1]) > 1e-6*pair[1] {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
}

// Half an hour says what a container wants in a phase; less does not.
func TestOr(t *testing.T) {
	var d, service Day
	d[0].Level(1, (30 * time.Minute).Microseconds())
	d[1].Level(1, (29 * time.Minute).Microseconds())
	for k := range service {
		service[k].Level(3, 1)
	}
	both := d.Or(&service)
	if both[0].Most != 1 || both[1].Most != 3 || both[7].Most != 3 {
		t.Errorf("%+v", both)
	}
	if (*Day)(nil).Or(&service) != nil {
		t.Error("a container without rows has its service's")
	}
}
