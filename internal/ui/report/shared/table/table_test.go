package table

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

func example() *Table {
	t := New([]Column{{Name: "NAME", Least: 5}, {Name: "USED", Right: true}, {Name: "PATH", Least: 6, Tail: true}})
	t.Add([]Cell{{Text: "checkout"}, {Text: "1.50", Color: page.Red}, {Text: "/pods/checkout"}})
	t.Add([]Cell{{Text: "db"}, {Text: "-"}, {Text: "/db"}})
	return t
}

func TestFit(t *testing.T) {
	for width, want := range map[int]string{
		0:  "NAME      USED  PATH\ncheckout  1.50  /pods/checkout\ndb           -  /db\n",
		26: "NAME      USED  PATH\ncheckout  1.50  …/checkout\ndb           -  /db\n",
		19: "NAME   USED  PATH\nchec…  1.50  …ckout\ndb        -  /db\n",
		// Narrower than the least of both columns: the table is a list.
		18: "checkout\n  USED 1.50, PATH /pods/checkout\ndb\n  USED -, PATH /db\n",
	} {
		table, p := example(), page.New(page.Style{}, 0, 0)
		table.Fit(width)
		table.Write(p, true)
		if d := cmp.Diff(want, p.String()); d != "" {
			t.Errorf("%d columns: %s", width, d)
		}
	}
}

func TestColours(t *testing.T) {
	p := page.New(page.Style{Color: true}, 0, 0)
	example().Write(p, false)
	want := "checkout  \x1b[31m1.50\x1b[0m  /pods/checkout\ndb           -  /db\n"
	if d := cmp.Diff(want, p.String()); d != "" {
		t.Error(d)
	}
}
