package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/fleet/objectstore"
	"github.com/unthrottle/unthrottle/fleet/report"
	"github.com/unthrottle/unthrottle/fleet/scratch"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// noFiles is the error for a folder or a place without files of rows.
type noFiles struct{ from string }

func (e *noFiles) Error() string {
	says := text.Sanitize(e.from, 0) + " has no file of rows (*.parquet): "
	if inStore(e.from) {
		return says + "copy there what 'unthrottle export' wrote, and check the prefix, which is a folder"
	}
	return says + "'unthrottle export --dir " + text.Sanitize(e.from, 0) + "' makes some"
}

// inStore reports whether rows are in a store and not in a folder.
func inStore(from string) bool { return strings.Contains(from, "://") }

// putAside is why a file that ends in .damaged does not count.
const putAside = "the program that wrote it found it damaged, and put it aside"

// inputOf finds the files of rows below a folder, or fetches those of a store into a temporary folder.
func (o *shared) inputOf(ctx context.Context, from string, dir *scratch.Dir) (options report.Options, err error) {
	if !inStore(from) {
		options.Files, options.Refused, err = filesOf(from)
		return options, err
	}
	place, err := objectstore.Parse(from)
	if err != nil {
		return options, err
	}
	if o.master != "" && !o.master.Here() {
		return options, fmt.Errorf("%s: --on %s: its files are fetched into TMPDIR of this machine, which Spark's other "+
			"machines do not see: copy or mount the store in a folder that all see, or use --on local[N]",
			text.Sanitize(from, 0), o.master)
	}
	store, err := objectstore.Open(place, os.Getenv)
	if err != nil {
		return options, err
	}
	listing, err := store.List(ctx, func(keys int) { say("%s: %d keys listed", text.Sanitize(from, 0), keys) })
	if err != nil {
		return options, err
	}
	for _, name := range listing.Damaged {
		options.Refused = append(options.Refused, view.Refused{File: name, Why: putAside})
	}
	if len(listing.Objects) == 0 && len(options.Refused) == 0 {
		return options, &noFiles{from}
	}
	room, err := o.room(dir)
	if err != nil {
		return options, err
	}
	into := objectstore.Into{Dir: filepath.Join(dir.Name, "fetched"), Room: room, Progress: tenths(place.String())}
	if err := os.Mkdir(into.Dir, 0o700); err != nil {
		return options, err
	}
	fetched, err := store.Fetch(ctx, listing.Objects, into)
	if err != nil {
		return options, err
	}
	options.Files, options.Names = fetched.Files, fetched.Names
	for _, l := range fetched.Left {
		options.Refused = append(options.Refused, view.Refused{File: l.Name, Why: l.Why})
	}
	return options, nil
}

// room is how many bytes may be fetched: --disk, or half of what is free, since the tables need some. What is not free
// it never is.
func (o *shared) room(dir *scratch.Dir) (int64, error) {
	free, err := dir.Free()
	if err != nil || o.diskMB == 0 {
		return free / 2, err
	}
	return min(free, int64(o.diskMB)<<20), nil
}

// tenths tells of each tenth of the files that has come.
func tenths(from string) func(done, total int) {
	return func(done, total int) {
		if done*10/total > (done-1)*10/total {
			say("%s: %d of %s fetched", text.Sanitize(from, 0), done, text.Count(total, "file"))
		}
	}
}

// filesOf are the files of rows below a folder, in the order of their names, with absolute names. unread are folders
// below it that cannot be read.
func filesOf(dir string) (files []string, unread []view.Refused, err error) {
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: no such folder", text.Sanitize(dir, 0))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", text.Sanitize(dir, 0), err)
	}
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		return nil, nil, fmt.Errorf("%s: it is no folder: give the one that 'export --dir' names", text.Sanitize(dir, 0))
	}
	err = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && name == root:
			return err
		case err != nil:
			unread = append(unread, view.Refused{File: name, Why: err.Error()})
			return fs.SkipDir
		case strings.HasSuffix(name, ".parquet.damaged"):
			unread = append(unread, view.Refused{File: name, Why: putAside})
		case !strings.HasSuffix(name, ".parquet"):
		case !e.Type().IsRegular():
			unread = append(unread, view.Refused{File: name, Why: "it is no regular file"})
		default:
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", text.Sanitize(dir, 0), err)
	}
	if len(files) == 0 && len(unread) == 0 {
		return nil, nil, &noFiles{dir}
	}
	slices.Sort(files)
	return files, unread, nil
}
