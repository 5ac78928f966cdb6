package apply

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/txn"
)

func TestFindTarget(t *testing.T) {
	inForce := []txn.InForce{
		{ID: "1", Target: "/pods/a\n", Name: "web"},
		{ID: "2", Target: "/pods/b", Name: "web"},
		{ID: "3", Target: "/pods/b", Name: "web"},
		{ID: "4", Target: "/pods/c", Name: "db"},
		{ID: "5", Target: "/pods/c", Name: "db"},
		{ID: "6", Target: "/cache", Name: "cache"},
		{ID: "7", Target: "/pods/d", Name: "cache"},
	}
	for i := range 20 {
		inForce = append(inForce, txn.InForce{ID: fmt.Sprint("many", i), Target: fmt.Sprint("/many/", i), Name: "many"})
	}
	for _, tc := range []struct{ name, path, want, says string }{
		{"db", "/db", "/pods/c", ""},
		{"1", "/1", "/pods/a\n", ""},
		{"/pods/b", "/pods/b", "/pods/b", ""},
		{"pods/b", "/pods/b", "/pods/b", ""},
		{"/cache", "/cache", "/cache", ""},
		{"other", "/other", "", ""},
		{"c", "/c", "/pods/c", ""},
		{"3", "/3", "/pods/b", ""}, // an id comes before the end of a path
		{"web", "/web", "", `"web" is the name of 2 targets, "/pods/a\n", "/pods/b"`},
		{"cache", "/cache", "", `2 targets, "/cache", "/pods/d"`},
		{"many", "/many", "", `20 targets, "/many/0", "/many/1", "/many/2", "/many/3", "/many/4", "/many/5", "/many/6", "/many/7", 12 more: give the path`},
	} {
		got, err := FindTarget(inForce, tc.name, tc.path)
		if got != tc.want || (err != nil) != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %q, %v; want %q, %q", tc.name, got, err, tc.want, tc.says)
		}
	}
}
