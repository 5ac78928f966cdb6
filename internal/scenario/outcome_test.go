package scenario

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// The manual names every key that is printed.
func TestEveryKeyIsInTheManual(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	_, manual, found := strings.Cut(string(text), "\n## Outcome\n")
	if !found {
		t.Fatal("docs/reference/scenarios.md has no part on the outcome")
	}
	for _, of := range []any{Outcome{}, CgroupOutcome{}, Width{}, WorkloadOutcome{}, Latencies{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
			if field.Anonymous {
				continue
			}
			if key := field.Tag.Get("json"); key == "" || !strings.Contains(manual, "`"+key+"`") {
				t.Errorf("%T.%s: key %q is not in docs/reference/scenarios.md", of, field.Name, key)
			}
		}
	}
}
