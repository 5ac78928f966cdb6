package gather

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// loadWindow is how long the load of the CPUs is measured where nothing else
// has to be.
const loadWindow = 200 * time.Millisecond

// use fills in the load of the CPUs, and the CPU use of containers, measuring
// it where it is not known.
func (g *gatherer) use(containers []container.Container) error {
	before, start := map[string]time.Duration{}, time.Now()
	for _, c := range containers {
		if used, ok := g.o.Used[c.Group.Path]; ok {
			g.put(c.Group.Path, used)
		} else if s, err := cgroup.ReadStat(g.fs, c.Group); g.o.Window > 0 && err == nil && s.Usage != nil {
			before[c.Group.Path] = *s.Usage
		}
	}
	if g.o.Window <= 0 {
		return nil
	}
	window := g.o.Window
	if len(before) == 0 {
		window = min(window, loadWindow)
	}
	earlier := cpuTimes(g.o.Root)
	select {
	case <-g.ctx.Done():
		return g.ctx.Err()
	case <-time.After(window):
	}
	g.facts.Load = loads(earlier, cpuTimes(g.o.Root))
	for _, c := range containers {
		earlier, ok := before[c.Group.Path]
		if !ok {
			continue
		}
		s, err := cgroup.ReadStat(g.fs, c.Group)
		if err == nil && s.Usage != nil && *s.Usage >= earlier {
			g.put(c.Group.Path, (*s.Usage-earlier).Seconds()/time.Since(start).Seconds())
		}
	}
	return nil
}

func (g *gatherer) put(path string, used float64) {
	if group, ok := g.facts.Groups[path]; ok {
		group.UsedCPUs = &used
		g.facts.Groups[path] = group
	}
}
