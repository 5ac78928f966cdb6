package report

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/fleet/generate"
	"github.com/unthrottle/unthrottle/fleet/spark"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// localCluster has two workers, each a process of its own.
const localCluster = spark.Master("local-cluster[2,1,1024]")

// hardFleet writes a fleet with all that makes engines differ, and returns its files and which of them cannot be read.
func hardFleet(t *testing.T) (files, bad []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a'; DROP TABLE loaded; --[1]*?{a,b} +%20é\n")
	if _, err := generate.Make(t.Context(), dir, generate.Options{Hosts: 3, Containers: 12, Seed: 5, Start: noon,
		Hours: 1, Bound: 0.001, Priced: 0.7}); err != nil {
		t.Fatal(err)
	}
	rows := slices.Concat(hugeRows(), oddlyNamedRows(), curedRows(), badRows(), poolRows())
	late := rowOf("huge", 1, noon.Add(-time.Hour), 8, 4)
	late.Node = "huge"
	gone := rowOf("mail", 8, noon.Add(-time.Hour), 4, 3)
	gone.Node = "gone"
	beside := rowOf("beside", 1, noon, 8, 4)
	errs := []error{store.Write(dir, rows), store.Write(dir, []demand.Row{late, gone, part(beside, 0, 200)})}
	copies := t.TempDir()
	errs = append(errs, store.Write(copies, []demand.Row{part(beside, 150, 150), rows[0], rows[1]}),
		os.CopyFS(filepath.Join(dir, "cluster=copy"), os.DirFS(filepath.Join(copies, "cluster=eu1"))))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	of := func(name string) string {
		return filepath.Join(dir, "cluster=eu1", "date=2026-11-25", "hour=12", name+".parquet")
	}
	hardFiles(t, of)
	joined(t, of("n0"), of("joined"))
	colon := rowOf("cart", 9, noon, 8, 4)
	colon.Cluster = "eu:2"
	plain := t.TempDir() // Spark does not find a colon beside a character of patterns
	if err := store.Write(plain, []demand.Row{colon}); err != nil {
		t.Fatal(err)
	}
	files = filesIn(t, plain)
	if err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".parquet") {
			files = append(files, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files, []string{of("changed"), of("cut"), of("empty"), of("other")}
}

// hardFiles are files of older versions, and damaged ones.
func hardFiles(t *testing.T, of func(name string) string) {
	t.Helper()
	for no, columns := range []*regexp.Regexp{laterColumns, hostColumns, waitingColumns, stopColumns, recordingColumns,
		pricedColumns, objectiveColumns} {
		r := withCandidates(rowOf("older", no, noon, 4, 4))
		r.Node = fmt.Sprint("older", no)
		older(t, of(r.Node), r, columns)
	}
	huge, err := os.ReadFile(of("huge"))
	if err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(huge)
	for i := range 200 { // within the pages
		changed[len(changed)/8+i] ^= 0x5a
	}
	errs := []error{os.WriteFile(of("cut"), huge[:len(huge)/2], 0o644), os.WriteFile(of("changed"), changed, 0o644),
		os.WriteFile(of("empty"), nil, 0o644),
		os.WriteFile(of("other"), []byte("no Parquet at all"), 0o644)}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// hugeRows are of one service that is most of the fleet.
func hugeRows() (rows []demand.Row) {
	for no := range 150 {
		for slot := range 2 {
			r := withLong(withCandidates(rowOf("huge", no, noon.Add(time.Duration(slot)*demand.SlotLength), 8, int32(2+no%7))))
			r.Node, r.StoppedHighSeconds, r.ThrottledPodSeconds = "huge", new(float64(no)/100), new(float64(no%3))
			r.WaitingQuotaSeconds, r.WaitingAncestorSeconds, r.WaitingContentionSeconds,
				r.WaitingUnclearSeconds = new(1.0), new(2.0), new(float64(no)/7), new(0.5)
			r.Stops = []demand.Stop{{Microseconds: 4096, Periods: int32(1 + no)}, {Microseconds: 98_304, Periods: 2}}
			if no%7 == 0 {
				r = priced(r)
				r.ObjectiveQuantile, r.ObjectiveMicroseconds = r.PricedQuantile, r.PricedMicroseconds
			}
			if no%5 == 0 {
				r.RecordedSeconds, r.RequestCount = new(10.0), new(int64(no+3))
				r.Requests = []demand.Request{{Microseconds: 2048, Count: int32(no + 2)}, {Microseconds: 98_304, Count: 1}}
				r.Responses = []demand.Response{{Role: "http-'\"\u2028", Microseconds: 2048, Count: 5},
					{Role: "http-'\"\u2028", Microseconds: 98_304, Count: 1}, {Role: "main", Microseconds: 16, Count: int32(1 + no)}}
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// oddlyNamedRows have names that a query or a page must not take for its own text, and rows in which little was measured.
func oddlyNamedRows() (rows []demand.Row) {
	for no, node := range []string{"[n]*'?{a,b}", "x+y z%", "ü\U0001f600", "--", "'"} {
		r := rowOf("cart", no, noon, 8, 4)
		r.Node, r.Service, r.Pod = node, "x'); DROP TABLE loaded; --\x1b[2J<script>\\"+node, node
		rows = append(rows, r)
		r.Start, r.Began = noon.Add(demand.SlotLength), noon.Add(demand.SlotLength+1500*time.Millisecond)
		r.RequestCPUs, r.OwnLimitCPUs, r.LimitCPUs, r.UsedCPUSeconds, r.WantedCPUSeconds = nil, nil, nil, nil, nil
		r.StoppedLowSeconds, r.StoppedHighSeconds, r.AllowedCPUs, r.Width, r.Wanted = nil, nil, nil, nil, nil
		rows = append(rows, r)
	}
	return rows
}

// curedRows are of a burst that came into force.
func curedRows() (rows []demand.Row) {
	for slot := range 4 {
		r := withCandidates(rowOf("mail", 3, noon.Add(time.Duration(slot)*demand.SlotLength), 4, 6))
		if r.StoppedHighSeconds = new(5.0); slot > 1 {
			r.Remedy, r.StoppedHighSeconds = string(remedy.Burst), new(1.0)
		}
		r = priced(r)
		r.RecordedSeconds, r.RequestCount = new(10.0), new(int64(30))
		r.Requests = []demand.Request{{Microseconds: 2048, Count: 29}, {Microseconds: 98_304, Count: 1}}
		rows = append(rows, r)
	}
	return rows
}

// badRows are rows that no version wrote.
func badRows() (rows []demand.Row) {
	for no, of := range []func(*demand.Row){
		func(r *demand.Row) { r.Schema = 9 }, func(r *demand.Row) { r.OwnLimitCPUs = new(math.NaN()) },
		func(r *demand.Row) { r.UsedCPUSeconds = new(math.Inf(1)) },
		func(r *demand.Row) { r.Width = []demand.Level{{CPUs: -1, Microseconds: 5}} },
		func(r *demand.Row) { r.Start = noon.Add(time.Second) },
		func(r *demand.Row) { *r = withCandidates(*r); r.Candidates[1].Step = 0 },
		func(r *demand.Row) { r.Stops = []demand.Stop{{Microseconds: 4096, Periods: -1}} },
		func(r *demand.Row) {
			r.RecordedSeconds = new(10.0)
			r.Requests = []demand.Request{{Microseconds: 1 << 40, Count: 1}}
		},
		func(r *demand.Row) {
			r.RecordedSeconds = new(10.0)
			r.Responses = []demand.Response{{Role: "main", Microseconds: 16, Count: 0}}
		},
		func(r *demand.Row) { r.RecordedSeconds = new(-1.0) },
		func(r *demand.Row) { *r = priced(*r); r.PricedAt = nil },
		func(r *demand.Row) { r.ObjectiveQuantile = new(0.99) },
		func(r *demand.Row) { *r = priced(*r); r.Prices[1].HighMilliCPUs = new(int32(1)) },
		func(r *demand.Row) { *r = priced(*r); r.Prices[1].Remedy = "turbo" },
		func(r *demand.Row) { *r = priced(*r); r.PricedQuantile = new(math.NaN()) },
		func(r *demand.Row) { r.Pools = []demand.Pool{{Pool: "tomcat", Threads: 9, Runnable: 10}} },
	} {
		r := rowOf("bad", no, noon, 8, 4)
		of(&r)
		rows = append(rows, r)
	}
	return rows
}

// poolRows are of services with pools, and of one that is pinned.
func poolRows() (rows []demand.Row) {
	for no, limit := range []float64{1.5, 4, 4} {
		r := rowOf("pools", no, noon, limit, 3)
		r.Pools = []demand.Pool{{Pool: "netty-nio", Threads: 16, Runnable: 3, RunnableP99: 1, Running: 2, DefaultCPUs: new(int32(8))},
			{Name: "bus';-*", Threads: 100, Runnable: int32(no)}}
		rows = append(rows, r)
	}
	pinned := rowOf("web", 4, noon, 4, 3)
	pinned.Remedy, pinned.AllowedCPUs, pinned.HostGroups, pinned.CPUList = string(remedy.Pin), new(int32(4)), eightThreads, "0-1,4-5"
	rows = append(rows, pinned)
	return rows
}

// joined writes the rows of one file as DuckDB does, as the page of the report says.
func joined(t *testing.T, from, to string) {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	plain := filepath.Join(t.TempDir(), "joined.parquet")
	rows, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain, rows, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "COPY (SELECT * FROM read_parquet("+quoted(plain)+
		", hive_partitioning = false)) TO "+quoted(plain+".new")+" (FORMAT parquet, COMPRESSION zstd)"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(plain+".new", to); err != nil {
		t.Fatal(err)
	}
}

// answers are the rows of every question, and the files that were left out.
func answers(t *testing.T, e engine.Engine, files []string) (rows map[string][][]any, refused []string) {
	t.Helper()
	s := script(noon, time.Time{}, allQuestions...)
	left, err := e.Prepare(t.Context(), files, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range left {
		refused = append(refused, r.File)
	}
	slices.Sort(refused)
	rows = map[string][][]any{}
	for _, q := range s.Questions {
		if err := e.Ask(t.Context(), q.Name, func(columns []string, scan func(...any) error) error {
			row := make([]any, len(columns))
			to := make([]any, len(row))
			for i := range row {
				to[i] = &row[i]
			}
			err := scan(to...)
			for i, v := range row {
				row[i] = plainValue(v)
			}
			rows[q.Name] = append(rows[q.Name], row)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return rows, refused
}

// allQuestions are those of the report and of the plan, each once.
var allQuestions = slices.Compact(slices.Sorted(slices.Values(slices.Concat(ofReport, ofPlan))))

// plainValue is a value whatever type an engine gave it.
func plainValue(v any) any {
	switch v := v.(type) {
	case int8:
		return float64(v)
	case int32:
		return float64(v)
	case int64:
		return float64(v)
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return f
	}
	return v
}

// sameRows compares answers. Two orders of adding up differ in the last digits.
func sameRows(t *testing.T, want, got map[string][][]any) {
	t.Helper()
	for name := range want {
		if len(want[name]) != len(got[name]) {
			t.Errorf("%s: %d rows, not %d", name, len(got[name]), len(want[name]))
			continue
		}
		for i, row := range want[name] {
			if !slices.EqualFunc(row, got[name][i], func(a, b any) bool {
				x, isX := a.(float64)
				y, isY := b.(float64)
				if isX && isY {
					return math.Abs(x-y) <= 1e-9*max(1, math.Abs(x))
				}
				return a == b
			}) {
				t.Errorf("%s, row %d:\n%v, not\n%v", name, i, got[name][i], row)
			}
		}
	}
}

// onSpark is a run of Spark for this test, with the driver's memory that the program gives by itself: the driver has
// the cluster's master and workers in its process.
func onSpark(t *testing.T, submit string, progress func(spark.Step)) *spark.Engine {
	t.Helper()
	e, err := spark.Open(spark.Options{Master: localCluster, Submit: submit, MemoryMB: 2048, Dir: t.TempDir(), Progress: progress})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Each question has answers about the fleet on which engines are compared.
func TestEachQuestionHasAnswers(t *testing.T) {
	files, bad := hardFleet(t)
	rows, refused := answers(t, opened(t, 0), files)
	if !slices.Equal(refused, bad) {
		t.Errorf("left out: %q", refused)
	}
	for _, name := range allQuestions {
		if len(rows[name]) == 0 {
			t.Errorf("%s: the fleet has no row of it", name)
		}
	}
}

// Row for row the two engines say the same, and leave the same files out; also where a worker of Spark is killed once
// it holds rows. So the reports are equal.
func TestSparkIsDuckDB(t *testing.T) {
	submit := require.Spark(t)
	files, bad := hardFleet(t)
	want, _ := answers(t, opened(t, 0), files)
	t.Run("whole", func(t *testing.T) {
		got, refused := answers(t, onSpark(t, submit, nil), files)
		if !slices.Equal(refused, bad) {
			t.Errorf("Spark leaves out %q", refused)
		}
		sameRows(t, want, got)
	})
	t.Run("a worker is killed", func(t *testing.T) {
		var killed atomic.Int64
		e := onSpark(t, submit, func(s spark.Step) {
			if s.Step == spark.Made && s.Name == "unsound" {
				killed.Add(int64(killWorker(t)))
			}
		})
		o := Options{Files: files, Now: noon.Add(time.Hour), Bound: 0.001}
		got, err := Make(t.Context(), e, o)
		if err != nil || killed.Load() != 1 {
			t.Fatalf("%d workers were killed: %v", killed.Load(), err)
		}
		want, err := Make(t.Context(), opened(t, 0), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []*view.Document{&want, &got} { // engines have words of their own for what is wrong with a file
			slices.SortFunc(d.Input.Refused, func(a, b view.Refused) int { return strings.Compare(a.File, b.File) })
			for i := range d.Input.Refused {
				d.Input.Refused[i].Why = ""
			}
		}
		a, errA := json.MarshalIndent(want, "", " ")
		b, errB := json.MarshalIndent(got, "", " ")
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%v, %v: DuckDB:\n%s\nSpark:\n%s", errA, errB, a, b)
		}
	})
}

// killWorker kills one process that runs tasks, of the Spark that this test started.
func killWorker(t *testing.T) (killed int) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Error(err)
	}
	group := -1
	for _, p := range processes {
		if parent, of, _ := processOf(p); parent == os.Getpid() && group < 0 && of != unix.Getpgrp() {
			group = of
		}
	}
	for _, p := range processes {
		no, err := strconv.Atoi(filepath.Base(p))
		if _, of, line := processOf(p); err == nil && group > 0 && of == group &&
			strings.Contains(line, "CoarseGrainedExecutorBackend") && killed == 0 {
			if err := unix.Kill(no, unix.SIGKILL); err == nil {
				killed++
			}
		}
	}
	return killed
}

// processOf is the parent, the group and the command line of a process.
func processOf(dir string) (parent, group int, line string) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0, 0, ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 3 {
		return 0, 0, ""
	}
	parent, _ = strconv.Atoi(fields[1])
	group, _ = strconv.Atoi(fields[2])
	command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	return parent, group, strings.ReplaceAll(string(command), "\x00", " ")
}
