package histogram

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/text"
)

func TestBarNeverHidesACount(t *testing.T) {
	for _, b := range []Bars{{false}, {true}} {
		if b.Bar(0.0001, 20) == "" || b.Bar(0, 20) != "" || text.Width(b.Bar(1, 20)) != 20 || text.Width(b.Bar(7, 20)) != 20 {
			t.Errorf("ascii %v: %q %q %q", b.ASCII, b.Bar(0.0001, 20), b.Bar(0, 20), b.Bar(1, 20))
		}
	}
}

// The example of the package comment.
func TestLines(t *testing.T) {
	got := strings.Join(Lines([]string{"0-1", "1-2"}, []Column{
		{Title: "quota", Counts: []int{5, 5}}, {Title: "pin", Counts: []int{9, 1}},
	}, 30, Bars{ASCII: true}), "\n")
	want := `
     quota        pin
0-1  ##### 5      ######### 9
1-2  ##### 5      # 1`
	if d := cmp.Diff(want, "\n"+got); d != "" {
		t.Error(d)
	}
}
