package scenario

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/strictyaml"
	"github.com/unthrottle/unthrottle/internal/text"
)

// size is a number of threads, or a rule for it that services really have.
type size struct {
	n                 int
	perHost, perLimit float64 // threads per CPU of the host, or of the limit; 0: n
}

// threads reads a number or a rule.
func (d *decoder) threads(into *size) read {
	return func(n *yaml.Node, key string) {
		if n.Kind != yaml.MappingNode {
			*into = size{}
			v, err := strconv.Atoi(d.scalar(n, key))
			if d.err == nil && (err != nil || v < 1 || v > maxThreads) {
				d.fail(n.Line, key, "%s: give a whole number from 1 to %d, or {per_host_cpu: 2} or {per_limit_cpu: 1}",
					strictyaml.Shown(n.Value), maxThreads)
			}
			into.n = v
			return
		}
		var s size
		d.object(n, key, fields{"per_host_cpu": d.number(&s.perHost, 1000), "per_limit_cpu": d.number(&s.perLimit, 1000)})
		if d.err == nil && len(n.Content) != 2 {
			d.fail(n.Line, key, "choose one of per_host_cpu, per_limit_cpu")
		}
		*into = s
	}
}

// resolve computes the number of a rule, rounded up. The limit is the least along the cgroup's path, before
// any remedy, and at most its CPUs.
func (d *decoder) resolve(s size, key string, in *Scenario, cgroup int) int {
	n := s.n
	switch {
	case s.perHost > 0:
		n = int(math.Ceil(s.perHost * float64(in.Host.CPUs)))
	case s.perLimit > 0:
		n = int(math.Ceil(s.perLimit*in.limitCPUs(cgroup) - 1e-9))
	}
	if d.err == nil && n > maxThreads {
		d.failAt(key, "%d threads: %d are allowed", n, maxThreads)
	}
	return max(1, n)
}

// limitCPUs is the CPUs that a cgroup may use on average.
func (s *Scenario) limitCPUs(cgroup int) float64 {
	if cgroup < 0 {
		return float64(s.Host.CPUs)
	}
	least := float64(s.Effective(&s.Cgroups[cgroup]).Size())
	for ; cgroup >= 0; cgroup = s.Cgroups[cgroup].Parent {
		if l := s.Cgroups[cgroup].Limit; l.Limited() {
			least = min(least, l.CPUs())
		}
	}
	return least
}

// share reads a number from 0 to 1.
func (d *decoder) share(into *float64) read { return d.atLeast(into, 0, 1) }

// atLeast reads a number from least to most.
func (d *decoder) atLeast(into *float64, least, most float64) read {
	return func(n *yaml.Node, key string) {
		v, err := text.ParseDecimal(d.scalar(n, key))
		if d.err == nil && (err != nil || !(v >= least && v <= most)) {
			d.fail(n.Line, key, "%s: give a number from %g to %g", strictyaml.Shown(n.Value), least, most)
		}
		*into = v
	}
}

// bytes reads a size such as 64KiB, 8MiB or 1GiB.
func (d *decoder) bytes(into *int, least, most int) read {
	return func(n *yaml.Node, key string) {
		text, unit := d.scalar(n, key), 1
		for suffix, u := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
			if number, ok := strings.CutSuffix(text, suffix); ok {
				text, unit = number, u
			}
		}
		v, err := strconv.Atoi(text)
		if d.err == nil && (err != nil || v < 0 || v > most/unit || v*unit < least) {
			d.fail(n.Line, key, "%s: give %s to %s, in KiB, MiB or GiB", strictyaml.Shown(n.Value), inBytes(least), inBytes(most))
		}
		*into = v * unit
	}
}

func inBytes(n int) string {
	for _, u := range []struct {
		size int
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.Itoa(n/u.size) + u.name
		}
	}
	return strconv.Itoa(n)
}
