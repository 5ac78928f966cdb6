package report

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

//go:embed sql/*.sql
var questions embed.FS

// question is the text of one file.
func question(name string) string {
	text, err := questions.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // the files are embedded
	}
	return string(text)
}

// clockAhead is how long after the moment of the report the newest row of a host may begin. A clock that is further ahead does not say what time
// it is.
const clockAhead = time.Minute

// script is what is asked of an engine at a moment: the tables that all questions are about, and some questions.
func script(now time.Time, names ...string) engine.Script {
	s := engine.Script{Tables: []engine.Table{
		{Name: "loaded_levels", List: engine.Levels, Of: "loaded"},
		{Name: "loaded_candidates", List: engine.Candidates, Of: "loaded"},
		{Name: "loaded_stops", List: engine.Stops, Of: "loaded"},
		{Name: "loaded_responses", List: engine.Responses, Of: "loaded"},
		{Name: "loaded_requests", List: engine.Requests, Of: "loaded"},
		{Name: "unsound", SQL: question("unsound")},
		{Name: "container_names", SQL: question("container_names")},
		{Name: "counted", SQL: question("counted")},
		{Name: "fleet_rows", Of: "loaded", Numbered: "counted"},
		{Name: "asked", SQL: fmt.Sprintf("SELECT CAST(%d AS BIGINT) AS latest_ms, CAST(%d AS BIGINT) AS gone_after_ms", now.Add(clockAhead).UnixMilli(), view.GoneAfter.Milliseconds())},
		{Name: "fleet_hosts", SQL: question("fleet_hosts")},
		{Name: "containers", SQL: question("containers")},
		{Name: "remedied", SQL: question("remedied")},
		{Name: "untreated", SQL: question("untreated")},
		{Name: "fleet_levels", List: engine.Levels, Of: "fleet_rows"},
		{Name: "fleet_candidates", List: engine.Candidates, Of: "fleet_rows"},
		{Name: "fleet_stops", List: engine.Stops, Of: "fleet_rows"},
		{Name: "fleet_responses", List: engine.Responses, Of: "fleet_rows"},
		{Name: "fleet_requests", List: engine.Requests, Of: "fleet_rows"},
	}}
	for _, name := range names {
		s.Questions = append(s.Questions, engine.Question{Name: name, SQL: question(name)})
	}
	return s
}

// prepare makes the tables, and adds files that the engine could not read to those that are left out.
func prepare(ctx context.Context, e engine.Engine, o *Options, names ...string) error {
	refused, err := e.Prepare(ctx, o.Files, script(o.Now, names...))
	for _, r := range refused {
		name := o.name(r.File)
		o.Refused = append(o.Refused, view.Refused{File: name, Why: text.Sanitize(strings.ReplaceAll(r.Err.Error(), r.File, name), maxReason)})
	}
	return err
}

// name is what the report calls a file.
func (o *Options) name(file string) string {
	if name, ok := o.Names[file]; ok {
		return name
	}
	return file
}

// maxReason bounds the reason for which a file is left out.
const maxReason = 400

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
	// Failover is how many hosts may fail at once: the containers that are left then carry what the others did. 0: nothing is kept for that.
	Failover int
}

// NoRows is the error for files without one row that counts. Input says what was in them.
type NoRows struct{ Input view.Input }

func (e *NoRows) Error() string {
	return fmt.Sprintf("no row that counts in %s: %d could not be read, %s had no sound row; 'unthrottle export --dir DIR' makes some",
		text.Count(e.Input.Files, "file"), len(e.Input.Refused)+e.Input.RefusedMore, text.Count(int(e.Input.Rows), "row"))
}

// maxTold bounds the lists of what was left out.
const maxTold = 20

// Make makes the report.
func Make(ctx context.Context, e engine.Engine, o Options) (view.Document, error) {
	d := view.Document{Bound: o.Bound, Services: []view.Service{}, Applied: []view.Applied{}, Unknown: []view.Unknown{}}
	if err := prepare(ctx, e, &o, "totals", "problems", "hosts", "sizes", "demand", "candidates", "spenders", "stops", "requests", "responses", "exclusive", "services", "forecasts", "applied"); err != nil {
		return d, err
	}
	for _, part := range []func(context.Context, engine.Engine, Options, *view.Document) error{input, services, applied} {
		if err := part(ctx, e, o, &d); err != nil {
			return d, err
		}
	}
	return d, nil
}

// input says what was read, and what of it does not count.
func input(ctx context.Context, e engine.Engine, o Options, d *view.Document) error {
	in := &d.Input
	*in = view.Input{Files: len(o.Files), Refused: []view.Refused{}, Problems: []view.Problem{}, Ahead: []view.Ahead{}, Gone: []view.Gone{}}
	in.Refused = append(in.Refused, o.Refused[:min(len(o.Refused), maxTold)]...)
	in.RefusedMore = len(o.Refused) - len(in.Refused)
	var unsound, once, used int64
	var first, last *int64
	if err := e.Ask(ctx, "totals", func(scan func(...any) error) error {
		return scan(&in.Rows, &unsound, &once, &used, &first, &last)
	}); err != nil {
		return err
	}
	in.Copies, in.Overlapping = in.Rows-unsound-once, once-used
	if err := e.Ask(ctx, "problems", func(scan func(...any) error) error {
		var p view.Problem
		var file int
		if err := scan(&p.Why, &p.Rows, &file, &p.Row); err != nil {
			return err
		}
		p.File = o.name(o.Files[file])
		in.Problems = append(in.Problems, p)
		return nil
	}); err != nil {
		return err
	}
	if first == nil || last == nil {
		return &NoRows{*in}
	}
	d.From, d.Until = time.UnixMilli(*first).UTC(), time.UnixMilli(*last).UTC()
	return hosts(ctx, e, o, d)
}

// hosts counts the hosts, and finds those that are gone and clocks that are ahead.
func hosts(ctx context.Context, e engine.Engine, o Options, d *view.Document) error {
	in := &d.Input
	return e.Ask(ctx, "hosts", func(scan func(...any) error) error {
		var cluster, node string
		var newest, until int64
		var gone, containers int
		if err := scan(&cluster, &node, &newest, &until, &gone, &containers); err != nil {
			return err
		}
		name := node
		if cluster != "" {
			name = cluster + "/" + node
		}
		if gone == 0 {
			d.Hosts++
		} else {
			in.HostsGone, in.ContainersGone = in.HostsGone+1, in.ContainersGone+containers
			if len(in.Gone) < maxTold {
				in.Gone = append(in.Gone, view.Gone{Host: name, Until: time.UnixMilli(until).UTC(), Containers: containers})
			}
		}
		switch ahead := time.UnixMilli(newest).Sub(o.Now); {
		case ahead <= clockAhead:
		case len(in.Ahead) == maxTold:
			in.AheadMore++
		default:
			in.Ahead = append(in.Ahead, view.Ahead{Host: name, Seconds: rounded(ahead.Seconds())})
		}
		return nil
	})
}

// applied says what remedies did.
func applied(ctx context.Context, e engine.Engine, _ Options, d *view.Document) error {
	foretold, err := forecasts(ctx, e)
	if err != nil {
		return err
	}
	return e.Ask(ctx, "applied", func(scan func(...any) error) error {
		var a view.Applied
		if err := scan(&a.Remedy, &a.Containers, &a.StoppedBefore, &a.StoppedAfter, &a.CoresBefore, &a.CoresAfter); err != nil {
			return err
		}
		if share, ok := foretold[a.Remedy]; ok {
			a.StoppedForecast = &share
		}
		round(a.StoppedForecast, a.StoppedBefore, a.StoppedAfter, a.CoresBefore, a.CoresAfter)
		d.Applied = append(d.Applied, a)
		return nil
	})
}
