package agent

import (
	"errors"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/nri"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// pods is what is known of containers' pods, and may change; the zero value knows nothing.
type pods struct {
	// of is what the runtime says of a container's pod, by the container's id.
	of func(id string) policy.Pod
	// generation changes when what of says may have changed.
	generation func() uint64
}

// podsOf asks the runtime's plugin, which may be nil.
func podsOf(plugin *nri.Plugin) pods {
	return pods{generation: plugin.Generation, of: func(id string) policy.Pod {
		return policy.Pod{Labels: plugin.Labels(id), Annotations: plugin.Annotations(id)}
	}}
}

func (p pods) pod(id string) policy.Pod {
	if p.of == nil {
		return policy.Pod{}
	}
	return p.of(id)
}

func (p pods) now() uint64 {
	if p.generation == nil {
		return 0
	}
	return p.generation()
}

// standing is one container: what the rules and its pod's annotations say, and whether it is treated.
type standing struct {
	container  container.Container
	generation uint64
	effective  policy.Effective
	treatment  policy.Treatment
	// begun is when its oldest process began; zero: that was not looked up, or is not known.
	begun time.Time
	// labels are those of its metric; exported: the container is within the bound of what is exported.
	labels   []string
	exported bool
	// resized: its limit was changed by others while nothing of ours was in force for it.
	resized bool
}

// takeIn keeps a standing for each container of a round, and forgets the others. What was found out of one stays for as
// long as its names and its pod do.
func (c *chooser) takeIn(observations []observe.Observation) {
	generation := c.pods.now()
	next := make(map[string]*standing, len(observations))
	for i := range observations {
		of := &observations[i].Container
		s := c.standings[of.Group.Path]
		switch {
		case s == nil || s.container != *of:
			s = &standing{container: *of, labels: labels(*of)}
			c.evaluate(s, generation)
		case s.generation != generation:
			c.evaluate(s, generation)
		}
		s.exported = i < maxContainers
		next[of.Group.Path] = s
	}
	c.standings = next
}

// evaluate applies the rules and the pod's annotations. Annotations that do not count are told when they are new.
func (c *chooser) evaluate(s *standing, generation uint64) {
	before := s.effective.Refused
	s.effective, s.generation = c.rules.Effective(s.container, c.pods.pod(s.container.ID)), generation
	if c.tell == nil || slices.Equal(before, s.effective.Refused) {
		return
	}
	for _, refused := range s.effective.Refused {
		c.tell(s.container, refused)
	}
}

// tellRefused writes an annotation that does not count into the log.
func (a *agent) tellRefused(c container.Container, refused policy.Refusal) {
	a.Log.Warn("an annotation of its pod does not count", "container", text.Sanitize(c.Name, 128), "namespace",
		text.Sanitize(c.Namespace, 128),
		"pod", text.Sanitize(c.Pod, 128), "annotation", refused.Annotation, "value", refused.Value, "why", refused.Why)
}

// rule is the rule in force for a container of the round; nil: none.
func (c *chooser) rule(path string) *policy.Rule { return c.standings[path].effective.Rule }

// known is the rule of a container; nil: none matches, or it was in no round yet.
func (c *chooser) known(path string) *policy.Rule {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.standings[path]; s != nil {
		return s.effective.Rule
	}
	return nil
}

// starting reports until when a container is starting that is stopped above the bound; zero: it is not, or its age is not
// known.
func (c *chooser) starting(s *standing, now time.Time) time.Time {
	if c.rules.Startup == 0 || c.age == nil {
		return time.Time{}
	}
	if s.begun.IsZero() {
		age, ok := c.age(s.container)
		if !ok {
			return time.Time{}
		}
		s.begun = now.Add(-age)
	}
	if until := s.begun.Add(c.rules.Startup); now.Before(until) {
		return until
	}
	return time.Time{}
}

// treat says whether a container is treated. held is what is in force for it, nil for nothing; starting as above.
// persistent: its last rounds are reason enough.
func (c *chooser) treat(s *standing, o *observe.Observation, held *txn.InForce, starting time.Time, persistent bool,
	now time.Time) policy.Treatment {
	if held != nil {
		return policy.Treatment{Remedy: held.Remedy, Transaction: held.ID}
	}
	if t := s.effective.Untreated(); t.Reason != "" {
		return t
	}
	path, rule := o.Container.Group.Path, s.effective.Rule
	above, measured := o.Above(c.rules.Bound)
	second := secondary(rule)
	switch {
	case second && c.calm[path] < persist:
		return policy.Treatment{Reason: policy.ReasonConfirming}
	case second:
	case measured && !above && o.LimitCPUs == nil:
		return policy.Treatment{Reason: policy.ReasonNoLimit}
	case !measured:
		return policy.Treatment{Reason: policy.ReasonNotMeasured}
	case above && o.Inside() != "":
		return policy.Treatment{Reason: policy.ReasonInside, Detail: o.Inside()}
	case !above:
		return policy.Treatment{Reason: policy.ReasonBelowBound}
	case !starting.IsZero():
		return policy.Treatment{Reason: policy.ReasonStarting, Until: starting}
	case !persistent:
		return policy.Treatment{Reason: policy.ReasonConfirming}
	}
	if reason, _ := c.hindrance(rule, now); reason != "" {
		t := policy.Treatment{Reason: reason}
		if reason == policy.ReasonUntrusted {
			t.Detail = c.untrusted
		}
		return t
	}
	if until := c.retry[path]; now.Before(until) {
		t, ok := c.waits[path]
		if !ok {
			t.Reason = policy.ReasonCooldown // an agent before this one tried
		}
		t.Until = until
		return t
	}
	if at := c.nextTrial(rule, path, now); !at.IsZero() {
		return policy.Treatment{Reason: policy.ReasonCooldown,
			Detail: "its rule has trial: remedies were tried in turns, or it is its quiet time", Until: at}
	}
	return policy.Treatment{Reason: policy.ReasonTurn}
}

// set says why a container of the round is not treated now.
func (c *chooser) set(path string, t policy.Treatment) {
	if s := c.standings[path]; s != nil {
		s.treatment = t
	}
}

// attempted says what came of an attempt that left nothing in force: it holds until the container may be tried again.
func (c *chooser) attempted(path string, t policy.Treatment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.retry[path]
	if !ok {
		return
	}
	c.waits[path], t.Until = t, until
	c.set(path, t)
}

// outcome is what an error of a fix says of the container. Texts that hold what the slo command printed are left to the log.
func outcome(err error) policy.Treatment {
	left, none, refused, resize := new(notKept), new(fix.NoRemedy), new(remedy.Refused), new(podresize.Refused)
	switch {
	case errors.As(err, &resize):
		reason := map[string]policy.Reason{"": policy.ReasonRefused, podresize.PendingDeferred: policy.ReasonDeferred,
			podresize.PendingInfeasible: policy.ReasonInfeasible}[resize.Reason]
		return policy.Treatment{Reason: reason, Detail: resize.Error()}
	case errors.Is(err, fix.ErrObjectiveMet):
		return policy.Treatment{Reason: policy.ReasonObjectiveMet}
	case stale(err):
		return policy.Treatment{Reason: policy.ReasonReplanned}
	case errors.Is(err, errTrialsFull):
		return policy.Treatment{Reason: policy.ReasonCooldown, Detail: err.Error()}
	case errors.Is(err, errBudget):
		return policy.Treatment{Reason: policy.ReasonBudgetCPUs, Detail: err.Error()}
	case errors.Is(err, errUnjudged):
		return policy.Treatment{Reason: policy.ReasonUnjudged}
	case errors.As(err, &left) && left.tried:
		return policy.Treatment{Reason: policy.ReasonCooldown, Detail: left.Error()}
	case errors.As(err, &left):
		return policy.Treatment{Reason: policy.ReasonForecast, Detail: left.Error()}
	case errors.As(err, &none):
		t := policy.Treatment{Reason: policy.ReasonRefused, Detail: none.Why}
		if len(none.Not) > 0 {
			t.Detail += "; " + string(none.Not[0].Remedy) + ": " + none.Not[0].Why
		}
		return t
	case errors.As(err, &refused):
		return policy.Treatment{Reason: policy.ReasonRefused, Detail: refused.Reason()}
	case errors.As(err, new(*fix.NotMeasured)):
		return policy.Treatment{Reason: policy.ReasonNotMeasured, Detail: "the agent's log says why"}
	}
	return policy.Treatment{Reason: policy.ReasonFailed}
}

// notKept is a fix after which nothing is in force.
type notKept struct {
	verdict, why string
	// tried: a remedy was in force meanwhile.
	tried bool
}

func (e *notKept) Error() string { return e.verdict + ": " + e.why }
