package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/incode"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/kernel/irq/irqhost"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/changes"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/widthcap"
	"github.com/unthrottle/unthrottle/topology"
)

// remedyFlags are the settings of a remedy.
type remedyFlags struct {
	kind, reserve   string
	via             string
	cpus            float64
	credit          time.Duration
	factor, to      float64
	burst, period   time.Duration
	weightFromLimit bool
	stays           bool
	strict          bool
	lends, irqs     bool
	realtime        bool
	fullCores, idle bool
	class           string
	sibling         string
}

func (f *remedyFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "remedy", "", "`REMEDY`: "+remedy.Names())
	shareCPUs(cmd, &f.cpus, ", or to narrow to (default: the limit, rounded up; narrow --via sched_ext: the limit, which may be 2.5)")
	shareString(cmd, &f.reserve, "reserve", "", " (default: the lowest core; one CPU below 4 CPUs)")
	flags.StringVar(&f.via, "via", "", "narrow: `WHAT` bounds the CPUs used at once: "+strings.Join(remedy.Vias, ", ")+
		" (default: cpuset; with --credit sched_ext)")
	timeVar(cmd, &f.credit, "credit", 0, "narrow --via sched_ext: CPU time that may be saved below the limit, such "+
		"as 2s (default: 200ms for each CPU of the limit)")
	flags.StringVar(&f.class, "class", "", "pin: `CLASS` exclusive (default), or hybrid: the whole part of the "+
		"limit, and shared CPUs for the fraction")
	flags.BoolVar(&f.strict, "strict", false, "pin --class hybrid: keep a quota of the limit, which can throttle "+
		"again; secondary: keep its quota")
	flags.BoolVar(&f.lends, "lends", false, "pin: secondary containers may use its CPUs while it idles")
	flags.BoolVar(&f.irqs, "irqs", false, "pin: keep interrupts off its CPUs, as far as they can be moved")
	flags.BoolVar(&f.fullCores, "full-cores", false, "pin: whole cores only")
	flags.BoolVar(&f.idle, "idle-siblings", false, "pin: one thread of each core; the others idle")
	flags.BoolVar(&f.realtime, "realtime", false, "pin: its threads run before everything else on its CPUs (SCHED_RR, priority 1)")
	flags.BoolVar(&f.stays, "stays", false, "pin, narrow: never move it to other CPUs afterwards (defrag, agent)")
	timeVar(cmd, &f.burst, "burst", 0, "burst, narrow: CPU time that may be saved up, such as 50ms (burst: as much "+
		"as the quota by default; narrow: its period stays then)")
	timeVar(cmd, &f.period, "period", 0, "burst, narrow, period: another period, the limit staying the same (narrow: 10ms, period: 20ms)")
	decimalVar(cmd, &f.factor, "factor", 0, "raise: times the limit (default 2)")
	decimalVar(cmd, &f.to, "to", 0, "raise: the new limit in CPUs; cap: that of the sibling (default: what the others leave)")
	flags.StringVar(&f.sibling, "sibling", "", "cap: the `CONTAINER` beside it that is held (default: the one that uses most)")
	flags.BoolVar(&f.weightFromLimit, "weight-from-limit", false, "weight: set the weight to that of the limit")
}

// maxCPUs bounds --cpus.
const maxCPUs = widthcap.MaxCPUs

func kindNames() []string {
	var names []string
	for _, k := range remedy.Kinds() {
		names = append(names, string(k))
	}
	return names
}

// rejectEmptyFlags refuses empty flags, those of apply and fix too.
func (f *remedyFlags) rejectEmptyFlags(cmd *cobra.Command) error {
	return rejectEmptyFlags(cmd, "remedy", "reserve", "via", "class", "sibling", "slo", "slo-command")
}

// request reads the flags; the caller judges whether a remedy may be left out.
func (f *remedyFlags) request(cmd *cobra.Command) (remedy.Request, error) {
	r := remedy.Request{Kind: remedy.Kind(f.kind), Via: f.via, Credit: f.credit, Immovable: f.stays, Class: f.class,
		Strict: f.strict, Shares: f.lends, Realtime: f.realtime,
		FullCores: f.fullCores, IdleSiblings: f.idle, Burst: f.burst, Period: f.period,
		Factor: f.factor, To: f.to, Sibling: f.sibling, WeightFromLimit: f.weightFromLimit}
	if f.kind == forecast.Budget {
		return r, inCode()
	}
	if f.kind != "" && !slices.Contains(remedy.Kinds(), r.Kind) {
		return r, fmt.Errorf("--remedy %s: choose %s%s", f.kind, remedy.Names(), text.DidYouMean(f.kind, kindNames()))
	}
	if err := f.validateFlags(cmd); err != nil {
		return r, err
	}
	if r.CPUs = int(f.cpus); float64(r.CPUs) != f.cpus {
		r.CPUs, r.Cap = 0, f.cpus
	}
	if f.irqs {
		found, err := gather.Interrupts(irqhost.New("/proc"), infile.Root("/"))
		if err != nil {
			return r, fmt.Errorf("--irqs: %w", err)
		}
		r.Interrupts = &found
	}
	if f.reserve != "" {
		set, err := topology.ParseList(f.reserve)
		if err != nil {
			return r, fmt.Errorf("--reserve %s: %w", f.reserve, err)
		}
		r.Reserve = &set
	}
	return r, nil
}

// inCode is the error for the row of a forecast that is a change of the program.
func inCode() error {
	var all []string
	for _, language := range incode.All() {
		all = append(all, strings.Join(language.Text(), "\n"))
	}
	return fmt.Errorf("--remedy %s: it changes the program's code, which no plan can do\n%s", forecast.Budget,
		strings.Join(all, "\n"))
}

// validateFlags refuses values that make no sense and flags of another remedy: to
// ignore a flag would break what the user asked for. Without --remedy the facts
// choose the remedy, and any setting is accepted.
func (f *remedyFlags) validateFlags(cmd *cobra.Command) error {
	for _, s := range remedy.Settings() {
		if f.kind != "" && cmd.Flags().Changed(s.Flag) && !s.Has(remedy.Kind(f.kind)) {
			return fmt.Errorf("--%s is a setting of %s, not of %s", s.Flag, s.Owners(), f.kind)
		}
	}
	for _, number := range []struct {
		flag  string
		value float64
	}{
		{"cpus", f.cpus}, {"credit", float64(f.credit)}, {"burst", float64(f.burst)}, {"period", float64(f.period)},
		{"factor", f.factor}, {"to", f.to},
	} {
		if cmd.Flags().Changed(number.flag) && (!(number.value > 0) || math.IsInf(number.value, 0)) {
			return fmt.Errorf("--%s %s: must be above 0", number.flag, cmd.Flags().Lookup(number.flag).Value)
		}
	}
	switch {
	case f.via != "" && !slices.Contains(remedy.Vias, f.via):
		return fmt.Errorf("--via %s: choose %s", f.via, strings.Join(remedy.Vias, ", "))
	case f.via == remedy.ViaCPUSet && f.credit > 0:
		return errors.New("--credit: a cpuset saves none; leave it out, or give --via sched_ext")
	case f.cpus != math.Trunc(f.cpus) && (f.kind != "" && f.kind != string(remedy.Narrow) || f.via == remedy.ViaCPUSet):
		return fmt.Errorf("--cpus %g: whole CPUs only; narrow --via sched_ext takes a fraction", f.cpus)
	case f.cpus > maxCPUs:
		return fmt.Errorf("--cpus %g: give %d or fewer", f.cpus, maxCPUs)
	case f.fullCores && f.idle:
		return errors.New("--full-cores and --idle-siblings: give one of them; with idle siblings no other container " +
			"is on its cores anyway")
	case f.factor > 0 && f.to > 0:
		return errors.New("--factor and --to: give one of them")
	}
	return nil
}

func newApply() *cobra.Command {
	var w writeFlags
	var rf remedyFlags
	var dryRun, mems, system bool
	var out output
	var sf sloFlags
	var window time.Duration
	cmd := &cobra.Command{
		Use:     "apply TARGET --remedy " + strings.Join(kindNames(), "|"),
		GroupID: groupChange,
		Short:   "Apply one remedy to one container, or keep the host's own slices on the reserve (--system)",
		Args: func(cmd *cobra.Command, args []string) error {
			if system {
				return noArgs(cmd, args)
			}
			return oneTarget(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if system {
				result, err := confineSystem(cmd, &w, rf.reserve, dryRun)
				return show(cmd, result, err, out, dryRun)
			}
			if err := rf.rejectEmptyFlags(cmd); err != nil {
				return err
			}
			if rf.kind == "" {
				return fmt.Errorf("--remedy is missing: choose %s ('unthrottle fix' chooses itself)", remedy.Names())
			}
			request, err := rf.request(cmd)
			if err != nil {
				return err
			}
			request.Mems = mems
			if err := checkWindow(window); err != nil {
				return err
			}
			o := fix.Options{Wish: policy.Wish{Request: request}, Window: window, Settle: settle, DryRun: dryRun}
			if found, _ := remedy.Find(request.Kind); sf.given(cmd) && !found.ForOthers {
				return errors.New("--slo and --slo-command are for secondary here; for the other remedies 'unthrottle fix' judges by them")
			}
			latencies, err := sf.source(cmd, &o, false)
			if err != nil {
				return err
			}
			result, err := runFix(cmd, &w, new(looking), args[0], fix.Apply, o, latencies)
			if mems && err == nil && !dryRun && result.Kept {
				err = followMems(cmd, &w, args[0], &result)
			}
			if err := show(cmd, result.Result, err, out, dryRun); err != nil {
				return err
			}
			switch {
			case dryRun:
				sayNext(out, forReal(cmd, args))
			case result.Kept:
				if !out.json() {
					say("stopped before %s, after %s; in force as %s; 'unthrottle restore' puts everything back",
						changes.Stopped(result.Before), changes.Stopped(result.After), result.ID)
				}
				sayNext(out, w.next().Status())
			}
			return nil
		},
	}
	w.add(cmd)
	w.addLift(cmd)
	rf.add(cmd)
	cmd.Flags().BoolVar(&system, "system", false, "no TARGET: keep system.slice, user.slice and init.scope on the "+
		"reserve, which follows their measured use (--reserve: on these CPUs)")
	shareSwitch(cmd, &dryRun, "dry-run", "")
	cmd.Flags().BoolVar(&mems, "mems", false, "pin, narrow: its memory follows to the NUMA nodes of its CPUs, also when it is moved later")
	sf.add(cmd, "; secondary: of the containers that lend CPUs; undone where it gets worse",
		"secondary: `CMD` that prints the latencies of the containers that lend CPUs, one number in ms per line")
	out.add(cmd)
	lengthVar(cmd, &window, time.Second, " to look, before and after, for the record of the effect")
	return cmd
}

// settle is the wait between applying and looking again. The periods under way end in it.
const settle = 500 * time.Millisecond

// show prints a result, also that of a failure: users first want to know what was written.
func show(cmd *cobra.Command, result apply.Result, failure error, out output, planned bool) error {
	if failure != nil && len(result.Writes)+len(result.Skipped) == 0 {
		return failure
	}
	var err error
	switch {
	case out.json():
		err = jsonout.Write(cmd.OutOrStdout(), cmd.Name(), result)
	case planned:
		err = changes.Plan(cmd.OutOrStdout(), result, outStyle())
	default:
		err = changes.Done(cmd.OutOrStdout(), result, outStyle())
	}
	return errors.Join(failure, err)
}
