package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
)

// TestUntilAndPods: a rule for some pods alone, which ends.
func TestUntilAndPods(t *testing.T) {
	rules, err := ParseRules([]byte("version: 1\nrules:\n- match: {namespace: shop, pods: [a, b]}\n" +
		"  until: \"2026-11-29T18:00:00Z\"\n- match: {pods: []}\n- remedy: none\n"))
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC)
	if r := rules.Rules[0]; !r.Until.Equal(end) || r.Ended(end.Add(-1)) || !r.Ended(end) || !r.Observes(end) || rules.Rules[1].Ended(end) {
		t.Errorf("it ends at %v", r.Until)
	}
	for uid, want := range map[string]int{"a": 0, "b": 0, "c": 2, "": 2} {
		if got := rules.For(container.Container{Namespace: "shop", PodUID: uid}, nil); got != &rules.Rules[want] {
			t.Errorf("pod %q: the rule of line %d", uid, got.Line)
		}
	}
	for _, wrong := range []string{"until: soon", "until: 2026-11-29", "match: {pods: a}", "match: {pods: [{}]}",
		"match: {pods: [" + strings.Repeat("a, ", MaxPods) + "a]}"} {
		if _, err := ParseRules([]byte("version: 1\nrules:\n- " + wrong + "\n")); err == nil {
			t.Errorf("%.40s is taken", wrong)
		}
	}
}
