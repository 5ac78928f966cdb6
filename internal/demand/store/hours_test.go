package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/unthrottle/unthrottle/internal/demand"
)

// Hours are of one node, and neither put aside nor of a time to come; an hour that ended just then is too old.
func TestHours(t *testing.T) {
	dir := t.TempDir()
	for _, h := range []int{-26, -25, -1, 0, 3} {
		if err := Write(dir, slot(noon.Add(time.Duration(h)*time.Hour), 1)); err != nil {
			t.Fatal(err)
		}
	}
	names := demand.Names{Cluster: "eu1", Node: "n17"}
	of := func(h int) string {
		r := demand.Row{Cluster: "eu1", Node: "n17", Start: noon.Add(time.Duration(h) * time.Hour)}
		return filepath.Join(dir, File(&r))
	}
	if err := os.Rename(of(-1), asides(of(-1))[0]); err != nil {
		t.Fatal(err)
	}
	hours, err := Hours(dir, names, noon.Add(-25*time.Hour), noon.Add(time.Minute))
	if err != nil || len(hours) != 2 || hours[0].File != of(-25) || hours[1].File != of(0) || !hours[1].Began.Equal(noon) ||
		hours[1].Bytes == 0 || hours[1].Changed.IsZero() {
		t.Errorf("%+v, %v", hours, err)
	}
	if hours, err := Hours(dir, demand.Names{Cluster: "eu1", Node: "n18"}, noon, noon); err != nil || len(hours) != 0 {
		t.Errorf("of another node: %+v, %v", hours, err)
	}
}

// A file is read whole in portions. One of other rows, of another version, and one that is cut off is damaged; one that is gone is not.
func TestScan(t *testing.T) {
	dir := t.TempDir()
	rows := slot(noon, 2*batch+7)
	name := filepath.Join(dir, "whole.parquet")
	if err := write(name, rows); err != nil {
		t.Fatal(err)
	}
	all, cgroups := 0, map[int64]bool{}
	if err := Scan(name, func(rows []demand.Row) {
		for i := range rows {
			cgroups[rows[i].Cgroup] = true
		}
		all += len(rows)
	}); err != nil || all != len(rows) || len(cgroups) != len(rows) {
		t.Errorf("%d rows of %d containers, %v", all, len(cgroups), err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	cut, other, version := filepath.Join(dir, "cut.parquet"), filepath.Join(dir, "other.parquet"), filepath.Join(dir, "version.parquet")
	if err := os.WriteFile(cut, text[:len(text)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile(other, []struct{ A int }{{1}}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(version)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := parquet.Write(f, rows[:1], parquet.KeyValueMetadata(schemaKey, "7")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{cut: "cut.parquet: damaged: ", other: `its unthrottle.schema is ""`,
		version: `its unthrottle.schema is "7", and this program reads 1`} {
		if err := Scan(name, func([]demand.Row) {}); !IsDamaged(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if err := Scan(filepath.Join(dir, "gone.parquet"), func([]demand.Row) {}); err == nil || IsDamaged(err) {
		t.Errorf("a file that is gone: %v", err)
	}
}
