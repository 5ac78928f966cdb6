package spark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
)

// Names of masters are checked: they become arguments of a program.
func TestMasters(t *testing.T) {
	for _, good := range []string{"local", "local[2]", "local[*]", "local[4,2]", "local-cluster[2,1,2048]",
		"spark://a.b-c:7077", "spark://a:1,b:2", "spark://[::1]:7077",
		"k8s://https://10.0.0.1:6443", "k8s://h", "k8s://http://h:80/a/b"} {
		if m, err := ParseMaster(good); err != nil || string(m) != good {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "local[0]", "local[2", "local-cluster[2,1]", "local-cluster[0,1,1024]", "spark://",
		"spark://a", "spark://a:7077 --conf x=y", "--conf", "yarn", "spark://a:1\nb",
		"k8s://", "k8s://h;x", "file:///etc", "spark://$(id):1", strings.Repeat("a", 2000)} {
		if _, err := ParseMaster(bad); err == nil || !strings.Contains(err.Error(), "give spark://HOST:7077") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// written writes a row, and returns its file.
func written(t *testing.T) string {
	t.Helper()
	r := demand.Row{Schema: demand.SchemaVersion, Start: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC), Seconds: 300,
		Node: "n", Cluster: "c"}
	dir := t.TempDir()
	if err := store.Write(dir, []demand.Row{r}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, store.File(&r))
}

// What is wrong with a file is known before Spark starts, and names it.
func TestDescribe(t *testing.T) {
	good := written(t)
	d, err := describe(good)
	if err != nil || d.rows != 1 || d.age != engine.Newest || !strings.Contains(d.schema, "start TIMESTAMP") ||
		!strings.Contains(d.schema, "width ARRAY<STRUCT<cpus: INT, microseconds: BIGINT>>") {
		t.Errorf("%+v, %v", d, err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, of := range map[string]struct {
		bytes []byte
		says  string
	}{"cut.parquet": {whole[:len(whole)/2], ""}, "empty.parquet": {nil, ""},
		".hidden.parquet": {whole, "begin with \".\""}, "_x.parquet": {whole, "begin with \"_\""},
		"\xff.parquet": {whole, "not UTF-8"}, "a:1.parquet": {whole, "a colon in its name"},
		"eu:1[a].d/x.parquet": {whole, "a colon and one of"}} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, of.bytes, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := describe(file); err == nil || !strings.Contains(err.Error(), of.says) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// No bytes end the program.
func FuzzDescribe(f *testing.F) {
	f.Add([]byte("PAR1PAR1"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		name := filepath.Join(t.TempDir(), "a.parquet")
		if err := os.WriteFile(name, file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = describe(name)
	})
}

// pretending starts a shell script in Spark's place, and returns the engine.
func pretending(t *testing.T, script string) *Engine {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"spark-submit": script, "java": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("JAVA_HOME", "")
	t.Setenv("SPARK_HOME", "")
	submit, err := Find(os.Getenv)
	if err != nil || filepath.Dir(submit) != dir {
		t.Fatalf("%s: %v", submit, err)
	}
	e, err := Open(Options{Master: "local[2]", Submit: submit, MemoryMB: 512, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Names, paths and statements reach the job as values in a file; answers come back as what was asked for.
func TestAnswers(t *testing.T) {
	file := written(t)
	e := pretending(t, `for last in "$@"; do :; done
out=$(dirname "$last")/answers
printf '%s\n' "$@" >"$out/arguments"
printf '["file_no"]\n[0]\n' >"$out/files_damaged"
printf '["n", "d", "s", "f"]\n[1, null, "a\\u0000\\nb", 2.5]\n[2, 3, "", null]\n' >"$out/q"
printf '["n"]\n[null]\n' >"$out/null"
echo noise; printf '\nunthrottle {"step": "made", "name": "unsound", "rows": 7}\n'`)
	var steps []Step
	e.o.Progress = func(s Step) { steps = append(steps, s) }
	refused, err := e.Prepare(t.Context(), []string{file},
		engine.Script{Tables: []engine.Table{{Name: "a", SQL: "SELECT 1"}}, Questions: []engine.Question{{Name: "q", SQL: "SELECT 2"}}})
	if err != nil || len(refused) != 1 || refused[0].File != file {
		t.Fatalf("%+v, %v", refused, err)
	}
	if len(steps) != 1 || steps[0] != (Step{Made, "unsound", 7}) {
		t.Errorf("%+v", steps)
	}
	var told []string
	err = engine.Each(t.Context(), e, "q", func(line struct {
		N int64
		D *int32
		S string
		F *float64
	}) {
		told = append(told, fmt.Sprintf("%d %v %q %v", line.N, line.D != nil, line.S, line.F != nil))
	})
	if err != nil || strings.Join(told, "; ") != `1 false "a\x00\nb" true; 2 true "" false` {
		t.Errorf("%q, %v", told, err)
	}
	type number struct{ N int }
	type words struct{ FileNo string }
	for _, err := range []error{
		engine.Each(t.Context(), e, "null", func(number) {}), engine.Each(t.Context(), e, "q", func(number) {}),
		engine.Each(t.Context(), e, "files_damaged", func(words) {}), engine.Each(t.Context(), e, "no such", func(number) {}),
	} {
		if err == nil || !strings.Contains(err.Error(), "Spark's answer") {
			t.Errorf("%v", err)
		}
	}
	text, err := os.ReadFile(filepath.Join(e.o.Dir, "job.json"))
	if err != nil {
		t.Fatal(err)
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil || len(j.Groups) != 1 || j.Groups[0].Paths[0] != "file://"+file ||
		len(j.Questions) != 2 {
		t.Errorf("%s: %v", text, err)
	}
	arguments, err := os.ReadFile(filepath.Join(e.o.Dir, "answers", "arguments"))
	if err != nil || !strings.Contains(string(arguments), "--master\nlocal[2]\n") || strings.Contains(string(arguments), file) {
		t.Errorf("%s: %v", arguments, err)
	}
}

// A failure has the reason and the end of the log, without what the terminal would obey.
func TestFailure(t *testing.T) {
	e := pretending(t, `i=0; while [ $i -lt 500 ]; do echo "line $i" >&2; i=$((i+1)); done
echo "  at org.apache.spark.Inner" >&2; printf 'the last \033[2J word\n' >&2
printf 'unthrottle {"step": "failed", "name": "[TABLE] it is gone\\nand much more"}\n'; exit 3`)
	_, err := e.Prepare(t.Context(), nil, engine.Script{})
	failed := new(Failed)
	if !errors.As(err, &failed) || len(failed.Log) != logLines || !strings.Contains(failed.Log[logLines-1], "word") {
		t.Fatalf("%v", err)
	}
	says := err.Error()
	if !strings.Contains(says, "Spark on local[2]: [TABLE] it is gone\n") || strings.Contains(says, "much more") ||
		strings.Contains(says, "\x1b") || strings.Contains(says, "at org.") || !strings.Contains(says, "Java 17 or 21") {
		t.Errorf("%s", says)
	}
}

// An end that is asked for ends all of Spark's processes, also those that do not listen.
func TestCancelled(t *testing.T) {
	e := pretending(t, `trap '' TERM
sh -c 'trap "" TERM; while :; do sleep 1; done' & echo $! >"$TMPDIR/child"
printf 'unthrottle {"step": "started"}\n'; wait; while :; do sleep 1; done`)
	e.patience = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	e.o.Progress = func(Step) { cancel() }
	if _, err := e.Prepare(ctx, nil, engine.Script{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	text, err := os.ReadFile(filepath.Join(e.o.Dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for range 600 { // it is no child of ours: another process takes it from the list
		if errors.Is(unix.Kill(child, 0), unix.ESRCH) || zombie(child) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("process %d is still there", child)
}

// zombie reports whether a process has ended and waits to be taken from the list.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && strings.HasPrefix(rest, "Z")
}

// Without Spark or Java the error names the way out.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	if _, err := Find(func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "pip install pyspark") {
		t.Errorf("%v", err)
	}
	if _, err := Find(func(string) string { return "/no/such" }); err == nil || !strings.Contains(err.Error(), "SPARK_HOME is /no/such") {
		t.Errorf("%v", err)
	}
	if _, err := Open(Options{Master: "local"}); err == nil || !strings.Contains(err.Error(), "Java 17 or 21") {
		t.Errorf("%v", err)
	}
	t.Setenv("JAVA_HOME", "/no/such")
	if _, err := Open(Options{Master: "local"}); err == nil || !strings.Contains(err.Error(), "JAVA_HOME is /no/such") {
		t.Errorf("%v", err)
	}
}
