package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/unthrottle/unthrottle/internal/demand"
)

// Joined is what Join did.
type Joined struct {
	// Hours have files that were joined: Before of them are After now.
	Hours, Before, After int
	// Again is how many files were removed because they were joined before: what copies files into the folder brought them
	// again.
	Again int
	// Left are files that cannot be read, and why: they stay as they are.
	Left []error
}

// Join joins files.
type Join struct {
	// Ended is the moment before which an hour must have ended: hosts add to files of hours under way, and for a while
	// after.
	Ended time.Time
	// Rows bounds the rows of a file; 0: as many as usual.
	Rows int
	// Progress is told of each hour that was joined; nil: nothing is.
	Progress func(hour string, before, after int)
}

// joinedPrefix begins the names of joined files. No host has such a name: it is no valid one of DNS.
const joinedPrefix = "joined_"

// JoinedFile is the name of a joined file in the folder of an hour.
func JoinedFile(no int) string { return fmt.Sprintf(joinedPrefix+"%05d.parquet", no) }

// RowsOfFile is how many rows a joined file has at most: 100 to 200 MB in memory.
const RowsOfFile = 100_000

// Do joins the files of each hour below a folder into few, and removes those: most of the time of reading small files
// goes by with opening them. A joined file is whole before the others go: what ends between leaves rows twice, and they
// count once. Rows that come late are a file of their own, and are joined by a later call.
//
// A joined file keeps the names and the sums of what it was made of. A file that comes again as it was is removed; one
// that has changed is joined as it is now.
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
		h := joining{dir: hour, most: cmp.Or(j.Rows, RowsOfFile), holds: parts{}, made: parts{}}
		err := h.join(ctx)
		done.Left, done.Again = append(done.Left, h.left...), done.Again+h.again
		if err != nil {
			return done, err
		}
		if h.before == 0 {
			continue
		}
		done.Hours, done.Before, done.After = done.Hours+1, done.Before+h.before, done.After+h.after
		if j.Progress != nil {
			rel, err := filepath.Rel(dir, hour)
			if err != nil {
				rel = hour
			}
			j.Progress(rel, h.before, h.after)
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

// joining is an hour under way.
type joining struct {
	dir  string
	most int // rows of a file
	// holds are the parts of the joined files that are there; next is the number of one more.
	holds parts
	next  int
	// rows are of the files made, which are not written yet.
	rows []demand.Row
	made parts

	before, after, again int
	left                 []error
}

// join joins the files of the hour.
func (h *joining) join(ctx context.Context) error {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return err
	}
	var names, joined []string
	for _, e := range entries {
		switch name := e.Name(); {
		case !e.Type().IsRegular() || !strings.HasSuffix(name, ".parquet"):
		case strings.HasPrefix(name, joinedPrefix):
			joined = append(joined, name)
			n := 0
			if _, err := fmt.Sscanf(name, joinedPrefix+"%d.parquet", &n); err == nil {
				h.next = max(h.next, n+1)
			}
		default:
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) == 1 && len(joined) == 0 {
		return nil
	}
	for _, name := range joined {
		if err := h.holds.addThoseOf(filepath.Join(h.dir, name)); err != nil {
			h.left = append(h.left, err)
		}
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := h.add(name); err != nil {
			return err
		}
	}
	return h.flush()
}

// add takes the rows of a file, or removes it where they are in a joined one.
func (h *joining) add(name string) error {
	file := filepath.Join(h.dir, name)
	sum, err := sumOf(file) // before its rows: if it is replaced meanwhile, the new one comes again
	if err == nil && h.holds.has(name, sum) {
		if err := os.Remove(file); err != nil {
			return err
		}
		h.again++
		return nil
	}
	var rows []demand.Row
	if err == nil {
		rows, err = Read(file)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		h.left = append(h.left, err)
		return nil
	case len(h.rows)+len(rows) > h.most:
		if err := h.flush(); err != nil {
			return err
		}
	}
	h.rows, h.made[name] = append(h.rows, rows...), []string{sum}
	return nil
}

// flush writes what was taken as one file, and removes those of which it is.
func (h *joining) flush() error {
	if len(h.made) > 1 { // alone it stays what it is
		if err := write(filepath.Join(h.dir, JoinedFile(h.next)), merged(h.rows), h.made.metadata()); err != nil {
			return err
		}
		for name, sums := range h.made {
			file := filepath.Join(h.dir, name)
			if sum, err := sumOf(file); err == nil && sum != sums[0] { // it was replaced since: the next call takes it
				continue
			}
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		h.before, h.after, h.next = h.before+len(h.made), h.after+1, h.next+1
	}
	h.rows, h.made = nil, parts{}
	return nil
}

// parts are the files of which joined ones were made: by their names, the sums of what each has been.
type parts map[string][]string

// joinedFrom is the key of a joined file's metadata that has its parts, as JSON.
const joinedFrom = "unthrottle.joined"

func (p parts) metadata() parquet.WriterOption {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // it is of strings
	}
	return parquet.KeyValueMetadata(joinedFrom, string(data))
}

func (p parts) has(name, sum string) bool { return slices.Contains(p[name], sum) }

// addThoseOf adds the parts of a joined file. One of a program that kept none has none.
func (p parts) addThoseOf(name string) error {
	listed, err := metadata(name, joinedFrom)
	if err != nil || listed == "" {
		return err
	}
	var more parts
	if err := json.Unmarshal([]byte(listed), &more); err != nil {
		return fmt.Errorf("%s: the files of which it was joined: %w", name, err)
	}
	for name, sums := range more {
		p[name] = append(p[name], sums...)
	}
	return nil
}

// sumOf tells whether a file is the same.
func sumOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}
