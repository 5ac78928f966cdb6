package policy

import (
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Report is the policy of a host's containers as `unthrottle policy` and the agent's /policy show it.
type Report struct {
	// Config is the file.
	Config string `json:"config"`
	// Agent is the running one; null: none answered, so that labels, annotations and reasons are not known.
	Agent *ReportAgent `json:"agent"`
	// Containers has those of the last round, by path.
	Containers []ReportContainer `json:"containers"`
}

// ReportSchema and ReportVersion begin a report's JSON.
const (
	ReportSchema  = "policy"
	ReportVersion = 1
)

// Document is a report as the agent sends it.
type Document struct {
	Schema  string `json:"schema"`
	Version int    `json:"version"`
	Report
}

// ReportAgent is an agent at one moment.
type ReportAgent struct {
	Version string `json:"version"`
	// At is the end of the last round.
	At time.Time `json:"at"`
}

// ReportContainer is one container. All names are made safe.
type ReportContainer struct {
	Cgroup    string  `json:"cgroup"`
	Name      string  `json:"name"`
	Namespace *string `json:"namespace"`
	Pod       *string `json:"pod"`
	Container *string `json:"container"`
	// Values are in force, each with its source.
	Values []Value `json:"values"`
	// Refused are annotations of its pod that do not count.
	Refused []Refusal `json:"refused_annotations"`
	// Remedy and Transaction are in force; null: none is, or it is not known.
	Remedy      *string `json:"remedy_in_force"`
	Transaction *string `json:"transaction"`
	// Reason is why it is not treated, and Why says it in words; null: it is treated, or it is not known.
	Reason *Reason `json:"reason"`
	Why    *string `json:"why"`
	// Until is when it is looked at again; null: with each round, or it is not known.
	Until *time.Time `json:"until"`
}

// From is where a value comes from.
type From string

// The sources.
const (
	FromDefault    From = "default"    // the program's own
	FromFile       From = "file"       // the file, for all containers
	FromRule       From = "rule"       // the rule that matches
	FromAnnotation From = "annotation" // the pod's
)

// Value is one value in force.
type Value struct {
	// Name is the key as the file writes it.
	Name  string `json:"name"`
	Value string `json:"value"`
	From  From   `json:"from"`
	// Line is that of the key in the file; null: the file does not give it.
	Line *int `json:"line"`
	// Annotation is the key of the annotation; null: it is none.
	Annotation *string `json:"annotation"`
}

// valuer collects values.
type valuer struct {
	all []Value
}

func (v *valuer) add(name, value string, given From, lines map[string]int) {
	of := Value{Name: name, Value: value, From: FromDefault}
	if line, ok := lines[name]; ok {
		of.From, of.Line = given, &line
	}
	v.all = append(v.all, of)
}

func (v *valuer) annotated(name, value, key string) {
	v.all = append(v.all, Value{Name: name, Value: value, From: FromAnnotation, Annotation: &key})
}

// Values are the values in force for a container, each with its source. A command is not shown: it may hold a password.
func (r Rules) Values(e Effective) []Value {
	var v valuer
	v.add("mode", string(r.Mode), FromFile, r.Lines)
	v.add("bound", strconv.FormatFloat(100*r.Bound, 'g', 4, 64)+"%", FromFile, r.Lines)
	v.add("startup", r.Startup.String(), FromFile, r.Lines)
	v.add("budget.containers", strconv.Itoa(r.Budget.Containers), FromFile, r.Lines)
	v.add("budget.moves_per_minute", strconv.Itoa(r.Budget.MovesPerMinute), FromFile, r.Lines)
	v.add("budget.cpu_share", strconv.FormatFloat(100*r.Budget.CPUShare, 'g', 4, 64)+"%", FromFile, r.Lines)
	if e.Rule == nil {
		v.add("remedy", wordNone, FromRule, nil)
		return v.all
	}
	v.rule(e)
	return v.all
}

// rule adds the values of the rule in force.
func (v *valuer) rule(e Effective) {
	r := e.Rule
	if r.Policy != "" {
		v.add("policy", text.Sanitize(r.Policy, text.MaxName), FromRule, r.Lines)
	}
	if r.Mode != "" {
		v.add("rule.mode", string(r.Mode), FromRule, map[string]int{"rule.mode": r.Lines["mode"]})
	}
	if !r.Until.IsZero() {
		v.add("until", r.Until.UTC().Format(time.RFC3339), FromRule, r.Lines)
	}
	switch {
	case e.RemedyAsked:
		v.annotated("remedy", r.Word(), AnnotationRemedy)
	case r.Lines["remedy"] == 0 && r.Lines["class"] > 0:
		v.add("remedy", r.Word(), FromRule, map[string]int{"remedy": r.Lines["class"]})
	default:
		v.add("remedy", r.Word(), FromRule, r.Lines)
	}
	if !r.Leave {
		v.settings(r)
		if r.Auto {
			may := make([]string, len(r.May))
			for i, kind := range r.May {
				may[i] = string(kind)
			}
			v.add("may", listed(may), FromRule, r.Lines)
		}
		v.add("verify", text.Either(r.Verify == "", VerifySLO, r.Verify), FromRule, r.Lines)
		v.trial(e.Rule)
		if r.Startup.Remedy != "" {
			v.add("startup.remedy", string(r.Startup.Remedy), FromRule, r.Lines)
			v.add("startup.most", r.Startup.Most.String(), FromRule, r.Lines)
		}
		v.objective(e)
	}
	v.add("annotations.allow", r.Annotations.Words(), FromRule, r.Lines)
	v.add("annotations.objective", strconv.FormatBool(r.Annotations.Objective), FromRule, r.Lines)
}

// settings adds those that are given.
func (v *valuer) settings(r *Rule) {
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
	for _, s := range []struct {
		name, value string
		given       bool
	}{
		{"class", r.Class, r.Class != ""}, {"cpus", strconv.Itoa(r.CPUs), r.CPUs > 0}, {"via", r.Via, r.Via != ""},
		{"credit", r.Credit.String(), r.Credit > 0}, {"burst", r.Burst.String(), r.Burst > 0},
		{"period", r.Period.String(), r.Period > 0}, {"factor", number(r.Factor), r.Factor > 0}, {"to", number(r.To), r.To > 0},
		{"stays", "true", r.Immovable}, {"lends", "true", r.Shares}, {"strict", "true", r.Strict}, {"irqs", "true", r.IRQs},
	} {
		if s.given {
			v.add(s.name, s.value, FromRule, r.Lines)
		}
	}
}

func (v *valuer) trial(r *Rule) {
	if r.Trial.Most > 0 {
		v.add("trial.most", r.Trial.Most.String(), FromRule, r.Lines)
		v.add("trial.per", r.Trial.Per.String(), FromRule, r.Lines)
		if r.Trial.Over > 0 {
			v.add("trial.over", r.Trial.Over.String(), FromRule, r.Lines)
		}
		if r.Trial.AA {
			v.add("trial.aa", "true", FromRule, r.Lines)
		}
		if r.Trial.Quiet != (Quiet{}) {
			v.add("trial.quiet", r.Trial.Quiet.String(), FromRule, r.Lines)
			if r.Trial.Quiet.Zone != nil {
				v.add("trial.zone", r.Trial.Quiet.Zone.String(), FromRule, r.Lines)
			}
		}
	}
}

func (v *valuer) objective(e Effective) {
	r := e.Rule
	if r.Objective == (objective.Objective{}) {
		return
	}
	if e.ObjectiveAsked {
		v.annotated("slo.objective", r.Objective.String(), AnnotationObjective)
	} else {
		v.add("slo.objective", r.Objective.String(), FromRule, r.Lines)
	}
	if r.SLOCommand == "" {
		return
	}
	v.add("slo.command", "(given)", FromRule, r.Lines)
	v.add("slo.interval", r.SLOInterval.String(), FromRule, r.Lines)
	if r.SLOLookBack > 0 {
		v.add("slo.look_back", r.SLOLookBack.String(), FromRule, r.Lines)
	}
}

// listed joins words; "none" where there are none.
func listed(words []string) string {
	if len(words) == 0 {
		return wordNone
	}
	return strings.Join(words, ", ")
}

// Container is the report on one container. Without a reason and a remedy in t it is not known whether it is treated.
func (r Rules) Container(c container.Container, e Effective, t Treatment) ReportContainer {
	shown := func(name string) *string {
		if name == "" {
			return nil
		}
		return new(text.Sanitize(name, text.MaxName))
	}
	out := ReportContainer{Cgroup: text.EscapePath(c.Group.Path), Name: text.Sanitize(c.Name, text.MaxName),
		Namespace: shown(c.Namespace), Pod: shown(c.Pod),
		Container: shown(c.ContainerName), Values: r.Values(e), Refused: append([]Refusal{}, e.Refused...),
		Remedy: shown(t.Remedy), Transaction: shown(t.Transaction)}
	if t.Reason != "" {
		out.Reason, out.Why = &t.Reason, new(t.Why())
	}
	if !t.Until.IsZero() {
		out.Until = &t.Until
	}
	return out
}
