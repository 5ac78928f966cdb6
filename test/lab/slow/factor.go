package slow

import (
	"fmt"
	"math"
	"strconv"
)

// Factor is how many times slower than the host's the guest's clock runs; 1 is the host's pace.
type Factor int

// MostSlow bounds a factor. A guest minute takes more than an hour of the host's beyond it.
const MostSlow = 100

// Auto is what --slow takes for a factor that the lab chooses.
const Auto = "auto"

// perCPU is how many seconds of a real CPU each guest CPU should have per guest second. Emulated code runs about ten
// times slower than real code, and a guest CPU that has less than a second per second loses time that its clock shows.
const perCPU = 2.5

// Parse reads the value of --slow: a number from 1 to MostSlow, or "auto". idle is how many CPUs of the host are idle
// now; auto gives each of the guest's CPUs perCPU of them.
func Parse(said string, guestCPUs int, idle float64) (Factor, error) {
	if said == Auto {
		return choose(guestCPUs, idle), nil
	}
	k, err := strconv.Atoi(said)
	if err != nil || k < 1 || k > MostSlow {
		return 0, fmt.Errorf("--slow %.40s: want a whole number from 1 to %d, or %s", said, MostSlow, Auto)
	}
	return Factor(k), nil
}

// choose returns the factor of auto. A host without idle CPUs still gives QEMU some of its time.
func choose(guestCPUs int, idle float64) Factor {
	const least = 0.25
	k := math.Ceil(perCPU * float64(guestCPUs) / max(idle, least))
	return Factor(min(max(k, 1), MostSlow))
}
