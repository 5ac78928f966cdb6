package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
)

// Keep bounds what one node keeps in a folder. The newest files stay. A bound of 0 is none.
type Keep struct {
	For   time.Duration
	Bytes int64
}

// Kept is what a node has in a folder.
type Kept struct {
	Bytes int64
	// From is the beginning of the oldest hour; zero: there is none.
	From time.Time
	// Removed is how many files had to go.
	Removed int
}

// hourFile is a file of a node's hour.
type hourFile struct {
	name  string
	began time.Time
	bytes int64
	// changed is when it was written last.
	changed time.Time
	// ahead: its hour is still to come, since the clock was set back. aside: it is damaged, and was put aside.
	ahead, aside bool
}

// Do removes files of a node that are older than the bound, and the oldest beyond the bytes; those of a time that is
// still to come go before them. It removes only what has the name and the form of what this package writes for that
// node, and neither of the hour under way nor of the one before.
func (k Keep) Do(dir string, names demand.Names, now time.Time) (kept Kept, err error) {
	files, err := filesOf(dir, names, now)
	if err != nil {
		return kept, err
	}
	for _, f := range files {
		kept.Bytes += f.bytes
	}
	var errs []error
	var left []hourFile
	over := int64(0)
	if k.Bytes > 0 {
		over = kept.Bytes - k.Bytes
	}
	for _, f := range files {
		ended := f.began.Add(time.Hour)
		old := k.For > 0 && !ended.Add(k.For).After(now)
		underWay := !f.ahead && ended.Add(time.Hour).After(now)
		if underWay || !old && over <= 0 {
			left = append(left, f)
			continue
		}
		over -= f.bytes
		if !f.aside {
			if schema, err := metadata(f.name, schemaKey); err != nil || schema == "" { // another program's, or damaged
				kept.Bytes -= f.bytes
				continue
			}
		}
		if err := os.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			left = append(left, f)
			continue
		}
		kept.Removed++
		kept.Bytes -= f.bytes
		hour := filepath.Dir(f.name)
		if os.Remove(hour) == nil { // it is empty
			_ = os.Remove(filepath.Dir(hour))
		}
	}
	for _, f := range left {
		if kept.From.IsZero() || f.began.Before(kept.From) {
			kept.From = f.began
		}
	}
	return kept, errors.Join(errs...)
}

// halfWritten are what writers of a file left that were killed before it had its name: renameio's name for it.
func halfWritten(name string) (names []string) {
	begin := filepath.Join(filepath.Dir(name), "."+filepath.Base(name))
	found, _ := filepath.Glob(escaped(begin) + "[0-9]*") // the pattern is a good one
	for _, file := range found {
		if strings.Trim(strings.TrimPrefix(file, begin), "0123456789") == "" {
			names = append(names, file)
		}
	}
	return names
}

// filesOf are the files of a node below a folder, in the order in which they go.
func filesOf(dir string, names demand.Names, now time.Time) (files []hourFile, err error) {
	named := demand.Row{Cluster: names.Cluster, Node: names.Node}
	hours, err := filepath.Glob(filepath.Join(escaped(filepath.Join(dir, clusterFolder(&named))), "date=*", "hour=*"))
	if err != nil {
		return nil, err
	}
	for _, hour := range hours {
		began, ok := hourOf(hour)
		if !ok {
			continue
		}
		name := filepath.Join(hour, filepath.Base(File(&named)))
		rest := append(asides(name), halfWritten(name)...)
		for i, file := range append([]string{name}, rest...) {
			info, err := os.Lstat(file)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
				continue
			}
			if err == nil && i > mostAside && info.ModTime().Add(time.Hour).After(now) { // it may be written still
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("files of rows: %w", err)
			}
			files = append(files, hourFile{file, began, info.Size(), info.ModTime(), began.After(now), i > 0})
		}
	}
	slices.SortStableFunc(files, func(a, b hourFile) int {
		if a.ahead != b.ahead {
			if a.ahead {
				return -1
			}
			return 1
		}
		return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.name, b.name))
	})
	return files, nil
}
