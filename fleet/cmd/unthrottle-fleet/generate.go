package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/fleet/generate"
	"github.com/unthrottle/unthrottle/internal/text"
)

type generateFlags struct {
	out, bound, demand, priced, treated string
	lasts                               time.Duration
	o                                   generate.Options
}

func newGenerate() *cobra.Command {
	// a day of the past: equal seeds give equal files
	f := generateFlags{o: generate.Options{Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)}}
	cmd := &cobra.Command{
		Use:   "generate --hosts N --containers M --out DIR",
		Short: "Make the rows of a fleet that never was, with the truth about it",
		Long: `Write rows as 'unthrottle export' does, and truth.json: what each service needs
at least. For trying 'report', and measuring it. Each service wants CPUs as a
recording of a real one did, at a size and a load that are drawn from a seed, and
is stepped through the period model. Limits, sizes and loads are drawn, so that
the figures say nothing about a fleet of yours.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("generate: %s: give the folder with --out", text.Quoted(args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.o.Hosts, "hosts", 10, "`N` hosts")
	flags.IntVar(&f.o.Containers, "containers", 200, "`M` containers, spread over the hosts")
	flags.Uint64Var(&f.o.Seed, "seed", 1, "random seed")
	flags.DurationVar(&f.lasts, "for", 24*time.Hour, "how long, in whole hours")
	flags.BoolVar(&f.o.Joined, "joined", false, "write the files of each hour joined, as 'join' does: for many hosts")
	flags.BoolVar(&f.o.Churn, "churn", false,
		"nodes and pods come and go: --hosts is the most at once, and DaemonSets are beside --containers")
	flags.StringVar(&f.demand, "demand", generate.Recorded,
		"`KIND` of demand: of recordings of real services (recorded), or drawn like the rest (drawn)")
	flags.StringVar(&f.priced, "priced", "",
		"`SHARE` of services with recordings that tell what each remedy needs, and with thread pools;\nnone by default")
	flags.StringVar(&f.treated, "treated", "",
		"`SHARE` of services that get a burst, a narrow or a pin half-way, if recordings tell that it saves;\nnone by default")
	flags.StringVar(&f.out, "out", "", "`DIR` for the files, empty or not there")
	flags.StringVar(&f.bound, "bound", "0.1%",
		"of the truth: stopped for more than this `SHARE` of the time to work is too much")
	return cmd
}

// check reads the flags into the options, and refuses what no fleet can be made of.
func (f *generateFlags) check() (err error) {
	if f.o.Bound, err = parseBound(f.bound); err != nil {
		return err
	}
	if f.priced != "" {
		if f.o.Priced, err = parseShare("priced", f.priced, 101); err != nil {
			return err
		}
	}
	if f.treated != "" {
		if f.o.Treated, err = parseShare("treated", f.treated, 101); err != nil {
			return err
		}
		if f.o.Priced == 0 {
			return errors.New("generate: --treated: what a remedy saves is known of services with recordings: give --priced too")
		}
	}
	if f.demand != generate.Recorded && f.demand != generate.Drawn {
		return fmt.Errorf("generate: --demand %s: give %s or %s", text.Quoted(f.demand), generate.Recorded, generate.Drawn)
	}
	f.o.Drawn = f.demand == generate.Drawn
	f.o.Hours = int(f.lasts / time.Hour)
	switch {
	case f.out == "":
		return errors.New("generate: give an empty folder for the files: --out DIR")
	case f.o.Hosts < 1 || f.o.Containers < f.o.Hosts || f.o.Containers > 10_000_000:
		return errors.New("generate: give --hosts of 1 or more, and --containers of as many or more, up to 10000000")
	case f.lasts < time.Hour || f.lasts > 31*24*time.Hour || f.lasts%time.Hour != 0:
		return errors.New("generate: --for: give whole hours, from 1h to 744h")
	}
	return nil
}

func (f *generateFlags) run(ctx context.Context, out io.Writer) error {
	there, err := os.ReadDir(f.out)
	switch {
	case err == nil && len(there) > 0:
		return fmt.Errorf("generate: %s is not empty: give a folder of its own", text.Sanitize(f.out, 0))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	truth, err := generate.Make(ctx, f.out, f.o)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s of %s of %s on %s in %s\n", text.Count(truth.Rows, "row"),
		text.Count(truth.Containers, "container"),
		text.Count(len(truth.Services), "service"), text.Count(truth.Hosts, "host"), text.Sanitize(f.out, 0))
	return err
}
