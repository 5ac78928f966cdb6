package policy

import (
	"fmt"
	"math"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// explainRest says of every other row why it is not recommended.
func (c *choice) explainRest() {
	for i := range c.f.Rows {
		r := &c.f.Rows[i]
		if i == c.out.Row || r == c.none || r.HostLoad != 0 || r.Remedy.Modelled() {
			continue
		}
		c.out.Not = append(c.out.Not, NotChosen{i, c.whyNot(i)})
	}
}

func (c *choice) whyNot(i int) string {
	r := &c.f.Rows[i]
	switch {
	case r.Remedy.InCode():
		return "it changes the program's code, which no plan can do"
	case r.Refused != "":
		return r.Refused
	case c.t.Tried[i] != "":
		return c.t.Tried[i]
	case c.t.Refused[i] != "":
		return c.t.Refused[i]
	case c.none == nil || r.Judged == nil || c.none.Judged == nil:
		return "nothing can be said about latency"
	case *r.Judged > *c.none.Judged*(1+stats.LeastGain):
		return "worse than leaving it"
	case !c.helps(r.Judged):
		return "no better than leaving it"
	case c.untold(i) != "":
		return c.untold(i)
	case c.f.Objective == nil && c.harms(i) != "":
		return c.harms(i)
	case !c.may(i):
		return fmt.Sprintf("more CPU than the limit, not asked for (--may %s)", r.Remedy.Name)
	case c.out.Row >= 0 && c.f.Rows[c.out.Row].Judged != nil && *r.Judged > *c.f.Rows[c.out.Row].Judged*(1+stats.LeastGain):
		return "a longer latency than the recommended one"
	}
	if c.out.Row < 0 {
		return "better, but not certain enough to recommend"
	}
	return "as good, and a larger change or more CPU"
}

// latencies shows the judged latency before and after a row.
func (c *choice) latencies(i int) string {
	r := &c.f.Rows[i]
	s := fmt.Sprintf("%s from %s to %s", c.figure(), milli(*c.none.Judged), milli(*r.Judged))
	if e := r.JudgedError(); e != nil {
		s += fmt.Sprintf(" (%s to %s)", text.Milliseconds(e.Low), milli(e.High))
	}
	return s
}

// uncertain says why it is not certain that a row is better than leaving it.
func uncertain(row *forecast.Row) string {
	if row.JudgedRange == nil {
		return "; the forecast's error is not known"
	}
	return "; the forecast's interval reaches above leaving it"
}

// ofAsked says what is forecast of the row of a remedy that was asked for by name.
func ofAsked(f *forecast.Forecast, row int) string {
	c := &choice{f: f}
	if why := c.unreliable(); why != "" {
		return why
	}
	r := &f.Rows[row]
	if r.Judged == nil || c.none.Judged == nil {
		return "its forecast says nothing about latency"
	}
	why := c.latencies(row) + c.price(row)
	if r.JudgedRange == nil || r.JudgedRange.High > *c.none.Judged {
		why += uncertain(r)
	}
	return why
}

// judged shows the latency of a row.
func (c *choice) judged(r *forecast.Row) string {
	return c.figure() + " of " + milli(*r.Judged)
}

// figure names what is judged.
func (c *choice) figure() string {
	j := c.f.Judged
	switch {
	case j.Of == forecast.OfRequests:
		return objective.InWords(j.Quantile) + " of " + kindText(j.Kind)
	case j.Pool != "":
		return objective.InWords(j.Quantile) + " of " + poolText(j.Pool)
	}
	return objective.InWords(j.Quantile)
}

// kindText names a kind of requests.
func kindText(k forecast.Kind) string {
	if s := k.String(); s != "" {
		return "requests " + s
	}
	return "requests"
}

// poolText shows a stranger's name of a pool.
func poolText(name string) string { return "pool " + text.Sanitize(name, 40) }

// price says what a row costs beside the limit.
func (c *choice) price(i int) string {
	r := &c.f.Rows[i]
	price := ""
	switch extra := c.extra(i); {
	case math.IsInf(extra, 1):
		price = "; nothing bounds its CPU use then"
	case extra > leastExtra:
		price = fmt.Sprintf("; it grants %s, %.3g more than the limit", text.CPUs(*r.Reserved), extra)
	}
	if n := r.Neighbours; n != nil {
		if lost := n.Lost.Seconds() / c.f.Window.Seconds(); lost > 0.01*float64(c.f.CPUs) {
			price += fmt.Sprintf("; other containers lose %.3g CPUs", lost)
		}
	}
	return price
}

// name is a row's remedy for people.
func (c *choice) name(i int) string { return c.f.Rows[i].Remedy.Text(c.f.Limit) }

func milli(ms float64) string { return text.Milliseconds(ms) + " ms" }
