package agreement

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Machine is where draws run, as far as it matters.
type Machine struct {
	CPUs          int    `json:"cpus"` // that a draw may use
	HZ            int    `json:"hz"`   // 100, 250, 300 or 1000
	Kernel        string `json:"kernel"`
	CgroupVersion int    `json:"cgroup_version"` // 1 or 2
}

// Draw is a scenario drawn by chance.
type Draw struct {
	Seed uint64
	// Text is the scenario as a file.
	Text     string
	scenario scenario.Scenario
}

// New draws a scenario. The same seed and machine give the same one. An error
// says that the machine is none that a scenario can describe.
func New(seed uint64, m Machine) (Draw, error) {
	c := chance{rand.New(rand.NewPCG(seed, 0xacc)), m}
	d := Draw{Seed: seed, Text: c.text()}
	var err error
	d.scenario, err = scenario.Parse(fmt.Sprintf("draw %d", seed), []byte(d.Text))
	return d, err
}

// Lasting is the draw's scenario with a duration.
func (d Draw) Lasting(duration time.Duration) scenario.Scenario {
	s := d.scenario
	s.Duration = duration
	return s
}

// Key tells apart draws of one seed by different rules, or for different machines.
func (d Draw) Key() string {
	h := fnv.New64a()
	h.Write([]byte(d.Text))
	return fmt.Sprintf("%016x", h.Sum64())
}

// chance draws the parts of a scenario.
type chance struct {
	*rand.Rand
	machine Machine
}

func (c chance) text() string {
	var cgroups, workloads strings.Builder
	top := limit{cpus: c.between(0.15, 0.9) * float64(c.machine.CPUs), period: c.period()}
	one := c.IntN(4) == 0 // on one CPU
	if one {
		top.cpus /= float64(c.machine.CPUs)
	}
	switch nesting := c.IntN(20); {
	case nesting < 11:
		fmt.Fprintf(&cgroups, "  a: {%s%s}\n", c.limited(top), c.affinity(one))
		c.fill(&workloads, "a")
	default:
		fmt.Fprintf(&cgroups, "  pod: {%s%s}\n", c.limited(top), c.affinity(one))
		for _, name := range []string{"a", "b"}[:1+nesting%2] {
			inner := ""
			if c.IntN(4) > 0 {
				// cgroup v1 takes no child's limit above its parent's.
				inner = ", " + c.limited(limit{cpus: top.cpus * c.between(0.3, 0.95), period: c.period()})
			}
			fmt.Fprintf(&cgroups, "  %s: {parent: pod%s}\n", name, inner)
			c.fill(&workloads, name)
		}
	}
	m := c.machine
	return fmt.Sprintf("version: 1\nhost: {cpus: %d, hz: %d, kernel: %q, cgroup_version: %d}\ncgroups:\n%sworkloads:\n%s",
		m.CPUs, m.HZ, m.Kernel, m.CgroupVersion, &cgroups, &workloads)
}

// between draws from low to high, each part of a doubling as often.
func (c chance) between(low, high float64) float64 {
	return low * math.Pow(high/low, c.Float64())
}

func (c chance) period() time.Duration {
	all := []time.Duration{10, 20, 50, 100, 100, 100, 200}
	return all[c.IntN(len(all))] * time.Millisecond
}

// limit is a quota before it is written.
type limit struct {
	cpus   float64
	period time.Duration
}

// limited writes a limit, one in four with a burst.
func (c chance) limited(l limit) string {
	quota := max(1000, int64(l.cpus*float64(l.period.Microseconds())))
	text := fmt.Sprintf("quota: %dus, period: %v", quota, l.period)
	if c.IntN(4) == 0 {
		text += fmt.Sprintf(", burst: %dus", max(1, int64(c.between(0.2, 1)*float64(quota))))
	}
	return text
}

func (c chance) affinity(one bool) string {
	if !one {
		return ""
	}
	return fmt.Sprintf(", cpus: \"%d\"", c.IntN(c.machine.CPUs))
}

// fill gives a cgroup its threads, and three in five a sleeper that measures.
func (c chance) fill(to *strings.Builder, cgroup string) {
	cpus := c.machine.CPUs
	switch c.IntN(3) {
	case 0:
		fmt.Fprintf(to, "  %s-burn: {kind: burn, cgroup: %s, threads: %d}\n", cgroup, cgroup, 1+c.IntN(2*cpus))
	case 1:
		fmt.Fprintf(to, "  %s-pool: {kind: sleep-run, cgroup: %s, threads: %d, run: %s, sleep: %s}\n",
			cgroup, cgroup, 1+c.IntN(4*cpus), c.distribution(0.3, 10), c.distribution(2, 60))
	default:
		fmt.Fprintf(to, "  %s-turns: {kind: neighbour, cgroup: %s, threads: %d, on: %dms, off: %dms}\n",
			cgroup, cgroup, 1+c.IntN(2*cpus), int(c.between(5, 60)), int(c.between(20, 150)))
	}
	if c.IntN(5) < 3 {
		sleeps := []int{5, 10, 20}
		fmt.Fprintf(to, "  %s-sleeper: {kind: sleeper, cgroup: %s, run: 20us, sleep: %dms}\n", cgroup, cgroup, sleeps[c.IntN(len(sleeps))])
	}
}

// distribution writes times of a mean between low and high, in ms.
func (c chance) distribution(low, high float64) string {
	mean := int(1000 * c.between(low, high))
	switch c.IntN(3) {
	case 0:
		return fmt.Sprintf("%dus", mean)
	case 1:
		return fmt.Sprintf("{exponential: %dus}", mean)
	}
	return fmt.Sprintf("{uniform: [%dus, %dus]}", mean/2, mean*3/2)
}
