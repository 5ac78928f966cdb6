package report

import (
	"reflect"
	"testing"

	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// An engine adds up in no order, so that what is equal may differ in its last bits.
func TestTheSameHostIsNamedInEachRun(t *testing.T) {
	for name, bits := range map[string]float64{"more": 1e-13, "less": -1e-13} {
		t.Run(name, func(t *testing.T) {
			got, n, _ := spreadOf([]*portion{
				{name: "a", seconds: 600, stopped: 60, wanted: 100, contended: 20},
				{name: "b", seconds: 600, stopped: 180, wanted: 100, contended: 20 + bits},
				{name: "c", seconds: 600, stopped: 180 + bits, wanted: 100, contended: 20},
			})
			want := &view.Spread{Stopped: &view.Range{Of: 3, Least: 0.1, Median: 0.3, Most: 0.3, MostOn: "b"},
				Contended: &view.Range{Of: 3, Least: 0.2, Median: 0.2, Most: 0.2, MostOn: "a"}}
			if n != 3 || !reflect.DeepEqual(got, want) {
				t.Errorf("%d: %+v, %+v", n, got.Stopped, got.Contended)
			}
		})
	}
}

// A service without a name, whose containers have no limit, comes first in the answer and is one like the others.
func TestAServiceWithoutAName(t *testing.T) {
	r := rowOf("cart", 0, noon, 8, 4)
	r.Service, r.LimitCPUs, r.OwnLimitCPUs = "", nil, nil
	d, _ := written(t, r, rowOf("cart", 1, noon, 8, 4))
	if s := serviceOf(t, d, ""); s.Containers != 1 {
		t.Errorf("%+v", s)
	}
}
