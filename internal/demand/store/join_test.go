package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
)

// hosts writes an hour of some hosts, each with so many containers, from a moment on.
func hosts(t *testing.T, dir string, at time.Time, nodes, containers int) {
	t.Helper()
	for n := range nodes {
		rows := slot(at, containers)
		for i := range rows {
			rows[i].Node = fmt.Sprintf("n%d", n)
		}
		if err := Write(dir, rows); err != nil {
			t.Fatal(err)
		}
	}
}

// files are those below a folder.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, rel)
	}
	slices.Sort(names)
	return names
}

// all are the rows of all files, in an order.
func all(t *testing.T, dir string) (rows []demand.Row) {
	t.Helper()
	for _, name := range files(t, dir) {
		some, err := Read(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, some...)
	}
	return merged(rows)
}

// Hours that have ended become one file with the same rows; the one under way stays; what comes later is joined later,
// by itself.
func TestJoin(t *testing.T) {
	dir := t.TempDir()
	hosts(t, dir, noon, 5, 3)
	hosts(t, dir, noon.Add(time.Hour), 5, 3)
	before := all(t, dir)
	told := ""
	join := Join{Ended: noon.Add(90 * time.Minute), Progress: func(hour string, before, after int) {
		told += fmt.Sprintln(hour, before, after)
	}}
	done, err := join.Do(t.Context(), dir)
	if err != nil || done.Hours != 1 || done.Before != 5 || done.After != 1 || len(done.Left) != 0 ||
		told != "cluster=eu1/date=2026-11-25/hour=12 5 1\n" {
		t.Fatalf("%+v, %v, %q", done, err, told)
	}
	if got := files(t, dir); len(got) != 6 || got[0] != "cluster=eu1/date=2026-11-25/hour=12/joined_00000.parquet" {
		t.Errorf("%q", got)
	}
	same := func(a, b demand.Row) bool {
		return a.Node == b.Node && a.Cgroup == b.Cgroup && a.Start.Equal(b.Start) &&
			*a.UsedCPUSeconds == *b.UsedCPUSeconds && slices.Equal(a.Wanted, b.Wanted) && slices.Equal(a.Candidates, b.Candidates)
	}
	if got := all(t, dir); !slices.EqualFunc(got, before, same) {
		t.Errorf("%d rows, %d before", len(got), len(before))
	}
	if done, err = join.Do(t.Context(), dir); err != nil || done.Hours != 0 {
		t.Errorf("again: %+v, %v", done, err)
	}
	hosts(t, dir, noon.Add(5*time.Minute), 2, 3)
	if done, err = join.Do(t.Context(), dir); err != nil || done.After != 1 {
		t.Errorf("late: %+v, %v", done, err)
	}
	if got := files(t, dir); !slices.Equal(got[:2], []string{"cluster=eu1/date=2026-11-25/hour=12/joined_00000.parquet",
		"cluster=eu1/date=2026-11-25/hour=12/joined_00001.parquet"}) || len(got) != 7 || len(all(t, dir)) != len(before)+6 {
		t.Errorf("%q", got)
	}
}

// A file has no more rows than it may; of a file that cannot be read nothing goes, and a folder that is no hour is left
// alone.
func TestJoinInParts(t *testing.T) {
	dir := t.TempDir()
	hosts(t, dir, noon, 7, 4)
	hour := filepath.Join(dir, "cluster=eu1", "date=2026-11-25", "hour=12")
	for name, content := range map[string]string{filepath.Join(hour, "cut.parquet"): "PAR1",
		filepath.Join(hour, "n9.parquet.damaged"): "x", filepath.Join(dir, "notes"): "y"} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	odd := filepath.Join(dir, "cluster=eu1", "date=2026-11-25", "hour=late")
	if err := os.MkdirAll(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	done, err := Join{Ended: noon.Add(2 * time.Hour), Rows: 10}.Do(t.Context(), dir)
	if err != nil || done.Before != 6 || done.After != 3 || len(done.Left) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	want := []string{"cut.parquet", "joined_00000.parquet", "joined_00001.parquet", "joined_00002.parquet",
		"n6.parquet", "n9.parquet.damaged"}
	got := files(t, dir)
	for i := range got {
		got[i] = filepath.Base(got[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Join{Ended: noon.Add(2 * time.Hour)}).Do(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := (Join{}).Do(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What copies files of hosts into the folder, such as rsync, brings those again that join removed. However often both
// run there are as many files and the same rows. A copy that has more than what was joined is joined too.
func TestJoinAndCopiesTakeTurns(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	hour := "cluster=eu1/date=2026-11-25/hour=12"
	copied := func() {
		t.Helper()
		for _, name := range files(t, from) {
			data, err := os.ReadFile(filepath.Join(from, name))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	join := Join{Ended: noon.Add(2 * time.Hour), Rows: 12}
	rounds := func(what string, want ...string) {
		t.Helper()
		for i := range want {
			want[i] = filepath.Join(filepath.FromSlash(hour), want[i])
		}
		for i := range 4 {
			copied()
			done, err := join.Do(t.Context(), dir)
			if err != nil || len(done.Left) != 0 || i > 0 && (done.Before != 0 || done.After != 0) {
				t.Fatalf("%s, round %d: %+v, %v", what, i, done, err)
			}
			if got := files(t, dir); !slices.Equal(got, want) {
				t.Fatalf("%s, round %d: %q, want %q", what, i, got, want)
			}
			if got, want := len(all(t, dir)), len(all(t, from)); got != want {
				t.Fatalf("%s, round %d: %d rows, want %d", what, i, got, want)
			}
		}
	}
	hosts(t, from, noon, 5, 3)
	rounds("as joined", "joined_00000.parquet", "n4.parquet")
	hosts(t, from, noon.Add(5*time.Minute), 1, 3)
	rounds("one has more", "joined_00000.parquet", "joined_00001.parquet")
	hosts(t, from, noon.Add(5*time.Minute), 2, 3)
	rounds("another one has", "joined_00000.parquet", "joined_00001.parquet", "n1.parquet")
}

// Files that programs joined before they kept what they joined: a copy is joined once more, and not again and again.
func TestCopiesOfFilesJoinedEarlier(t *testing.T) {
	dir := t.TempDir()
	hosts(t, dir, noon, 3, 2)
	rows := all(t, dir)
	if err := write(filepath.Join(dir, "cluster=eu1", "date=2026-11-25", "hour=12", JoinedFile(0)), rows); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		hosts(t, dir, noon, 3, 2)
		done, err := Join{Ended: noon.Add(2 * time.Hour)}.Do(t.Context(), dir)
		if got := files(t, dir); err != nil || len(got) != 2 || done.Again != min(i, 1)*3 || len(all(t, dir)) != len(rows) {
			t.Errorf("round %d: %+v, %v, %q", i, done, err, got)
		}
	}
	// A joined file that cannot be read holds nothing, and is told.
	name := filepath.Join(dir, "cluster=eu1", "date=2026-11-25", "hour=12", JoinedFile(1))
	if err := os.WriteFile(name, []byte("PAR1 cut"), 0o644); err != nil {
		t.Fatal(err)
	}
	hosts(t, dir, noon, 3, 2)
	done, err := Join{Ended: noon.Add(2 * time.Hour)}.Do(t.Context(), dir)
	if err != nil || done.Before != 3 || done.After != 1 || done.Again != 0 || len(done.Left) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}
