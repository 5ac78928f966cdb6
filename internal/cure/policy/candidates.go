package policy

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// Candidate is a remedy that a trial may try: it can be applied here, and grants no more CPU than the limit or was asked for.
type Candidate struct {
	// Row is the index of its row in the forecast; -1: there is no forecast.
	Row int
	// Name is for people: "burst 60ms".
	Name string
	// Change orders remedies by how much they change: see forecast.Remedy.
	Change  int
	Request remedy.Request
	Plan    *remedy.Plan
	// ForecastMs is what the forecast expects of the judged latency; nil: it expects nothing.
	ForecastMs *float64
}

// Candidates are the remedies to try, the most promising first: the forecast says in which order, and never that one may not be tried. Of
// remedies that differ by a number alone it has the one that is forecast best. Without a forecast the order is that of merit.
func Candidates(o observe.Observation, f hoststate.Facts, w Wish, known *Known) ([]Candidate, error) {
	seen := Observed(o)
	if known == nil || known.Forecast == nil {
		return candidatesByMerit(o, f, w, &seen)
	}
	made := known.Forecast
	here := Here{Facts: f, Target: o.Container, Settings: w.Request}
	here.Settings.Observed = &seen
	plans, refused, err := here.plans(made)
	if err != nil {
		return nil, err
	}
	c := newChoice(corrected(made, known.Corrections), Terms{May: w.May, Refused: refused, Trial: true})
	best := map[forecast.Remedy]Candidate{}
	for i := range made.Rows {
		p, planned := plans[i]
		if !planned || made.Rows[i].HostLoad != 0 || !c.may(i) {
			continue
		}
		p.plan.Expected = expected(made, i)
		candidate := Candidate{Row: i, Name: made.Rows[i].Remedy.Text(made.Limit), Change: c.change(i), Request: p.request,
			Plan: p.plan, ForecastMs: c.f.Rows[i].Judged}
		family := FamilyOf(made.Rows[i].Remedy)
		if have, ok := best[family]; !ok || candidate.forecast() < have.forecast() {
			best[family] = candidate
		}
	}
	var candidates []Candidate
	for _, candidate := range best {
		candidates = append(candidates, candidate)
	}
	slices.SortFunc(candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.forecast(), b.forecast()), a.Change-b.Change, a.Row-b.Row)
	})
	return candidates, nil
}

// FamilyOf is a remedy without its numbers: of those that differ by a number alone a trial has one.
func FamilyOf(r forecast.Remedy) forecast.Remedy {
	family := forecast.Remedy{Name: r.Name}
	if r.Burst > 0 {
		family.Burst = 1
	}
	if r.Period > 0 {
		family.Period = 1
	}
	if r.Credit > 0 {
		family.Credit = 1
	}
	return family
}

func (c Candidate) forecast() float64 {
	if c.ForecastMs == nil {
		return math.Inf(1)
	}
	return *c.ForecastMs
}

// candidatesByMerit are the remedies with their default settings.
func candidatesByMerit(o observe.Observation, f hoststate.Facts, w Wish, seen *hoststate.Observed) ([]Candidate, error) {
	var candidates []Candidate
	for _, r := range remedy.All() {
		if r.ForOthers || r.MayGrantMore && !slices.Contains(w.May, r.Kind) {
			continue
		}
		request := w.Request
		request.Kind, request.Observed = r.Kind, seen
		plan, err := remedy.Make(f, o.Container, request)
		if errors.As(err, new(*remedy.Refused)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, Candidate{Row: -1, Name: string(r.Kind), Change: len(candidates) + 1,
			Request: request, Plan: &plan})
	}
	return candidates, nil
}

// MoreCPU is the row that grants least more CPU than the limit and is forecast to halve the judged latency, with its name; nil: none is.
func MoreCPU(f *forecast.Forecast) (found *forecast.Row, name string) {
	if f == nil {
		return nil, ""
	}
	c := newChoice(f, Terms{})
	if c.none = f.Left(); c.none == nil || c.none.Judged == nil {
		return nil, ""
	}
	all := c.rows(func(i int) bool { return !c.may(i) && *f.Rows[i].Judged <= *c.none.Judged/2 && c.harms(i) == "" }, c.byCPUs)
	if len(all) == 0 {
		return nil, ""
	}
	return &f.Rows[all[0]], c.name(all[0])
}
