package policy

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/bandwidth"
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
	family     forecast.Remedy
}

// Candidates are the remedies to try, the most promising first: the forecast says in which order, and never that one may not be tried. Of
// remedies of one family it has the one that is forecast best; others are the rest, to be tried where one of their family does well.
// Without a forecast the order is that of merit. A cap of a sibling is no row of a forecast, and the second to be tried.
func Candidates(o observe.Observation, f hoststate.Facts, w Wish, known *Known) (candidates, others []Candidate, err error) {
	seen := Observed(o)
	if known == nil || known.Forecast == nil {
		candidates, err = candidatesByMerit(o, f, w, &seen)
		return candidates, nil, err
	}
	made := known.Forecast
	here := Here{Facts: f, Target: o.Container, Settings: w.Request}
	here.Settings.Observed, here.Settings.OnTrial = &seen, true
	plans, refused, err := here.plans(made)
	if err != nil {
		return nil, nil, err
	}
	c := newChoice(corrected(made, known.Corrections), Terms{May: w.May, Refused: refused, Trial: true})
	var all []Candidate
	bursts := false
	for i := range made.Rows {
		p, planned := plans[i]
		if !planned || made.Rows[i].HostLoad != 0 || !c.may(i) {
			continue
		}
		p.plan.Expected = expected(made, i)
		of := made.Rows[i].Remedy
		bursts = bursts || of.Name == forecast.Burst && long(of)
		all = append(all, Candidate{Row: i, Name: of.Text(made.Limit), Change: c.change(i), Request: p.request, Plan: p.plan,
			ForecastMs: c.f.Rows[i].Judged, family: FamilyOf(of)})
	}
	slices.SortFunc(all, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.forecast(), b.forecast()), a.Change-b.Change, a.Row-b.Row)
	})
	have := map[forecast.Remedy]bool{}
	for _, candidate := range all {
		of := made.Rows[candidate.Row].Remedy
		switch {
		case of.Name == forecast.Period && long(of) && bursts: // the same with a burst is no worse
			others = append(others, candidate)
		case have[candidate.family]:
			others = append(others, candidate)
		default:
			have[candidate.family] = true
			candidates = append(candidates, candidate)
		}
	}
	spender, err := here.Cap()
	if spender != nil {
		candidates = slices.Insert(candidates, min(1, len(candidates)), *spender)
	}
	return candidates, others, err
}

// changeOfAnother orders a remedy that changes another container behind all that change the container alone.
const changeOfAnother = 100

// long reports whether a remedy's period is longer than the kernel's default.
func long(r forecast.Remedy) bool { return r.Period > bandwidth.DefaultPeriod }

// Beside are those of others that are next to a candidate: of its family, the next shorter and the next longer period.
func (c Candidate) Beside(others []Candidate) (next []Candidate) {
	var shorter, longer *Candidate
	for i, o := range others {
		switch at := o.Request.Period; {
		case o.family != c.family || at == c.Request.Period:
		case at < c.Request.Period && (shorter == nil || at > shorter.Request.Period):
			shorter = &others[i]
		case at > c.Request.Period && (longer == nil || at < longer.Request.Period):
			longer = &others[i]
		}
	}
	for _, o := range []*Candidate{shorter, longer} {
		if o != nil {
			next = append(next, *o)
		}
	}
	return next
}

// FamilyOf is a remedy without its numbers: of those that differ by a number alone a trial begins with one. A burst in a long period is a
// family of its own for each: which one is best depends on for how long demand is above the limit, and a recording of seconds does not
// tell. So is a narrow with another credit.
func FamilyOf(r forecast.Remedy) forecast.Remedy {
	family := forecast.Remedy{Name: r.Name}
	if r.Burst > 0 {
		family.Burst = 1
	}
	switch {
	case long(r):
		family.Period = r.Period
	case r.Period > 0:
		family.Period = 1
	}
	family.Credit = r.Credit
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
		request.Kind, request.Observed, request.OnTrial = r.Kind, seen, true
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
