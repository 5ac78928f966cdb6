package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/unthrottle/unthrottle/internal/kernel/features"
)

// Check writes what a host offers, for people.
func Check(w io.Writer, r features.Report) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name string, cells ...string) { fmt.Fprintf(t, "  %s\t%s\n", name, strings.Join(cells, "\t")) }

	fmt.Fprintln(t, "Cgroups")
	row("mode", r.CgroupMode)
	for _, c := range r.Controllers {
		switch {
		case c.Version == 0:
			row(string(c.Name), "not mounted")
		default:
			row(string(c.Name), fmt.Sprintf("%v  %s  %s", c.Version, c.Dir, either(c.Writable, "writable", "not writable")))
		}
	}
	if r.PrivateNamespace {
		row("namespace", "private: only what is below it can be seen")
	}

	fmt.Fprintln(t, "\nKernel")
	row("release", r.Kernel.Release)
	row("HZ", number(r.Kernel.HZ, "", "not readable"))
	row("slice", number(r.Kernel.SliceMicroseconds, " us", "not readable"))
	row("default period", number(r.Kernel.DefaultPeriodMicroseconds, " us", "not known"))
	row("burst", string(r.Kernel.Burst))
	row("cpu.stat.local", string(r.Kernel.StatLocal))
	row("BTF", string(r.Kernel.BTF))
	row("sched_ext", string(r.Kernel.SchedExt)+either(r.Kernel.SchedExtScheduler != "", ", loaded: "+r.Kernel.SchedExtScheduler, ""))
	for i, says := range r.Kernel.Behaviour() {
		row(either(i == 0, "behaviour", ""), says)
	}

	fmt.Fprintln(t, "\nWho else manages CPUs")
	if len(r.Managers) == 0 {
		row("nobody found", "looked for: kubelet CPU manager, DRA CPU driver, systemd, isolcpus, sched_ext")
	}
	for _, m := range r.Managers {
		row(m.Name, m.Evidence+": "+m.Means)
	}

	fmt.Fprintln(t, "\nWhat unthrottle can do here")
	for _, a := range r.Can {
		row(a.What, either(a.Can, "yes", "no"), a.Why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func either(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func number[T int | int64](v *T, unit, missing string) string {
	if v == nil {
		return missing
	}
	return fmt.Sprintf("%d%s", *v, unit)
}
