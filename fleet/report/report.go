package report

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

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

// Engine is what holds the rows, in a table "loaded" with file_no and file_row beside the columns.
type Engine interface {
	// Keep makes a table of a question's answer.
	Keep(ctx context.Context, name, question string) error
	// Levels makes a view of the histograms in a table.
	Levels(ctx context.Context, name, of string) error
	// Candidates makes a view of what other limits would have done in a table.
	Candidates(ctx context.Context, name, of string) error
	// Ask answers a question line by line.
	Ask(ctx context.Context, question string, line func(scan func(...any) error) error) error
}

// Options are what the rows do not say.
type Options struct {
	// Files are those that were read; a row's file_no is its place there. Refused are those of them that could not be.
	Files   []string
	Refused []view.Refused
	// Now is the moment of the report; Bound the share of its time to work for which a quota may stop a container.
	Now   time.Time
	Bound float64
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
func Make(ctx context.Context, e Engine, o Options) (view.Document, error) {
	d := view.Document{Bound: o.Bound, Services: []view.Service{}, Applied: []view.Applied{}, Unknown: []view.Unknown{}}
	if err := prepare(ctx, e); err != nil {
		return d, err
	}
	for _, part := range []func(context.Context, Engine, Options, *view.Document) error{input, services, applied} {
		if err := part(ctx, e, o, &d); err != nil {
			return d, err
		}
	}
	return d, nil
}

// prepare makes the tables that the questions are about.
func prepare(ctx context.Context, e Engine) error {
	if err := errors.Join(e.Levels(ctx, "loaded_levels", "loaded"), e.Candidates(ctx, "loaded_candidates", "loaded")); err != nil {
		return err
	}
	for _, name := range []string{"unsound", "fleet_rows", "containers"} {
		if err := e.Keep(ctx, name, question(name)); err != nil {
			return err
		}
	}
	return errors.Join(e.Levels(ctx, "fleet_levels", "fleet_rows"), e.Candidates(ctx, "fleet_candidates", "fleet_rows"))
}

// input says what was read, and what of it does not count.
func input(ctx context.Context, e Engine, o Options, d *view.Document) error {
	in := &d.Input
	*in = view.Input{Files: len(o.Files), Refused: []view.Refused{}, Problems: []view.Problem{}, Ahead: []view.Ahead{}}
	in.Refused = append(in.Refused, o.Refused[:min(len(o.Refused), maxTold)]...)
	in.RefusedMore = len(o.Refused) - len(in.Refused)
	var unsound, once, used int64
	var first, last *int64
	if err := e.Ask(ctx, question("totals"), func(scan func(...any) error) error {
		return scan(&in.Rows, &unsound, &once, &used, &first, &last)
	}); err != nil {
		return err
	}
	in.Copies, in.Overlapping = in.Rows-unsound-once, once-used
	if err := e.Ask(ctx, question("problems"), func(scan func(...any) error) error {
		var p view.Problem
		var file int
		if err := scan(&p.Why, &p.Rows, &file, &p.Row); err != nil {
			return err
		}
		p.File = o.Files[file]
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

// hosts counts the hosts, and finds clocks that are ahead by more than a minute.
func hosts(ctx context.Context, e Engine, o Options, d *view.Document) error {
	return e.Ask(ctx, question("hosts"), func(scan func(...any) error) error {
		var cluster, node string
		var newest int64
		if err := scan(&cluster, &node, &newest); err != nil {
			return err
		}
		d.Hosts++
		switch ahead := time.UnixMilli(newest).Sub(o.Now); {
		case ahead <= time.Minute:
		case len(d.Input.Ahead) == maxTold:
			d.Input.AheadMore++
		default:
			if cluster != "" {
				node = cluster + "/" + node
			}
			d.Input.Ahead = append(d.Input.Ahead, view.Ahead{Host: node, Seconds: rounded(ahead.Seconds())})
		}
		return nil
	})
}

// applied says what remedies did.
func applied(ctx context.Context, e Engine, _ Options, d *view.Document) error {
	foretold, err := forecasts(ctx, e)
	if err != nil {
		return err
	}
	return e.Ask(ctx, question("applied"), func(scan func(...any) error) error {
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
