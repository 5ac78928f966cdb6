package report

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// Files of older programs, without the newer columns, count beside others, however many are read at once.
func TestOlderFiles(t *testing.T) {
	dir := t.TempDir()
	var rows []demand.Row
	for no := range 10 {
		r := priced(withLong(withCandidates(rowOf([]string{"cart", "mail", "news"}[max(0, no-7)], no, noon, 4, 4))))
		r.Node = fmt.Sprintf("n%d", no)
		rows = append(rows, r)
	}
	if err := store.Write(dir, rows); err != nil {
		t.Fatal(err)
	}
	for no, columns := range map[int]*regexp.Regexp{0: laterColumns, 1: hostColumns, 2: waitingColumns, 3: laterColumns,
		4: laterColumns, 5: stopColumns, 6: recordingColumns, 7: pricedColumns, 8: objectiveColumns, 9: longColumns} {
		older(t, filepath.Join(dir, "cluster=eu1", "date=2026-11-25", "hour=12", fmt.Sprintf("n%d.parquet", no)), rows[no], columns)
	}
	for _, batch := range []int{0, 1, 4} {
		d, err := asked(t, dir, batch)
		if err != nil {
			t.Fatal(err)
		}
		if d.Containers != 10 || d.ByBounds != 3 || d.Priced != 2 || len(d.Input.Refused) != 0 || len(d.Input.Problems) != 0 {
			t.Errorf("%d files at once: %d containers, %d by bounds, %d priced, %+v", batch, d.Containers, d.ByBounds, d.Priced, d.Input)
		}
	}
}

// Columns that programs before them do not have: those of longer periods, before them those of objectives, before them those of prices
// and of pools, before these those of
// recordings and of CPU lists, before these that of stops, before it those of waiting, before these those of the host and
// of memory, and before these those of periods.
var (
	longColumns      = regexp.MustCompile("^Long")
	objectiveColumns = regexp.MustCompile("^Long|^Objective")
	pricedColumns    = regexp.MustCompile("^Long|^Price|^Pools$|^Objective")
	recordingColumns = regexp.MustCompile(newestColumns)
	stopColumns      = regexp.MustCompile(newestColumns + "|^Stops$")
	waitingColumns   = regexp.MustCompile(newestColumns + "|^Stops$|^Waiting")
	hostColumns      = regexp.MustCompile(newestColumns + "|^Stops$|^Waiting|^Host|^Memory")
	laterColumns     = regexp.MustCompile(newestColumns + "|^Stops$|^Waiting|^Host|^Memory|Candidate|^PeriodMicroseconds$")
)

const newestColumns = "^Long|^Price|^Pools$|^Objective|^Recorded|^Re(sponses|quests)$|^RequestCount|^HostGroups|^CPUList"

// older writes a row as programs without some columns did.
func older(t *testing.T, name string, r demand.Row, without *regexp.Regexp) {
	t.Helper()
	var kept []reflect.StructField
	for _, f := range reflect.VisibleFields(reflect.TypeFor[demand.Row]()) {
		if !without.MatchString(f.Name) {
			kept = append(kept, reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag})
		}
	}
	row := reflect.New(reflect.StructOf(kept)).Elem()
	for i, f := range kept {
		row.Field(i).Set(reflect.ValueOf(r).FieldByName(f.Name))
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewWriter(f, parquet.SchemaOf(row.Addr().Interface()))
	if err := errors.Join(w.Write(row.Addr().Interface()), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Rows that are there twice count once, wherever the copy is; so do the same five minutes as two programs saw them. Two
// programs one after the other have a row each.
func TestRowsCountOnce(t *testing.T) {
	r := rowOf("cart", 0, noon, 8, 4)
	unfinished, beside := part(r, 0, 100), part(r, 150, 150)
	mail := rowOf("mail", 1, noon, 4, 2)
	one := t.TempDir()
	for i, rows := range [][]demand.Row{{r, part(mail, 0, 140), part(mail, 150, 150)}, {unfinished, beside}} {
		dir := t.TempDir()
		if err := store.Write(dir, rows); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(one, fmt.Sprint("cluster=copy", i)), os.DirFS(filepath.Join(dir, "cluster=eu1"))); err != nil {
			t.Fatal(err)
		}
	}
	d, err := asked(t, one, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d.Input.Rows != 5 || d.Input.Copies != 1 || d.Input.Overlapping != 1 || d.Containers != 2 {
		t.Errorf("%+v, %d containers", d.Input, d.Containers)
	}
	near(t, "now", &d.Ledger.CoresNow, 12)
	near(t, "of the row that saw most", serviceOf(t, d, "cart/app").UsedCPUs, 104.0/300)
	if u := serviceOf(t, d, "mail/app").Unknown; u != 0 {
		t.Error("both rows of a slot make five minutes")
	}
}

// A file that is cut off, one of nothing, one of something else, and one without a column are named, and the others
// count. So are rows that cannot be. However many files are read at once.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	at := func(node string) string {
		return filepath.Join(dir, "cluster=eu1", "date=2026-11-25", "hour=12", node+".parquet")
	}
	var rows []demand.Row
	for no := range 20 {
		r := rowOf("cart", no, noon, 8, 4)
		r.Node = fmt.Sprintf("n%02d", no)
		rows = append(rows, r)
	}
	bad := map[string]func(r *demand.Row){
		"used": func(r *demand.Row) { r.UsedCPUSeconds = new(1e12) }, "nan": func(r *demand.Row) { r.OwnLimitCPUs = new(math.NaN()) },
		"stopped":   func(r *demand.Row) { r.StoppedHighSeconds = new(900.0) },
		"start":     func(r *demand.Row) { r.Start, r.Began = noon.Add(time.Second), noon.Add(time.Second) },
		"histogram": func(r *demand.Row) { r.Wanted = []demand.Level{{CPUs: 1, Microseconds: 1e12}} },
		"schema":    func(r *demand.Row) { r.Schema = 9 },
		"extreme":   func(r *demand.Row) { *r = withCandidates(*r); r.Candidates[1].Step = math.MaxInt32 },
		"least":     func(r *demand.Row) { *r = withCandidates(*r); r.Candidates[0].Step = math.MinInt32 },
		"step":      func(r *demand.Row) { *r = withCandidates(*r); r.Candidates[1].Step = 99 },
		"twice":     func(r *demand.Row) { *r = withCandidates(*r); r.Candidates[1].Step = 0 },
		"longer":    func(r *demand.Row) { *r = withCandidates(*r); r.Candidates[2].StoppedMicroseconds = 1e12 },
		"known":     func(r *demand.Row) { *r = withCandidates(*r); *r.CandidateSeconds = -1 },
		"period":    func(r *demand.Row) { *r = withCandidates(*r); *r.PeriodMicroseconds = 0 },
		"gap":       func(r *demand.Row) { *r = withLong(withCandidates(*r)); r.LongBursts[1].Step = 9 },
		"again":     func(r *demand.Row) { *r = withLong(withCandidates(*r)); r.LongBursts[1].Step = -2 },
		"too long": func(r *demand.Row) {
			*r = withLong(withCandidates(*r))
			r.LongBursts[1].BurstPeriodMicroseconds = 2_000_000
		},
		"of nothing": func(r *demand.Row) { *r = withLong(*r) },
		"host":       func(r *demand.Row) { r.HostCPUs = new(int32(0)) },
		"memory":     func(r *demand.Row) { r.MemoryBytes = new(int64(-1)) },
		"negative":   func(r *demand.Row) { r.Width = []demand.Level{{CPUs: -1, Microseconds: 5}} },
		"objective":  func(r *demand.Row) { r.ObjectiveMicroseconds = new(int64(20_000)) },
		"goal":       func(r *demand.Row) { r.ObjectiveQuantile, r.ObjectiveMicroseconds = new(99.0), new(int64(20_000)) },
		"unpriced":   func(r *demand.Row) { *r = priced(*r); r.PricedAt = nil },
		"long ago":   func(r *demand.Row) { *r = priced(*r); r.PricedAt = new(r.Start.AddDate(0, 0, -2)) },
		"quantile":   func(r *demand.Row) { *r = priced(*r); r.PricedQuantile = new(math.NaN()) },
		"unjudged":   func(r *demand.Row) { *r = priced(*r); r.PricedQuantile, r.PricedMicroseconds = nil, nil },
		"latency":    func(r *demand.Row) { *r = priced(*r); r.PricedMicroseconds = new(int64(-1)) },
		"no CPUs":    func(r *demand.Row) { *r = priced(*r); r.Prices[1].MilliCPUs = new(int32(0)) },
		"many CPUs":  func(r *demand.Row) { *r = priced(*r); r.Prices[1].HighMilliCPUs = new(int32(math.MaxInt32)) },
		"low":        func(r *demand.Row) { *r = priced(*r); r.Prices[1].LowMilliCPUs = new(int32(4000)) },
		"high":       func(r *demand.Row) { *r = priced(*r); r.Prices[1].HighMilliCPUs = new(int32(1)) },
		"surely":     func(r *demand.Row) { *r = priced(*r); r.Prices[1].MilliCPUs = nil },
		"remedy":     func(r *demand.Row) { *r = priced(*r); r.Prices[1].Remedy = "turbo" },
		"remedies":   func(r *demand.Row) { *r = priced(*r); r.Prices[1].Remedy = r.Prices[0].Remedy },
		"long high":  func(r *demand.Row) { *r = priced(*r); r.LongPrices[0].HighMilliCPUs = new(int32(1)) },
		"long twice": func(r *demand.Row) { *r = priced(*r); r.LongPrices = slices.Repeat(r.LongPrices, 2) },
		"long no":    func(r *demand.Row) { *r = priced(*r); r.LongPrices[0].MilliCPUs = 0 },
		"ran":        func(r *demand.Row) { r.Pools = []demand.Pool{{Pool: "tomcat", Threads: 10, Runnable: 11}} },
		"ninth":      func(r *demand.Row) { r.Pools = slices.Repeat([]demand.Pool{{Name: "x", Threads: 2}}, 9) },
		"threadless": func(r *demand.Row) { r.Pools = []demand.Pool{{Pool: "tomcat"}} },
		"cpus": func(r *demand.Row) {
			r.Pools = []demand.Pool{{Pool: "tomcat", Threads: 10, DefaultCPUs: new(int32(0))}}
		},
	}
	for name, of := range bad {
		r := rowOf("bad", 1, noon, 8, 4)
		r.Node = "bad-" + name
		of(&r)
		rows = append(rows, r)
	}
	if err := store.Write(dir, rows); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(at("n05"))
	if err != nil {
		t.Fatal(err)
	}
	type other struct {
		Schema int32 `parquet:"schema"`
	}
	if err := errors.Join(os.WriteFile(at("n05"), whole[:len(whole)/2], 0o644), os.WriteFile(at("n07"), nil, 0o644),
		os.WriteFile(at("n11"), []byte("no Parquet at all"), 0o644),
		parquet.WriteFile(at("n13"), []other{{1}})); err != nil {
		t.Fatal(err)
	}
	for _, batch := range []int{0, 1, 3} {
		d, err := asked(t, dir, batch)
		if err != nil {
			t.Fatal(err)
		}
		var refused []string
		for _, r := range d.Input.Refused {
			refused = append(refused, filepath.Base(r.File))
		}
		if slices.Sort(refused); !slices.Equal(refused, []string{"n05.parquet", "n07.parquet", "n11.parquet", "n13.parquet"}) {
			t.Errorf("%q", refused)
		}
		if !slices.ContainsFunc(d.Input.Refused, func(r view.Refused) bool {
			return strings.Contains(r.Why, `no column "start"`) && !strings.Contains(r.Why, "\n")
		}) {
			t.Errorf("the column that is missing is not named: %+v", d.Input.Refused)
		}
		left := int64(0)
		for _, p := range d.Input.Problems {
			if left += p.Rows; !strings.Contains(p.File, "bad-") {
				t.Errorf("%+v", p)
			}
		}
		if left != int64(len(bad)) || d.Containers != 16 || d.Input.Rows != int64(16+len(bad)) {
			t.Errorf("%d rows left out, %d containers, %d rows", left, d.Containers, d.Input.Rows)
		}
	}
}

// Bytes that changed on the disk never end the program: a file is refused, or its rows are judged.
func TestChangedBytes(t *testing.T) {
	dir := t.TempDir()
	if err := store.Write(dir, []demand.Row{rowOf("cart", 0, noon, 8, 4), rowOf("cart", 1, noon, 8, 4)}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "cluster=eu1", "date=2026-11-25", "hour=12", "n0.parquet")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(whole); i += 1 + len(whole)/30 {
		changed := slices.Clone(whole)
		changed[i] ^= 0x5a
		if err := os.WriteFile(name, changed, 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := asked(t, dir, 0)
		if err != nil {
			t.Fatalf("byte %d: %v", i, err)
		}
		if d.Containers < 1 || d.Input.Files != 2 {
			t.Errorf("byte %d: the other host's container is gone: %+v", i, d)
		}
	}
}

// Names of strangers are data: for SQL, for patterns of files, and for folders.
func TestHostileNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a'; DROP TABLE loaded; --[1]*?\n")
	r := rowOf("cart", 0, noon, 8, 4)
	r.Service, r.Node = "x'); DROP TABLE loaded; --\x1b[2J<script>", "[n]*'?"
	if err := store.Write(dir, []demand.Row{r, rowOf("cart", 1, noon, 8, 4)}); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, glob := range []string{"n1.parquet", "%5Bn%5D%2A%27%3F.parquet"} {
		files = append(files, filepath.Join(dir, "cluster=eu1", "date=2026-11-25", "hour=12", glob))
	}
	d, err := Make(t.Context(), opened(t, 0), Options{Files: files, Now: noon, Bound: 0.001})
	if err != nil || d.Containers != 2 || len(d.Input.Refused) != 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	serviceOf(t, d, r.Service)
}

// A clock that is ahead is told.
func TestClocksAhead(t *testing.T) {
	ahead := rowOf("cart", 1, noon.Add(3*time.Hour), 8, 4)
	d, _ := written(t, rowOf("cart", 0, noon, 8, 4), ahead)
	if len(d.Input.Ahead) != 1 || d.Input.Ahead[0].Host != "eu1/n1" || d.Input.Ahead[0].Seconds != 7200 || d.Containers != 2 {
		t.Errorf("%+v", d.Input)
	}
}

// Without a row that counts there is no report, and the error has what was there.
func TestNoRows(t *testing.T) {
	dir := t.TempDir()
	r := rowOf("cart", 0, noon, 8, 4)
	r.Schema = 9
	if err := store.Write(dir, []demand.Row{r}); err != nil {
		t.Fatal(err)
	}
	_, err := asked(t, dir, 0)
	none := new(NoRows)
	if !errors.As(err, &none) || none.Input.Rows != 1 || len(none.Input.Problems) != 1 ||
		!strings.Contains(err.Error(), "unthrottle export") {
		t.Errorf("%v, %+v", err, none.Input)
	}
}

// An end that is asked for ends it.
func TestCancelled(t *testing.T) {
	db := opened(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Prepare(ctx, []string{"/nothing.parquet"}, engine.Script{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
