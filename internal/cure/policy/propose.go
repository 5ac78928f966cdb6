package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Known is what a recording tells about a container beyond its counters.
type Known struct {
	// Explanation has the causes; nil: there is no recording.
	Explanation *diagnose.Explanation
	// Forecast has the remedies' rows; nil: nothing could be forecast, and Missing says why.
	Forecast *forecast.Forecast
	Missing  string
	// From names the recording where it was made before; "": it was made for this choice, and NotEarlier says why an earlier one
	// was not taken ("": there is none).
	From, NotEarlier string
	// Corrections are factors by which the container's own past outcomes move the forecast, by remedy.
	Corrections map[string]float64
	// Tried says of rows of Forecast, by index, what came of them a moment ago.
	Tried map[int]string
}

// Proposal is what to do about one container.
type Proposal struct {
	// Plan is what would be written; nil: leave it as it is.
	Plan *remedy.Plan
	// Request is what Plan was made from.
	Request remedy.Request
	// Why is the reason for the choice, for people.
	Why string
	// Not are the remedies that were not chosen.
	Not []Rejected
	// NotMeasured: there is no plan because stopped time is not known, or is of two limits.
	NotMeasured bool
	// Known is what the choice rests on, and Choice what the forecast recommends; nil: nothing was forecast, or a
	// remedy was asked for by name.
	Known  *Known
	Choice *Choice
	// Turns: a trial chooses by what it measures.
	Turns bool
}

// Rejected is a remedy that was not chosen, and why.
type Rejected struct {
	Remedy remedy.Kind `json:"remedy"`
	Why    string      `json:"why"`
}

// Wish is what the user or a rule asks for.
type Wish struct {
	// Request holds the settings; its Kind counts unless Auto.
	Request remedy.Request
	Auto    bool
	// Bound is the stopped time per second below which nothing is a finding; 0:
	// DefaultBound.
	Bound float64
	// May are the remedies that may grant more CPU than the limit.
	May []remedy.Kind
	// Judged: the user's own latency judges what is applied.
	Judged bool
}

// Wish is what a rule asks for.
func (r Rule) Wish(bound float64) Wish {
	return Wish{Auto: r.Auto, Bound: bound, May: r.May, Judged: r.SLOCommand != "",
		Request: remedy.Request{Kind: r.Remedy, CPUs: r.CPUs, Factor: r.Factor, To: r.To,
			Class: r.Class, Immovable: r.Immovable, Shares: r.Shares, Strict: r.Strict, Via: r.Via, Credit: r.Credit,
			Burst: r.Burst, Period: r.Period}}
}

// Propose chooses a remedy. Time counts, not periods: a container whose stopped
// time is below the bound has no finding, however many of its periods were
// throttled, unless its few stops make its slowest requests: see SlowsRequests. Then the forecast chooses: see Choose.
// Without one (known is nil, or
// has none) the order is by what counters show: see withoutForecast.
//
// A secondary that is asked for needs no finding: it is not for its own sake.
func Propose(o observe.Observation, f hoststate.Facts, w Wish, known *Known) (Proposal, error) {
	bound := w.Bound
	if bound == 0 {
		bound = DefaultBound
	}
	low, high, measured := o.StoppedPerSecond()
	if of, _ := remedy.Find(w.Request.Kind); !w.Auto && of.ForOthers {
		choice := chooser{f: f, o: o, w: w, seen: Observed(o), found: "it is to run on what the others leave idle"}
		return choice.asked()
	}
	if why := limitMoved(o, f, known); why != "" {
		return Proposal{NotMeasured: true, Why: why + ": what was seen and what would be written are of different limits; look again"}, nil
	}
	above := measured && high > bound
	found := fmt.Sprintf("stopped for %s to %s of each second", milliseconds(low), milliseconds(high))
	if !above && measured && bound <= DefaultBound && SlowsRequests(known, w) {
		above, found = true, fmt.Sprintf(
			"stopped for at most %s of each second, and its slowest requests wait for that", milliseconds(high))
	}
	switch inside := o.Inside(); {
	case above && inside != "":
		return Proposal{Why: fmt.Sprintf("stopped for %s to %s of each second by the quota of a cgroup in it; name that one: %s",
			milliseconds(low), milliseconds(high), text.EscapePath(inside))}, nil
	case o.LimitCPUs == nil && !measured:
		return Proposal{NotMeasured: true, Why: "neither it nor an ancestor has a limit, and whether a cgroup in it " +
			"has one was not measured"}, nil
	case o.LimitCPUs == nil:
		return Proposal{Why: "nothing to fix: neither it nor an ancestor has a limit"}, nil
	case !measured:
		return Proposal{NotMeasured: true, Why: "its stopped time was not measured, so nothing can be proposed"}, nil
	case !above:
		return Proposal{Why: fmt.Sprintf("nothing to fix: stopped for at most %s of each second, and up to %s is no finding",
			milliseconds(high), milliseconds(bound)) + periods(o)}, nil
	}
	choice := chooser{f: f, o: o, w: w, seen: Observed(o), found: found, out: Proposal{Known: known}}
	switch {
	case known == nil || known.Forecast == nil:
		if w.Auto {
			return choice.withoutForecast()
		}
		return choice.asked()
	}
	choice.raw = known.Forecast
	moved := *known
	moved.Forecast = corrected(known.Forecast, known.Corrections)
	choice.out.Known = &moved
	if w.Auto {
		return choice.forecast(&moved)
	}
	return choice.asked()
}

// SlowsRequests tells whether the few stops of a container make its slowest requests, by a forecast that can be relied on: a
// remedy with no more CPUs surely halves what they take. known is what a recording tells; nil: there is none.
func SlowsRequests(known *Known, w Wish) bool {
	if known == nil || known.Forecast == nil {
		return false
	}
	c := newChoice(corrected(known.Forecast, known.Corrections), Terms{May: w.May, Tried: known.Tried})
	return c.unreliable() == "" && c.halves()
}

// Observed is an observation as remedies read it.
func Observed(o observe.Observation) hoststate.Observed {
	seen := hoststate.Observed{UsedCPUs: o.UsedCPUs, Window: o.Window}
	if low, high, ok := o.StoppedPerSecond(); ok {
		seen.StoppedLow, seen.StoppedHigh = &low, &high
	}
	return seen
}

type chooser struct {
	f     hoststate.Facts
	o     observe.Observation
	w     Wish
	seen  hoststate.Observed
	found string
	raw   *forecast.Forecast // before past outcomes move it; nil: there is none
	out   Proposal
}

// try plans a remedy; false with the reason noted where it is refused.
func (c *chooser) try(kind remedy.Kind) (bool, error) {
	r := c.w.Request
	r.Kind, r.Observed = kind, &c.seen
	plan, err := remedy.Make(c.f, c.o.Container, r)
	var refused *remedy.Refused
	if errors.As(err, &refused) {
		c.not(kind, refused.Reason())
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.out.Plan, c.out.Request = &plan, r
	return true, nil
}

func (c *chooser) not(kind remedy.Kind, why string) {
	c.out.Not = append(c.out.Not, Rejected{kind, why})
}

func (c *chooser) asked() (Proposal, error) {
	ok, err := c.try(c.w.Request.Kind)
	if !ok {
		c.out.Why = c.found + "; what was asked for cannot be done"
		return c.out, err
	}
	c.out.Why = c.found + "; " + string(c.w.Request.Kind) + " was asked for"
	switch row := c.rowOfAsked(); {
	case row >= 0:
		c.out.Plan.Expected = expected(c.raw, row)
		c.out.Why += ": " + ofAsked(c.out.Known.Forecast, row)
	case c.out.Known != nil && c.out.Known.Forecast == nil:
		c.out.Why += "; " + c.missing()
	case c.out.Known != nil:
		c.out.Why += "; nothing is forecast of it with these settings"
	}
	return c.out, nil
}

// rowOfAsked is the index of the forecast's row of the remedy that was asked for; -1: there is none.
func (c *chooser) rowOfAsked() int {
	name := remedy.AskedRow(c.w.Request.Kind)
	if c.out.Known == nil || c.out.Known.Forecast == nil || name == "" {
		return -1
	}
	return slices.IndexFunc(c.out.Known.Forecast.Rows,
		func(r forecast.Row) bool { return r.Remedy.Name == name && r.HostLoad == 0 && r.Refused == "" })
}

// byMerit are the remedies that may be chosen where nothing was forecast, in the order in which they are tried.
func byMerit() []remedy.Remedy {
	remedies := slices.DeleteFunc(remedy.All(), func(r remedy.Remedy) bool { return r.Merit == nil })
	slices.SortFunc(remedies, func(a, b remedy.Remedy) int { return a.Merit.Rank - b.Merit.Rank })
	return remedies
}

// withoutForecast chooses by counters alone. Burst comes first where use is below diagnose.BurstUse of the limit. Whether
// threads that compute share the CPUs with threads that answer cannot be told, and for work of equal threads a pin
// is worse than the quota: so pin and narrow need the user's own latency as their judge. More CPU is chosen only
// where it may be.
func (c *chooser) withoutForecast() (Proposal, error) {
	share := 0.0
	if c.o.UsedCPUs != nil {
		share = *c.o.UsedCPUs / *c.o.LimitCPUs
	}
	if share >= stats.UsedUp {
		c.found += fmt.Sprintf("; it averages %.3g of its %.3g CPUs; to get more done, raise the limit", *c.o.UsedCPUs, *c.o.LimitCPUs)
	}
	missing := c.missing()
	order := byMerit()
	for i, m := range order {
		asked := slices.Contains(c.w.May, m.Kind)
		why := ""
		switch {
		case m.Merit.Spare && (c.o.UsedCPUs == nil || share >= diagnose.BurstUse):
			why = fmt.Sprintf("its use is not below %g %% of its limit, so there is little unused time to borrow", 100*diagnose.BurstUse)
		case m.Merit.Judged && !c.w.Judged && !asked:
			why = "without a forecast only your own latency can tell whether it helps (--slo and --slo-command)"
		case m.LargerLimit && !asked:
			why = fmt.Sprintf("it grants more CPU than the limit and was not asked for (--may %s)", m.Kind)
		}
		if why != "" {
			c.not(m.Kind, why)
			continue
		}
		ok, err := c.try(m.Kind)
		if err != nil {
			return c.out, err
		}
		if !ok {
			continue
		}
		c.out.Why = c.found + "; " + missing + "; " + m.Merit.Why
		for _, later := range order[i+1:] {
			c.not(later.Kind, string(m.Kind)+" comes first where nothing was forecast")
		}
		break
	}
	for _, r := range remedy.All() {
		if r.Merit == nil && len(r.Effects) > 0 {
			why := text.Either(r.MayGrantMore, "it may grant more CPU than the limit", "only a forecast can choose it")
			c.not(r.Kind, fmt.Sprintf("%s; request it with --remedy %s", why, r.Kind))
		}
	}
	if c.out.Plan == nil {
		c.out.Why = c.found + "; " + missing + "; nothing can be recommended"
	}
	return c.out, nil
}

// missing says that nothing was forecast, and why.
func (c *chooser) missing() string {
	if c.out.Known == nil || c.out.Known.Missing == "" {
		return "nothing was forecast"
	}
	return "nothing was forecast: " + c.out.Known.Missing
}

// milliseconds shows a share of each second.
func milliseconds(share float64) string {
	return strconv.FormatFloat(math.Round(10000*share)/10, 'f', -1, 64) + " ms"
}

// periods mentions throttled periods that cost next to nothing.
func periods(o observe.Observation) string {
	if o.Periods == nil || o.ThrottledPeriods == nil || *o.ThrottledPeriods == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d periods were throttled, but time counts)", *o.ThrottledPeriods, *o.Periods)
}
