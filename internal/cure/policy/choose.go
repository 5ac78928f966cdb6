package policy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/cure/incode"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Answer is what a choice says to do.
type Answer string

// The answers. Each of them is a result of equal rank.
const (
	// AnswerRemedy: apply the row.
	AnswerRemedy Answer = "remedy"
	// AnswerLeave: leave the container as it is.
	AnswerLeave Answer = "leave"
	// AnswerMoreCPU: at the same CPU nothing helps. The row grants more than the limit.
	AnswerMoreCPU Answer = "more-cpu"
	// AnswerSetting: no remedy helps, but a setting of the service does. The row names it.
	AnswerSetting Answer = "setting"
	// AnswerUnknown: the forecast cannot be relied on, so nothing is recommended.
	AnswerUnknown Answer = "unknown"
)

// Terms are what bounds a choice, beside the forecast.
type Terms struct {
	// May are the remedies that may grant more CPU than the limit.
	May []remedy.Kind
	// Refused says of rows, by index, why they cannot be done on this host: see Here.
	Refused map[int]string
	// Tried says of rows, by index, what came of them a moment ago.
	Tried map[int]string
	// Unseen says why it was not looked at what this host can do, so that no row is in Refused; "": it was.
	Unseen string
	// Notes say what else limits the choice, such as rights that are missing.
	Notes []string
	// Trial: what is chosen is measured afterwards, and undone if it does not help. Then a replay that differs from its
	// recording is no reason to try nothing.
	Trial bool
}

// withoutPlans adds the rows that no plan can do on any host.
func (t Terms) withoutPlans(f *forecast.Forecast) Terms {
	refused := maps.Clone(t.Refused)
	if refused == nil {
		refused = map[int]string{}
	}
	for i := range f.Rows {
		r := f.Rows[i].Remedy
		if _, ok := remedy.OfRow(r); !ok || refused[i] != "" {
			continue
		}
		if _, why := remedy.RequestOf(r, remedy.Request{}); why != "" {
			refused[i] = why
		} else if why := unfilled(f, r); why != "" {
			refused[i] = why
		}
	}
	t.Refused = refused
	return t
}

// unfilled says why the container has nothing that a burst could save up, in the recording; "": it has, or the row is no burst
// alone.
func unfilled(f *forecast.Forecast, r forecast.Remedy) string {
	if r.Name != forecast.Burst || r.Period > 0 || f.Window <= 0 {
		return ""
	}
	if none := f.Left(); none != nil && none.Refused == "" {
		return remedy.Unfilled(none.Figures.CPU.Seconds()/f.Window.Seconds(), f.Limit)
	}
	return ""
}

// Choice is what a forecast recommends.
type Choice struct {
	Answer Answer
	// Row is the index of the recommended row in Forecast.Rows; -1: there is none.
	Row int
	// Next are the rows to try if that one does not help, best first.
	Next []int
	// Why is one sentence with the figures.
	Why string
	// Certain: the whole interval of the forecast is better than leaving it, or within the objective.
	Certain bool
	// Advice is a setting of the service that would help beside the remedy; "": none.
	Advice string
	// Write is what to write into the program, where the row or the advice is a change of its code.
	Write []incode.Language
	// Not says of every other row, in the order of the table, why it is not the first.
	Not []NotChosen
	// Refused, Unseen and Notes are those of Terms. Refused also has the rows that no host can do.
	Refused map[int]string
	Unseen  string
	Notes   []string
}

// NotChosen is a row that is not recommended, and why.
type NotChosen struct {
	Row int
	Why string
}

const (
	// leastStopped is the share of the time below which a container is hardly ever stopped.
	leastStopped = diagnose.Negligible
	// leastExtra is how many CPUs beyond the limit count as more than the limit.
	leastExtra = 0.01
)

// Choose chooses a row of a forecast. explain, forecast, fix and the agent all use this rule.
//
// Judged is the latency of requests where they are seen, else of a pool: see package forecast. Rows that grant no more
// CPU than the limit come first. CPUs granted count as they are: one exclusive CPU for a limit of 0.5 is half a
// CPU more. More CPU is chosen only where Terms.May names the remedy; else it is an answer of its own where
// nothing else helps.
//
// With an objective the cheapest row wins whose whole interval meets it: the fewest CPUs beyond the limit, then
// the smaller intervention. Without one the lowest latency wins, and a tie goes to the smaller intervention, but for one that quotas stop
// for longer than another setting of the same remedy.
// A row must take off a tenth and half a millisecond to be worth a change. Without an objective it must not make another
// kind of requests half as long again, nor lift the median by more than the tail's gain is worth: see verdict.MiddleLoses.
//
// Worked example: limit 0.6, p99 115 ms; burst 66 ms (60 to 73), pin to 1 CPU 121 ms, raise to 0.9 3 ms. Burst
// is chosen: pin grants 0.4 CPUs more and does not help, and raise was not asked for. With --may raise and an
// objective of 20 ms, raise is chosen.
func Choose(f *forecast.Forecast, t Terms) Choice {
	c := newChoice(f, t)
	c.decide()
	c.explainRest()
	return c.out
}

func newChoice(f *forecast.Forecast, t Terms) *choice {
	t = t.withoutPlans(f)
	return &choice{f: f, t: t, out: Choice{Row: -1, Write: []incode.Language{}, Next: []int{}, Not: []NotChosen{},
		Refused: t.Refused, Unseen: t.Unseen, Notes: t.Notes}}
}

// choice is the state of Choose.
type choice struct {
	f    *forecast.Forecast
	t    Terms
	none *forecast.Row
	out  Choice
}

func (c *choice) decide() {
	if why := c.unreliable(); why != "" {
		if !c.t.Trial || c.none == nil || c.none.Refused != "" || c.none.Judged == nil {
			c.answer(AnswerUnknown, -1, why)
			return
		}
		defer func() {
			c.tryLeastStopped()
			c.out.Certain = false
			c.out.Why += "; " + why + ": a trial tells"
		}()
	}
	share := c.none.Figures.Stopped.Seconds() / c.f.Window.Seconds()
	objective := c.f.Objective
	switch {
	case objective != nil && c.none.Judged != nil && *c.none.Judged <= bound(objective):
		c.answer(AnswerLeave, -1, "the objective is met as it is: "+c.judged(c.none))
		c.out.Certain = c.none.JudgedRange != nil && c.none.JudgedRange.High <= bound(objective)
	case objective == nil && share <= leastStopped && !c.halves():
		c.answer(AnswerLeave, -1, "it is hardly ever stopped")
		c.out.Certain = true
	case c.none.Judged == nil:
		c.nothingWaits()
	case objective != nil:
		c.forObjective(bound(objective))
	default:
		c.lowest()
	}
}

// unreliable finds the row of leaving it, and says why the forecast means nothing; "": it does.
func (c *choice) unreliable() string {
	c.none = c.f.Left()
	if c.none == nil || c.none.Refused != "" {
		return "the recording could not be replayed as it was"
	}
	if figure := c.f.Check.Failed(); figure != "" {
		return "the replay of the recording differs from the recording in " + figure + ", so its forecasts mean little"
	}
	return ""
}

// tryLeastStopped tries what ends the stops, where the replay has lost the latency that was recorded: it has nothing
// left to shorten then, and
// its stopped time agrees.
func (c *choice) tryLeastStopped() {
	was := c.f.Check.Judged
	lost := was.Recorded != nil && was.Replayed != nil && *was.Replayed < *was.Recorded
	if c.out.Answer != AnswerLeave || !lost || slices.Contains(c.f.Check.FailedBeside(), forecast.StoppedTime) {
		return
	}
	stopped := func(i int) time.Duration { return c.f.Rows[i].Figures.Stopped }
	all := c.rows(func(i int) bool { return c.may(i) && stopped(i) <= c.none.Figures.Stopped/2 && c.harms(i) == "" },
		func(a, b int) int { return cmp.Compare(stopped(a), stopped(b)) })
	if len(all) == 0 || c.none.Figures.Stopped.Seconds() <= leastStopped*c.f.Window.Seconds() {
		return
	}
	c.answer(AnswerRemedy, all[0], fmt.Sprintf("%s: stopped for %s of %s, not for %s", c.name(all[0]),
		text.Duration(stopped(all[0])), text.Duration(c.f.Window), text.Duration(c.none.Figures.Stopped)))
	c.out.Next = append(c.out.Next, all[1:]...)
}

func bound(o *forecast.Objective) float64 { return float64(o.Bound.Microseconds()) / 1000 }

func (c *choice) answer(a Answer, row int, why string) {
	c.out.Answer, c.out.Row, c.out.Why = a, row, why
}

// nothingWaits answers for threads that compute without a pause: a stop costs them no latency.
func (c *choice) nothingWaits() {
	used := c.none.Figures.CPU.Seconds() / c.f.Window.Seconds()
	if used < stats.UsedUp*c.f.Limit {
		c.answer(AnswerLeave, -1, c.f.TooFew())
		return
	}
	row := -1
	for i := range c.f.Rows {
		found, _ := remedy.OfRow(c.f.Rows[i].Remedy)
		if c.possible(i) && found.LargerLimit && (row < 0 || c.extra(i) < c.extra(row)) {
			row = i
		}
	}
	a := AnswerMoreCPU
	if row >= 0 && c.may(row) {
		a = AnswerRemedy
	}
	c.answer(a, row, fmt.Sprintf("it uses its whole limit (%.3g of %.3g CPUs) and no thread of it waits for an "+
		"answer: only more CPU brings more work", used, c.f.Limit))
	c.out.Certain = true
}

// possible: the row is a remedy that was replayed at the recorded load of the host, can be done here, and was not tried.
func (c *choice) possible(i int) bool {
	r := &c.f.Rows[i]
	return r.HostLoad == 0 && r.Refused == "" && c.t.Refused[i] == "" && c.t.Tried[i] == "" && !r.Remedy.OfService() &&
		r.Remedy.Name != forecast.None && c.untold(i) == ""
}

// untold says why no forecast tells what a longer period brings to a container that used its whole limit; "": one does, or a trial
// follows. A replay has the work that was recorded. Clients that send their next query once they have an answer would send more, spend
// a period's quota at once, and have everybody stopped for the rest of it.
//
// Source: docs/results/fix.md. Of the services there for which a forecast would have chosen a longer period, mariadb-sort, nginx-ffmpeg,
// postgres-report and sshd-make used their whole limit: p99 came 1.2 to 9 times that of leaving them.
func (c *choice) untold(i int) string {
	if c.t.Trial || c.f.Rows[i].Remedy.Period <= bandwidth.DefaultPeriod || c.none == nil || c.none.Refused != "" {
		return ""
	}
	used := c.none.Figures.CPU.Seconds() / c.f.Window.Seconds()
	if used < stats.UsedUp*c.f.Limit {
		return ""
	}
	return fmt.Sprintf("it used %s of %s, and might use more at once in a longer period than was recorded: 'unthrottle fix' tries it",
		text.CPUs(used), text.CPUs(c.f.Limit))
}

// extra is how many CPUs beyond the limit a row grants; without any bound, infinitely many.
func (c *choice) extra(i int) float64 {
	reserved := c.f.Rows[i].Reserved
	if reserved == nil {
		return math.Inf(1)
	}
	return max(0, *reserved-c.f.Limit)
}

// halves tells whether a row with no more CPUs surely halves what requests take. Then their slowest are those that few
// stops hit: a quota that
// stops a service for less than a hundredth of the time can hit more than a hundredth of its requests, since both come in bursts.
//
// Worked example: Node answers 200 requests a second, and ten log-ins a second spend its quota now and then. It is stopped for 0.9 % of the
// time. A burst takes the p99 of its requests from 9.6 ms to 2.9 ms (0.7 to 6.2): it is tried.
func (c *choice) halves() bool {
	if c.none.Judged == nil || c.f.Judged == nil || c.f.Judged.Of != forecast.OfRequests {
		return false
	}
	return len(c.rows(func(i int) bool {
		r := &c.f.Rows[i]
		return c.may(i) && c.helps(r.Judged) && *r.Judged <= *c.none.Judged/2 && r.JudgedRange != nil &&
			r.JudgedRange.High < *c.none.Judged && c.harms(i) == ""
	}, c.byLatency)) > 0
}

// may tells whether a row grants no more CPU than the limit, or was asked for.
func (c *choice) may(i int) bool {
	return c.extra(i) <= leastExtra || slices.Contains(c.t.May, remedy.Kind(c.f.Rows[i].Remedy.Name))
}

// helps tells whether a latency is worth a change.
func (c *choice) helps(ms *float64) bool {
	was := *c.none.Judged
	return ms != nil && stats.Gains(was, *ms)
}

// harms says what a row harms, although what is judged gets faster; "": nothing. It harms another kind of requests if its
// tail becomes longer by stats.MuchHarm, and the judged one if its middle loses more than the tail gains.
//
// Worked example: health checks are judged; under narrow their p99 falls from 63 to 18 ms and their median rises from 1 to
// 2 ms. The inferences of the same server have a p99 of 900 ms, and of 1,000 ms then: no harm. A median of 30 ms would be.
func (c *choice) harms(i int) string {
	r := &c.f.Rows[i]
	for k, was := range c.none.Kinds {
		if seen := c.f.Kinds[k]; k < len(r.Kinds) && seen.Kind != c.f.Judged.Kind {
			if is := r.Kinds[k]; is.High >= stats.MuchHarm*was.High && is.High-was.High >= stats.LeastGainMs {
				return fmt.Sprintf("it harms the rest: %s of %s from %s to %s", objective.InWords(seen.Quantile),
					kindText(seen.Kind), milli(was.High), milli(is.High))
			}
		}
	}
	if was, is := c.none.JudgedP50, r.JudgedP50; was != nil && is != nil && verdict.MiddleLoses(*was, *is, *c.none.Judged, *r.Judged) {
		return fmt.Sprintf("it lifts the middle: the median from %s to %s", milli(*was), milli(*is))
	}
	return ""
}

// rows are the possible rows that pass, in an order: equal ones by the smaller intervention.
func (c *choice) rows(pass func(i int) bool, order func(a, b int) int) []int {
	var all []int
	for i := range c.f.Rows {
		if c.possible(i) && c.f.Rows[i].Judged != nil && pass(i) {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Or(order(a, b), c.change(a)-c.change(b)) })
	return all
}

func (c *choice) change(i int) int { return c.f.Rows[i].Remedy.Change() }

func (c *choice) byCPUs(a, b int) int { return cmp.Compare(c.extra(a), c.extra(b)) }

func (c *choice) byLatency(a, b int) int {
	return cmp.Compare(*c.f.Rows[a].Judged, *c.f.Rows[b].Judged)
}

// forObjective chooses the cheapest row that meets the objective.
func (c *choice) forObjective(ms float64) {
	surely := func(i int) bool { r := c.f.Rows[i].JudgedRange; return r != nil && r.High <= ms }
	likely := func(i int) bool { return *c.f.Rows[i].Judged <= ms }
	for _, may := range []bool{true, false} {
		sure := c.rows(func(i int) bool { return c.may(i) == may && surely(i) }, c.byCPUs)
		hope := c.rows(func(i int) bool { return c.may(i) == may && likely(i) && !surely(i) }, c.byLatency)
		all := append(sure, hope...)
		if len(all) == 0 {
			continue
		}
		why := fmt.Sprintf("%s: %s; the objective is at most %s", c.name(all[0]), c.latencies(all[0]), milli(ms))
		if len(sure) == 0 {
			why += ", within the forecast's error"
		}
		c.recommend(all, may, why+c.price(all[0]))
		c.out.Certain = len(sure) > 0
		return
	}
	c.lowest()
	c.out.Certain = false
	c.out.Why = fmt.Sprintf("no remedy meets the objective of %s; %s", milli(ms), c.out.Why)
}

// lowest chooses the row with the lowest latency.
func (c *choice) lowest() {
	helps := func(may bool) func(int) bool {
		return func(i int) bool { return c.may(i) == may && c.helps(c.f.Rows[i].Judged) && c.harms(i) == "" }
	}
	if all := c.tied(c.rows(helps(true), c.byLatency)); len(all) > 0 {
		c.recommend(all, true, fmt.Sprintf("%s: %s%s", c.name(all[0]), c.latencies(all[0]), c.price(all[0])))
		return
	}
	if row := c.setting(); row >= 0 {
		what := "a smaller pool would: " + c.resized(row) + " (modelled)"
		if c.f.Rows[row].Remedy.InCode() {
			c.out.Write = incode.Of(c.f.Languages)
			what = "a change of the program would: " + c.name(row)
		}
		c.answer(AnswerSetting, row, fmt.Sprintf("%s; %s", c.noneShortens(c.judged(c.none)), what))
		return
	}
	if all := c.rows(helps(false), c.byCPUs); len(all) > 0 {
		c.recommend(all, false, fmt.Sprintf("%s; %s: %s%s", c.noneShortens("it"), c.name(all[0]), c.latencies(all[0]), c.price(all[0])))
		return
	}
	what := "no remedy"
	if c.refusedHelp(func(int) bool { return true }) {
		what = "no remedy that can be done here"
	}
	c.answer(AnswerLeave, -1, fmt.Sprintf("%s shortens %s by more than a tenth", what, c.judged(c.none)))
}

// noneShortens says that no remedy at the same CPU shortens a latency, and in which sense where one would.
func (c *choice) noneShortens(latency string) string {
	switch {
	case c.refusedHelp(c.may):
		return "no remedy at the same CPU that can be done here shortens " + latency
	case len(c.rows(func(i int) bool { return c.may(i) && c.helps(c.f.Rows[i].Judged) }, c.byLatency)) > 0:
		return "no remedy at the same CPU shortens " + latency + " without harm to others"
	}
	return "no remedy at the same CPU shortens " + latency
}

// tooDark names the remedies that keep the limit, were not tried, and whose forecasts can be too dark; "": there are none, or a trial
// follows anyhow. Where long runs shared a pool or pod, narrow was forecast at 78 and 99 ms, and 18.6 and 31 ms came.
func (c *choice) tooDark() string {
	var names []string
	for _, name := range []string{forecast.Narrow, forecast.Period} {
		if len(c.rows(func(i int) bool { return c.may(i) && c.f.Rows[i].Remedy.Name == name }, c.byLatency)) > 0 {
			names = append(names, name)
		}
	}
	if c.t.Trial || len(names) == 0 {
		return ""
	}
	return "; forecasts of " + strings.Join(names, " and ") + " can be too dark where long runs share the pool or pod: " +
		"'unthrottle fix' tries what keeps the limit first"
}

// refusedHelp tells whether a row that this host refuses, and that passes, would be worth a change.
func (c *choice) refusedHelp(pass func(i int) bool) bool {
	for i := range c.t.Refused {
		if r := &c.f.Rows[i]; r.HostLoad == 0 && pass(i) && c.helps(r.Judged) {
			return true
		}
	}
	return false
}

// tied moves the smallest intervention among the rows that tie with the first to the front, of those of which no other setting of the same
// remedy that ties is stopped less.
func (c *choice) tied(all []int) []int {
	if len(all) == 0 {
		return all
	}
	best := *c.f.Rows[all[0]].Judged
	ties := slices.DeleteFunc(slices.Clone(all), func(row int) bool { return *c.f.Rows[row].Judged > best*(1+stats.LeastGain) })
	share := func(row int) float64 { return c.f.Rows[row].Figures.Stopped.Seconds() / c.f.Window.Seconds() }
	spare := slices.DeleteFunc(slices.Clone(ties), func(row int) bool {
		return slices.ContainsFunc(ties, func(other int) bool {
			return c.f.Rows[row].Remedy.Name == c.f.Rows[other].Remedy.Name && stats.StoppedLonger(share(row), share(other))
		})
	})
	row := slices.MinFunc(spare, func(a, b int) int { return c.change(a) - c.change(b) })
	first := slices.Index(all, row)
	return slices.Insert(slices.Delete(all, first, first+1), 0, row)
}

// recommend takes the first row. granted: all of them are ones that may be chosen.
func (c *choice) recommend(all []int, granted bool, why string) {
	a := AnswerRemedy
	if !granted {
		a = AnswerMoreCPU
	}
	c.answer(a, all[0], why)
	if granted {
		c.out.Next = append(c.out.Next, all[1:]...)
	}
	row := &c.f.Rows[all[0]]
	c.out.Certain = row.JudgedRange != nil && c.none.Judged != nil && row.JudgedRange.High <= *c.none.Judged
	if !c.out.Certain {
		c.out.Why += uncertain(row)
	}
	if !granted {
		c.out.Why += c.tooDark()
	}
	if i := c.setting(); i >= 0 && *c.f.Rows[i].Judged < *row.Judged {
		what := "modelled, a setting of the service"
		if c.f.Rows[i].Remedy.InCode() {
			c.out.Write = incode.Of(c.f.Languages)
			what = "a change of the program's code"
		}
		c.out.Advice = fmt.Sprintf("%s: %s (%s)", c.resized(i), c.latencies(i), what)
	}
}

// resized names a row of the service itself, and the pools that it is of.
func (c *choice) resized(row int) string {
	r := c.f.Rows[row].Remedy
	pools := c.none.Figures.Pools
	switch {
	case r.Name != forecast.Pools:
	case r.Pool >= 0 && r.Pool < len(pools):
		return fmt.Sprintf("pool %s with %s", text.Name(pools[r.Pool].Name), text.Count(r.CPUs, "thread"))
	case r.Pool == forecast.AllPools && len(pools) > 0:
		var names []string
		for _, p := range pools {
			names = append(names, p.Name)
		}
		return fmt.Sprintf("pools %s, each with at most %s", text.Names(names), text.Count(r.CPUs, "thread"))
	}
	return c.name(row)
}

// setting is the resized pool, or the change of the program's code, that helps most; -1: none does. A setting goes first where it
// helps as much.
func (c *choice) setting() int {
	best, least := -1, math.Inf(1)
	for i := range c.f.Rows {
		r := &c.f.Rows[i]
		if r.Remedy.Name != forecast.Pools && !r.Remedy.InCode() || r.HostLoad != 0 || r.Refused != "" || !c.settingHelps(r) {
			continue
		}
		ms := *r.Judged
		if r.Remedy.InCode() {
			ms *= 1 + stats.LeastGain
		}
		if ms < least {
			best, least = i, ms
		}
	}
	return best
}
