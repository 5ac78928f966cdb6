package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// A stopped container's row has what it used, wanted and lost; a second run of the same five minutes adds to the same files.
func TestExport(t *testing.T) {
	t.Parallel()
	require.BPF(t)
	tr := cgrouptest.New(t)
	busy := tr.Make("busy")
	tr.Limit(busy, 0.2)
	tr.Work(busy, 3)
	dir := filepath.Join(t.TempDir(), "rows")
	run := func() Exported {
		return decoded[Exported](t, unraced(t, "export", "--dir", dir, "--for", "3s", "--below", tr.Top, "--node", "n1",
			"--cluster", "c/1", "--state-dir", tr.StateDir, "--json"), 0)
	}
	got := run()
	if got.Rows < 1 || got.Containers != 1 || got.Probe != nil {
		t.Fatalf("%+v", got)
	}
	rows := exported(t, dir)
	var used, wanted, stopped, seconds float64
	for _, r := range rows {
		if r.Cluster != "c/1" || r.Node != "n1" || r.LimitCPUs == nil || *r.LimitCPUs != 0.2 ||
			r.UsedCPUSeconds == nil || r.WantedCPUSeconds == nil || r.StoppedHighSeconds == nil || len(r.Wanted) == 0 {
			t.Fatalf("%+v", r)
		}
		used, wanted, stopped, seconds = used+*r.UsedCPUSeconds, wanted+*r.WantedCPUSeconds,
			stopped+*r.StoppedHighSeconds, seconds+r.Seconds
	}
	if used > 0.4*seconds || wanted < 2*used || stopped < 0.2*seconds {
		t.Errorf("in %.1f s it used %.2f CPU seconds, wanted %.2f, and was stopped for %.2f s", seconds, used, wanted, stopped)
	}
	run()
	if again := exported(t, dir); len(again) < len(rows) {
		t.Errorf("%d rows after %d", len(again), len(rows))
	}
}

// exported are all rows of a folder.
func exported(t *testing.T, dir string) (rows []demand.Row) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if filepath.Ext(name) != ".parquet" {
			t.Errorf("what is %s?", name)
			return nil
		}
		all, err := store.Read(name)
		rows = append(rows, all...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestExportRefuses(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "rows")
	for _, args := range [][]string{{"export"}, {"export", "--dir", ""}, {"export", "--dir", "/dev/null/x", "--for", "1s"},
		{"export", "--dir", rows, "--for", "-1s"}, {"export", "--dir", rows, "--for", "0s"}} { // else until interrupted
		if got := unthrottle(t, args...); got.code != 2 || got.out != "" {
			t.Errorf("%q: exit code %d, %q", args, got.code, got.out)
		}
	}
}
