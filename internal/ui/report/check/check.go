// Package check writes what `unthrottle check` found.
package check

import (
	"fmt"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// Write writes what a host offers, for people.
func Write(w io.Writer, r features.Report, style page.Style) error {
	var b strings.Builder
	var lines [][]string
	row := func(name string, cells ...string) { lines = append(lines, append([]string{"  " + name}, cells...)) }
	section := func(title string) {
		table.Lines(&b, style, lines)
		b.WriteString(title + "\n")
		lines = nil
	}

	section("Cgroups")
	row("mode", r.CgroupMode)
	for _, c := range r.Controllers {
		switch {
		case c.Version == 0:
			row(string(c.Name), "not mounted")
		default:
			row(string(c.Name), fmt.Sprintf("%v  %s  %s", c.Version, c.Dir, text.Either(c.Writable, "writable", "not writable")))
		}
	}
	if r.PrivateNamespace {
		row("namespace", "private: only what is below it can be seen")
	}

	section("\nKernel")
	row("release", r.Kernel.Release)
	row("HZ", number(r.Kernel.HZ, "", "not readable"))
	row("slice", number(r.Kernel.SliceMicroseconds, " us", "not readable"))
	row("default period", number(r.Kernel.DefaultPeriodMicroseconds, " us", "not known"))
	row("burst", string(r.Kernel.Burst))
	row("cpu.stat.local", string(r.Kernel.StatLocal))
	row("BTF", string(r.Kernel.BTF))
	row("sched_ext", string(r.Kernel.SchedExt)+text.Either(r.Kernel.SchedExtScheduler != "", ", loaded: "+r.Kernel.SchedExtScheduler, ""))
	for i, says := range tunables(r.Kernel) {
		row(text.Either(i == 0, "tunables", ""), says)
	}
	for i, says := range r.Kernel.Behaviour() {
		row(text.Either(i == 0, "behaviour", ""), says)
	}

	section("\nWho asks")
	row("user", fmt.Sprintf("%d%s", r.Rights.UID, text.Either(r.Rights.UID == 0, ", root", "")))
	switch {
	case r.Rights.Missing == nil:
		row("capabilities", "not readable")
	case len(r.Rights.Missing) == 0:
		row("capabilities", "all that unthrottle uses")
	default:
		row("capabilities", "without "+strings.Join(r.Rights.Missing, ", "))
	}
	row("inside", text.Either(r.Rights.Container == "", "no container: it sees the host's processes and cgroups",
		"a container: "+r.Rights.Container))

	section("\nWho else manages CPUs")
	if len(r.Managers) == 0 {
		row("none found", "looked for: kubelet CPU manager, DRA CPU driver, systemd, isolcpus, sched_ext")
	}
	for _, m := range r.Managers {
		row(m.Name, m.Evidence+": "+m.Means)
	}

	section("\nWhat unthrottle can do here")
	before := ""
	for _, a := range r.Can {
		why := a.Why
		if !a.Can && why == before {
			why = asAbove
		}
		row(a.What, text.Either(a.Can, "yes", "no"), why)
		before = text.Either(a.Can, "", a.Why)
	}
	if len(r.Missing) > 0 {
		section("\nWhat is missing, and how to get it")
	}
	for _, m := range r.Missing {
		row(m.What, "for "+m.For, m.Way)
	}
	table.Lines(&b, style, lines)
	return style.Send(w, b.String())
}

// tunables says which of the scheduler's settings differ from the kernel's defaults.
func tunables(k features.Kernel) []string {
	var says []string
	for _, t := range k.Unusual {
		says = append(says, t.String())
	}
	switch {
	case k.TunablesRead != features.Yes:
		says = append(says, text.Either(len(says) == 0, "those that can be read are the kernel's defaults; ", "")+
			"/sys/kernel/debug/sched is not readable")
	case len(says) == 0:
		says = append(says, "the kernel's defaults")
	}
	return says
}

// asAbove stands for a reason that the row above gives too.
const asAbove = "as above"

func number[T int | int64](v *T, unit, missing string) string {
	if v == nil {
		return missing
	}
	return fmt.Sprintf("%d%s", *v, unit)
}
