package suite

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/results"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

func needGo(t *testing.T) {
	t.Helper()
	require.Kernel(t)
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not on PATH")
	}
}

func TestUsersOf(t *testing.T) {
	users := usersOf([]listed{
		{ImportPath: "m/a", Imports: []string{"testing", "m/helper"}},
		{ImportPath: "m/helper", Imports: []string{"testing", "m/lab/require"}},
		{ImportPath: "m/lab/require"},
		{ImportPath: "m/tool", Imports: []string{"m/lab/require"}},
		{ImportPath: "m/other", Imports: []string{"fmt"}},
	}, requirePath)
	if len(users) != 3 || users["m/other"] || users["m/tool"] {
		t.Errorf("got %v", users)
	}
}

// module makes a small module with a package require of its own.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module m\n\ngo 1.26\n"
	files["lab/require/require.go"] = "package require\nfunc Root() {}\nfunc Rounds() {}\n"
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

func TestFindAndBuild(t *testing.T) {
	needGo(t)
	const test = "package p\nimport (\n\t\"testing\"\n\t\"m/lab/require\"\n)\nfunc TestX(t *testing.T) {require.Root()\n%s}\n"
	module(t, map[string]string{
		"a/a_test.go":             strings.Replace(test, "%s", "", 1),
		"a/testdata/x":            "x",
		"broken/b_test.go":        strings.Replace(test, "%s", "oops", 1),
		"other/a/a_test.go":       strings.Replace(test, "%s", "", 1), // the name of one before it
		"plain/plain_test.go":     "package plain\n",
		"cmd/unthrottle/main.go":  "package main\nfunc main() {}\n",
		".hidden/testdata/secret": "x",
	})
	ctx := context.Background()
	packages, dir, err := Find(ctx, Guest)
	if err != nil || len(packages) != 3 || packages[0].Rel != "a" || packages[1].Rel != "broken" {
		t.Fatalf("got %+v %v", packages, err)
	}
	b, err := Build(ctx, packages, dir, t.TempDir(), Options{Run: "X", PackageLimit: time.Minute, Must: "root", Machine: "8 1 none"})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Packages) != 2 || len(b.Steps) != 2 || b.Steps[0].Dir != "/src/a" ||
		b.Steps[0].Argv[0] != "/src/a/a.test" || b.Steps[0].LimitSec <= 60 {
		t.Errorf("got %+v", b.Steps)
	}
	env := strings.Join(b.Steps[0].Env, " ")
	if env != "UNTHROTTLE_MUST=root UNTHROTTLE_LAB_MACHINE=8 1 none UNTHROTTLE_BIN=/usr/bin/unthrottle" {
		t.Errorf("environment %s", env)
	}
	var in []string
	for _, f := range b.Files {
		in = append(in, f.In)
	}
	if got := strings.Join(in, " "); got != "/usr/bin/unthrottle /src/a/a.test /src/other/a/a.test /src/a/testdata" {
		t.Errorf("files %s", got)
	}
	if len(b.Failed) != 2 || b.Failed[1].Package != "m/broken" || !strings.Contains(b.Failed[0].Output, "undefined: oops") {
		t.Errorf("failed %+v", b.Failed)
	}
	if _, _, err := Find(ctx, Guest, "./plain"); err == nil {
		t.Error("a package without such tests was taken")
	}
}

func TestEvents(t *testing.T) {
	needGo(t)
	const good = "\x16=== RUN   TestA\n\x16--- PASS: TestA (0.01s)\nPASS\n"
	for name, c := range map[string]struct {
		output string
		status wire.ExitStatus
		want   results.Status
		prints string
	}{
		"good":               {good, wire.ExitStatus{WallUsec: 2_000_000}, results.Pass, "ok  \tp\t2.000s"},
		"exit after PASS":    {good, wire.ExitStatus{Code: 3}, results.Fail, "lab: exit status 3"},
		"killed in a test":   {"\x16=== RUN   TestA\nso far\n", wire.ExitStatus{Code: -1, Signal: "SIGKILL"}, results.Fail, "so far"},
		"limit":              {good, wire.ExitStatus{Code: 2, Limit: true}, results.Fail, "lab: ended at its time limit"},
		"the guest went off": {"", wire.ExitStatus{NotRun: "the guest ended before"}, results.Fail, "lab: not run: the guest ended before"},
	} {
		events, err := Events(context.Background(), Package{ImportPath: "p"}, []byte(c.output), c.status)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		last := events[len(events)-1]
		if last.Action != string(c.want) || last.Test != "" {
			t.Errorf("%s: last event %+v, want %s", name, last, c.want)
		}
		var text bytes.Buffer
		for _, e := range events {
			text.WriteString(e.Output)
			if e.Action == "pass" && e.Test == "TestA" && e.Elapsed != 0.01 {
				t.Errorf("%s: what the test took is not told: %+v", name, e)
			}
		}
		if c.want == results.Fail && !strings.Contains(text.String(), c.prints) {
			t.Errorf("%s: no %q in %q", name, c.prints, &text)
		}
	}
}

func TestOutputsAreBounded(t *testing.T) {
	var o Outputs
	w := o.Step(3)
	part := bytes.Repeat([]byte{'x'}, 5<<20)
	for range 4 {
		if n, err := w.Write(part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if n := len(o.Take(3)); n != maxOutput {
		t.Errorf("kept %d bytes, want %d", n, maxOutput)
	}
	if o.Take(3) != nil || o.Take(9) != nil {
		t.Error("something is left")
	}
}

func TestNeedyTests(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a_test.go": "package p\nimport \"m/lab/require\"\nfunc TestMain() { require.Root() }\nfunc TestDirect() { require.Root() }\n" +
			"func TestRoundsOnly() { require.Rounds() }\nfunc helper() { setUp() }\nfunc setUp() { require.CPUs(2) " +
			"}\nfunc (x T) method() { helper() }\n",
		"b_test.go": "package p_test\nimport kit \"m/kit\"\nfunc TestThroughHelper() { helper() }\nfunc " +
			"TestThroughMethod() { T{}.method() }\n" +
			"func TestClock() { kit.Kernel() }\nfunc TestKit() { kit.Start(); kit.EachCgroup() }\nfunc " +
			"TestEachOnly() { kit.EachCgroup() }\nfunc TestFigures() { kit.Unraced() }\nfunc TestApart() { " +
			"kit.CheckAll(); kit.Start(); kit.Alone() }\nfunc TestPlain() { other() }\nfunc TestAsValue() { run(helper) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for place, want := range map[Place]string{
		Guest: "TestApart TestAsValue TestDirect TestKit TestThroughHelper TestThroughMethod",
		Host:  "TestApart TestAsValue TestClock TestDirect TestKit TestThroughHelper TestThroughMethod",
	} {
		got, err := needyTests(dir, map[string]bool{"m/lab/require": true, "m/kit": true}, place)
		if err != nil || strings.Join(got.tests, " ") != want || strings.Join(got.each, " ") != "TestKit" ||
			strings.Join(got.alone, " ") != "TestApart" || strings.Join(got.long, " ") != "TestApart" {
			t.Errorf("place %d: got %+v, %v, want %s, each TestKit, alone and long TestApart", place, got, err, want)
		}
	}
}

// A test is repeated where the other machine has not run all of it, or where it checks something else here.
func TestNotRepeated(t *testing.T) {
	host, err := results.Read("host", strings.NewReader(`{"Action":"pass","Package":"m/a","Test":"TestA"}
{"Action":"skip","Package":"m/a","Test":"TestB"}
{"Action":"pass","Package":"m/a","Test":"TestC"}
{"Action":"fail","Package":"m/b","Test":"TestA"}
`))
	if err != nil {
		t.Fatal(err)
	}
	rest, left := NotRepeated([]Package{
		{ImportPath: "m/a", Tests: []string{"TestA", "TestB", "TestC"}, Each: []string{"TestC"}},
		{ImportPath: "m/b", Tests: []string{"TestA"}},
		{ImportPath: "m/c", Tests: []string{"TestA"}},
	}, host)
	if left != 2 || len(rest) != 2 || strings.Join(rest[0].Tests, " ") != "TestB TestC" || rest[1].ImportPath != "m/c" {
		t.Errorf("left %d, rest %+v", left, rest)
	}
}

func TestAloneAndBeside(t *testing.T) {
	all := []Package{
		{ImportPath: "m/a", Tests: []string{"TestA", "TestB"}, Alone: []string{"TestB"}},
		{ImportPath: "m/b", Tests: []string{"TestA"}},
		{ImportPath: "m/c", Tests: []string{"TestA"}, Alone: []string{"TestA"}, Long: []string{"TestA"}},
	}
	names := func(packages []Package) (all string) {
		for _, p := range packages {
			all += p.ImportPath + ":" + strings.Join(p.Tests, ",") + " "
		}
		return all
	}
	if got := names(Alone(all)); got != "m/a:TestB m/c:TestA " {
		t.Errorf("alone: %s", got)
	}
	if got := names(Beside(all)); got != "m/a:TestA m/b:TestA " {
		t.Errorf("beside: %s", got)
	}
	if got := names(Long(all)); got != "m/c:TestA " {
		t.Errorf("long: %s", got)
	}
	if got := names(NotLong(Alone(all))); got != "m/a:TestB " {
		t.Errorf("alone and not long: %s", got)
	}
}

func TestGoTest(t *testing.T) {
	got := GoTest([]Package{{ImportPath: "m/a", Tests: []string{"TestB", "TestA"}}, {ImportPath: "m/b", Tests: []string{"TestA"}}})
	if want := "-run ^(TestA|TestB)$ m/a m/b"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
