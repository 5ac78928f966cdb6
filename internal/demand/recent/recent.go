// Package recent makes what a node tells of its demand of the files in which its agent keeps rows.
//
// # Rule
//
// The last seven days count: a week has each hour of the day and each day of the week, and what a service wanted before says little of
// today. A file, which is one hour, is read once and again when it was replaced; of it sums are kept (nodedemand.Part), and no row.
// So each reading after the first reads one file or two. A file that is damaged, or of another program, is left out and told, once
// until it changes. So are rows that are of another node, cluster or hour than the file's name says. A file that cannot be read now,
// such as without rights, keeps what it told before, and is tried again.
//
// # Example
//
// A node of 100 containers has 168 files of 0.2 MB. What is kept of them is 1.5 MB. To read them for the first time took 6 to 7 s on a
// slow CPU, so each file that is replaced takes 40 ms (go test -run xxx -bench Week ./internal/demand/recent).
//
// # Limits
//
// At most 2,048 containers of each hour count, which holds 168 hours below 40 MB. A file that is being read is in memory as a whole,
// up to 64 MiB.
package recent

import (
	"fmt"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/nodedemand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
)

// Length is how far back rows count.
const Length = 7 * 24 * time.Hour

// Rows are those that one node's agent keeps in a folder. It is not safe for concurrent use.
type Rows struct {
	dir   string
	names demand.Names
	files map[string]*file
}

// file is what is known of one.
type file struct {
	store.Hour
	part nodedemand.Part
	// told is which kind of thing was said last of what is left out of it; "": nothing is.
	told string
}

// New begins with nothing read. names are those in the agent's rules.
func New(dir string, names demand.Names) *Rows {
	return &Rows{dir: dir, names: demand.NewRows(names).Names(), files: map[string]*file{}}
}

// Spec is what the node tells now; its Until is zero while there are no rows. leftOut says what does not count of the files that
// were read this time, each with the file's name and why. err: the folder cannot be read.
func (r *Rows) Spec(now time.Time) (s nodedemand.Spec, leftOut []error, err error) {
	hours, err := store.Hours(r.dir, r.names, now.Add(-Length), now)
	if err != nil {
		return s, nil, fmt.Errorf("rows of node %q: %w", r.names.Node, err)
	}
	there := map[string]*file{}
	var parts []*nodedemand.Part
	for _, h := range hours {
		f := r.files[h.File]
		if f == nil {
			f = &file{}
		}
		if f.Hour != h {
			kind, wrong := r.read(f, h)
			if wrong != nil && f.told != kind {
				leftOut = append(leftOut, wrong)
			}
			f.told = kind
		}
		there[h.File] = f
		parts = append(parts, &f.part)
	}
	for i := range len(parts) - 1 {
		parts[i].Settle()
	}
	r.files = there
	return nodedemand.Of(parts...), leftOut, nil
}

// read reads a file anew; wrong is what is left out of it, and kind is the same of what differs by figures only. Both are zero if
// nothing is.
func (r *Rows) read(f *file, h store.Hour) (kind string, wrong error) {
	var part nodedemand.Part
	foreign, unsound := 0, 0
	err := store.Scan(h.File, func(rows []demand.Row) {
		all := len(rows)
		rows = slices.DeleteFunc(rows, func(w demand.Row) bool {
			return w.Cluster != r.names.Cluster || w.Node != r.names.Node || !w.Start.UTC().Truncate(time.Hour).Equal(h.Began)
		})
		foreign += all - len(rows)
		unsound += part.Add(rows)
	})
	switch {
	case store.IsDamaged(err):
		f.Hour, f.part = h, nodedemand.Part{}
		return "damaged", fmt.Errorf("%w; this hour is left out", err)
	case err != nil:
		return err.Error(), err // f.Hour is that of before, so that it is tried again
	}
	f.Hour, f.part = h, part
	if foreign+unsound == 0 {
		return "", nil
	}
	return fmt.Sprintf("foreign %t, unsound %t", foreign > 0, unsound > 0), fmt.Errorf("%s: %d rows are of another node, cluster or hour "+
		"than its name says, and %d are unsound or beyond the containers that count; they are left out", h.File, foreign, unsound)
}
