package apply

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// TestJSONContract: the keys that the issue promises, arrays rather than nulls, names that are no text escaped.
func TestJSONContract(t *testing.T) {
	s := newScene(t, cgroup.V1)
	purpose, changes := s.pinA()
	purpose.Target.Path = "/pods/\xff"
	done := s.apply(purpose, changes)
	keys := func(v any) []string {
		text, err := json.Marshal(v)
		s.must(err)
		if strings.Contains(string(text), "\ufffd") {
			t.Errorf("a name was mangled: %s", text)
		}
		m := map[string]any{}
		s.must(json.Unmarshal(text, &m))
		return slices.Sorted(maps.Keys(m))
	}
	must := func(v any, want ...string) {
		t.Helper()
		have := keys(v)
		for _, key := range want {
			if !slices.Contains(have, key) {
				t.Errorf("%T has no %q, only %v", v, key, have)
			}
		}
	}
	must(done, "writes", "skipped", "verdict")
	must(done.Writes[0], "path", "file", "before", "after", "done")
	must(txn.Skip{Path: "/\xff"}, "path", "why")
	must(txn.DriftItem{Target: "/\xff", Path: "/\xff/a"}, "id", "target", "path", "file", "want", "current")
	open, err := Status(s.env)
	s.must(err)
	must(open[0], "target", "remedy", "since", "by", "verdict")
	back, err := Restore(t.Context(), s.env, Selector{})
	s.must(err)
	must(back, "writes", "skipped", "verdict")
	past, err := History(s.env, 0)
	s.must(err)
	must(past[0], "target", "remedy", "since", "by", "verdict", "until", "reason")
	nothing, err := Restore(t.Context(), s.env, Selector{})
	s.must(err)
	if text, _ := json.Marshal(nothing); !strings.Contains(string(text), `"writes":[],"skipped":[]`) {
		t.Errorf("got %s", text)
	}
	if open, _ := Status(s.env); open == nil {
		t.Error("no array")
	}
}
