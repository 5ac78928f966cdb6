package cgroup

import (
	"math"
	"testing"
)

// Weights as runc made them before 1.3.2 and since, of requests.
func TestRequestsOfWeight(t *testing.T) {
	for _, c := range []struct {
		cpus         float64
		older, newer uint64
	}{{0.1, 4, 17}, {0.5, 20, 59}, {1, 39, 100}, {1.5, 59, 138}, {2, 79, 174}, {4, 157, 303}} {
		if linear, _ := RequestsOfWeight(c.older); math.Abs(linear-c.cpus) > 0.03 {
			t.Errorf("weight %d by the older formula: %v CPUs, want %v", c.older, linear, c.cpus)
		}
		if _, curved := RequestsOfWeight(c.newer); math.Abs(curved-c.cpus) > 0.03 {
			t.Errorf("weight %d by the newer formula: %v CPUs, want %v", c.newer, curved, c.cpus)
		}
	}
	for _, weight := range []uint64{0, MinWeight} {
		if linear, curved := RequestsOfWeight(weight); linear != 0 || curved != 0 {
			t.Errorf("weight %d: %v, %v", weight, linear, curved)
		}
	}
	if RequestOfShares(2) != 0 || RequestOfShares(512) != 0.5 {
		t.Error(RequestOfShares(2), RequestOfShares(512))
	}
}

func TestWeightsShares(t *testing.T) {
	shown := map[uint64]bool{}
	for weight := uint64(MinWeight); weight <= MaxWeight; weight++ {
		shown[MinShares+(weight-MinWeight)*(MaxShares-MinShares)/(MaxWeight-MinWeight)] = true
	}
	for shares := uint64(0); shares <= MaxShares+2; shares++ {
		if WeightsShares(shares) != shown[shares] {
			t.Fatalf("%d shares: %v", shares, WeightsShares(shares))
		}
	}
}
