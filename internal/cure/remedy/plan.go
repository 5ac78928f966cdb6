package remedy

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// Kind names a remedy.
type Kind string

// Request is one remedy and its settings. A zero setting
// was not given and stands for its default; those who read settings of people
// refuse a zero. Values that make no sense are refused by Make.
type Request struct {
	Kind Kind
	// CPUs is how many CPUs pin and narrow take; 0: the limit, rounded up.
	CPUs int
	// Class is ClassExclusive (also "") or ClassHybrid, of pin. Strict makes a
	// hybrid or a secondary keep its quota.
	Class  string
	Strict bool
	// Immovable: pin or narrow; no later plan moves the container to other CPUs.
	Immovable bool
	// Mems: pin or narrow; the container's memory is to follow its CPUs, which the caller sees to once they are its.
	Mems bool
	// FullCores: pin gives whole cores only. IdleSiblings: one thread of each
	// core, and the other threads stay idle.
	FullCores, IdleSiblings bool
	// Shares: secondary containers may use what pin gave while it idles.
	Shares bool
	// GrantLater: Reconcile grants the CPUs that others share with a secondary.
	GrantLater bool
	// Interrupts are kept off what pin gives; nil: they stay where they are.
	Interrupts *hoststate.Interrupts
	// Realtime gives the threads of a pin the real-time policy sched.Realtime.
	Realtime bool
	// Via is how narrow bounds the CPUs used at once: ViaCPUSet, ViaSchedExt or ViaAuto; "": ViaSchedExt with a Cap or
	// Credit, else ViaCPUSet.
	Via string
	// Cap is the limit in CPUs to which narrow holds a width by sched_ext; 0: the container's limit. Credit is the CPU
	// time that the container can save below it; 0: widthcap.DefaultCredit for each CPU.
	Cap    float64
	Credit time.Duration
	// Reserve are the CPUs never given away; nil: placement.Reserve.
	Reserve *cpuset.CPUSet
	// Burst is what may be saved up, of burst and narrow; 0: as much as the quota,
	// the most the kernel takes, for burst, and none for narrow. Period replaces the period (of burst and narrow), the limit
	// staying the same.
	Burst, Period time.Duration
	// Room leaves half of the quota without a burst: the owner of the container resizes it, and the kernel refuses a quota below the
	// burst.
	Room bool
	// WeightFromLimit makes weight set 1024 shares for each CPU of the limit;
	// else the weight stays as it is.
	WeightFromLimit bool
	// Factor is by how much raise multiplies the limit; 0: 2. To is the new
	// limit in CPUs and goes before Factor; 0: not given.
	Factor, To float64
	// Sibling is the container that cap holds, by its name, that of its cgroup or its path; "": the one that uses most. To is then its
	// limit; 0: what the others leave.
	Sibling string
	// Starting is how long a container gets it at most while it starts; 0: it is for good. Raise then is one to the next whole
	// number of CPUs: a runtime that sizes itself meanwhile sees as many CPUs as without it.
	Starting time.Duration
	// Observed is what was seen of the container; nil: nothing. It decides
	// whether burst can help, and what is expected.
	Observed *hoststate.Observed
	// OnTrial: a trial measures what it brings. What was seen of the container, which may have been a peak, then refuses nothing.
	OnTrial bool
}

// Plan is what a remedy would write, and what is known about it beforehand.
type Plan struct {
	Target container.Container
	Remedy Kind
	// Parameters go into the journal with the transaction.
	Parameters map[string]string
	// settings are what its writes say already, such as a burst, and people want to see beside Parameters.
	settings map[string]string
	Changes  []change.Change
	Skipped  []txn.Skip
	Warnings []string
	// Expected is the forecast of what was asked for; nil: nothing was forecast.
	Expected *txn.Expected
	// CPUs are the exclusive CPUs of pin; empty for the others.
	CPUs cpuset.CPUSet
	// Replaces are the transactions in force whose place it takes (MoveTo).
	Replaces []string
	// Moved are the containers whose CPUs shrink: the neighbours to watch.
	Moved []string
	// Lenders are the containers whose own CPUs a secondary is lent: the effect
	// on them decides whether it is kept.
	Lenders []string
	// Sibling is the path of the cgroup that cap holds; "": none.
	Sibling string
}

// Purpose is how the plan goes to package apply.
func (p Plan) Purpose() txn.Purpose {
	return txn.Purpose{Target: txn.Target{Path: p.Target.Group.Path, Name: p.Target.Name}, Remedy: string(p.Remedy),
		Parameters: p.Parameters, Expected: p.Expected, BelongsTo: p.Parameters[ParamUpkeep]}
}

// Shown are the settings of the plan by name, for people and programs: the parameters, and what its writes set. Times are Go's.
func (p Plan) Shown() map[string]string {
	shown := map[string]string{}
	maps.Copy(shown, p.settings)
	maps.Copy(shown, p.Parameters)
	return shown
}

// Refused tells why a remedy is not applied here, and what would help.
type Refused struct {
	Remedy Kind
	// Target is the container's path, Why the reason, Names the cgroups it is
	// about (the message lists at most 8), Hint the way out ("" if there is none).
	Target, Why string
	Names       []string
	Hint        string
}

func (r *Refused) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %s", r.Remedy, text.Name(r.Target), r.Why)
	if len(r.Names) > 0 {
		b.WriteString(": " + text.Names(r.Names))
	}
	if r.Hint != "" {
		b.WriteString("; " + r.Hint)
	}
	return b.String()
}

// Make plans one remedy for one container. The error is a *Refused where the
// remedy cannot or must not be applied here.
func Make(host hoststate.Facts, target container.Container, r Request) (Plan, error) {
	f, err := decode(host)
	if err != nil {
		return Plan{}, err
	}
	p := &planner{f: f, r: r, target: target, plan: Plan{
		Target: target, Remedy: r.Kind, Parameters: map[string]string{},
	}}
	if err := p.common(); err != nil {
		return Plan{}, err
	}
	if r.Starting > 0 {
		p.plan.Parameters[ParamStartup] = r.Starting.String()
	}
	if row, ok := Find(r.Kind); ok {
		err = row.plan(p)
	} else {
		err = p.refuse("there is no such remedy", "choose "+Names())
	}
	if err == nil {
		err = p.interruptsOff()
	}
	if err == nil {
		err = p.realtime()
	}
	if err != nil {
		return Plan{}, err
	}
	if len(p.plan.Changes) == 0 {
		return Plan{}, p.refuse("nothing would change", "")
	}
	p.viaSystemd()
	return p.plan, nil
}

// planner holds one plan in the making.
type planner struct {
	f      facts
	r      Request
	target container.Container
	plan   Plan
	sorted []string // see sets
	// sharedWithSets are the CPUs that each cpuset was lent, where the target lends.
	sharedWithSets map[string]cpuset.CPUSet
}

func (p *planner) refuse(why, hint string, names ...string) error {
	return &Refused{Remedy: p.r.Kind, Target: p.target.Group.Path, Why: why, Names: names, Hint: hint}
}

func (p *planner) warn(format string, args ...any) {
	p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(format, args...))
}

func (p *planner) skip(path, why string) {
	p.plan.Skipped = append(p.plan.Skipped, txn.Skip{Path: path, Why: why})
}

// common holds what every remedy needs.
func (p *planner) common() error {
	path := p.target.Group.Path
	if err := p.validate(); err != nil {
		return err
	}
	g, ok := p.f.Groups[path]
	switch {
	case p.f.CPUVersion == 0:
		return p.refuse("the cpu controller is not mounted here", "")
	case !ok:
		return p.refuse("there is no such cgroup any more", "")
	case path == "/":
		return p.refuse("the root cgroup has no limit and no cpuset to change", "")
	case !p.f.inScope(path):
		return p.refuse("it lies outside the scope "+text.Name(p.f.Scope), "give a scope that holds it")
	case g.Type == "domain invalid":
		return p.refuse(fmt.Sprintf("its cgroup.type is %q: no thread can be in it", g.Type), "name the domain above it")
	case g.Type == "threaded" && p.needsCPUs():
		return p.refuse(fmt.Sprintf("its cgroup.type is %q: its threads belong to processes of the domain above it, "+
			"which share their CPUs", g.Type),
			"name the domain above it, or choose a remedy that changes the limit alone (burst, period, raise)")
	}
	for _, h := range p.f.Held {
		if h.Target == path && h.For == "" {
			if judged := h.Judged(); judged != "" {
				return p.refuse(judged, txn.AwaitTrial)
			}
			if p.f.over(h) {
				return p.refuse(fmt.Sprintf("%s %s was of the container that had this path before, and nothing of it is in force", h.Remedy,
					h.ID), "restore it first")
			}
			return p.refuse(fmt.Sprintf("%s %s is in force already", h.Remedy, h.ID), "restore it first")
		}
	}
	return nil
}

// needsCPUs tells whether the remedy gives the target CPUs or a place among other containers, and not only a limit.
func (p *planner) needsCPUs() bool {
	remedy, _ := Find(p.r.Kind)
	return len(remedy.Classes) > 0 || remedy.ForOthers
}

// Reason is the error without remedy and target, for a list of reasons.
func (r *Refused) Reason() string {
	return strings.TrimPrefix(r.Error(), fmt.Sprintf("%s on %s: ", r.Remedy, text.Name(r.Target)))
}
