package policy

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Reason is why a container is not treated.
type Reason string

// The reasons, in the order in which they are asked for: the first that holds counts.
const (
	// Of the file and the annotations.
	ReasonAnnotation Reason = "annotation-unknown"
	ReasonNoRule     Reason = "no-rule"
	ReasonOptedOut   Reason = "opted-out"
	ReasonRuleNone   Reason = "rule-none"
	// Of the container.
	ReasonNoLimit      Reason = "no-limit"
	ReasonInside       Reason = "limit-inside"
	ReasonNotMeasured  Reason = "not-measured"
	ReasonBelowBound   Reason = "below-bound"
	ReasonStarting     Reason = "starting"
	ReasonConfirming   Reason = "confirming"
	ReasonObserving    Reason = "observing"
	ReasonUnjudged     Reason = "unjudged"
	ReasonUntrusted    Reason = "untrusted-command"
	ReasonCooldown     Reason = "cooldown"
	ReasonObjectiveMet Reason = "objective-met"
	ReasonForecast     Reason = "forecast"
	ReasonRefused      Reason = "refused"
	ReasonDeferred     Reason = "resize-deferred"
	ReasonInfeasible   Reason = "resize-infeasible"
	ReasonFailed       Reason = "failed"
	ReasonBudgetCPUs   Reason = "budget-cpus"
	ReasonReplanned    Reason = "replanned"
	// Of the others.
	ReasonBudgetContainers Reason = "budget-containers"
	ReasonBudgetMoves      Reason = "budget-moves"
	ReasonTurn             Reason = "waits-its-turn"
	ReasonTrying           Reason = "trying"
)

// reasons has all of them, with what each means.
var reasons = []struct {
	reason Reason
	means  string
}{
	{ReasonAnnotation, "its pod's annotation asks for a remedy that is not known"},
	{ReasonNoRule, "no rule matches it"},
	{ReasonOptedOut, "its pod's annotation opts out"},
	{ReasonRuleNone, "its rule says remedy: none"},
	{ReasonNoLimit, "neither it nor an ancestor has a limit"},
	{ReasonInside, "the quota of a cgroup in it stops it, which fix can treat"},
	{ReasonNotMeasured, "its stopped time was not measured"},
	{ReasonBelowBound, "it is stopped for less than the bound"},
	{ReasonStarting, "it is starting, and stops end with that in many programs"},
	{ReasonConfirming, "it is not stopped above the bound for long enough yet"},
	{ReasonObserving, "the agent observes only (mode: observe)"},
	{ReasonUnjudged, "nothing could judge the effect: its rule has neither an slo with a command nor verify: probe, " +
		"or nothing was recorded"},
	{ReasonUntrusted, "the slo command of its rule must not be run"},
	{ReasonCooldown, "a remedy did not help; it is tried again after a wait"},
	{ReasonObjectiveMet, "the objective of its rule is met"},
	{ReasonForecast, "the forecast recommends no remedy that its rule allows"},
	{ReasonRefused, "the remedy cannot be applied here"},
	{ReasonDeferred, "its node has no room for the raised limit now; the resize is taken back, and tried again later"},
	{ReasonInfeasible, "the kubelet cannot resize its pod on this node; the resize is taken back"},
	{ReasonFailed, "the last attempt failed: the agent's log says why"},
	{ReasonBudgetCPUs, "the budget's share of exclusive CPUs is used up (budget: cpu_share)"},
	{ReasonReplanned, "the host changed meanwhile: it is planned again"},
	{ReasonBudgetContainers, "as many containers have a remedy as the budget allows (budget: containers)"},
	{ReasonBudgetMoves, "the budget's changes of the last minute are used up (budget: moves_per_minute)"},
	{ReasonTurn, "another container comes first"},
	{ReasonTrying, "the agent is looking for a remedy, or judging one"},
}

// Reasons lists all of them.
func Reasons() []Reason {
	all := make([]Reason, len(reasons))
	for i, r := range reasons {
		all[i] = r.reason
	}
	return all
}

// Means says what a reason means, in a sentence's part. "" is not a reason.
func (r Reason) Means() string {
	for _, of := range reasons {
		if of.reason == r {
			return of.means
		}
	}
	return ""
}

// Treatment is whether one container is treated. Without a reason and a remedy it is not known.
type Treatment struct {
	// Remedy and Transaction are those in force; "": none is.
	Remedy, Transaction string
	// Reason is why none is.
	Reason Reason
	// Detail is what there is to say beside Reason.Means; "": nothing.
	Detail string
	// Until is when it is looked at again; zero: with each round.
	Until time.Time
}

// Why says the reason in words; "" where there is none.
func (t Treatment) Why() string {
	if t.Detail == "" {
		return t.Reason.Means()
	}
	return t.Reason.Means() + ": " + text.Shown(t.Detail)
}

// Untreated is why the file and the annotations leave a container alone; the zero value: they do not.
func (e Effective) Untreated() Treatment {
	switch {
	case e.Unread:
		return Treatment{Reason: ReasonAnnotation}
	case e.Rule == nil:
		return Treatment{Reason: ReasonNoRule}
	case e.Rule.Leave && e.RemedyAsked:
		return Treatment{Reason: ReasonOptedOut}
	case e.Rule.Leave:
		return Treatment{Reason: ReasonRuleNone}
	}
	return Treatment{}
}
