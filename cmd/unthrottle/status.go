package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/agent"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/holder"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
	view "github.com/unthrottle/unthrottle/internal/ui/report/status"
	"github.com/unthrottle/unthrottle/topology"
)

type statusFlags struct {
	write   writeFlags
	out     output
	history bool
	limit   int
}

func newStatus() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:     "status",
		GroupID: groupLook,
		Short:   "Show what is in force, by whom, since when and with what effect",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.write.addStateDir(cmd)
	flags := cmd.Flags()
	f.out.add(cmd)
	flags.BoolVar(&f.history, "history", false, "show what has ended: expected beside what came")
	flags.IntVar(&f.limit, "limit", 50, "with --history: at most `N`, newest first")
	return cmd
}

func (f *statusFlags) run(cmd *cobra.Command) error {
	if err := rejectWithout(cmd, "history", f.history, "limit"); err != nil {
		return err
	}
	if err := f.write.mustExist(cmd); err != nil {
		return err
	}
	h, err := openCgroups()
	if err != nil {
		return err
	}
	env, done, err := f.write.env(cmd, h)
	if err != nil {
		return err
	}
	defer done()
	if f.limit < 0 {
		return fmt.Errorf("--limit %d: must not be negative", f.limit)
	}
	f.write.sayWhose(cmd)
	if err := sayHealth(env); err != nil {
		return err
	}
	if err := errors.Join(sayDropped(f.write.stateDir), sayExporting(f.write.stateDir), sayHolder(env)); err != nil {
		return err
	}
	if f.history {
		return showHistory(cmd.OutOrStdout(), env, f.out, f.limit)
	}
	return f.show(cmd.OutOrStdout(), env)
}

// show writes what is in force, and what is tried for hours.
func (f *statusFlags) show(out io.Writer, env apply.Env) error {
	inForce, err := apply.Status(env)
	if err != nil {
		return err
	}
	apply.CountWidths(env, inForce)
	countStops(env, inForce)
	drift, err := apply.Drift(env)
	if err != nil {
		return err
	}
	spread, err := agent.SpreadTrials(f.write.stateDir)
	if err != nil {
		return err
	}
	if f.out.json() {
		return jsonout.Write(out, "status", statusDocument{inForce, drift, spread})
	}
	if err := view.Write(out, inForce, drift, time.Now(), outStyle()); err != nil {
		return err
	}
	names := map[string]string{}
	for _, f := range inForce {
		names[f.Target] = f.Name
	}
	for _, s := range spread {
		if _, err := io.WriteString(out, spreadTrial(s, time.Now())); err != nil {
			return err
		}
	}
	sharings, err := remedy.Sharings(inForce)
	if err != nil {
		return err
	}
	if err := view.Lends(out, sharings, names, outStyle()); err != nil {
		return err
	}
	if len(inForce) > 0 {
		sayNext(f.out, f.write.next().PlanRestore())
	} else {
		sayNext(f.out, next.List)
	}
	return nil
}

// countStops fills in for how long each container has been stopped since its remedy was judged.
func countStops(env apply.Env, inForce []txn.InForce) {
	cpus := -1 // not known
	if m, err := topology.Read(os.DirFS("/sys")); err == nil {
		cpus = m.Online().Size()
	}
	for i := range inForce {
		if f := &inForce[i]; f.Outcome != nil && f.Trial == nil {
			f.Stops = verdict.StopsSince(f.Outcome.Counted, apply.Count(env, f.Target), f.Outcome.Before, cpus)
		}
	}
}

// showHistory writes what has ended, and how near the forecasts came of all changes in the journal.
func showHistory(out io.Writer, env apply.Env, form output, limit int) error {
	held, err := apply.Status(env)
	if err != nil {
		return err
	}
	past, err := apply.History(env, 0)
	if err != nil {
		return err
	}
	for _, p := range past {
		held = append(held, p.InForce)
	}
	forecasts := txn.Accuracies(held)
	if limit > 0 {
		past = past[:min(limit, len(past))]
	}
	if form.json() {
		return jsonout.Write(out, "history", historyDocument{past, forecasts})
	}
	return errors.Join(view.History(out, past, time.Now(), outStyle()), view.Forecasts(out, forecasts, outStyle()))
}

// statusDocument is `status --json`, historyDocument `status --history --json`.
type statusDocument struct {
	InForce []txn.InForce `json:"in_force"` // oldest first
	// Drift are settings of these that are no longer what was left there; those of a container that ended are gone.
	Drift []txn.DriftItem `json:"drift"`
	// SpreadTrials are those of the agent that are spread over hours, also those that have kept a remedy.
	SpreadTrials []agent.SpreadTrial `json:"spread_trials"`
}

type historyDocument struct {
	Ended []txn.Past `json:"ended"` // newest first
	// Forecasts are about all changes in the journal, also those in force.
	Forecasts []txn.Accuracy `json:"forecasts"`
}

// sayHealth tells of damage in the journal.
func sayHealth(env apply.Env) error {
	health, err := apply.ReadHealth(env)
	if err != nil {
		return err
	}
	if health.Unreported > 0 {
		say("%d lines of the journal in %s are damaged: what they told is lost, and settings may not be put back; "+
			"'unthrottle restore' says more", health.Unreported, env.StateDir)
	}
	for _, kept := range health.Kept {
		say("a damaged journal was kept as %s: look at it, and remove it when it is of no more use", kept)
	}
	return nil
}

// sayHolder says that the process which held the scheduler behind narrow has ended before its caps.
func sayHolder(env apply.Env) error {
	h, err := holder.ReadNote(env.StateDir)
	if err != nil || h == nil {
		return err
	}
	if runs, err := env.Proc.Runs(h.Process); err != nil || runs {
		return nil // it runs, or that cannot be told from here
	}
	why := "it was killed, or its host restarted"
	if h.Why != "" {
		why = "the kernel ended the scheduler: " + text.Sanitize(h.Why, 200)
	}
	say("process %d, which held the scheduler %s since %s, has ended (%s): quotas are enforced again", h.Process.PID,
		text.Sanitize(h.Scheduler, 64),
		h.Since.Local().Format(time.DateTime), why)
	return nil
}

// sayDropped says what a running agent has dropped to keep to its own budget.
func sayDropped(stateDir string) error {
	d, err := agent.ReadDropped(stateDir)
	if err != nil || d == nil {
		return err
	}
	say("the agent (process %d) keeps to its own budget and has dropped %s since %s: %s", d.Process, strings.Join(d.What, ", "),
		d.Since.Local().Format(time.DateTime), d.Why)
	return nil
}

// sayExporting tells that the agent removes rows for questions over many hosts, which are older or too many.
func sayExporting(stateDir string) error {
	e, err := agent.ReadExporting(stateDir)
	if err != nil || e == nil || e.Removed == 0 {
		return err
	}
	say("%s", exporting(e))
	return nil
}

func exporting(e *agent.Exporting) string {
	return fmt.Sprintf("the agent (process %d) keeps rows since %s in %s, %.1f MiB; it has removed %s, as keep_for "+
		"and keep_size of export say", e.Process,
		e.From.Local().Format(time.DateTime), text.Sanitize(e.Dir, 0), float64(e.Bytes)/(1<<20), text.Count(e.Removed, "older file"))
}

// spreadTrial is a line about a trial that is spread over hours.
func spreadTrial(s agent.SpreadTrial, now time.Time) string {
	of := text.Shown(s.Cgroup)
	if k := s.Kept; k != nil {
		return fmt.Sprintf("kept: %s of %s promised %.2f times what leaving it is; since then %s, in %s left alone%s\n", k.Transaction, of,
			k.Promised, k.Compared, text.Count(k.Pairs, "block"), text.Either(k.Helps, "", "; it does not bring half of that"))
	}
	line := fmt.Sprintf("trial: %s: %s in %s, the next %s", of, text.Count(s.Blocks, "block"),
		text.Duration(now.Sub(s.Began).Round(time.Second)), text.Either(s.NextBlock.After(now), "in "+text.Duration(s.NextBlock.Sub(now).Round(time.Second)), "is due"))
	waiting := 0
	for _, v := range s.Variants {
		switch {
		case v.Out != nil:
			line += "; " + text.Shown(v.Name) + " is not tried again: " + text.Shown(*v.Out)
		case v.Pairs == 0:
			waiting++
		default:
			line += "; " + text.Shown(v.Name) + " " + v.Compared.String()
		}
	}
	if waiting > 0 {
		line += "; of " + text.CountOf(waiting, "remedy", "remedies") + " nothing is measured yet"
	}
	if c := s.Remedied; c.Requests > 0 {
		line += fmt.Sprintf("; %d of %s with a remedy took longer than twice the usual (left alone: %d of %d)", c.Slow,
			text.Count(c.Requests, "request"), s.LeftAlone.Slow, s.LeftAlone.Requests)
	}
	return line + "\n"
}
