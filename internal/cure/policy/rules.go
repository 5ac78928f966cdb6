package policy

import (
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/objective"
)

// Rules v1: what the agent may do to whom. Made by ParseRules, which fills in
// the defaults and refuses what makes no sense.
type Rules struct {
	// Mode is Observe or Apply.
	Mode Mode
	// Listen is the address of /metrics and /healthz.
	Listen string
	// Interval is how often the agent looks, 100 ms to 1 h.
	Interval time.Duration
	// Scope is the cgroup outside of which nothing is touched; "": none.
	Scope string
	// StateDir holds the journal; "": the default.
	StateDir string
	// Bound is the stopped time per second below which nothing is a finding,
	// as a share, 0 to 1.
	Bound  float64
	Budget Budget
	// Placement says how the agent keeps containers well placed.
	Placement Placement
	Flight    Flight
	Export    Export
	// Own bounds what the agent itself takes.
	Own Own
	// Startup is the age up to which a container is starting: what stops it then is no finding. 0: nothing is starting.
	Startup time.Duration
	// Rules are tried in order; the first that matches a container counts.
	Rules []Rule
	// Lines has the lines of the keys that the file gives; a key that is not there has its default.
	Lines map[string]int
}

// Mode is what the agent may do.
type Mode string

// The modes.
const (
	Observe Mode = "observe" // look and say what would be done
	Apply   Mode = "apply"
)

// Budget bounds what the agent does; a nil or zero part takes its default.
type Budget struct {
	// Containers is how many may have a remedy in force at a time.
	Containers int
	// MovesPerMinute is how many remedies may be applied in a minute.
	MovesPerMinute int
	// CPUShare is which part of the host's CPUs may be exclusive, 0 to 1.
	CPUShare float64
}

// Placement bounds how the agent moves containers that it, or a command, gave
// CPUs to. Nothing is moved by default.
type Placement struct {
	// MovesPerMinute is how many moves there may be in a minute on the mean; a
	// repair whose moves belong together is done at once.
	MovesPerMinute int
}

// Rule says what is done about the containers that it matches.
type Rule struct {
	// Line is where it stands in the file, Lines where the keys do that it gives; those of its slo are "slo.objective".
	Line  int
	Lines map[string]int
	Match Match
	// Policy names the object that the rule was made from, for people; "": the file's author wrote it.
	Policy string
	// Mode is what may be done by this rule, within the file's mode; "": all that the file allows.
	Mode Mode
	// Until is when the rule ends: nothing is applied by it any more, and what the agent applied to its containers is taken back.
	// Zero: never.
	Until time.Time
	// Auto: the remedy is chosen by the facts; else it is Remedy.
	Auto   bool
	Remedy remedy.Kind
	// CPUs, Factor and To are settings of pin and raise; 0: their defaults.
	CPUs       int
	Factor, To float64
	// Immovable: what pin or narrow gave is never moved to other CPUs. Class is
	// that of pin, "" for its default.
	Immovable bool
	Class     string
	// Via is how narrow bounds the width, Credit what it saves by sched_ext; "" and 0: its defaults.
	Via    string
	Credit time.Duration
	// Burst is what may be saved up, Period the one in which the limit is kept, of burst and period; 0: the remedy's default.
	Burst, Period time.Duration
	// IRQs: interrupts are kept off what pin gives.
	IRQs bool
	// Shares: secondary containers may use what pin gave while it idles. Strict:
	// a hybrid pin or a secondary keeps its quota.
	Shares, Strict bool
	// May are the remedies that may grant more CPU than the limit.
	May []remedy.Kind
	// Verify says what judges a remedy: VerifySLO, VerifyProbe or VerifyBoth.
	Verify string
	// Trial says for how long remedies are tried in turns on one container, and how often; zero: they are not, and the forecast
	// chooses one.
	Trial Trial
	// Startup is what a container gets while it starts; zero: nothing.
	Startup Startup
	// Leave: containers that match are never touched.
	Leave bool
	// Objective, where SLOCommand is given, is what decides whether a remedy
	// helped, and whether one is needed; while it is met the command is asked
	// again after SLOInterval. It looks back SLOLookBack; 0: that is not declared.
	Objective   objective.Objective
	SLOCommand  string
	SLOInterval time.Duration
	SLOLookBack time.Duration
	// Annotations say what the owners of the pods that match may ask for.
	Annotations Allowed
}

// Trial bounds the trials of one container.
type Trial struct {
	// Most is how long one takes at most, 30 s to 1 h; 0: there is none. Within Per of one there is no other.
	Most, Per time.Duration
	// Over is the time that its turns are spread over, 10 min to 7 days, at least twice Most; 0: they follow each other.
	Over time.Duration
	// AA makes it an A/A test: what is tried changes nothing, and nothing is kept. It needs Over.
	AA bool
	// Quiet is when nothing is tried.
	Quiet Quiet
}

// Startup is a remedy for a container that starts. It ends when the container is ready, and after a time at most.
type Startup struct {
	// Remedy is remedy.Burst, or remedy.Raise to the next whole number of CPUs.
	Remedy remedy.Kind
	Most   time.Duration
}

// DefaultStartupMost is the default of Startup.Most.
const DefaultStartupMost = time.Minute

// LeastTrial and LongestTrial bound the time that a trial may be given. The least has room for two turns of two variants by a user's own
// latency, which internal/cure/fix tests; each turn disturbs the container.
const LeastTrial, LongestTrial = 30 * time.Second, time.Hour

// DefaultTrialPer is the default of Trial.Per.
const DefaultTrialPer = 24 * time.Hour

// HasCommands tells whether a rule has an slo command.
func (r Rules) HasCommands() bool {
	return slices.ContainsFunc(r.Rules, func(rule Rule) bool { return rule.SLOCommand != "" })
}

// Judged tells whether something judges what the rule applies, or nothing has to: a secondary uses only idle CPUs.
// Nothing else is applied unjudged.
func (r Rule) Judged() bool {
	return r.SLOCommand != "" || r.Verify == VerifyProbe || !r.Auto && r.Remedy == remedy.Secondary
}

// Ended tells whether the rule's time is over.
func (r Rule) Ended(now time.Time) bool { return !r.Until.IsZero() && !now.Before(r.Until) }

// Observes tells whether nothing may be applied by the rule, whatever the file's mode.
func (r Rule) Observes(now time.Time) bool { return r.Mode == Observe || r.Ended(now) }

// What judges a remedy.
const (
	VerifySLO   = "slo"   // the user's own latency; the default
	VerifyProbe = "probe" // the recorded responses of the pool that suffers
	VerifyBoth  = "both"  // both, and the worse of them counts
)

// Match says which containers a rule is for: all that is given must fit. Name,
// Namespace and Cgroup are globs as of path.Match, in which "*" does not cross
// a "/"; a Cgroup glob that ends in "/**" fits everything below.
type Match struct {
	Name, Namespace, Cgroup string
	// Labels must all be there with these values. Only a rule without labels
	// fits a container whose labels are not known.
	Labels map[string]string
	// Pods are UIDs of Kubernetes, of which the container's pod must have one; nil: any pod's, or none's.
	Pods []string
}

// Defaults of a configuration.
const (
	defaultListen   = "127.0.0.1:9469"
	defaultInterval = time.Second
	DefaultBound    = 0.01
	// DefaultStartup is the age up to which a container is starting.
	DefaultStartup = diagnose.StartupAge
)

// DefaultBudget is what the agent may do when the file does not say.
func DefaultBudget() Budget { return Budget{Containers: 10, MovesPerMinute: 2, CPUShare: 0.5} }

// MaxLookBack bounds the time that a latency source may be declared to look back.
const MaxLookBack = 10 * time.Minute

// MaxNamespaceRules is how many rules the ThrottlePolicies of one namespace have together, so that none crowds out the others.
const MaxNamespaceRules = 64

// Limits of a configuration.
const (
	MaxConfigBytes = 1 << 20
	maxRules       = 1000
	maxText        = 4096
	maxLabels      = 64
	// MaxPods is how many pods a rule may name.
	MaxPods = 1000
)
