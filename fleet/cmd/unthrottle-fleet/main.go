// Command unthrottle-fleet answers questions about the rows of many hosts. `unthrottle fleet` starts it. It is a
// program of its own because DuckDB needs cgo.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "golang.org/x/crypto/x509roots/fallback" // roots for https where the host has none, as in the image

	"github.com/unthrottle/unthrottle/fleet/duckdb"
	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/fleet/report"
	"github.com/unthrottle/unthrottle/fleet/scratch"
	"github.com/unthrottle/unthrottle/fleet/spark"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

// version of the program; the build sets it.
var version = "dev"

// Exit codes, as those of unthrottle.
const (
	exitFailure       = 2
	exitNotMeasurable = 3
	exitInterrupted   = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	interrupted := ctx.Err() != nil
	stop()
	os.Exit(exitCode(err, interrupted))
}

// exitCode prints an error and turns it into the process's exit code.
func exitCode(err error, interrupted bool) int {
	switch {
	case err == nil:
		return 0
	case interrupted && !errors.As(err, new(unpushed)):
		say("unthrottle fleet: interrupted")
		return exitInterrupted
	}
	say("unthrottle fleet: %v", err)
	if errors.As(err, new(*report.NoRows)) || errors.As(err, new(*report.NoHosts)) || errors.As(err, new(*noFiles)) ||
		errors.As(err, new(*noCounters)) {
		return exitNotMeasurable
	}
	return exitFailure
}

// say writes a message for people; data goes to standard output only.
func say(format string, args ...any) { terminal.Message(os.Stderr, fmt.Sprintf(format, args...)) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "unthrottle-fleet",
		Short:         "Questions over the rows of many hosts",
		Version:       version,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "unthrottle fleet"},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newReport(), newPlan(), newPush(), newJoin(), newImport(), newGenerate())
	return root
}

// shared are the flags of all commands that read rows.
type shared struct {
	output   string
	json     bool
	memoryMB int
	ascii    bool
	diskMB   int
	on       string
	master   spark.Master // what on says; "": DuckDB
	until    string
	end      time.Time // what until says; zero: that of the rows
}

func (o *shared) add(flags *pflag.FlagSet) {
	flags.StringVarP(&o.output, "output", "o", "text", "`FORMAT` of the result: text or json")
	flags.BoolVar(&o.json, "json", false, "short for --output json")
	flags.IntVar(&o.memoryMB, "memory", 2048, "`MIB` of memory for the rows; what is more goes to TMPDIR")
	flags.IntVar(&o.diskMB, "disk", 0, "`MIB` of TMPDIR for files that come from s3:// (default: half of what is free)")
	flags.StringVar(&o.on, "on", "",
		"ask on Apache Spark, on this `MASTER`: spark://HOST:7077, k8s://…, local[2], local-cluster[2,1,2048]")
	flags.StringVar(&o.until, "until", "",
		"as of this `MOMENT`, as 2026-03-04T05:00:00Z: rows of later do not count (default: as of the end of the rows)")
	flags.BoolVar(&o.ascii, "ascii", false, "no characters beyond ASCII")
}

// maxDiskMB is a TiB for each of a thousand disks.
const maxDiskMB = 1 << 30

// check checks them, and sets json.
func (o *shared) check() error {
	switch {
	case o.output != "text" && o.output != "json":
		return fmt.Errorf("--output %s: choose text or json", text.Quoted(o.output))
	case o.diskMB < 0 || o.diskMB > maxDiskMB:
		return fmt.Errorf("--disk %d: give 1 to %d MiB, or leave it out for half of what is free", o.diskMB, maxDiskMB)
	case o.memoryMB < 128:
		return fmt.Errorf("--memory %d: give at least 128 MiB", o.memoryMB)
	}
	o.json = o.json || o.output == "json"
	var err error
	if o.until != "" {
		if o.end, err = parseMoment(o.until); err != nil {
			return err
		}
	}
	if o.on == "" {
		return nil
	}
	if o.master, err = spark.ParseMaster(o.on); err != nil {
		return fmt.Errorf("--on: %w", err)
	}
	return nil
}

// style is that of the text.
func (o *shared) style() page.Style {
	style := terminal.Style(os.Stdout)
	style.ASCII = style.ASCII || o.ascii
	return style
}

// oneFolder is the check of a command's arguments that takes a folder, or a place in a store.
func oneFolder(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s: give one folder: 'unthrottle fleet %s DIR', or s3://BUCKET/PREFIX", command, command)
		}
		return nil
	}
}

// options are the flags of report.
type options struct {
	shared
	outputs
	bound    string
	failover int
	// price and prices are what cores cost in an hour, and a file of that; "": not given.
	price, prices string
}

func newReport() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "report DIR|s3://BUCKET/PREFIX",
		Short: "Which services a quota stops, and how many cores come back",
		Long: `Read what 'unthrottle export' and agents wrote below DIR, of any number of
hosts and days: which services have more runnable threads than cores, which are
stopped and who spends their quota, how many cores come back, and by which
remedy: at the same p99 where agents found that out, or else at the same stops.
The last two are estimates, with their bounds.

From s3:// the files are fetched into TMPDIR first. Endpoint and credentials are
those of the AWS command line (AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE).

What cannot be read or cannot be is left out, and told. With --on the same
questions are asked on Apache Spark, by spark-submit.`,
		Args: oneFolder("report"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			bound, err := parseBound(o.bound)
			if err != nil {
				return err
			}
			if o.failover < 0 || o.failover > maxFailover {
				return fmt.Errorf("--failover %d: give how many hosts may fail at once, 0 to %d", o.failover, maxFailover)
			}
			for _, name := range []string{"price", "prices"} {
				if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
					return fmt.Errorf("--%s: it is empty", name)
				}
			}
			prices, err := corePrices(cmd.Context(), o.prices, o.price)
			if err != nil {
				return err
			}
			return run(cmd.Context(), args[0], o, report.Options{Bound: bound, Failover: o.failover, CorePrices: prices}, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	o.shared.add(flags)
	o.outputs.add(flags)
	flags.IntVar(&o.failover, "failover", 0, "keep what the others need when this `NUMBER` of hosts fail at once")
	flags.StringVar(&o.price, "price", "", "also tell what cores cost in a month, at `CORE_HOUR` each, such as 0.04, in any currency")
	flags.StringVar(&o.prices, "prices", "",
		"the same of some nodes: a `FILE` with a pattern of their names and a price on each line")
	flags.StringVar(&o.bound, "bound", "0.1%", "stopped for more than this `SHARE` of the time to work is too much")
	return cmd
}

// parseMoment reads --until.
func parseMoment(value string) (time.Time, error) {
	moment, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return moment, fmt.Errorf("--until %s: give a moment as 2026-03-04T05:00:00Z", text.Quoted(value))
	}
	return moment.UTC(), nil
}

// maxFailover is more hosts than fail at once.
const maxFailover = 1000

// parseShare reads a flag that is a share of the time above 0 and below so many percent: "5%" or "0.05".
func parseShare(flag, value string, below int) (float64, error) {
	number, percent := strings.CutSuffix(value, "%")
	share, err := text.ParseDecimal(number)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && 100*share < float64(below)) {
		return 0, fmt.Errorf("--%s %s: give a share above 0%% and below %d%%", flag, text.Quoted(value), below)
	}
	return share, nil
}

func parseBound(value string) (float64, error) { return parseShare("bound", value, 100) }

// run makes and writes the report that is asked for.
func run(ctx context.Context, from string, o options, asked report.Options, out io.Writer) (err error) {
	if err := o.outputs.begin(from); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.outputs.abandon()) }()
	var d view.Document
	err = ask(ctx, from, &o.shared, func(e engine.Engine, rows report.Options) (err error) {
		rows.Bound, rows.Failover, rows.CorePrices = asked.Bound, asked.Failover, asked.CorePrices
		if o.plan == "" {
			d, err = report.Make(ctx, e, rows)
		} else {
			d, o.planned, err = report.MakeBoth(ctx, e, rows, report.PlanOptions{Options: usual, Clock: time.Now})
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := o.outputs.write(d); err != nil {
		return err
	}
	if o.json {
		return jsonout.Write(out, "fleet_report", d)
	}
	return view.Write(out, d, o.style())
}

// ask asks questions of the rows below a folder or a place in a store. Where no row counts it says what was left out.
func ask(ctx context.Context, from string, o *shared, questions func(engine.Engine, report.Options) error) (err error) {
	dir, removed, err := scratch.Make()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	if removed > 0 {
		say("removed %s of runs that were killed", text.Count(removed, "temporary folder"))
	}
	options, err := o.inputOf(ctx, from, dir)
	if err != nil {
		return err
	}
	e, closed, err := o.engine(ctx, dir.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed()) }()
	options.Now, options.Until = time.Now(), o.end
	err = questions(e, options)
	if errors.As(err, new(*duckdb.Full)) {
		err = fmt.Errorf("%w; or ask Spark, which shares the rows among machines: the same command with --on "+
			"spark://HOST:7077", err)
	}
	if none := new(report.NoRows); errors.As(err, &none) {
		for _, line := range view.LeftOut(none.Input) {
			say("%s", line)
		}
	}
	return err
}

// engine opens the one that was asked for, in a temporary folder.
func (o *shared) engine(ctx context.Context, dir string) (e engine.Engine, closed func() error, err error) {
	if o.master == "" {
		db, err := duckdb.Open(ctx, dir, o.memoryMB)
		if err != nil {
			return nil, nil, err
		}
		return db, db.Close, nil
	}
	submit, err := spark.Find(os.Getenv)
	if err != nil {
		return nil, nil, fmt.Errorf("--on %s: %w", o.master, err)
	}
	s, err := spark.Open(spark.Options{Master: o.master, Submit: submit, Dir: dir, MemoryMB: o.memoryMB,
		Progress: showStep})
	if err != nil {
		return nil, nil, fmt.Errorf("--on %s: %w", o.master, err)
	}
	return s, func() error { return nil }, nil
}

// showStep says how far Spark is.
func showStep(s spark.Step) {
	switch s.Step {
	case spark.Started:
		say("Spark has started")
	case spark.Made:
		say("Spark: %s in %s", text.Count(int(s.Rows), "row"), s.Name)
	case spark.Answered:
		say("Spark: %s answered", text.Count(int(s.Rows), "question"))
	}
}
