package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/fleet"
)

// Joined is what Join did.
type Joined struct {
	// Hours have files that were joined: Before of them are After now.
	Hours, Before, After int
	// Left are files that cannot be read, and why: they stay as they are.
	Left []error
}

// Join joins files.
type Join struct {
	// Ended is the moment before which an hour must have ended: hosts add to files of hours under way, and for a while after.
	Ended time.Time
	// Rows bounds the rows of a file; 0: as many as usual.
	Rows int
	// Told is told of each hour that was joined; nil: nothing is.
	Told func(hour string, before, after int)
}

// joinedPrefix begins the names of joined files. No host has such a name: it is no valid one of DNS.
const joinedPrefix = "joined_"

// JoinedFile is the name of a joined file in the folder of an hour.
func JoinedFile(no int) string { return fmt.Sprintf(joinedPrefix+"%05d.parquet", no) }

// RowsOfFile is how many rows a joined file has at most: 100 to 200 MB in memory.
const RowsOfFile = 100_000

// Do joins the files of each hour below a folder into few, and removes those: most of the time of reading small files goes by with opening them.
// A joined file is whole before the others go: what ends between leaves rows twice, and they count once. Rows that come late are a
// file of their own, and are joined by a later call.
func (j Join) Do(ctx context.Context, dir string) (done Joined, err error) {
	hours, err := filepath.Glob(filepath.Join(escaped(dir), "cluster=*", "date=*", "hour=*"))
	if err != nil {
		return done, err
	}
	if _, err := os.Stat(dir); err != nil {
		return done, err
	}
	for _, hour := range hours {
		if ctx.Err() != nil {
			return done, ctx.Err()
		}
		if began, ok := hourOf(hour); !ok || began.Add(time.Hour).After(j.Ended) {
			continue
		}
		before, after, left, err := j.hour(ctx, hour)
		done.Left = append(done.Left, left...)
		if err != nil {
			return done, err
		}
		if before == 0 {
			continue
		}
		done.Hours, done.Before, done.After = done.Hours+1, done.Before+before, done.After+after
		if j.Told != nil {
			rel, err := filepath.Rel(dir, hour)
			if err != nil {
				rel = hour
			}
			j.Told(rel, before, after)
		}
	}
	return done, nil
}

// escaped makes a folder's name one that a pattern takes as it is.
func escaped(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// hourOf is when an hour began, by the names of its folders.
func hourOf(dir string) (began time.Time, ok bool) {
	date, found := strings.CutPrefix(filepath.Base(filepath.Dir(dir)), "date=")
	hour, alsoFound := strings.CutPrefix(filepath.Base(dir), "hour=")
	began, err := time.Parse("2006-01-02 15", date+" "+hour)
	return began, found && alsoFound && err == nil
}

// hour joins the files of one hour.
func (j Join) hour(ctx context.Context, dir string) (before, after int, left []error, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0, nil, err
	}
	var names []string
	next := 0
	for _, e := range entries {
		switch name := e.Name(); {
		case !e.Type().IsRegular() || !strings.HasSuffix(name, ".parquet"):
		case strings.HasPrefix(name, joinedPrefix):
			n := 0
			if _, err := fmt.Sscanf(name, joinedPrefix+"%d.parquet", &n); err == nil {
				next = max(next, n+1)
			}
		default:
			names = append(names, filepath.Join(dir, name))
		}
	}
	if len(names) < 2 {
		return 0, 0, nil, nil
	}
	most := j.Rows
	if most == 0 {
		most = RowsOfFile
	}
	var rows []fleet.Row
	var of []string
	flush := func() error {
		if len(of) < 2 { // alone it stays what it is
			rows, of = nil, nil
			return nil
		}
		if err := write(filepath.Join(dir, JoinedFile(next)), merged(rows)); err != nil {
			return err
		}
		for _, name := range of {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
		before, after, next = before+len(of), after+1, next+1
		rows, of = nil, nil
		return nil
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return before, after, left, ctx.Err()
		}
		some, err := Read(name)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				left = append(left, err)
			}
			continue
		}
		if len(rows)+len(some) > most {
			if err := flush(); err != nil {
				return before, after, left, err
			}
		}
		rows, of = append(rows, some...), append(of, name)
	}
	return before, after, left, flush()
}
