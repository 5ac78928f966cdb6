package policy

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
)

// judgedBy are the lines of a rule that something judges.
const judgedBy = "\n  slo: {objective: p99<20ms, command: probe}"

func rulesOf(t rapid.TB, text string) Rules {
	t.Helper()
	r, err := ParseRules([]byte("version: 1\nrules:\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var anApp = container.Container{Name: "shop/cart-0/app", Namespace: "shop", Pod: "cart-0", ContainerName: "app",
	Group: cgroup.Group{Path: "/kubepods/a"}}

// TestEffective: what a pod's annotation changes, and what is said of one that changes nothing.
func TestEffective(t *testing.T) {
	for name, c := range map[string]struct {
		rules   string
		asks    map[string]string
		word    string // of the remedy in force; "": no rule
		asked   bool
		refused string // in the refusal; "": there is none
	}{
		"nothing asked":         {"- remedy: burst" + judgedBy, nil, "burst", false, ""},
		"opting out is allowed": {"- remedy: burst" + judgedBy, map[string]string{AnnotationRemedy: "none"}, "none", true, ""},
		"spaces do not count":   {"- remedy: burst", map[string]string{AnnotationRemedy: " none\n"}, "none", true, ""},
		"not allowed": {"- remedy: burst" + judgedBy, map[string]string{AnnotationRemedy: "pin"}, "burst",
			false, "its rule allows none ("},
		"another one is": {"- remedy: burst\n  annotations: {allow: [auto, narrow]}" + judgedBy,
			map[string]string{AnnotationRemedy: "pin"}, "burst", false, "its rule allows none, auto, narrow"},
		"allowed": {"- remedy: burst\n  annotations: {allow: [narrow]}" + judgedBy,
			map[string]string{AnnotationRemedy: "narrow"}, "narrow", true, ""},
		"the same": {"- remedy: burst" + judgedBy, map[string]string{AnnotationRemedy: "burst"}, "burst", false, ""},
		"opting in": {"- remedy: none\n  annotations: {allow: [auto]}\n  verify: probe\n  may: [raise]",
			map[string]string{AnnotationRemedy: "auto"}, "auto", true, ""},
		"not opting in": {"- remedy: none\n  annotations: {allow: [auto]}\n  verify: probe", nil, "none", false, ""},
		"not known":     {"- remedy: burst", map[string]string{AnnotationRemedy: "off"}, "none", true, "none of auto, none, pin"},
		"capitals": {"- remedy: burst", map[string]string{AnnotationRemedy: "None"}, "none", true,
			"none of auto, none, pin"},
		"nothing": {"- remedy: burst", map[string]string{AnnotationRemedy: ""}, "none", true, "none of auto, none, pin"},
		"too long": {"- remedy: burst",
			map[string]string{AnnotationRemedy: strings.Repeat(" ", MaxAnnotation) + "none"}, "none", true, "none of auto"},
		"another key": {"- remedy: burst", map[string]string{"unthrottle.dev/remdy": "none"}, "burst",
			false, "it is not known"},
		"a command is no key": {"- remedy: burst" + judgedBy, map[string]string{"unthrottle.dev/command": "reboot"},
			"burst", false, "it is not known"},
		"not ours":          {"- remedy: burst", map[string]string{"example.com/remedy": "pin"}, "burst", false, ""},
		"no rule":           {"- match: {name: other}", map[string]string{AnnotationRemedy: "pin"}, "", false, "no rule matches"},
		"no rule, and none": {"- match: {name: other}", map[string]string{AnnotationRemedy: "none"}, "", false, ""},
		"an objective": {"- annotations: {objective: true}" + judgedBy,
			map[string]string{AnnotationObjective: "p99<50ms"}, "auto", false, ""},
		"a wrong objective": {"- annotations: {objective: true}" + judgedBy,
			map[string]string{AnnotationObjective: "fast; reboot"}, "auto", false, "write it as p99<20ms"},
		"an objective not asked": {"- remedy: auto" + judgedBy, map[string]string{AnnotationObjective: "p99<50ms"},
			"auto", false, "allows no other objective"},
		"an objective of no rule": {"- match: {name: other}", map[string]string{AnnotationObjective: "p99<50ms"}, "",
			false, "no rule matches"},
	} {
		e := rulesOf(t, c.rules).Effective(anApp, Pod{Annotations: c.asks})
		word := ""
		if e.Rule != nil {
			word = e.Rule.Word()
		}
		if word != c.word || e.RemedyAsked != c.asked {
			t.Errorf("%s: %q, asked %v, want %q, %v", name, word, e.RemedyAsked, c.word, c.asked)
		}
		if (c.refused == "") != (len(e.Refused) == 0) || c.refused != "" && !strings.Contains(e.Refused[0].Why, c.refused) {
			t.Errorf("%s: refused %+v, want %q", name, e.Refused, c.refused)
		}
		if e.Unread != (c.refused != "" && strings.Contains(c.refused, "none of")) {
			t.Errorf("%s: unread is %v", name, e.Unread)
		}
	}
}

// TestAskedKeepsTheJudge: another remedy has what judges the rule, and of its settings only those that it knows.
func TestAskedKeepsTheJudge(t *testing.T) {
	r := rulesOf(t, "- remedy: pin\n  cpus: 3\n  lends: true\n  irqs: true\n  stays: true\n  annotations: {allow: "+
		"[narrow, burst, auto], objective: true}"+judgedBy)
	for word, cpus := range map[string]int{"narrow": 3, "burst": 0, "auto": 3} {
		e := r.Effective(anApp, Pod{Annotations: map[string]string{AnnotationRemedy: word, AnnotationObjective: "p95<1s"}})
		got := e.Rule
		if got.Word() != word || got.CPUs != cpus || got.Shares || got.IRQs || !got.Judged() ||
			got.Objective != (objective.Objective{Quantile: 0.95, Bound: time.Second}) || !e.ObjectiveAsked {
			t.Errorf("%s: %+v", word, got)
		}
	}
	observed := rulesOf(t, "- mode: observe\n  policy: ThrottlePolicy shop/cart\n  annotations: {allow: [narrow]}")
	e := observed.Effective(anApp, Pod{Annotations: map[string]string{AnnotationRemedy: "narrow"}})
	if e.Rule.Mode != Observe || e.Rule.Policy != "ThrottlePolicy shop/cart" {
		t.Errorf("an annotation changed the mode or the origin: %+v", e.Rule)
	}
	if file := r.Rules[0]; file.Word() != "pin" || file.Objective.Bound != 20*time.Millisecond {
		t.Errorf("the file's own rule was changed: %+v", file)
	}
}

func TestAnnotationsOfARule(t *testing.T) {
	for text, want := range map[string]string{
		"- annotations: {allow: [pray]}":                                  `"pray": choose from auto, none`,
		"- annotations: {allow: burst}":                                   "must be a list",
		"- annotations: {allow: [burst, burst]}":                          "burst stands twice",
		"- annotations: {permit: [burst]}":                                `unknown key "permit": choose from allow, objective`,
		"- annotations: {objective: true}":                                "needs an slo with a command",
		"- verify: probe\n  annotations: {allow: [burst]}":                "verify: probe judges auto alone",
		"- remedy: none\n  verify: probe":                                 "unless its annotations allow",
		"- remedy: none\n  cpus: 2\n  annotations: {allow: [pin]}":        "no settings",
		"- remedy: none\n  may: [raise]\n  annotations: {allow: [burst]}": "may goes with remedy: auto",
	} {
		_, err := ParseRules([]byte("version: 1\nrules:\n" + text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// grants are rules that allow something, for what is drawn.
var grants = []string{
	"- remedy: burst\n  annotations: {allow: [narrow, pin]}" + judgedBy,
	"- remedy: pin\n  class: hybrid\n  strict: true\n  annotations: {allow: [secondary, raise, auto]}" + judgedBy,
	"- remedy: secondary\n  strict: true\n  annotations: {allow: [pin, weight], objective: true}" + judgedBy,
	"- remedy: none\n  annotations: {allow: [auto]}\n  verify: probe",
	"- remedy: auto\n  may: [raise]\n  cpus: 2\n  verify: both\n  annotations: {allow: [burst, narrow]}" + judgedBy,
	"- match: {name: other}",
}

// holds checks what must be true of whatever a stranger asks for.
func holds(t rapid.TB, text string, asks map[string]string) {
	t.Helper()
	r := rulesOf(t, text)
	file := r.Rules[0]
	e := r.Effective(anApp, Pod{Annotations: asks})
	again := r.Effective(anApp, Pod{Annotations: maps.Clone(asks)})
	if !slices.Equal(e.Refused, again.Refused) || e.Unread != again.Unread {
		t.Errorf("%s with %q differs from itself: %+v, %+v", text, asks, e, again)
	}
	if len(e.Refused) > MaxAnnotations+1 {
		t.Errorf("%d refusals of %d annotations", len(e.Refused), len(asks))
	}
	for _, refused := range e.Refused {
		for _, shown := range []string{refused.Annotation, refused.Value, refused.Why} {
			if len(shown) > 8*MaxAnnotation || strings.ContainsFunc(shown, unicode.IsControl) {
				t.Errorf("unsafe or too long: %q", shown)
			}
		}
	}
	if e.Rule == nil {
		if e.RemedyAsked || e.ObjectiveAsked {
			t.Errorf("no rule, and yet %+v", e)
		}
		return
	}
	got := *e.Rule
	if got.SLOCommand != "" && got.SLOCommand != file.SLOCommand || got.Line != file.Line {
		t.Errorf("%s with %q: command %q", text, asks, got.SLOCommand)
	}
	if word := got.Word(); word != file.Word() && word != wordNone && !slices.Contains(file.Annotations.Remedies, word) {
		t.Errorf("%s with %q: %s was not allowed", text, asks, word)
	}
	if !slices.Equal(got.May, file.May) && got.May != nil {
		t.Errorf("%s with %q: may grant %v", text, asks, got.May)
	}
	if !got.Leave {
		if err := got.settingsBelong(); err != nil {
			t.Errorf("%s with %q: %v", text, asks, err)
		}
		if file.Judged() && !got.Judged() && got.Remedy != remedy.Secondary && file.SLOCommand != "" {
			t.Errorf("%s with %q: nothing judges it any more", text, asks)
		}
	}
}

// TestAStrangersAnnotationsGrantNothing draws annotations, most of them nearly right.
func TestAStrangersAnnotationsGrantNothing(t *testing.T) {
	words := append(remedyWords(), "off", "PIN", "p99<5ms", "p99<", "\x1b[31m", strings.Repeat("x", 5000))
	rapid.Check(t, func(t *rapid.T) {
		keys := []string{AnnotationRemedy, AnnotationObjective, AnnotationPrefix + rapid.String().Draw(t, "key"),
			rapid.String().Draw(t, "other")}
		value := rapid.OneOf(rapid.SampledFrom(words), rapid.String())
		asks := rapid.MapOfN(rapid.SampledFrom(keys), value, 1, 4).Draw(t, "asks")
		holds(t, rapid.SampledFrom(grants).Draw(t, "rule"), asks)
	})
	many := map[string]string{}
	for i := range 1000 {
		many[AnnotationPrefix+strings.Repeat("k", i)] = "v"
	}
	holds(t, grants[0], many)
}

func FuzzAnnotations(f *testing.F) {
	f.Add(uint8(0), AnnotationRemedy, "narrow")
	f.Add(uint8(2), AnnotationObjective, "p99<20ms")
	f.Add(uint8(3), AnnotationPrefix+"\x1b", "none")
	f.Fuzz(func(t *testing.T, rule uint8, key, value string) {
		holds(t, grants[int(rule)%len(grants)], map[string]string{key: value, AnnotationRemedy: value})
	})
}
