package provoke

import (
	"reflect"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

func TestMixesAreSound(t *testing.T) {
	seen := map[diagnose.Cause]int{}
	for seed := range uint64(500) {
		m := RandomMix(seed)
		if !reflect.DeepEqual(m, RandomMix(seed)) {
			t.Fatalf("seed %d gives two mixes", seed)
		}
		scenario := m.Scenario(-1)
		for without := -1; without < len(m.Ingredients); without++ {
			s := m.Scenario(without)
			for _, l := range s.Loads {
				if err := (Spec{Pools: l.Pools}).Check(); err != nil {
					t.Errorf("seed %d without %d: %v", seed, without, err)
				}
			}
			if without >= 0 && reflect.DeepEqual(s, scenario) {
				t.Errorf("seed %d: leaving %v out changes nothing", seed, m.Ingredients[without])
			}
		}
		for _, i := range m.Ingredients {
			seen[i.Cause]++
		}
	}
	for _, c := range ingredients {
		if seen[c] < 50 {
			t.Errorf("%s is in %d of 500 mixes", c, seen[c])
		}
	}
}
