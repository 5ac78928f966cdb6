package flightrecorder

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Bounds of the recordings kept; the oldest go first.
const (
	maxRecordings     = 64
	maxRecordingBytes = 256 << 20
)

// Store keeps recordings as files in one directory, with the time, the cgroup's id and the boot in their names.
type Store struct {
	Dir string
	// Boot is the id of the running kernel's boot, for the names of the recordings that Save makes; "": not known.
	Boot string
}

// Kept is one recording in a store.
type Kept struct {
	File string // its path
	At   time.Time
	ID   uint64 // cgroup id of the container
	Boot string // of the boot with this id; "": not known, as of recordings before 2026-12-01
	Size int64
}

// Key is that of its container.
func (k Kept) Key() Key { return Key{k.ID, k.Boot} }

// Target reads whose recording it is, from the file's header.
func (k Kept) Target() (recording.Target, error) {
	file, err := os.Open(k.File)
	if err != nil {
		return recording.Target{}, err
	}
	defer file.Close()
	in, err := recording.NewReader(file)
	if err != nil {
		return recording.Target{}, err
	}
	return in.Header.Target, nil
}

const (
	recordingSuffix = ".recording"
	partSuffix      = ".part"
	timeLayout      = "20060102T150405.000Z"
)

// Save makes a recording from the output of write. The file gets its name only when it is whole; the next Save removes
// one that a crash cut off. removed are the recordings that had to make room.
func (s Store) Save(at time.Time, id uint64, write func(io.Writer) error) (kept Kept, removed []Kept, err error) {
	fail := func(err error) (Kept, []Kept, error) {
		return Kept{}, nil, fmt.Errorf("flight recorder: recording of %s: %w", at.Format(time.TimeOnly), err)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fail(err)
	}
	s.sweep()
	name := filepath.Join(s.Dir, at.UTC().Format(timeLayout)+"-"+strconv.FormatUint(id, 10))
	if s.Boot != "" {
		name += "-" + s.Boot
	}
	name += recordingSuffix
	f, err := os.OpenFile(name+partSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(err)
	}
	out := &limited{w: f, left: maxRecordingBytes}
	if err = write(out); err == nil {
		err = f.Sync() // before it gets its name, so that after a crash it is whole or not there
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
		return fail(err)
	}
	kept = Kept{File: name, At: at.Truncate(time.Millisecond), ID: id, Boot: s.Boot, Size: maxRecordingBytes - out.left}
	removed, err = s.bound(at)
	return kept, removed, err
}

// limited refuses more than the remaining bytes.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(b []byte) (int, error) {
	if int64(len(b)) > l.left {
		return 0, fmt.Errorf("larger than the %d MB that all recordings may take", maxRecordingBytes>>20)
	}
	n, err := l.w.Write(b)
	l.left -= int64(n)
	return n, err
}

// sweep removes half-written files of a crash.
func (s Store) sweep() {
	parts, _ := filepath.Glob(filepath.Join(s.Dir, "*"+partSuffix))
	for _, p := range parts {
		os.Remove(p)
	}
}

// bound removes the oldest recordings beyond the bounds. Those of a time that is still to come go before them: the clock was
// set back.
func (s Store) bound(now time.Time) (removed []Kept, err error) {
	stored, err := s.List()
	if err != nil {
		return nil, err
	}
	ahead := slices.IndexFunc(stored, func(k Kept) bool { return k.At.After(now) })
	if ahead >= 0 {
		stored = slices.Concat(stored[ahead:], stored[:ahead])
	}
	var bytes int64
	for i := len(stored) - 1; i >= 0; i-- {
		bytes += stored[i].Size
		if len(stored)-i <= maxRecordings && bytes <= maxRecordingBytes {
			continue
		}
		if err := os.Remove(stored[i].File); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("flight recorder: %w", err)
		}
		removed = append(removed, stored[i])
	}
	return removed, nil
}

// List returns the recordings, the oldest first. Without the directory it returns none.
func (s Store) List() ([]Kept, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("flight recorder: %w", err)
	}
	var stored []Kept
	for _, e := range entries {
		k, ok := parseName(e.Name())
		info, err := e.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}
		k.File, k.Size = filepath.Join(s.Dir, e.Name()), info.Size()
		stored = append(stored, k)
	}
	slices.SortStableFunc(stored, func(a, b Kept) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	return stored, nil
}

func parseName(name string) (Kept, bool) {
	name, ok := strings.CutSuffix(name, recordingSuffix)
	at, id, found := strings.Cut(name, "-")
	if !ok || !found {
		return Kept{}, false
	}
	id, boot, _ := strings.Cut(id, "-")
	t, err := time.Parse(timeLayout, at)
	n, err2 := strconv.ParseUint(id, 10, 64)
	return Kept{At: t, ID: n, Boot: boot}, err == nil && err2 == nil
}

// Near is how far from the requested time a recording may begin to answer for it.
const Near = 10 * time.Minute

// Nearest returns the recording of one of the containers that begins nearest to the time, at most Near away. Of two
// equally near it prefers the earlier. ok is false without one.
func Nearest(stored []Kept, at time.Time, containers ...Key) (best Kept, ok bool) {
	for _, k := range stored {
		if !slices.Contains(containers, k.Key()) || k.At.Sub(at).Abs() > Near {
			continue
		}
		if !ok || k.At.Sub(at).Abs() < best.At.Sub(at).Abs() {
			best, ok = k, true
		}
	}
	return best, ok
}
