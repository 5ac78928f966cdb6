package report

import (
	"reflect"
	"testing"

	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// An engine adds up in no order, so that what is equal may differ in its last bits.
func TestTheSameHostIsNamedInEachRun(t *testing.T) {
	share := func(v float64) *float64 { return &v }
	for name, bits := range map[string]float64{"more": 1e-16, "less": -1e-16} {
		t.Run(name, func(t *testing.T) {
			got := spreadOf([]hostShare{
				{Node: "a", Seconds: share(600), StoppedShare: share(0.1), ContendedShare: share(0.2)},
				{Node: "b", Seconds: share(600), StoppedShare: share(0.3), ContendedShare: share(0.2 + bits)},
				{Node: "c", Seconds: share(600), StoppedShare: share(0.3 + bits), ContendedShare: share(0.2)},
			})
			want := &view.Spread{Hosts: 3, Stopped: &view.Range{Least: 0.1, Median: 0.3, Most: 0.3, MostOn: "b"},
				Contended: &view.Range{Least: 0.2, Median: 0.2, Most: 0.2, MostOn: "a"}}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, %+v", got.Stopped, got.Contended)
			}
		})
	}
}
