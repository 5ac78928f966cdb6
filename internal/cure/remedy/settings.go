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
	// Of are the remedies that have it, as Settings returns it.
	Of []Kind
	// needs says for a host on which the remedy can be applied whether the setting
	// can; nil: wherever its remedy can, and then `check` has no row for it.
	needs func(features.Report) (can bool, why string)
	value string // where only one value of the flag needs something
}

// Settings are all settings of all remedies. The flags of apply and fix, and what
// `check` tells, follow from this list.
func Settings() []Setting {
	var settings []Setting
	for _, r := range table {
		for _, s := range r.Settings {
			i := slices.IndexFunc(settings, func(other Setting) bool { return other.Flag == s.Flag })
			if i < 0 {
				i, settings = len(settings), append(settings, s)
			}
			settings[i].Of = append(settings[i].Of, r.Kind)
		}
	}
	return settings
}

// Names are the remedies in one text, in the order of the table: with commas, and "or" before the last.
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
	var abilities []features.Ability
	for _, k := range table {
		of := k.ability(r)
		abilities = append(abilities, of)
		for _, s := range k.Settings {
			if s.needs == nil {
				continue
			}
			a := features.Ability{What: strings.TrimSpace(string(k.Kind) + " --" + s.Flag + " " + s.value), Can: of.Can, Why: of.Why}
			if a.Can {
				a.Can, a.Why = s.needs(r)
			}
			abilities = append(abilities, a)
		}
	}
	return append(abilities, systemHere(r))
}

// ability says whether a remedy can be applied on a host.
func (k Remedy) ability(r features.Report) features.Ability {
	cpu := r.Writable(cgroup.CPU)
	a := features.Ability{What: string(k.Kind), Can: cpu.Can, Why: cpu.Why}
	if !cpu.Can || k.here == nil {
		return a
	}
	if can, why := k.here(r); !can || why != "" {
		a.Can, a.Why = can, why
	}
	return a
}

// cpusetHere says whether cpusets can be set.
func cpusetHere(r features.Report) (bool, string) {
	if cpus := r.Writable(cgroup.CPUSet); !cpus.Can {
		return false, cpus.Why
	}
	return true, "cpu and cpuset are writable"
}

// cpusHere says whether a container can have CPUs alone.
func cpusHere(r features.Report) (bool, string) {
	if can, why := cpusetHere(r); !can || r.CPUs >= 2 {
		return can, why
	}
	return false, "one CPU: none would be left for the rest of the host"
}

// AbilitySchedExt is what narrow by sched_ext is called among the Abilities.
// Only loading the scheduler's types tells whether it can run for certain.
const AbilitySchedExt = string(Narrow) + " --via " + ViaSchedExt

// schedExtHere says whether the kernel can run the scheduler behind narrow.
func schedExtHere(r features.Report) (bool, string) { return SchedExtHere(r.Kernel, r.Root) }

// SchedExtHere says whether a kernel can run the scheduler behind narrow, for
// root or another user, and why or why not.
func SchedExtHere(k features.Kernel, root bool) (bool, string) {
	switch {
	case k.SchedExt == features.No:
		return false, "the kernel has no sched_ext (since 6.17 as it is needed here): a cpuset instead"
	case k.SchedExt == features.Unknown:
		return false, "not known whether the kernel has sched_ext: /sys cannot be read"
	case k.SchedExtScheduler != "" && !OurScheduler(k.SchedExtScheduler):
		return false, "another sched_ext scheduler is loaded (" + k.SchedExtScheduler + "): the kernel runs one at a time"
	case k.BTF != features.Yes:
		return false, "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)"
	case !root:
		return false, "not root: a scheduler needs CAP_BPF and CAP_SYS_ADMIN"
	}
	return true, "holds it at the limit's width, with credit, and never stops it"
}

// OurScheduler reports whether the name in /sys/kernel/sched_ext/root/ops is
// that of our scheduler.
func OurScheduler(name string) bool {
	return name == "unthrottle" || strings.HasPrefix(name, "unthrottle_")
}

func burstHere(r features.Report) (bool, string) {
	switch r.Kernel.Burst {
	case features.No:
		return false, "the kernel has no cpu burst (since 5.14)"
	case features.Unknown:
		return true, "not known before a cgroup with the cpu controller exists"
	}
	return true, ""
}

func idleHere(r features.Report) (bool, string) {
	switch r.Means.Idle {
	case features.Yes:
		return true, "cpu.idle: it gives way at once"
	case features.No:
		return true, "no cpu.idle (since 5.15): the least weight instead, so that it gives way after a few ms"
	}
	return true, ""
}

// systemHere says whether `apply --system` can confine the host's own slices.
func systemHere(r features.Report) features.Ability {
	a := pin.ability(r)
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
