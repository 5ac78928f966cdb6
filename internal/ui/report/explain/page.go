package explain

import (
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
)

//go:embed page.html
var pageHTML string

// The template escapes whatever it is given for the place where it stands; nothing is marked as safe by hand.
var pageTemplate = webpage.Template("explain", pageHTML)

// HTML writes an explanation as one page for an incident: all in one file, nothing loaded from anywhere, no
// script. Where it comes from, the verdict and the next step are at the top; else it has what Write has, in the same order.
func HTML(w io.Writer, e diagnose.Explanation, from webpage.Origin, o Options) error {
	shown := pageOf(&e, &o)
	shown.Head.From = from
	shown.Next = o.Next
	if o.Recommended != nil && o.Forecast != nil {
		shown.Remedies = remediesOf(o.Forecast, o.Recommended)
		if path := text.Sanitize(o.Forecast.Path, 0); path != "" && path != e.Target {
			shown.Head.Facts = append(shown.Head.Facts, webpage.Fact{Name: "cgroup", Value: path})
		}
	}
	switch {
	case o.Recommended != nil:
		shown.Advice = o.advice()
	case o.NotForecast != "":
		shown.Advice = []string{"Nothing is recommended: " + shownText(o.NotForecast) + "."}
	}
	return pageTemplate.Execute(w, shown)
}

// htmlPage is what the template shows: texts ready to read, and numbers ready to draw.
type htmlPage struct {
	Head            webpage.Head
	State, Level    string // of the container, in a word; "", "near" and "fine" choose its colour
	Verdict         string
	Advice          []string // what is recommended
	Next            string   // the command to type next
	Facts           []pageFact
	Causes          []pageCause
	Overview        *pageOverview
	Remedies        *pageRemedies
	Charts          []pageChart
	Timeline        *pageTimeline
	Pools           []pagePool
	MorePools       int
	Budgets         []string // as budgetText
	OfThreads       string   // why responses are those of threads
	Requests        *pageRequests
	PeriodsKnown    bool
	WidthCost       string
	Reasons         []pageReason
	WaitingKnown    bool
	Neighbours      []pageNeighbour
	MoreNeighbours  int
	Checks          []pageCheck
	Lost            uint64 // 0: none, or not measured
	NotMeasured     []string
	MoreNotMeasured int
}

// pageFact is a figure with its name; Bad marks it.
type pageFact struct {
	Name, Value, Note string
	Bad               bool
}

type pageCause struct {
	Cause         diagnose.Cause
	Wall, Threads string // what it cost in wall time and in thread time
	Evidence      string
	Percent       float64 // wall time, of the costliest
}

type pagePool struct {
	Name, Process, CPU, Throttled, Delay, DelayMax, Response, Advice string
	Threads, Widest                                                  int
	Percent, ThrottledPercent                                        float64 // of the pool that used most
	Waiting                                                          []pagePart
	WaitingSum                                                       string
}

// pagePart is a reason's part of a pool's waiting. Class names its colour.
type pagePart struct {
	Class, Title string
	Percent      float64 // of the waiting of the pool that waited most
}

type pageReason struct{ Class, Long, Sum string }

type pageNeighbour struct{ Name, CPU, Waited, Also string }

type pageCheck struct {
	Name, Result, Note string
	Passed, Judged     bool
}

// Bounds of the page: larger than a terminal's, but strangers choose names and numbers of threads.
const (
	maxPageRows       = 120
	maxPagePools      = 40
	maxPageNeighbours = 20
	maxPageNotes      = 50
	maxPageCauses     = 11
)

func pageOf(e *diagnose.Explanation, o *Options) htmlPage {
	p := htmlPage{
		Head: webpage.Head{Title: shownName(e.Target) + ": " + string(e.Cause) + " - unthrottle",
			Name: shownName(e.Target), Facts: originFacts(e)},
		Verdict: shownText(e.Verdict),
		Facts:   pageFacts(e), Overview: overviewOf(e), Charts: pageCharts(e), Timeline: timelineOf(e), WidthCost: widthCost(e),
		WaitingKnown: e.Waiting != nil, PeriodsKnown: e.Periods != nil,
	}
	if e.LostEvents != nil {
		p.Lost = *e.LostEvents
	}
	p.State, p.Level = stateOf(e, o.fewStops(e))
	p.Causes = pageCauses(e)
	p.Pools = pagePools(e)
	p.MorePools = len(e.Pools) - len(p.Pools)
	for _, b := range e.Budgets[:min(len(e.Budgets), maxPools)] {
		p.Budgets = append(p.Budgets, budgetText(b))
	}
	p.OfThreads, p.Requests = ofThreads(e.Requests), pageRequestsOf(e.Requests)
	for _, r := range reasonsSeen(e.Waiting) {
		p.Reasons = append(p.Reasons, pageReason{reasonClass(r), r.Long, text.Duration(e.Waiting[r.Reason])})
	}
	neighbours := waitedFor(e.Neighbours)
	for i, n := range neighbours {
		if i == maxPageNeighbours {
			p.MoreNeighbours = len(neighbours) - i
			break
		}
		p.Neighbours = append(p.Neighbours,
			pageNeighbour{shownName(n.Name), text.Duration(n.CPU), text.Duration(n.Waited), neighbourAlso(n)})
	}
	for _, c := range e.Checks {
		check := pageCheck{Name: shownText(c.Name), Note: shownText(c.Note), Judged: c.ErrorRatio != nil,
			Passed: c.ErrorRatio != nil && c.OK}
		if c.ErrorRatio != nil {
			check.Result = strconv.FormatFloat(100**c.ErrorRatio, 'f', 3, 64) + " % off"
		}
		p.Checks = append(p.Checks, check)
	}
	for i, n := range e.NotMeasured {
		if i == maxPageNotes {
			p.MoreNotMeasured = len(e.NotMeasured) - i
			break
		}
		p.NotMeasured = append(p.NotMeasured, shownText(n))
	}
	return p
}

// originFacts say when it was recorded, for how long, and the limit.
func originFacts(e *diagnose.Explanation) []webpage.Fact {
	var facts []webpage.Fact
	if !e.Start.IsZero() {
		facts = append(facts, webpage.Fact{Name: "recorded", Value: e.Start.UTC().Format("2006-01-02 15:04:05") + " UTC"})
	}
	facts = append(facts, webpage.Fact{Name: "for", Value: text.Duration(e.Window)})
	if e.EndedEarly != "" {
		facts = append(facts, webpage.Fact{Name: "ended early", Value: shownText(e.EndedEarly)})
	}
	if e.LimitCPUs != nil {
		facts = append(facts, webpage.Fact{Name: "limit", Value: cpusText(*e.LimitCPUs)})
	}
	return facts
}

// stateOf is the container in a word, and the class that colours it.
func stateOf(e *diagnose.Explanation, fewStops bool) (state, class string) {
	switch severity(e, fewStops) {
	case page.Red:
		return "stopped by a quota: " + string(e.Cause), ""
	case page.Amber:
		return text.Either(fewStops, "few stops", string(e.Cause)), "near"
	case page.Green:
		return "fine", "fine"
	}
	return "not decided", "near"
}

func pageFacts(e *diagnose.Explanation) []pageFact {
	var facts []pageFact
	if e.Stopped != nil {
		f := pageFact{Name: "stopped", Value: text.Duration(*e.Stopped), Bad: *e.Stopped > e.Window/100,
			Note: shareText(*e.Stopped, e.Window) + " of the time"}
		if e.StoppedIntervals != nil {
			f.Note += ", " + text.Count(*e.StoppedIntervals, "interval")
		}
		facts = append(facts, f)
	}
	if e.Periods != nil && e.ThrottledPeriods != nil && *e.Periods > 0 {
		facts = append(facts, pageFact{Name: "throttled periods", Value: strconv.FormatUint(*e.ThrottledPeriods, 10),
			Note: fmt.Sprintf("of %d", *e.Periods), Bad: *e.ThrottledPeriods*20 > *e.Periods})
	}
	limit := "no limit"
	switch {
	case e.LimitCPUs != nil:
		limit = "of " + cpusText(*e.LimitCPUs)
	case e.LimitUnknown:
		limit = "the limit is not known"
	}
	if e.MeanWidth != nil {
		facts = append(facts, pageFact{Name: "mean use", Value: strconv.FormatFloat(*e.MeanWidth, 'f', 2, 64), Note: limit})
	} else {
		facts = append(facts, pageFact{Name: "limit", Value: limit})
	}
	if e.Width != nil {
		widest := 0
		for _, b := range e.Width {
			if b.Time > 0 {
				widest = max(widest, b.CPUs)
			}
		}
		facts = append(facts, pageFact{Name: "widest", Value: strconv.Itoa(widest), Note: "CPUs at once",
			Bad: e.LimitCPUs != nil && float64(widest) > *e.LimitCPUs+1})
	}
	if e.RunnablePerCore != nil {
		facts = append(facts, pageFact{Name: "runnable threads",
			Value: strconv.FormatFloat(*e.RunnablePerCore, 'f', 2, 64), Note: "per reserved core, while any is"})
	}
	return facts
}

func pageCauses(e *diagnose.Explanation) []pageCause {
	most := time.Duration(1)
	for _, c := range e.Causes {
		if c.Wall != nil {
			most = max(most, *c.Wall)
		}
	}
	var causes []pageCause
	for i, c := range e.Causes {
		if i == maxPageCauses {
			break
		}
		cause := pageCause{Cause: c.Cause, Wall: figure.Missing, Threads: figure.Missing, Evidence: shownText(c.Evidence)}
		if c.Wall != nil {
			cause.Wall, cause.Percent = text.Duration(*c.Wall), percentOf(*c.Wall, most)
		}
		if c.Waited != nil {
			cause.Threads = text.Duration(*c.Waited)
		}
		causes = append(causes, cause)
	}
	return causes
}

func percentOf(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return min(100, max(0, 100*float64(part)/float64(whole)))
}

func pagePools(e *diagnose.Explanation) []pagePool {
	mostCPU, mostWaiting := time.Duration(0), time.Duration(0)
	for _, p := range e.Pools {
		mostCPU, mostWaiting = max(mostCPU, p.CPU), max(mostWaiting, waitingSum(p.Waiting))
	}
	seen := reasonsSeen(e.Waiting)
	var pools []pagePool
	for i, p := range e.Pools {
		if i == maxPagePools {
			break
		}
		pool := pagePool{Name: shownName(p.Name), Process: shownName(p.Process), Threads: p.Threads, Widest: p.Widest,
			CPU: text.Duration(p.CPU), Percent: percentOf(p.CPU, mostCPU), Throttled: figure.Missing,
			Delay: figure.Missing, DelayMax: figure.Missing, Response: figure.Missing, Advice: poolAdvice(p),
			WaitingSum: text.Duration(waitingSum(p.Waiting))}
		if p.CPUThrottled != nil {
			pool.Throttled, pool.ThrottledPercent = text.Duration(*p.CPUThrottled), percentOf(*p.CPUThrottled, mostCPU)
		}
		if d := p.Delay; d != nil {
			pool.Delay, pool.DelayMax = text.Duration(d.P99), text.Duration(d.Max)
		}
		if r := p.Response; r != nil {
			pool.Response = text.Duration(r.P99)
		}
		for _, r := range seen {
			if d := p.Waiting[r.Reason]; d > 0 {
				pool.Waiting = append(pool.Waiting, pagePart{reasonClass(r), r.Long + ": " + text.Duration(d), percentOf(d, mostWaiting)})
			}
		}
		pools = append(pools, pool)
	}
	return pools
}

// reasonClass is the CSS class of a reason: its place in the fixed order, so that a colour always means the same.
func reasonClass(r reason) string {
	for i, known := range reasons {
		if known.Reason == r.Reason {
			return "r" + strconv.Itoa(i)
		}
	}
	return "rx"
}
