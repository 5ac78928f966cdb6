package remedy

import (
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
)

// Setting is one setting of remedies, by the name of its flag.
type Setting struct {
	Flag string
	Of   []Kind
	// needs says for a host on which the remedy can be applied whether the setting
	// can; nil: wherever its remedy can, and then `check` has no row for it.
	needs func(features.Report) (can bool, why string)
	value string // where only one value of the flag needs something
}

// Settings are all settings of all remedies. The flags of apply and fix, and what
// `check` tells, follow from this list.
func Settings() []Setting {
	return []Setting{
		{Flag: "cpus", Of: []Kind{Pin, Narrow}},
		{Flag: "reserve", Of: []Kind{Pin, Narrow}},
		{Flag: "via", Of: []Kind{Narrow}},
		{Flag: "class", Of: []Kind{Pin}, needs: hybridHere, value: ClassHybrid},
		{Flag: "strict", Of: []Kind{Pin, Secondary}},
		{Flag: "lends", Of: []Kind{Pin}, needs: lendingHere},
		{Flag: "irqs", Of: []Kind{Pin}, needs: interruptsHere},
		{Flag: "realtime", Of: []Kind{Pin}, needs: realtimeHere},
		{Flag: "full-cores", Of: []Kind{Pin}, needs: coresHere},
		{Flag: "idle-siblings", Of: []Kind{Pin}, needs: siblingsHere},
		{Flag: "mems", Of: []Kind{Pin, Narrow}, needs: memoryHere},
		{Flag: "immovable", Of: []Kind{Pin, Narrow}},
		{Flag: "stays", Of: []Kind{Pin, Narrow}},
		{Flag: "burst", Of: []Kind{Burst}},
		{Flag: "period", Of: []Kind{Burst, Narrow}},
		{Flag: "factor", Of: []Kind{Raise}},
		{Flag: "to", Of: []Kind{Raise}},
		{Flag: "weight-from-limit", Of: []Kind{Weight}},
	}
}

// Names are the remedies in one text: "pin, narrow, burst, weight, raise or secondary".
func Names() string {
	names := kindNames(Kinds())
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func kindNames(kinds []Kind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

// Owners are the remedies of a setting in one text: "pin and narrow".
func (s Setting) Owners() string { return strings.Join(kindNames(s.Of), " and ") }

// Abilities say for every remedy, and every setting that needs something of the
// host, whether it can be applied here, and why. A container may still be refused.
func Abilities(r features.Report) []features.Ability {
	var all []features.Ability
	for _, k := range Kinds() {
		of := kindHere(k, r)
		all = append(all, of)
		for _, s := range Settings() {
			if s.needs == nil || s.Of[0] != k {
				continue
			}
			a := features.Ability{What: strings.TrimSpace(string(k) + " --" + s.Flag + " " + s.value), Can: of.Can, Why: of.Why}
			if a.Can {
				a.Can, a.Why = s.needs(r)
			}
			all = append(all, a)
		}
	}
	return append(all, systemHere(r))
}

// kindHere says whether a remedy can be applied here.
func kindHere(k Kind, r features.Report) features.Ability {
	cpu, cpus := r.Writable(cgroup.CPU), r.Writable(cgroup.CPUSet)
	a := features.Ability{What: string(k), Can: cpu.Can, Why: cpu.Why}
	if !cpu.Can {
		return a
	}
	switch k {
	case Pin, Narrow:
		switch {
		case !cpus.Can:
			a.Can, a.Why = false, cpus.Why
		case k == Pin && r.CPUs < 2:
			a.Can, a.Why = false, "one CPU: none would be left for the rest of the host"
		default:
			a.Why = "cpu and cpuset are writable"
		}
	case Burst:
		switch r.Kernel.Burst {
		case features.No:
			a.Can, a.Why = false, "the kernel has no cpu burst (since 5.14)"
		case features.Unknown:
			a.Why = "not known before a cgroup with the cpu controller exists"
		}
	case Secondary:
		switch r.Means.Idle {
		case features.Yes:
			a.Why = "cpu.idle: it gives way at once"
		case features.No:
			a.Why = "no cpu.idle (since 5.15): the least weight instead, so that it gives way after a few ms"
		}
	}
	return a
}

// systemHere says whether `apply --system` can confine the host's own slices.
func systemHere(r features.Report) features.Ability {
	a := kindHere(Pin, r)
	a.What = "apply --system"
	switch {
	case a.Can && !r.Manages("systemd"):
		a.Can, a.Why = false, "systemd does not run here: there is no system.slice to confine"
	case a.Can:
		a.Why = "the slices of systemd can be kept on the reserve"
	}
	return a
}

func hybridHere(features.Report) (bool, string) {
	return true, "for a limit with a fraction, above one CPU"
}

func lendingHere(features.Report) (bool, string) {
	return true, "secondary containers may use its CPUs while they idle"
}

func interruptsHere(r features.Report) (bool, string) {
	if why := r.Means.NoInterrupts; why != "" {
		return false, why
	}
	return true, "/proc/irq is writable"
}

func realtimeHere(r features.Report) (bool, string) {
	switch why := r.Means.NoRealtime; {
	case why != "":
		return false, why
	case !r.Root:
		return false, "not root: the kernel gives real-time policies with CAP_SYS_NICE only"
	}
	return true, "the kernel limits real-time threads to their share of each second"
}

func coresHere(r features.Report) (bool, string) {
	switch r.Means.ThreadsPerCore {
	case 0:
		return false, "the kernel does not tell which CPUs share a core"
	case 1:
		return true, "every CPU is a whole core"
	}
	return true, "the cores are known"
}

func siblingsHere(r features.Report) (bool, string) {
	switch r.Means.ThreadsPerCore {
	case 0:
		return false, "the kernel does not tell which CPUs share a core"
	case 1:
		return true, "no core has a second thread: it changes nothing here"
	}
	return true, "the cores are known"
}

func memoryHere(r features.Report) (bool, string) {
	if r.Means.NUMANodes < 2 {
		return true, "one NUMA node: no memory has to move"
	}
	return true, "memory follows to the NUMA nodes of its CPUs"
}

// Has says whether a setting belongs to a remedy.
func (s Setting) Has(k Kind) bool { return slices.Contains(s.Of, k) }
