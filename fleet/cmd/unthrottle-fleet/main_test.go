package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
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

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/unthrottle/unthrottle/fleet/duckdb"
	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/fleet/report"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
)

// called is what a call prints, and its error.
func called(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// rows writes an hour of so many containers, and returns the folder.
func rows(t *testing.T, containers int) string {
	t.Helper()
	dir, noon := t.TempDir(), time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	var all []demand.Row
	for slot := range 12 {
		at := noon.Add(time.Duration(slot) * demand.SlotLength)
		for i := range containers {
			levels := []demand.Level{{CPUs: 0, Microseconds: 250_000_000}, {CPUs: 1, Microseconds: 49_000_000},
				{CPUs: 3, Microseconds: 1_000_000}}
			all = append(all, demand.Row{Schema: demand.SchemaVersion, Start: at, Began: at, Seconds: 300, Samples: 300,
				Cluster: "eu1", Node: fmt.Sprint("n", i%3), Pod: fmt.Sprint("cart-", i),
				Container: "app", Service: "cart/app", Cgroup: int64(i), LimitCPUs: new(4.0), OwnLimitCPUs: new(4.0),
				LimitScope: "own", UsedCPUSeconds: new(52.0), WantedCPUSeconds: new(52.0),
				StoppedLowSeconds: new(0.0), StoppedHighSeconds: new(0.0), Width: levels, Wanted: levels})
		}
	}
	if err := store.Write(dir, all); err != nil {
		t.Fatal(err)
	}
	return dir
}

// validated reads a document, and compares it with its schema.
func validated(t *testing.T, name, out string) (document map[string]any) {
	t.Helper()
	text, err := os.ReadFile("../../../cmd/unthrottle/testdata/schema/" + name + ".v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := errors.Join(json.Unmarshal(text, &schema), json.Unmarshal([]byte(out), &document)); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(document); err != nil {
		t.Errorf("%v in\n%s", err, out)
	}
	return document
}

// A generated fleet gets a plan, as text and as JSON, with no more moves than it may.
func TestPlan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if _, err := called(t, "generate", "--hosts", "6", "--containers", "24", "--for", "1h", "--out", dir); err != nil {
		t.Fatal(err)
	}
	out, err := called(t, "plan", dir)
	if err != nil || !strings.Contains(out, "24 containers on 6 hosts now") || !strings.Contains(out, "Emptied hosts") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = called(t, "plan", dir, "--moves", "5", "-o", "json"); err != nil {
		t.Fatal(err)
	}
	d := validated(t, "fleet_plan", out)
	moves, _ := d["moves"].(float64)
	list, _ := d["move_list"].([]any)
	if moves < 1 || moves > 5 || len(list) != int(moves) || d["moves_at_most"] != 5.0 || d["hosts_now"] != 6.0 {
		t.Errorf("%s", out)
	}
}

// A report that also plans plans as plan does.
func TestReportAndPlan(t *testing.T) {
	dir, file := filepath.Join(t.TempDir(), "new"), filepath.Join(t.TempDir(), "plan.json")
	if _, err := called(t, "generate", "--hosts", "6", "--containers", "24", "--for", "1h", "--out", dir); err != nil {
		t.Fatal(err)
	}
	report, err := called(t, "report", dir, "--plan", file)
	alone, worse := called(t, "report", dir)
	want, worst := called(t, "plan", dir, "--json")
	got, bad := os.ReadFile(file)
	if err := errors.Join(err, worse, worst, bad); err != nil || report != alone {
		t.Fatalf("%v\n%s%s", err, report, alone)
	}
	plan, other := validated(t, "fleet_plan", string(got)), validated(t, "fleet_plan", want)
	delete(plan, "seconds")
	delete(other, "seconds")
	if !reflect.DeepEqual(plan, other) {
		t.Errorf("%s\n%s", got, want)
	}
}

// Text, JSON as its schema says, and the page.
func TestReport(t *testing.T) {
	dir := rows(t, 6)
	out, err := called(t, "report", dir)
	if err != nil || !strings.Contains(out, "6 containers of 1 service on 3 hosts") || !strings.Contains(out, "cart/app") {
		t.Errorf("%v\n%s", err, out)
	}
	page := filepath.Join(t.TempDir(), "fleet.html")
	out, err = called(t, "report", dir, "-o", "json", "--html", page)
	if err != nil {
		t.Fatal(err)
	}
	validated(t, "fleet_report", out)
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "cart/app") {
		t.Errorf("%v\n%s", err, html)
	}
	figures, patches := filepath.Join(t.TempDir(), "fleet.prom"), filepath.Join(t.TempDir(), "patches")
	if _, err = called(t, "report", dir, "--metrics", figures, "--patches", patches); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(figures); err != nil ||
		!strings.Contains(string(text), `unthrottle_fleet_service_cores{service="cart/app",state="now"}`) {
		t.Errorf("%v\n%s", err, text)
	}
	// Its containers have pods, but no namespace.
	if of, err := filepath.Glob(filepath.Join(patches, "*", "*")); err != nil || len(of) != 0 {
		t.Errorf("patches %q, %v", of, err)
	}
	if again, err := called(t, "report", dir, "--json"); err != nil || again != out {
		t.Errorf("another answer to the same question: %v\n%s", err, again)
	}
}

// Mistakes name what is wrong and the way out, and leave no page.
func TestMistakes(t *testing.T) {
	dir, empty := rows(t, 1), t.TempDir()
	file := filepath.Join(empty, "x")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	priced := func(lines string) string {
		name := filepath.Join(t.TempDir(), "prices")
		if err := os.WriteFile(name, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"report"}, "give one folder", exitFailure},
		{[]string{"report", "/no/such"}, "/no/such: no such folder", exitFailure},
		{[]string{"report", file}, "it is no folder", exitFailure},
		{[]string{"report", empty}, "no file of rows (*.parquet): 'unthrottle export", exitNotMeasurable},
		{[]string{"report", "gs://bucket/rows"}, "this version reads folders and s3://BUCKET/PREFIX", exitFailure},
		{[]string{"report", "s3a://bucket/rows"}, "give s3://BUCKET/PREFIX", exitFailure},
		{[]string{"plan", "s3:///rows"}, "is no name of a bucket", exitFailure},
		{[]string{"report", "s3://bucket/rows", "--on", "spark://a:7077"}, "Spark's other machines do not see", exitFailure},
		{[]string{"report", dir, "--disk", "-1"}, "leave it out for half of what is free", exitFailure},
		{[]string{"report", dir, "-o", "yaml"}, "choose text or json", exitFailure},
		{[]string{"report", dir, "--bound", "0"}, "above 0% and below 100%", exitFailure},
		{[]string{"report", dir, "--bound", "x"}, "above 0% and below 100%", exitFailure},
		{[]string{"report", dir, "--price", "-1"}, "--price: \"-1\" is not what a core costs in an hour", exitFailure},
		{[]string{"report", dir, "--price", "NaN"}, "give a number above 0 in your currency, such as 0.04", exitFailure},
		{[]string{"report", dir, "--price", "0.04 EUR"}, "give a number above 0", exitFailure},
		{[]string{"report", dir, "--price", "1e300"}, "give a number above 0", exitFailure},
		{[]string{"report", dir, "--price", ""}, "--price: it is empty", exitFailure},
		{[]string{"report", dir, "--prices", file}, "it has no price", exitFailure},
		{[]string{"report", dir, "--prices", filepath.Join(empty, "none")}, "no such file", exitFailure},
		{[]string{"generate", "--out", filepath.Join(dir, "g"), "--treated", "50%"}, "give --priced too", exitFailure},
		{[]string{"report", dir, "--prices", priced("spot-* 0.01\nn1 0,04")}, "line 2: \"0,04\" is not what", exitFailure},
		{[]string{"report", dir, "--prices", priced("0.04")}, "line 1: give a pattern", exitFailure},
		{[]string{"report", dir, "--prices", priced("n[ 0.04")}, "line 1: \"n[\" is no pattern", exitFailure},
		{[]string{"report", dir, "--prices", priced(strings.Repeat("n 1\n", 2000))}, "a pattern names many nodes", exitFailure},
		{[]string{"report", dir, "--memory", "1"}, "at least 128 MiB", exitFailure},
		{[]string{"plan", dir, "--until", "yesterday"}, "give a moment as 2026-03-04T05:00:00Z", exitFailure},
		{[]string{"report", dir, "--until", "2020-01-01T00:00:00Z"}, "no row that counts", exitNotMeasurable},
		{[]string{"report", dir, "--on", "spark://a:7077 --conf x"}, "is no master of Spark: give spark://HOST:7077", exitFailure},
		{[]string{"plan", dir, "--on", "yarn"}, "is no master of Spark", exitFailure},
		{[]string{"report", dir, "--html", filepath.Join(empty, "no", "such.html")}, "there is no folder", exitFailure},
		{[]string{"plan"}, "give one folder", exitFailure},
		{[]string{"plan", empty}, "no file of rows (*.parquet): 'unthrottle export", exitNotMeasurable},
		{[]string{"plan", dir}, "do not tell their CPUs and memory", exitNotMeasurable},
		{[]string{"plan", dir, "--risk", "60%"}, "above 0% and below 50%", exitFailure},
		{[]string{"plan", dir, "--moves", "-1"}, "give 0 or more", exitFailure},
		{[]string{"plan", dir, "-o", "yaml"}, "choose text or json", exitFailure},
		{[]string{"generate"}, "--out DIR", exitFailure},
		{[]string{"generate", "--out", dir}, "is not empty", exitFailure},
		{[]string{"generate", "--out", filepath.Join(empty, "new"), "--hosts", "0"}, "give --hosts of 1 or more", exitFailure},
		{[]string{"generate", "--out", filepath.Join(empty, "new"), "--for", "90m"}, "whole hours", exitFailure},
		{[]string{"generate", "there"}, "give the folder with --out", exitFailure},
		{[]string{"nonsense"}, `unknown command "nonsense"`, exitFailure},
	} {
		_, err := called(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.args, err, c.says)
			continue
		}
		if code := exitCode(err, false); code != c.code {
			t.Errorf("%q: exit code %d, want %d", c.args, code, c.code)
		}
	}
}

// Where DuckDB has no room the error names the way to Spark; without Spark, what brings it.
func TestNoRoom(t *testing.T) {
	full := &duckdb.Full{Err: errors.New("Out of Memory")}
	err := ask(t.Context(), rows(t, 1), &shared{memoryMB: 128},
		func(engine.Engine, report.Options) error { return fmt.Errorf("containers: %w", full) })
	if err == nil || !strings.Contains(err.Error(), "--memory gives more; or ask Spark") ||
		!strings.Contains(err.Error(), "--on spark://HOST:7077") {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("SPARK_HOME", "")
	if _, err := called(t, "report", rows(t, 1), "--on", "local[2]"); err == nil ||
		!strings.Contains(err.Error(), "--on local[2]: spark-submit is neither") || !strings.Contains(err.Error(), "pip install") {
		t.Errorf("%v", err)
	}
}

// Prices of a file come before the one for all others.
func TestPrices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices")
	if err := os.WriteFile(file, []byte("# spot\nn0 0.01 # half\n\n n1\t1 \n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := rows(t, 6) // two containers of 4 CPUs on each of three nodes
	out, err := called(t, "report", dir, "--price", "10", "--prices", file)
	if want := fmt.Sprintf("in a month of 730 h %.0f, of which ", 730*8*(0.01+1+10)); err != nil || !strings.Contains(out, want) {
		t.Errorf("%v, no %q in\n%s", err, want, out)
	}
	out, err = called(t, "report", dir, "--prices", file, "--json")
	if d := validated(t, "fleet_report", out); err != nil || d["cores_without_price"] != 8.0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// The tables are what JSON has, by DuckDB's reading of them, whole or not at all, and not among the rows.
func TestTables(t *testing.T) {
	dir, tables := rows(t, 6), filepath.Join(t.TempDir(), "tables")
	for range 2 { // the second time over the first
		if _, err := called(t, "report", dir, "--parquet", tables); err != nil {
			t.Fatal(err)
		}
	}
	if names := left(t, tables); !slices.Equal(names, []string{"applied.parquet", "applied_days.parquet",
		"defaults.parquet", "ledger.parquet",
		"prices.parquet", "remedies.parquet", "roles.parquet", "services.parquet", "unknown.parquet"}) {
		t.Errorf("%q", names)
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var name string
	var containers int
	var after, saved float64
	var until time.Time
	err = db.QueryRow("SELECT s.name, s.containers, s.cores_after, l.saved, l.report_until FROM read_parquet('"+tables+
		"/services.parquet') s JOIN read_parquet('"+tables+"/ledger.parquet') l USING (report_until)").Scan(&name,
		&containers, &after, &saved, &until)
	if err != nil || name != "cart/app" || containers != 6 || math.Abs(24-after-saved) > 1e-6 ||
		!until.Equal(time.Date(2026, 11, 25, 13, 0, 0, 0, time.UTC)) {
		t.Errorf("%s, %d containers, %v after, %v saved, until %v: %v", name, containers, after, saved, until, err)
	}
	for _, c := range []struct {
		from, to, says string
	}{
		{dir, filepath.Join(dir, "tables"), "it is in the folder of the rows"},
		{dir, dir, "it is in the folder of the rows"},
		{dir, filepath.Join(tables, "no", "such"), "make it first"},
		{dir, filepath.Join(tables, "ledger.parquet"), "ledger.parquet"},
		{"/no/such", filepath.Join(tables, "new"), "no such folder"},
	} {
		if _, err := called(t, "report", c.from, "--parquet", c.to); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
	for _, where := range []string{dir, tables} {
		if names := left(t, where); slices.ContainsFunc(names,
			func(name string) bool { return name == "tables" || name == "new" || name[0] == '.' }) {
			t.Errorf("left: %q", names)
		}
	}
}

// A folder of which every file is damaged leaves no page.
func TestNoPageOfNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "n1.parquet"), []byte("cut"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := called(t, "report", dir, "--html", filepath.Join(dir, "page.html"))
	if code := exitCode(err, false); code != exitNotMeasurable {
		t.Errorf("%v: exit code %d", err, code)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*page*")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if hidden, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(hidden) != 0 {
		t.Errorf("left %v, %v", hidden, err)
	}
}

// A generated fleet is one to report on.
func TestGenerate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	out, err := called(t, "generate", "--hosts", "2", "--containers", "5", "--for", "1h", "--out", dir)
	if err != nil || !strings.Contains(out, "60 rows of 5 containers of 3 services on 2 hosts") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := called(t, "report", dir); err != nil || !strings.Contains(out, "5 containers of 3 services on 2 hosts") {
		t.Errorf("%v: %s", err, out)
	}
	// One that changes, as of an hour before its end.
	dir = filepath.Join(t.TempDir(), "churn")
	if out, err = called(t, "generate", "--hosts", "5", "--containers", "20", "--for", "3h", "--churn", "--out",
		dir); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, command := range []string{"report", "plan"} {
		out, err := called(t, command, dir, "--json", "--until", "2026-01-05T03:00:00+01:00")
		if err != nil {
			t.Fatal(err)
		}
		in, _ := validated(t, "fleet_"+command, out)["input"].(map[string]any)
		if later, _ := in["rows_later"].(float64); later < 100 || !strings.Contains(out, `"until": "2026-01-05T02:00:00Z"`) {
			t.Errorf("%s", out)
		}
	}
	for _, demand := range []string{"", "real"} {
		if _, err := called(t, "generate", "--demand", demand, "--out",
			filepath.Join(t.TempDir(), "new")); err == nil || !strings.Contains(err.Error(), "give recorded or drawn") {
			t.Errorf("--demand %q: %v", demand, err)
		}
	}
}

// Files that export put aside and what is no file are told, and files beside them are left alone.
func TestFilesOf(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.parquet", "b.parquet.damaged", "README.md", ".b.parquet.part"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "zero.parquet")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	files, unread, err := filesOf(link)
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != "a.parquet" || len(unread) != 2 {
		t.Errorf("%q, %+v, %v", files, unread, err)
	}
}

// The pages of the commands have all flags.
func TestFlags(t *testing.T) {
	for command, name := range map[string]string{"report": "fleet", "generate": "fleet", "import": "fleet", "plan": "fleet-plan"} {
		page, err := os.ReadFile("../../../docs/reference/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		help, err := called(t, command, "--help")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range regexp.MustCompile(`--[a-z-]+`).FindAllString(help, -1) {
			if f != "--help" && f != "--output" && !strings.Contains(string(page), f) {
				t.Errorf("%s is not in the page %s", f, name)
			}
		}
	}
}

// A pattern is of a service's name or of its first parts.
func TestSecondaryPatterns(t *testing.T) {
	for pattern, want := range map[string]string{"batch": "batch/report/app", "batch/*": "batch/report/app",
		"batch/re*/app": "batch/report/app", "cron.service": "cron.service"} {
		of, err := matching([]string{"nothing", pattern})
		if err != nil || !of(want) || of("shop/batch/app") || of("batches/report/app") || of("") {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	for _, bad := range []string{"", "[", "a["} {
		if _, err := matching([]string{bad}); err == nil {
			t.Errorf("%q is a pattern", bad)
		}
	}
}
