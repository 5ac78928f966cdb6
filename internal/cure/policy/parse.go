package policy

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/strictyaml"
	"github.com/unthrottle/unthrottle/internal/widthcap"
	"github.com/unthrottle/unthrottle/placement"
)

// ParseRules reads a configuration (YAML, version 1). Every key must be known
// and no key may stand twice; aliases and several documents are refused. The
// error is a *ConfigError with the line, or a Mistakes that names several.
func ParseRules(text []byte) (Rules, error) {
	doc, mistake := strictyaml.Document(text, MaxConfigBytes)
	switch {
	case mistake != nil:
		return Rules{}, taken(mistake)
	case doc == nil:
		return Rules{}, &ConfigError{0, `it is empty: write at least "version: 1"`}
	}
	r := Rules{Mode: Observe, Listen: defaultListen, Interval: defaultInterval, Bound: DefaultBound,
		Budget: DefaultBudget(), Flight: DefaultFlight(), Export: DefaultExport(),
		Startup: DefaultStartup}
	if err := r.read(doc); err != nil {
		return Rules{}, err
	}
	return r, nil
}

func (r *Rules) read(doc *yaml.Node) error {
	version, given := 0, false
	err := mapping(doc, map[string]func(*yaml.Node) error{
		"version": func(n *yaml.Node) error { given = true; return whole(n, &version, 1, 1) },
		"mode": func(n *yaml.Node) error {
			return oneOf(n, (*string)(&r.Mode), string(Observe), string(Apply))
		},
		"listen":   func(n *yaml.Node) error { return address(n, &r.Listen) },
		"interval": func(n *yaml.Node) error { return duration(n, &r.Interval, 100*time.Millisecond, time.Hour) },
		"scope":    func(n *yaml.Node) error { return cgroupPath(n, &r.Scope) },
		"state_dir": func(n *yaml.Node) error {
			if err := words(n, &r.StateDir); err != nil {
				return err
			}
			if !path.IsAbs(r.StateDir) {
				return wrong(n, "state_dir %.60q is not an absolute path", r.StateDir)
			}
			return nil
		},
		"bound":      func(n *yaml.Node) error { return share(n, &r.Bound) },
		"budget":     r.Budget.read,
		"own_budget": r.Own.read,
		"flight":     r.Flight.read,
		"export":     r.Export.read,
		"placement": func(n *yaml.Node) error {
			return mapping(n, map[string]func(*yaml.Node) error{
				"moves_per_minute": func(n *yaml.Node) error { return whole(n, &r.Placement.MovesPerMinute, 0, 60) },
			})
		},
		"startup": func(n *yaml.Node) error { return duration(n, &r.Startup, 0, time.Hour) },
		"rules":   r.readRules,
	})
	r.Lines = linesOf(doc)
	if !given && doc.Kind == yaml.MappingNode {
		err = together(err, wrong(doc, `the key "version" is missing: write "version: 1"`))
	}
	if err != nil || r.Scope == "" || r.Scope == "/" {
		return err
	}
	for _, rule := range r.Rules {
		if rule.IRQs {
			return &ConfigError{rule.Line, fmt.Sprintf("irqs: interrupts belong to the whole host, not to the scope "+
				"%.200q: leave out irqs or scope", r.Scope)}
		}
	}
	return nil
}

func (b *Budget) read(n *yaml.Node) error {
	return mapping(n, map[string]func(*yaml.Node) error{
		"containers":       func(n *yaml.Node) error { return whole(n, &b.Containers, 0, 100_000) },
		"moves_per_minute": func(n *yaml.Node) error { return whole(n, &b.MovesPerMinute, 0, 10_000) },
		"cpu_share":        func(n *yaml.Node) error { return share(n, &b.CPUShare) },
	})
}

func (r *Rules) readRules(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return wrong(n, "rules must be a list")
	}
	if len(n.Content) > maxRules {
		return wrong(n, "%d rules, more than %d", len(n.Content), maxRules)
	}
	var all error
	for _, item := range n.Content {
		rule := Rule{Line: item.Line, Auto: true, SLOInterval: 10 * time.Second}
		all = together(all, rule.read(item))
		r.Rules = append(r.Rules, rule)
	}
	return all
}

func (r *Rule) read(n *yaml.Node) error {
	var class string
	err := mapping(n, map[string]func(*yaml.Node) error{
		"match":       r.Match.read,
		"policy":      func(n *yaml.Node) error { return words(n, &r.Policy) },
		"mode":        func(n *yaml.Node) error { return oneOf(n, (*string)(&r.Mode), string(Observe), string(Apply)) },
		"until":       r.readUntil,
		"remedy":      r.readRemedy,
		"cpus":        func(n *yaml.Node) error { return whole(n, &r.CPUs, 1, 8192) },
		"via":         func(n *yaml.Node) error { return oneOf(n, &r.Via, remedy.Vias...) },
		"credit":      func(n *yaml.Node) error { return duration(n, &r.Credit, time.Millisecond, widthcap.MaxCredit) },
		"burst":       func(n *yaml.Node) error { return duration(n, &r.Burst, time.Millisecond, time.Hour) },
		"period":      func(n *yaml.Node) error { return duration(n, &r.Period, cgroup.MinPeriod, cgroup.MaxPeriod) },
		"factor":      func(n *yaml.Node) error { return above(n, &r.Factor, 1, 1000) },
		"to":          func(n *yaml.Node) error { return above(n, &r.To, 0, 8192) },
		"slo":         r.readSLO,
		"may":         r.readMay,
		"verify":      func(n *yaml.Node) error { return oneOf(n, &r.Verify, VerifySLO, VerifyProbe, VerifyBoth) },
		"trial":       r.readTrial,
		"startup":     r.readStartup,
		"lends":       func(n *yaml.Node) error { return truth(n, &r.Shares) },
		"strict":      func(n *yaml.Node) error { return truth(n, &r.Strict) },
		"stays":       func(n *yaml.Node) error { return truth(n, &r.Immovable) },
		"irqs":        func(n *yaml.Node) error { return truth(n, &r.IRQs) },
		"annotations": func(n *yaml.Node) error { return r.Annotations.read(n) },
		"class": func(n *yaml.Node) error {
			return oneOf(n, &class, string(placement.Exclusive), string(placement.Hybrid), string(placement.Floating),
				string(placement.Secondary))
		},
	})
	r.Lines = linesOf(n)
	if err == nil && class != "" {
		err = r.setClass(placement.Class(class))
	}
	switch {
	case err != nil:
		return err
	case r.Leave && (r.CPUs > 0 || r.Factor > 0 || r.To > 0 || r.Startup.Remedy != ""):
		return r.clash("remedy", "a rule with remedy none has no settings")
	case r.Leave && len(r.Annotations.Remedies) == 0 && (r.Objective != objective.Objective{} || r.Verify != "" || r.May != nil):
		return r.clash("remedy", "a rule with remedy none has no settings, unless its annotations allow another remedy")
	case r.Annotations.Objective && r.SLOCommand == "":
		return r.clash("annotations", "annotations: an objective needs an slo with a command, which measures it")
	case r.Verify == VerifyProbe && r.Annotations.names():
		return r.clash("verify", "annotations: verify: probe judges auto alone: give an slo with a command, or allow auto")
	case r.Objective != objective.Objective{} && r.SLOCommand == "" && r.Verify != VerifyProbe:
		return r.clash("slo", "an slo needs objective and command, or verify: probe beside it")
	case r.SLOCommand == "" && (r.Verify == VerifySLO || r.Verify == VerifyBoth):
		return r.clash("verify", "verify: %s needs an slo with a command", r.Verify)
	case (r.Verify == VerifyProbe || r.Verify == VerifyBoth) && !r.mayChoose():
		return r.clash("verify", "verify: %s needs remedy: auto, whose recording it compares", r.Verify)
	case r.Verify == VerifyProbe && r.SLOCommand != "":
		return r.clash("verify", "verify: probe asks no slo command: say both, or leave out the command")
	case r.Trial.Most > 0 && (!r.mayChoose() || r.Verify != VerifyProbe):
		return r.clash("trial", "trial goes with remedy: auto and verify: probe: it chooses by what is recorded")
	case r.May != nil && !r.mayChoose():
		return r.clash("may", "may goes with remedy: auto, which chooses")
	case r.Leave && (r.Immovable || r.Shares || r.Strict || r.IRQs || r.Via != "" || r.Credit > 0 ||
		r.Burst > 0 || r.Period > 0):
		return r.clash("remedy", "a rule with remedy none has no settings")
	case r.Strict && r.has("class") && r.Class != remedy.ClassHybrid:
		return r.clash("strict", "strict is a setting of secondary and of pin with class: hybrid")
	case r.Credit > 0 && r.Via == remedy.ViaCPUSet:
		return r.clash("credit", "a cpuset saves no credit: leave credit out, or choose via: %s or %s", remedy.ViaSchedExt, remedy.ViaAuto)
	case r.Factor > 0 && r.To > 0:
		return r.clash("factor", "give factor or to, not both")
	}
	return r.settingsBelong()
}

// clash is a mistake of several of the rule's keys together, on the line of the one that is to change.
func (r *Rule) clash(key, format string, args ...any) error {
	return &ConfigError{cmp.Or(r.Lines[key], r.Line), fmt.Sprintf(format, args...)}
}

// has reports whether the rule's remedy has a setting.
func (r *Rule) has(flag string) bool {
	found, _ := remedy.Find(r.Remedy)
	return found.Has(flag)
}

// settingsBelong refuses settings of another remedy. Where the remedy is chosen by itself, only those go that some
// remedies of the choice have, and that grant nothing by themselves.
func (r *Rule) settingsBelong() error {
	for _, s := range []struct {
		key          string
		given, named bool // named: the remedy must be named beside it
	}{
		{"lends", r.Shares, true}, {"irqs", r.IRQs, true}, {"strict", r.Strict, true}, {"stays", r.Immovable, false},
		{"via", r.Via != "", true}, {"credit", r.Credit > 0, true}, {"burst", r.Burst > 0, true}, {"period", r.Period > 0, true},
		{"cpus", r.CPUs > 0, false}, {"factor", r.Factor > 0, false}, {"to", r.To > 0, false},
	} {
		if !s.given || r.Auto && !s.named || r.has(s.key) {
			continue
		}
		settings := remedy.Settings()
		i := slices.IndexFunc(settings, func(o remedy.Setting) bool { return o.Flag == s.key })
		of := fmt.Sprintf("%s is a setting of %s", s.key, settings[i].Owners())
		if r.Auto {
			return r.clash(s.key, "%s: name the remedy", of)
		}
		return r.clash(s.key, "%s, not of %s", of, r.Remedy)
	}
	return nil
}

// classRemedy is the remedy that gives a container the CPUs of a class.
func classRemedy(class placement.Class) remedy.Kind {
	for _, r := range remedy.All() {
		if slices.Contains(r.Classes, class) {
			return r.Kind
		}
	}
	return ""
}

// setClass makes the rule's remedy the one that gives CPUs of a class; a remedy
// that gives others contradicts it.
func (r *Rule) setClass(class placement.Class) error {
	kind := classRemedy(class)
	switch {
	case r.Leave:
		return r.clash("class", "a rule with remedy none has no settings")
	case !r.Auto && r.Remedy != kind:
		return r.clash("class", "class: %s is what remedy: %s gives, not %s", class, kind, r.Remedy)
	}
	r.Auto, r.Remedy = false, kind
	if r.has("class") {
		r.Class = string(class)
	}
	return nil
}

func (r *Rule) readRemedy(n *yaml.Node) error {
	var name string
	if err := oneOf(n, &name, remedyWords()...); err != nil {
		return err
	}
	r.Auto, r.Leave = name == wordAuto, name == wordNone
	if !r.Auto && !r.Leave {
		r.Remedy = remedy.Kind(name)
	}
	return nil
}

func (r *Rule) readUntil(n *yaml.Node) error {
	var moment string
	if err := words(n, &moment); err != nil {
		return err
	}
	var err error
	if r.Until, err = time.Parse(time.RFC3339, moment); err != nil {
		return wrong(n, "until: %.40q is no moment: write it as 2026-11-29T18:00:00Z", moment)
	}
	return nil
}

func (r *Rule) readTrial(n *yaml.Node) error {
	given := false
	var over *yaml.Node
	var zone *time.Location
	r.Trial.Per = DefaultTrialPer
	err := mapping(n, map[string]func(*yaml.Node) error{
		"most": func(n *yaml.Node) error { given = true; return duration(n, &r.Trial.Most, LeastTrial, LongestTrial) },
		"per":  func(n *yaml.Node) error { return duration(n, &r.Trial.Per, time.Minute, 30*24*time.Hour) },
		"over": func(n *yaml.Node) error { over = n; return duration(n, &r.Trial.Over, 10*time.Minute, 7*24*time.Hour) },
		"aa":   func(n *yaml.Node) error { return truth(n, &r.Trial.AA) },
		"zone": func(n *yaml.Node) error {
			var name string
			if err := words(n, &name); err != nil {
				return err
			}
			var err error
			if zone, err = time.LoadLocation(name); err != nil || name == "" || name == "Local" {
				return wrong(n, "%.60q is no time zone of this host: give one such as Europe/Berlin", name)
			}
			return nil
		},
		"quiet": func(n *yaml.Node) error {
			var text string
			if err := words(n, &text); err != nil {
				return err
			}
			var err error
			if r.Trial.Quiet, err = ParseQuiet(text); err != nil {
				return wrong(n, "%s", err.Error())
			}
			return nil
		},
	})
	switch {
	case err != nil:
		return err
	case !given:
		return wrong(n, "a trial needs most: how long it may take, such as 2m")
	case over != nil && r.Trial.Over < 2*r.Trial.Most:
		return wrong(over, "over %s: turns of %s in all are spread over twice that at least", r.Trial.Over, r.Trial.Most)
	case r.Trial.AA && over == nil:
		return wrong(n, "aa goes with over: an A/A test spreads its turns")
	case zone != nil && r.Trial.Quiet == Quiet{}:
		return wrong(n, "zone goes with quiet")
	}
	r.Trial.Quiet.Zone = zone
	return nil
}

func (r *Rule) readStartup(n *yaml.Node) error {
	var kind string
	r.Startup.Most = DefaultStartupMost
	err := mapping(n, map[string]func(*yaml.Node) error{
		"remedy": func(n *yaml.Node) error { return oneOf(n, &kind, startupWords...) },
		"most":   func(n *yaml.Node) error { return duration(n, &r.Startup.Most, time.Second, 10*time.Minute) },
	})
	if r.Startup.Remedy = remedy.Kind(kind); err == nil && kind == "" {
		err = wrong(n, "startup needs a remedy: %s", strings.Join(startupWords, " or "))
	}
	return err
}

// startupWords are the remedies of Startup.
var startupWords = []string{string(remedy.Burst), string(remedy.Raise)}

func (r *Rule) readSLO(n *yaml.Node) error {
	given := false
	err := mapping(n, map[string]func(*yaml.Node) error{
		"objective": func(n *yaml.Node) error {
			var text string
			if err := words(n, &text); err != nil {
				return err
			}
			var err error
			if r.Objective, err = ParseObjective(text); err != nil {
				return wrong(n, "%s", err.Error())
			}
			given = true
			return nil
		},
		"command":  func(n *yaml.Node) error { return words(n, &r.SLOCommand) },
		"interval": func(n *yaml.Node) error { return duration(n, &r.SLOInterval, time.Second, time.Hour) },
		"look_back": func(n *yaml.Node) error {
			return duration(n, &r.SLOLookBack, time.Second, MaxLookBack)
		},
	})
	if err == nil && !given {
		err = wrong(n, "an slo needs an objective")
	}
	return err
}

func (r *Rule) readMay(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return wrong(n, "may must be a list of remedies")
	}
	var names []string
	for _, item := range n.Content {
		var name string
		if err := words(item, &name); err != nil {
			return err
		}
		names = append(names, name)
	}
	var err error
	if r.May, err = ParseMay(names); err != nil {
		return wrong(n, "may: %s", err.Error())
	}
	return nil
}

func (m *Match) read(n *yaml.Node) error {
	glob := func(to *string) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			if err := words(n, to); err != nil {
				return err
			}
			if _, err := path.Match(strings.TrimSuffix(*to, "/**"), ""); err != nil {
				return wrong(n, "%.60q is not a pattern: %s", *to, err)
			}
			return nil
		}
	}
	return mapping(n, map[string]func(*yaml.Node) error{
		"name": glob(&m.Name), "namespace": glob(&m.Namespace), "cgroup": glob(&m.Cgroup), "labels": m.readLabels,
		"pods": m.readPods,
	})
}

func (m *Match) readPods(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) > MaxPods {
		return wrong(n, "pods must be a list of UIDs, at most %d", MaxPods)
	}
	m.Pods = []string{}
	for _, item := range n.Content {
		var uid string
		if err := words(item, &uid); err != nil {
			return err
		}
		m.Pods = append(m.Pods, uid)
	}
	return nil
}

func (m *Match) readLabels(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode || len(n.Content) > 2*maxLabels {
		return wrong(n, "labels must be keys with values, at most %d", maxLabels)
	}
	m.Labels = map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		var key, value string
		if err := words(n.Content[i], &key); err != nil {
			return err
		}
		if err := scalar(n.Content[i+1], &value); err != nil {
			return err
		}
		if _, twice := m.Labels[key]; twice {
			return wrong(n.Content[i], "label %.60q stands twice", key)
		}
		m.Labels[key] = value
	}
	return nil
}

func address(n *yaml.Node, to *string) error {
	if err := words(n, to); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(*to)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || number > math.MaxUint16 {
		return wrong(n, "listen %.60q is not an address with a port, such as %s", *to, defaultListen)
	}
	return nil
}

func cgroupPath(n *yaml.Node, to *string) error {
	if err := words(n, to); err != nil {
		return err
	}
	if err := cgroup.CheckPath(*to); err != nil {
		return wrong(n, "scope %.60q: %s", *to, err)
	}
	return nil
}
