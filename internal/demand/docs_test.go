package demand

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page of the columns has those of Row, in their order, and its version.
func TestColumnsAreInTheirPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/fleet-rows.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Row]()) {
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		want = append(want, name)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\|").FindAllSubmatch(page, -1) {
		got = append(got, string(m[1]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has\n%q, the rows have\n%q", got, want)
	}
	if !strings.Contains(string(page), "version 1\n") || SchemaVersion != 1 {
		t.Error("the page is of another version")
	}
}
