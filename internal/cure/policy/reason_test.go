package policy

import (
	"slices"
	"strings"
	"testing"
)

// TestUntreated: what the file and the annotations alone say.
func TestUntreated(t *testing.T) {
	for name, c := range map[string]struct {
		rules string
		asks  string
		want  Reason
	}{
		"no rule":     {"- match: {name: other}", "", ReasonNoRule},
		"none":        {"- remedy: none", "", ReasonRuleNone},
		"opted out":   {"- remedy: burst", "none", ReasonOptedOut},
		"not known":   {"- remedy: burst", "brust", ReasonAnnotation},
		"asked":       {"- remedy: burst", "", ""},
		"not allowed": {"- remedy: burst", "pin", ""},
	} {
		asks := map[string]string{AnnotationRemedy: c.asks}
		if c.asks == "" {
			asks = nil
		}
		if got := rulesOf(t, c.rules).Effective(anApp, Pod{Annotations: asks}).Untreated(); got.Reason != c.want {
			t.Errorf("%s: %q, want %q", name, got.Reason, c.want)
		}
	}
}

// TestReasons: each has words of its own, fit for a label.
func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if r.Means() == "" || seen[r.Means()] || seen[string(r)] || strings.Trim(string(r), "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("%q means %q", r, r.Means())
		}
		seen[r.Means()], seen[string(r)] = true, true
	}
	why := Treatment{Reason: ReasonRefused, Detail: "no CPU\x1b[31m\nleft"}.Why()
	if strings.ContainsAny(why, "\x1b\n") || !strings.HasPrefix(why, ReasonRefused.Means()+": no CPU") {
		t.Errorf("%q", why)
	}
}

// TestValues: each value with its source.
func TestValues(t *testing.T) {
	r, err := ParseRules([]byte("version: 1\nbound: 2%\nbudget: {containers: 3}\nrules:\n- class: hybrid\n  strict: " +
		"true\n  annotations: {allow: [narrow], objective: true}\n" +
		"  slo: {objective: p99<20ms, command: probe --password x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	shown := func(asks map[string]string) string {
		var lines []string
		for _, v := range r.Values(r.Effective(anApp, Pod{Annotations: asks})) {
			line := v.Name + "=" + v.Value + " " + string(v.From)
			if v.Annotation != nil {
				line += " " + *v.Annotation
			}
			if v.Line != nil {
				line += ":" + string(rune('0'+*v.Line))
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	}
	plain := shown(nil)
	for _, want := range []string{"mode=observe default", "bound=2% file:2", "startup=30s default",
		"budget.containers=3 file:3", "budget.moves_per_minute=2 default",
		"remedy=pin rule:5", "class=hybrid rule:5", "strict=true rule:6", "verify=slo default",
		"slo.objective=p99<20ms rule:8", "slo.command=(given) rule:8",
		"annotations.allow=none, narrow rule:7"} {
		if !slices.Contains(strings.Split(plain, "\n"), want) {
			t.Errorf("%q is not in\n%s", want, plain)
		}
	}
	if strings.Contains(plain, "password") {
		t.Error("it shows the command")
	}
	asked := shown(map[string]string{AnnotationRemedy: "narrow", AnnotationObjective: "p95<1s"})
	for _, want := range []string{"remedy=narrow annotation unthrottle.dev/remedy",
		"slo.objective=p95<1s annotation unthrottle.dev/objective"} {
		if !slices.Contains(strings.Split(asked, "\n"), want) {
			t.Errorf("%q is not in\n%s", want, asked)
		}
	}
	if none := shown(map[string]string{AnnotationRemedy: "none"}); strings.Contains(none, "slo") ||
		!strings.Contains(none, "remedy=none annotation") {
		t.Errorf("opted out:\n%s", none)
	}
}
