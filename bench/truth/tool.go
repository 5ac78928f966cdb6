package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
)

// tool is the program that is tried, with what it says in the study's own words.
type tool struct{ services.Tool }

// look records, explains and forecasts. It keeps the recording.
func (t tool) look(ctx context.Context, window time.Duration, recording string) (*look, error) {
	out, err := t.Run(ctx, "explain", t.Target, "--for", window.String(), "--record", recording, "--json")
	if err != nil {
		return nil, err
	}
	return t.forecast(ctx, out, recording)
}

// sampled explains the container of a process from samples.
func (t tool) sampled(ctx context.Context, pid int, window time.Duration) (*look, error) {
	out, err := t.Run(ctx, "look", strconv.Itoa(pid), "--for", window.String(), "--json")
	if err != nil && len(out) == 0 {
		return nil, err
	}
	var e explained
	if err := json.Unmarshal(out, &e); err != nil {
		return nil, fmt.Errorf("look --json: %w", err)
	}
	return e.look(), nil
}

// lookAgain explains and forecasts a recording that was kept.
func (t tool) lookAgain(ctx context.Context, recording string) (*look, error) {
	out, err := t.Run(ctx, "explain", recording, "--json")
	if err != nil {
		return nil, err
	}
	return t.forecast(ctx, out, recording)
}

// explained is the part of explain --json that matters here.
type explained struct {
	Causes []struct {
		Cause   string   `json:"cause"`
		Guilty  []string `json:"guilty"`
		Suffers *string  `json:"suffers"`
	} `json:"causes"`
	Verdict   string  `json:"verdict"`
	Periods   *uint64 `json:"periods"`
	Throttled *uint64 `json:"throttled_periods"`
	Pools     []struct {
		Name   string  `json:"name"`
		Advice *string `json:"advice"`
	} `json:"pools"`
}

// look is what explain says of the case.
func (e *explained) look() *look {
	l := &look{Verdict: e.Verdict}
	if len(e.Causes) > 0 {
		first := e.Causes[0]
		l.Cause, l.Guilty = first.Cause, first.Guilty
		if first.Suffers != nil {
			l.Suffers = *first.Suffers
		}
	}
	if e.Periods != nil && e.Throttled != nil {
		l.Periods, l.Throttled = *e.Periods, *e.Throttled
	}
	for _, p := range e.Pools {
		if p.Advice != nil {
			l.Advice = append(l.Advice, p.Name+": "+*p.Advice)
		}
	}
	return l
}

// forecast adds the forecast of a recording to what explain --json said of it.
func (t tool) forecast(ctx context.Context, explain []byte, recording string) (*look, error) {
	var e explained
	if err := json.Unmarshal(explain, &e); err != nil {
		return nil, fmt.Errorf("explain --json: %w", err)
	}
	out, err := t.Run(ctx, "forecast", recording, "--json")
	if err != nil {
		return nil, err
	}
	var f struct {
		Rows        []row        `json:"rows"`
		Recommended *recommended `json:"recommended"`
		Judged      *struct {
			Pool *string `json:"pool"`
		} `json:"judged"`
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return nil, fmt.Errorf("forecast --json: %w", err)
	}
	l := e.look()
	l.Rows = f.Rows
	if f.Judged != nil && f.Judged.Pool != nil {
		l.Judged = *f.Judged.Pool
	}
	l.Answer, l.Recommended = f.Recommended.in(f.Rows)
	return l, nil
}

// recommended is what forecast --json and fix --json call so.
type recommended struct {
	Answer string `json:"answer"`
	Row    *int   `json:"row"`
}

// in returns the answer and the name of the row that it is about; "": none.
func (r *recommended) in(rows []row) (answer, name string) {
	if r == nil {
		return "", ""
	}
	if r.Row != nil && *r.Row >= 0 && *r.Row < len(rows) {
		name = rows[*r.Row].name()
	}
	return r.Answer, name
}

// answerRemedy is the answer whose row fix applies; the others only name one.
const answerRemedy = "remedy"

// fixJSON is fix --json, its rows as this study keeps them.
type fixJSON struct {
	fix.Result
	Rows   []row        `json:"rows"`
	Chosen *recommended `json:"chosen"`
}

// fix runs fix as a user would who says yes. Exit code 1 means that the container is
// still stopped; the result is told all the same.
func (t tool) fix(ctx context.Context) (*fixed, error) {
	out, err := t.Run(ctx, t.Changing("fix", t.Target, "--yes", "--json")...)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var f fixJSON
	if json.Unmarshal(out, &f) != nil {
		if err == nil {
			err = errors.New("fix --json: no JSON")
		}
		return &fixed{Failed: err.Error()}, nil
	}
	return f.outcome(), nil
}

// outcome names the variants that fix tried.
func (f *fixJSON) outcome() *fixed {
	r := &fixed{Verdict: f.Verdict, Rows: f.Rows, Trial: f.Trial}
	r.Answer, r.Chosen = f.Chosen.in(f.Rows)
	for i, t := range f.Tries {
		name := t.Remedy
		var low *float64
		if t.Expected != nil {
			low = cmp.Or(t.Expected.RequestsP99MsLow, t.Expected.PoolP99MsLow)
		}
		if found := appliedRow(f.Rows, t.Remedy, low); found != nil {
			name = found.name()
		}
		if kept := f.keptInTurns(); t.Kept && kept != "" {
			name = kept
		}
		if i == 0 {
			r.Answer, r.Chosen, r.Applied = answerRemedy, name, true
		}
		if t.Kept {
			r.Left = name
		}
	}
	return r
}

// keptInTurns is the variant that a trial kept, of several of a kind the one that it was; "": it kept none, or one
// whose row is named otherwise.
func (f *fixJSON) keptInTurns() string {
	if f.Trial == nil || f.Trial.Kept == nil || rowOf(f.Rows, *f.Trial.Kept) == nil {
		return ""
	}
	return *f.Trial.Kept
}

// appliedRow finds the row of a try: of rows of the same kind, the one with the
// forecast interval that the try expected, of requests or of the judged pool.
func appliedRow(rows []row, remedy string, low *float64) *row {
	var first *row
	for i := range rows {
		r := &rows[i]
		if r.Remedy != remedy || r.HostLoad != nil || r.Modelled {
			continue
		}
		if first == nil {
			first = r
		}
		for _, in := range []*between{r.RequestsRange, r.Range} {
			if low != nil && in != nil && math.Abs(in.Low-*low) < 1e-6 {
				return r
			}
		}
	}
	return first
}
