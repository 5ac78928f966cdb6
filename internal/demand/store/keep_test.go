package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
)

// week writes a file for each of some hours up to noon, of two nodes, and returns the size of one of n17.
func week(t *testing.T, dir string, hours int) (bytes int64) {
	t.Helper()
	for h := range hours {
		rows := slot(noon.Add(-time.Duration(h)*time.Hour), 2)
		other := slices.Clone(rows)
		for i := range other {
			other[i].Node = "n170"
		}
		if err := Write(dir, append(rows, other...)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, File(&rows[0])))
		if err != nil {
			t.Fatal(err)
		}
		bytes = max(bytes, info.Size())
	}
	return bytes
}

// hoursOf are the hours of which a node has a file, as times before noon.
func hoursOf(t *testing.T, dir, node string) (ago []time.Duration) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", node+".parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		began, ok := hourOf(filepath.Dir(name))
		if !ok {
			t.Fatal(name)
		}
		ago = append(ago, noon.Sub(began))
	}
	slices.Sort(ago)
	return ago
}

func upTo(hours int) (ago []time.Duration) {
	for h := range hours {
		ago = append(ago, time.Duration(h)*time.Hour)
	}
	return ago
}

var n17 = demand.Names{Cluster: "eu1", Node: "n17"}

// The newest files of a node stay, by age and by bytes. What others have stays whole, and so do the hour under way and
// the one before.
func TestKeep(t *testing.T) {
	whole := t.TempDir()
	each := week(t, whole, 48)
	for name, c := range map[string]struct {
		keep func(each int64) Keep
		left int
	}{
		"no bound":       {func(int64) Keep { return Keep{} }, 48},
		"a day":          {func(int64) Keep { return Keep{For: 24 * time.Hour} }, 25},
		"ten files":      {func(each int64) Keep { return Keep{Bytes: 10*each + each/2} }, 10},
		"the less":       {func(each int64) Keep { return Keep{For: 24 * time.Hour, Bytes: 30*each + each/2} }, 25},
		"next to none":   {func(int64) Keep { return Keep{For: time.Nanosecond, Bytes: 1} }, 2},
		"more than that": {func(each int64) Keep { return Keep{For: 30 * 24 * time.Hour, Bytes: 100 * each} }, 48},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "fleet")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			keep := c.keep(each)
			kept, err := keep.Do(dir, n17, noon.Add(30*time.Minute))
			if got := hoursOf(t, dir, "n17"); err != nil || !slices.Equal(got, upTo(c.left)) || kept.Removed != 48-c.left {
				t.Errorf("%+v, %v: %v", kept, err, got)
			}
			if !kept.From.Equal(noon.Add(-time.Duration(c.left-1)*time.Hour)) || kept.Bytes > int64(c.left)*each ||
				kept.Bytes < int64(c.left)*each/2 {
				t.Errorf("%+v, each has %d", kept, each)
			}
			if got := hoursOf(t, dir, "n170"); !slices.Equal(got, upTo(48)) {
				t.Errorf("another node's: %v", got)
			}
			if again, err := keep.Do(dir, n17, noon.Add(30*time.Minute)); err != nil || again.Removed != 0 ||
				again.Bytes != kept.Bytes || !again.From.Equal(kept.From) {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
}

// What has such a name and another form is not ours, and does not count. What is empty then goes.
func TestKeepTouchesOnlyItsOwn(t *testing.T) {
	dir := t.TempDir()
	each := week(t, dir, 4)
	old := filepath.Join(dir, "cluster=eu1", "date=2026-11-25", "hour=09")
	for _, name := range []string{filepath.Join(old, "n17.parquet"), filepath.Join(old, "notes"), filepath.Join(dir, "n17.parquet")} {
		if err := os.WriteFile(name, make([]byte, 10*each), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(old, "n170.parquet")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(old, "n17~3.parquet.damaged"), []byte("ours, aside"), 0o644); err != nil {
		t.Fatal(err)
	}
	alone := slot(noon.Add(-48*time.Hour), 1)
	if err := Write(dir, alone); err != nil {
		t.Fatal(err)
	}
	kept, err := Keep{Bytes: 4 * each}.Do(dir, n17, noon.Add(30*time.Minute))
	if err != nil || kept.Removed != 1 {
		t.Errorf("%+v, %v", kept, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cluster=eu1", "date=2026-11-23")); !os.IsNotExist(err) {
		t.Errorf("the empty day: %v", err)
	}
	kept, err = Keep{For: time.Hour}.Do(dir, n17, noon.Add(30*time.Minute))
	left, globErr := filepath.Glob(filepath.Join(old, "*"))
	if err != nil || globErr != nil || kept.Removed != 2 ||
		fmt.Sprint(left) != fmt.Sprint([]string{filepath.Join(old, "n17.parquet"), filepath.Join(old, "notes")}) {
		t.Errorf("%+v, %v: %q", kept, err, left)
	}
}

// After the clock was set back, files of a time to come go before the others, and only if there is no room.
func TestKeepAfterTheClockWasSetBack(t *testing.T) {
	dir := t.TempDir()
	each := week(t, dir, 10)
	now := noon.Add(-5*time.Hour + 30*time.Minute)
	if kept, err := (Keep{For: 24 * time.Hour, Bytes: 20 * each}).Do(dir, n17, now); err != nil || kept.Removed != 0 {
		t.Errorf("%+v, %v", kept, err)
	}
	if kept, err := (Keep{Bytes: 7*each + each/2}).Do(dir, n17, now); err != nil || kept.Removed != 3 ||
		!slices.Equal(hoursOf(t, dir, "n17"), []time.Duration{0, time.Hour, 5 * time.Hour, 6 * time.Hour, 7 * time.Hour,
			8 * time.Hour, 9 * time.Hour}) {
		t.Errorf("%+v, %v: %v", kept, err, hoursOf(t, dir, "n17"))
	}
}
