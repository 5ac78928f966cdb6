package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/outfile"
	view "github.com/unthrottle/unthrottle/internal/ui/report/explain"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/progress"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/rows"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

type explainFlags struct {
	length           time.Duration
	out              output
	ask, ascii       bool
	html, record, at string
	flight           string
	bound            bound
}

func newExplain() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:     "explain TARGET|RECORDING",
		GroupID: groupLook,
		Short:   "Record one container and say why it was stopped, and who spent the quota",
		Long: `Record one container's exact schedule for a while and say why it was stopped:
the cause with its evidence, how many CPUs it used and wanted at once, who spent
the quota, where waiting went. Nothing is changed. Ctrl-C ends the recording
early and explains what there is.

RECORDING is a file that --record wrote. If a name matches both a file and a
container, the file is used; name the container by its path or id then.

Recording needs root (or CAP_BPF and CAP_PERFMON) and a kernel with BTF. Where
the kernel refuses, counters are read for the same time instead, and what they
cannot tell is said.`,
		Example: `  sudo unthrottle explain cart
  sudo unthrottle explain cart --for 30s --html incident.html --record cart.rec
  unthrottle explain cart.rec --json
  sudo unthrottle explain cart --at 03:12`,
		Args: oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(rejectEmptyFlags(cmd, "html", "record", "at", "flight-dir"), f.check(cmd, args[0])); err != nil {
				return err
			}
			return runExplain(cmd.Context(), args[0], f, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	lengthVar(cmd, &f.length, 10*time.Second, " to record")
	f.out.add(cmd)
	shareString(cmd, &f.html, "html", "", ", for an incident")
	flags.StringVar(&f.record, "record", "", "also keep the recording in `FILE`")
	flags.StringVar(&f.at, "at", "", "explain a `MOMENT` of the past from the agent's flight recorder: 03:12, "+
		"\"2026-03-04 03:12\", 20m ago as 20m")
	flags.StringVar(&f.flight, "flight-dir", defaultFlightDir(), "with --at: the `DIR` of the agent's flight recorder")
	flags.BoolVar(&f.ask, "ask-jvm", false, "ask JVMs for their threads' full names: stops each at a safepoint for a moment")
	boundVar(cmd, &f.bound, "", ": exit with 1 if it was, such as 5%")
	shareSwitch(cmd, &f.ascii, "ascii", "")
	return cmd
}

func (f *explainFlags) check(cmd *cobra.Command, target string) error {
	if f.length < live.MinRecording || f.length > probe.MaxRecording {
		return fmt.Errorf("--for %v: give a time from %v to %v", plainTime(f.length), live.MinRecording, plainTime(probe.MaxRecording))
	}
	if f.at != "" && (f.record != "" || cmd.Flags().Changed("for") || f.ask) {
		return errors.New("--at looks at the past: it goes with none of --for, --record and --ask-jvm")
	}
	if f.html != "" && f.record != "" && outfile.Same(f.html, f.record) {
		return errors.New("--html and --record name the same file: one would replace the other")
	}
	return errors.Join(rejectWithout(cmd, "at", f.at != "", "flight-dir"), rejectLength(cmd, target))
}

// rejectLength refuses --for beside a recording's file, whose length is what it is: who gives one may mean a container of that name.
func rejectLength(cmd *cobra.Command, target string) error {
	if cmd.Flags().Changed("for") && isFile(target) {
		return fmt.Errorf("%s is a recording: --for is for a container that runs; if you mean one of that name, give its path or id",
			text.Sanitize(target, 0))
	}
	return nil
}

func runExplain(ctx context.Context, target string, f explainFlags, out io.Writer) error {
	var e diagnose.Explanation
	var kept error // the recording could not be kept: told after the explanation
	recorded := "" // the file that has the recording; "": there is none
	var host *beside
	// Begun before the recording: a page that cannot be written is an error now.
	page, err := begin(f.html)
	if err != nil {
		return err
	}
	switch {
	case f.at != "":
		e, err = explainPast(ctx, target, f)
	case isFile(target) && (f.record != "" || f.ask):
		err = fmt.Errorf("%s is a recording: --record and --ask-jvm are for containers that run", text.Sanitize(target, 0))
	case isFile(target):
		recorded = target
		done := slowly("explaining " + text.Sanitize(target, 60))
		e, err = live.File(ctx, target)
		done()
	default:
		if recorded = f.record; recorded == "" {
			dir, failed := os.MkdirTemp("", "unthrottle-explain-")
			if failed != nil {
				page.abandon()
				return fmt.Errorf("no room for the recording: %w", failed)
			}
			defer os.RemoveAll(dir)
			recorded = filepath.Join(dir, "recording")
		}
		e, host, kept, err = explainLive(ctx, target, f, recorded)
		if f.record == "" && errors.As(err, new(*probe.Unavailable)) {
			recorded = ""
			e, host, kept, err = explainLive(ctx, target, f, recorded) // from counters
		}
	}
	if err != nil {
		page.abandon()
		return err
	}
	o, shown, from := advised(ctx, &e, target, recorded, host)
	o.Style = styleOf(f.ascii)
	if f.out.json() {
		err = view.JSON(out, e, shown)
	} else {
		err = view.Write(out, e, o)
	}
	err = errors.Join(err, page.write(pageIsIn, func(w io.Writer) error { return view.HTML(w, e, from, o) }))
	if err := errors.Join(err, kept); err != nil {
		return err
	}
	sayNext(f.out, o.Next)
	return judged(e, f)
}

// advised is what the forecast of the recording recommends, as text and as JSON, and where the recording comes from. It
// takes what the forecast contradicts from the explanation. host is nil for a recording's file.
func advised(ctx context.Context, e *diagnose.Explanation, target, recorded string, host *beside) (o view.Options,
	shown *rows.Recommended, from webpage.Origin) {
	made, err := forecastOf(ctx, recorded, recorded != target)
	from.Version = version
	if recorded != target { // of this host, now
		from = thisHost()
	}
	if made != nil {
		from.Kernel = text.Shown(made.Kernel)
	}
	switch {
	case err != nil && ctx.Err() != nil: // Ctrl-C, which ended the recording too; the error has only Go's words for it
		o.NotForecast = "it was interrupted before anything was forecast"
	case err != nil:
		o.NotForecast = err.Error()
	case made != nil:
		for _, what := range made.LeftOut {
			say("%s", what)
		}
		made, choice := host.choose(ctx, made)
		shown = o.Recommend(e, made, &choice)
		if recorded != target {
			o.Next = next.Flags{}.Chosen(target, &choice)
		} else {
			o.Next = next.Forecast(target)
		}
	}
	return o, shown, from
}

// forecastOf forecasts from the file of a recording, in bounded time if it was just made; nil: there is none.
func forecastOf(ctx context.Context, name string, live bool) (*forecast.Forecast, error) {
	if name == "" {
		return nil, nil
	}
	file, err := infile.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was recorded, and the explanation says why
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	defer slowly("forecasting")()
	load, err := forecast.Read(file)
	if err != nil {
		return nil, err
	}
	return policy.Forecast(load, nil, schedExt().Can, replays(ctx, live))
}

// judged sets the exit code, against the bound if there is one.
func judged(e diagnose.Explanation, f explainFlags) error {
	switch {
	case len(e.LimitChanges) > 0:
		return exitWith{exitNotMeasurable, errors.New("a limit changed while it was looked at: look again")}
	case e.Cause == "" && f.bound.share < 0:
		return exitWith{exitNotMeasurable, errors.New("counters alone do not decide the cause; what is missing " +
			"stands at the end of the report")}
	case f.bound.share < 0:
		return nil
	case e.Stopped == nil || e.Window <= 0:
		return exitWith{exitNotMeasurable, errors.New("stopped time could not be measured exactly")}
	case e.Stopped.Seconds()/e.Window.Seconds() > f.bound.share:
		return exitWith{exitAboveBound, fmt.Errorf("it was stopped for more than %s of the time", f.bound.text)}
	}
	return nil
}

// isFile tells recordings from names of containers.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// explainLive records the container now, and looks at all of them meanwhile where there is to be a recording. kept says why the
// recording could not be kept; the explanation is sound then.
func explainLive(ctx context.Context, target string, f explainFlags, record string) (e diagnose.Explanation,
	host *beside, kept, err error) {
	h, err := openCgroups()
	if err != nil {
		return e, nil, nil, err
	}
	found := slowly("looking for " + text.Sanitize(target, 60))
	c, containers, err := resolve(h, target)
	found()
	if err != nil {
		return e, nil, nil, orFile(target, err)
	}
	var look looking
	o := live.Options{Host: h, Probe: &probe.Kept{Around: look.load}, Root: infile.Root("/"),
		Target: c, Others: live.Others(c, containers), For: f.length, AskJVM: f.ask}
	how := progress.Plain
	if terminal.FullScreen(os.Stderr) {
		how = progress.Terminal
	}
	line := progress.NewRecording(os.Stderr, how, c.Name, f.length, waitsForCPU())
	o.Doing, o.Began = line.Doing, line.Began
	defer line.Done()
	defer o.Probe.Close()
	var file *outfile.File
	if record != "" {
		// Begun before the recording: a file that cannot be written is an error now.
		if file, err = outfile.Create(record); err != nil {
			return e, nil, nil, err
		}
		o.Keep = file
		host = lookBeside(ctx, h, c, containers)
	}
	e, err = live.Live(ctx, o)
	if host != nil {
		host.end(ctx)
	}
	line.Done()
	if err == nil {
		err = live.LongEnough(e, c.Name, ctx.Err() != nil)
	}
	if notKept := new(live.NotKept); errors.As(err, &notKept) {
		kept, err = outfile.NotWritten(record, notKept.Err), nil
	}
	if file != nil {
		kept = errors.Join(kept, file.End(err == nil && kept == nil))
	}
	gone, short, refused := new(live.Gone), new(live.TooShort), new(probe.Unavailable)
	if errors.As(err, &gone) || errors.As(err, &short) || errors.As(err, &refused) {
		return e, host, nil, exitWith{exitNotMeasurable, err}
	}
	return e, host, kept, err
}
