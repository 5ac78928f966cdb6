package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Annotations of a pod by which its owner has a say in what its rule does.
const (
	// AnnotationPrefix begins the keys of all of them.
	AnnotationPrefix = "unthrottle.dev/"
	// AnnotationRemedy asks for a remedy by name, for auto or for none.
	AnnotationRemedy = AnnotationPrefix + "remedy"
	// AnnotationObjective asks for another bound on the latency that the rule's own command measures.
	AnnotationObjective = AnnotationPrefix + "objective"
)

// Bounds of what is read of a pod's annotations.
const (
	// MaxAnnotations is how many of a pod's annotations with the prefix are read.
	MaxAnnotations = 16
	// MaxAnnotation is the length of a value in bytes.
	MaxAnnotation = 256
)

// The words that stand for a remedy's name beside those of remedy.Kinds.
const (
	wordAuto = "auto"
	wordNone = "none"
)

// remedyWords are all values of AnnotationRemedy, and of a rule's remedy.
func remedyWords() []string {
	words := []string{wordAuto, wordNone}
	for _, k := range remedy.Kinds() {
		words = append(words, string(k))
	}
	return words
}

// Allowed is what a rule lets the owners of its pods ask for. The zero value allows opting out, which every rule does.
type Allowed struct {
	// Remedies are names of remedies, or auto.
	Remedies []string
	// Objective: another bound than that of the rule's slo.
	Objective bool
}

// Words lists what may be asked for, for people.
func (a Allowed) Words() string {
	return strings.Join(append([]string{wordNone}, a.Remedies...), ", ")
}

func (a *Allowed) read(n *yaml.Node) error {
	return mapping(n, map[string]func(*yaml.Node) error{
		"allow": func(n *yaml.Node) error {
			if n.Kind != yaml.SequenceNode {
				return wrong(n, "allow must be a list of remedies")
			}
			for _, item := range n.Content {
				var word string
				if err := oneOf(item, &word, remedyWords()...); err != nil {
					return err
				}
				switch {
				case slices.Contains(a.Remedies, word):
					return wrong(item, "%s stands twice", word)
				case word != wordNone: // which is allowed always
					a.Remedies = append(a.Remedies, word)
				}
			}
			return nil
		},
		"objective": func(n *yaml.Node) error { return truth(n, &a.Objective) },
	})
}

// names reports whether a remedy may be asked for by its name.
func (a Allowed) names() bool {
	return slices.ContainsFunc(a.Remedies, func(word string) bool { return word != wordAuto })
}

// mayChoose reports whether the rule, or a pod's annotation that it allows, has the remedy chosen by forecast.
func (r *Rule) mayChoose() bool {
	return r.Auto || slices.Contains(r.Annotations.Remedies, wordAuto)
}

// Pod is what the runtime knows of a container's pod. Both are nil where nothing is known.
type Pod struct {
	Labels map[string]string
	// Annotations are those with AnnotationPrefix. They are texts of strangers.
	Annotations map[string]string
}

// Refusal is an annotation that does not count, and why.
type Refusal struct {
	// Annotation is the key and Value the value, both made safe.
	Annotation string `json:"annotation"`
	Value      string `json:"value"`
	// Why names the mistake and what is allowed.
	Why string `json:"why"`
}

// Effective is what is in force for one container: its rule, and what the pod's annotations make of it.
type Effective struct {
	// Rule is nil where no rule matches. It must not be changed: without annotations it is the file's own.
	Rule *Rule
	// RemedyAsked and ObjectiveAsked: that part is the pod's annotation's.
	RemedyAsked, ObjectiveAsked bool
	// Unread: the annotation asks for a remedy that this version does not know. The container is left alone, because its
	// owner wanted something else than the rule.
	Unread bool
	// Refused are the annotations that do not count, by key.
	Refused []Refusal
}

// Effective finds the rule for a container and applies its pod's annotations to it. An annotation may always opt out. It may
// ask for what the rule allows, and for nothing else: what it may not ask for leaves the rule as it is.
func (r Rules) Effective(c container.Container, pod Pod) Effective {
	e := Effective{Rule: r.For(c, pod.Labels)}
	asked := pod.Annotations
	if len(asked) == 0 {
		return e
	}
	for i, key := range slices.Sorted(maps.Keys(asked)) {
		switch {
		case i >= MaxAnnotations:
			e.refuse(key, asked[key], fmt.Sprintf("a pod may have %d annotations of %s", MaxAnnotations, AnnotationPrefix))
			return e
		case key == AnnotationRemedy || key == AnnotationObjective:
		case strings.HasPrefix(key, AnnotationPrefix):
			e.refuse(key, asked[key], "it is not known: write "+AnnotationRemedy+" or "+AnnotationObjective)
		}
	}
	// The objective comes first: the rule that it belongs to is the file's.
	if value, ok := asked[AnnotationObjective]; ok {
		e.objective(value)
	}
	if value, ok := asked[AnnotationRemedy]; ok {
		e.remedy(value)
	}
	slices.SortFunc(e.Refused, func(a, b Refusal) int { return cmp.Compare(a.Annotation, b.Annotation) })
	return e
}

func (e *Effective) refuse(key, value, why string) {
	e.Refused = append(e.Refused, Refusal{text.Sanitize(key, maxAnnotationKey), text.Sanitize(value, text.MaxName), why})
}

// maxAnnotationKey bounds a key that is shown: a prefix and 63 characters.
const maxAnnotationKey = len(AnnotationPrefix) + 63

func (e *Effective) objective(value string) {
	switch {
	case e.Rule == nil:
		e.refuse(AnnotationObjective, value, "no rule matches the container")
		return
	case !e.Rule.Annotations.Objective:
		e.refuse(AnnotationObjective, value, "its rule allows no other objective (annotations: {objective: true})")
		return
	case len(value) > MaxAnnotation:
		e.refuse(AnnotationObjective, value, fmt.Sprintf("it is longer than %d bytes", MaxAnnotation))
		return
	}
	objective, err := ParseObjective(strings.TrimSpace(value))
	if err != nil {
		e.refuse(AnnotationObjective, value, text.Shown(err.Error()))
		return
	}
	rule := *e.Rule
	rule.Objective = objective
	e.Rule, e.ObjectiveAsked = &rule, true
}

func (e *Effective) remedy(value string) {
	word := strings.TrimSpace(value)
	known := len(value) <= MaxAnnotation && slices.Contains(remedyWords(), word)
	switch {
	case !known:
		e.refuse(AnnotationRemedy, value, "it is none of "+strings.Join(remedyWords(), ", ")+"; the container is left alone")
		e.Unread = true
		if e.Rule != nil {
			rule := e.Rule.asked(wordNone)
			e.Rule, e.RemedyAsked = &rule, true
		}
	case word == wordNone && e.Rule == nil:
		// Nothing is done without a rule.
	case e.Rule == nil:
		e.refuse(AnnotationRemedy, value, "no rule matches the container")
	case word == e.Rule.Word():
		// The rule says the same.
	case word != wordNone && !slices.Contains(e.Rule.Annotations.Remedies, word):
		e.refuse(AnnotationRemedy, value, "its rule allows "+e.Rule.Annotations.Words()+" (annotations: {allow: ...})")
	default:
		rule := e.Rule.asked(word)
		e.Rule, e.RemedyAsked = &rule, true
	}
}

// Word is the rule's remedy as the file writes it: auto, none, or a name.
func (r Rule) Word() string {
	switch {
	case r.Leave:
		return wordNone
	case r.Auto:
		return wordAuto
	}
	return string(r.Remedy)
}

// asked is the rule with another remedy. What judges it stays, as far as it judges that remedy. Settings stay that the
// other remedy has too.
func (r Rule) asked(word string) Rule {
	out := Rule{Line: r.Line, Lines: r.Lines, Match: r.Match, Policy: r.Policy, Mode: r.Mode, Until: r.Until,
		Annotations: r.Annotations, SLOInterval: r.SLOInterval}
	out.Auto, out.Leave = word == wordAuto, word == wordNone
	if out.Leave {
		return out
	}
	out.Objective, out.SLOCommand, out.SLOLookBack, out.Verify = r.Objective, r.SLOCommand, r.SLOLookBack, r.Verify
	has := func(string) bool { return false }
	if out.Auto {
		out.May, out.Trial = r.May, r.Trial
	} else {
		out.Remedy = remedy.Kind(word)
		has = out.has
		if r.Verify == VerifyBoth || r.Verify == VerifyProbe {
			out.Verify = "" // the recorded responses judge what was chosen by forecast alone
		}
	}
	if out.Auto || has("cpus") {
		out.CPUs = r.CPUs
	}
	if out.Auto || has("stays") {
		out.Immovable = r.Immovable
	}
	if out.Auto || has("to") {
		out.Factor, out.To = r.Factor, r.To
	}
	if has("strict") && (!has("class") || r.Class == remedy.ClassHybrid) {
		out.Strict = r.Strict
	}
	return out
}
