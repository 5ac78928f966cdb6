package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/fleet/generate"
	"github.com/unthrottle/unthrottle/internal/text"
)

func newGenerate() *cobra.Command {
	var out, bound, demand, priced, treated string
	var lasts time.Duration
	// a day of the past: equal seeds give equal files
	o := generate.Options{Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)}
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
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Bound, err = parseBound(bound); err != nil {
				return err
			}
			if priced != "" {
				if o.Priced, err = parseShare("priced", priced, 101); err != nil {
					return err
				}
			}
			if treated != "" {
				if o.Treated, err = parseShare("treated", treated, 101); err != nil {
					return err
				}
				if o.Priced == 0 {
					return errors.New("generate: --treated: what a remedy saves is known of services with recordings: give --priced too")
				}
			}
			if demand != generate.Recorded && demand != generate.Drawn {
				return fmt.Errorf("generate: --demand %s: give %s or %s", text.Quoted(demand), generate.Recorded, generate.Drawn)
			}
			o.Drawn = demand == generate.Drawn
			o.Hours = int(lasts / time.Hour)
			switch {
			case out == "":
				return errors.New("generate: give an empty folder for the files: --out DIR")
			case o.Hosts < 1 || o.Containers < o.Hosts || o.Containers > 10_000_000:
				return errors.New("generate: give --hosts of 1 or more, and --containers of as many or more, up to 10000000")
			case lasts < time.Hour || lasts > 31*24*time.Hour || lasts%time.Hour != 0:
				return errors.New("generate: --for: give whole hours, from 1h to 744h")
			}
			there, err := os.ReadDir(out)
			switch {
			case err == nil && len(there) > 0:
				return fmt.Errorf("generate: %s is not empty: give a folder of its own", text.Sanitize(out, 0))
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return err
			}
			truth, err := generate.Make(cmd.Context(), out, o)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s of %s of %s on %s in %s\n", text.Count(truth.Rows, "row"),
				text.Count(truth.Containers, "container"),
				text.Count(len(truth.Services), "service"), text.Count(truth.Hosts, "host"), text.Sanitize(out, 0))
			return err
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Hosts, "hosts", 10, "`N` hosts")
	flags.IntVar(&o.Containers, "containers", 200, "`M` containers, spread over the hosts")
	flags.Uint64Var(&o.Seed, "seed", 1, "random seed")
	flags.DurationVar(&lasts, "for", 24*time.Hour, "how long, in whole hours")
	flags.BoolVar(&o.Joined, "joined", false, "write the files of each hour joined, as 'join' does: for many hosts")
	flags.BoolVar(&o.Churn, "churn", false,
		"nodes and pods come and go: --hosts is the most at once, and DaemonSets are beside --containers")
	flags.StringVar(&demand, "demand", generate.Recorded,
		"`KIND` of demand: of recordings of real services (recorded), or drawn like the rest (drawn)")
	flags.StringVar(&priced, "priced", "",
		"`SHARE` of services with recordings that tell what each remedy needs, and with thread pools;\nnone by default")
	flags.StringVar(&treated, "treated", "",
		"`SHARE` of services that get a burst, a narrow or a pin half-way, if recordings tell that it saves;\nnone by default")
	flags.StringVar(&out, "out", "", "`DIR` for the files, empty or not there")
	flags.StringVar(&bound, "bound", "0.1%",
		"of the truth: stopped for more than this `SHARE` of the time to work is too much")
	return cmd
}
