package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/collect"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
)

// Exported is `export --json`.
type Exported struct {
	Dir string `json:"dir"`
	// Rows is how many rows were written, Containers how many containers the last round had.
	Rows          int     `json:"rows"`
	Containers    int     `json:"containers"`
	WindowSeconds float64 `json:"window_seconds"`
	// Removed is how many older files of this node went.
	Removed int `json:"removed_files"`
	// Probe says why widths and demand were not measured; null: they were.
	Probe *string `json:"not_measured"`
}

func newExport() *cobra.Command {
	var w writeFlags
	var dir, below, size string
	var names demand.Names
	var lasts time.Duration
	kept := policy.DefaultExport()
	var out output
	cmd := &cobra.Command{
		Use:     "export --dir DIR",
		GroupID: groupLook,
		Short:   "Keep what every container used, wanted and lost to quotas, as Parquet",
		Long: `Observe every container, and keep a row for each of them and five minutes in a
folder of Parquet files: limits, CPU time used and wanted, stopped time,
throttled periods and the histograms of width and demand.

A fleet's folders make one table (cluster=, date=, hour=) for DuckDB, Spark or
Trino. The agent does the same all the time with 'export' in its rules.

Files of this node that are older than --keep-for, and the oldest beyond
--keep-size, are removed.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := rejectEmptyFlags(cmd, "dir", "below", "cluster", "node", "keep-size", "state-dir"); err != nil {
				return err
			}
			if dir == "" {
				return usage(cmd, "give a folder for the files: --dir DIR")
			}
			if err := checkExportTimes(cmd, lasts, kept.KeepFor); err != nil {
				return err
			}
			if size != "" {
				if err := kept.SetKeepSize(size); err != nil {
					return fmt.Errorf("--keep-size: %w", err)
				}
			}
			h, err := openCgroups()
			if err != nil {
				return err
			}
			if err := needCPU(h); err != nil {
				return err
			}
			prefix, err := existingPrefix(h, "below", below)
			if err != nil {
				return err
			}
			if names.Node == "" {
				if names.Node, err = os.Hostname(); err != nil {
					return fmt.Errorf("this host's name: %w; give one with --node", err)
				}
			}
			done, err := export(cmd.Context(), h, prefix, lasts,
				collect.Options{Names: names, Dir: dir, Long: remedy.LongPeriods(),
					Keep: store.Keep{For: kept.KeepFor, Bytes: kept.KeepBytes}, FS: h,
					Proc: os.DirFS("/proc"), Sys: os.DirFS("/sys"), InForce: journalled(cmd, &w, h)})
			if err != nil {
				return err
			}
			if out.json() {
				return jsonout.Write(cmd.OutOrStdout(), "export", done)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s of %s in %s\n", text.Count(done.Rows, "row"),
				text.Count(done.Containers, "container"), text.Sanitize(done.Dir, 0))
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&dir, "dir", "", "`DIR` for the files")
	flags.StringVar(&names.Cluster, "cluster", "", "`NAME` of the cluster, for the rows")
	shareString(cmd, &names.Node, "node", "", " (default: the host's name)")
	shareString(cmd, &below, "below", "", "")
	lengthVar(cmd, &lasts, 0, " to observe (default: until interrupted)")
	timeVar(cmd, &kept.KeepFor, "keep-for", kept.KeepFor, "remove this node's files that are older than this `TIME`")
	flags.StringVar(&size, "keep-size", "", "remove this node's oldest files beyond this `SIZE` (default 1024MiB)")
	w.addStateDir(cmd)
	out.add(cmd)
	return cmd
}

// checkExportTimes refuses times that export cannot mean.
func checkExportTimes(cmd *cobra.Command, lasts, keepFor time.Duration) error {
	if cmd.Flags().Changed("for") && lasts <= 0 {
		return fmt.Errorf("--for %v: must be above 0; leave it out to observe until interrupted", plainTime(lasts))
	}
	if keepFor < policy.LeastKeepFor || keepFor > policy.MostKeepFor {
		return fmt.Errorf("--keep-for %s: give %s to %s", text.Duration(keepFor), text.Duration(policy.LeastKeepFor),
			text.Duration(policy.MostKeepFor))
	}
	return nil
}

// journalled returns what reads which remedies are in force; nil: there is no journal that can be read.
func journalled(cmd *cobra.Command, w *writeFlags, h *cgroup.Host) func() ([]txn.InForce, error) {
	return func() ([]txn.InForce, error) {
		env, done, err := w.env(cmd, h)
		if err != nil {
			return nil, err
		}
		defer done()
		return apply.Status(env)
	}
}

// export observes until the time is over or the context ends, and writes the rows.
func export(ctx context.Context, h *cgroup.Host, below string, lasts time.Duration, o collect.Options) (Exported, error) {
	result := Exported{Dir: o.Dir}
	watch := observe.WatchOptions{Scope: below, Interval: time.Second, PollInterval: -1, LeaveVacant: true}
	p, missing := openProbe(probe.Options{})
	if p != nil {
		defer p.Close()
		watch.Sampler.Probe = p
	} else {
		say("%s", missing)
		result.Probe = &missing
	}
	o.Failed = func(err error) { say("%v", err) }
	if err := os.MkdirAll(o.Dir, 0o755); err != nil { // a folder that cannot be made is told now and not in five minutes
		return result, err
	}
	if lasts > 0 { // from here: to load the probe takes a second
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lasts)
		defer cancel()
	}
	sink := collect.New(o)
	periods, endPeriods := context.WithCancel(ctx)
	ended := periodsInto(periods, sink, p)
	var last []observe.Observation
	began := time.Now()
	err := observe.NewWatcher(h, watch).Run(ctx, func(s observe.Snapshot) {
		sink.Round(s.Observations)
		last = s.Observations
	})
	if ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())) {
		err = nil // the time is over, or the user ended it: both are an end
	}
	endPeriods()
	<-ended
	written, closed := sink.Close(last)
	result.Rows, result.Containers, result.WindowSeconds, result.Removed = written, len(last),
		time.Since(began).Seconds(), sink.Kept().Removed
	return result, errors.Join(err, closed)
}

// periodsInto gives the sink a row per period until ctx ends, and then closes the channel. Where the kernel gives none, rows are kept
// without.
func periodsInto(ctx context.Context, sink *collect.Sink, p *probe.Probe) <-chan struct{} {
	ended := make(chan struct{})
	if p == nil {
		close(ended)
		return ended
	}
	sink.Feed(true)
	go func() {
		defer close(ended)
		err := p.PeriodRows(ctx, func(r probe.PeriodRow) error {
			sink.Period(r)
			return nil
		})
		if err != nil {
			sink.Feed(false)
			say("what other limits would have done is not kept: %v", err)
		}
	}()
	return ended
}
