package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// Options are what the rows do not say.
type Options struct {
	// Files are those to read; a row's file_no is its place there. Refused are others that cannot be.
	Files   []string
	Refused []view.Refused
	// Names are what the report calls files that were fetched, by their place on the disk.
	Names map[string]string
	// Now is the moment of the report; Bound the share of its time to work for which a quota may stop a container.
	Now   time.Time
	Bound float64
	// Until is the end of the rows that count; zero: all do.
	Until time.Time
	// Failover is how many hosts may fail at once: the containers that are left then carry what the others did. 0: nothing
	// is kept for that.
	Failover int
	// CorePrices are what cores cost: of a node the first that matches its name. None: no money is told of.
	CorePrices []CorePrice
}

// name is what the report calls a file.
func (o *Options) name(file string) string {
	if name, ok := o.Names[file]; ok {
		return name
	}
	return file
}

// NoRows is the error for files without one row that counts. Input says what was in them.
type NoRows struct{ Input view.Input }

func (e *NoRows) Error() string {
	return fmt.Sprintf("no row that counts in %s: %d could not be read, %s had no sound row; 'unthrottle export --dir "+
		"DIR' makes some",
		text.Count(e.Input.Files, "file"), len(e.Input.Refused)+e.Input.RefusedMore, text.Count(int(e.Input.Rows), "row"))
}

const (
	// maxReason bounds the reason for which a file is left out.
	maxReason = 400
	// maxListed bounds the lists of what was left out.
	maxListed = 20
	// clockAhead is how long after the moment of the report the newest row of a host may begin. A clock that is further
	// ahead does not say what time it is.
	clockAhead = time.Minute
)

// prepare makes the tables, and adds files that the engine could not read to those that are left out.
func prepare(ctx context.Context, e engine.Engine, o *Options, names ...string) error {
	refused, err := e.Prepare(ctx, o.Files, script(o.Now, o.Until, names...))
	for _, r := range refused {
		name := o.name(r.File)
		why := text.Sanitize(strings.ReplaceAll(r.Err.Error(), r.File, name), maxReason)
		o.Refused = append(o.Refused, view.Refused{File: name, Why: why})
	}
	return err
}

// ofReport and ofPlan are the questions of a report and of a plan.
var (
	ofReport = []string{"totals", "problems", "hosts", "sizes", "demand", "candidates", "longbursts", "prices", "spenders", "stops",
		"requests", "responses", "exclusive", "services", "shares", "recorded_containers", "defaults", "forecasts", "applied",
		"applied_days", "applied_requests", "promised", "rollouts",
		"rollout_requests"}
	ofPlan = []string{"totals", "problems", "hosts", "plan_hosts", "plan_demand", "plan_containers", "exclusive"}
)

// Make makes the report.
func Make(ctx context.Context, e engine.Engine, o Options) (view.Document, error) {
	if err := prepare(ctx, e, &o, ofReport...); err != nil {
		return view.Document{}, err
	}
	return reportOf(ctx, e, o)
}

// MakeBoth makes the report and a plan, and reads the rows once.
func MakeBoth(ctx context.Context, e engine.Engine, o Options, may PlanOptions) (view.Document, view.Plan, error) {
	names := append(slices.Clone(ofReport), ofPlan...)
	slices.Sort(names)
	if err := prepare(ctx, e, &o, slices.Compact(names)...); err != nil {
		return view.Document{}, view.Plan{}, err
	}
	d, err := reportOf(ctx, e, o)
	if err != nil {
		return d, view.Plan{}, err
	}
	p, err := planOf(ctx, e, &d, may)
	return d, p, err
}

// reportOf makes the report of what was prepared.
func reportOf(ctx context.Context, e engine.Engine, o Options) (view.Document, error) {
	d := view.Document{Bound: o.Bound, Services: []view.Service{}, ByRemedy: []view.ByRemedy{}, Applied: []view.Applied{},
		Rollouts: []view.Rollout{}, Unknown: []view.Unknown{}}
	for _, part := range []func(context.Context, engine.Engine, Options, *view.Document) error{input, services, defaults, applied,
		rollouts} {
		if err := part(ctx, e, o, &d); err != nil {
			return d, err
		}
	}
	return d, nil
}

// totals are how many rows there are, and of when.
type totals struct {
	RowsRead, RowsUnsound, RowsLater, RowsOnce, RowsUsed int64
	FirstMS, LastMS, NowMS                               *int64
}

// input says what was read, and what of it does not count.
func input(ctx context.Context, e engine.Engine, o Options, d *view.Document) error {
	in := &d.Input
	*in = view.Input{GoneAfter: goneAfter, Files: len(o.Files), Problems: []view.Problem{}, Ahead: []view.Ahead{}, Gone: []view.Gone{}}
	in.Refused = append([]view.Refused{}, o.Refused[:min(len(o.Refused), maxListed)]...)
	in.RefusedMore = len(o.Refused) - len(in.Refused)
	var rows totals
	if err := engine.Each(ctx, e, "totals", func(t totals) { rows = t }); err != nil {
		return err
	}
	in.Rows, in.Later = rows.RowsRead, rows.RowsLater
	in.Copies = rows.RowsRead - rows.RowsUnsound - rows.RowsLater - rows.RowsOnce
	in.Overlapping = rows.RowsOnce - rows.RowsUsed
	if err := engine.Each(ctx, e, "problems", func(line struct {
		Problem           string
		RowCount, FileRow int64
		FileNo            int
	}) {
		file := o.name(o.Files[line.FileNo])
		in.Problems = append(in.Problems, view.Problem{Why: line.Problem, Rows: line.RowCount, File: file, Row: line.FileRow})
	}); err != nil {
		return err
	}
	if rows.FirstMS == nil || rows.LastMS == nil {
		return &NoRows{*in}
	}
	d.From, d.Until, d.Now = time.UnixMilli(*rows.FirstMS).UTC(), time.UnixMilli(*rows.LastMS).UTC(), time.UnixMilli(*rows.NowMS).UTC()
	return hosts(ctx, e, o, d)
}

func hostName(cluster, node string) string { return strings.TrimPrefix(cluster+"/"+node, "/") }

// hosts counts the hosts, and finds those that are gone and clocks that are ahead.
func hosts(ctx context.Context, e engine.Engine, o Options, d *view.Document) error {
	in := &d.Input
	return engine.Each(ctx, e, "hosts", func(h struct {
		Cluster, Node                               string
		NewestMS, UntilMS, EndMS, MostMS, MostHosts int64
		Gone, RunsNow, Containers                   int
	}) {
		name := hostName(h.Cluster, h.Node)
		if most := time.UnixMilli(h.MostMS).UTC(); d.Until.Sub(most) >= goneAfter {
			in.Most = &view.Most{Hosts: int(h.MostHosts), Until: most}
		}
		d.Hosts += h.RunsNow
		if h.Gone == 1 {
			in.HostsGone, in.ContainersGone = in.HostsGone+1, in.ContainersGone+h.Containers
			if len(in.Gone) < maxListed {
				until := time.UnixMilli(h.UntilMS).UTC()
				in.Gone = append(in.Gone, view.Gone{Host: name, Until: until, Containers: h.Containers})
			}
		}
		ahead := time.UnixMilli(h.NewestMS).Sub(o.Now)
		if beyond := time.Duration(h.UntilMS-h.EndMS) * time.Millisecond; ahead <= clockAhead && beyond >= goneAfter {
			ahead = beyond
		}
		switch {
		case ahead <= clockAhead:
		case len(in.Ahead) == maxListed:
			in.AheadMore++
		default:
			in.Ahead = append(in.Ahead, view.Ahead{Host: name, Seconds: rounded(ahead.Seconds())})
		}
	})
}
