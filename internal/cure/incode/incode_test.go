package incode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

func one(t *testing.T, key string) Language {
	t.Helper()
	all := Of([]string{key, "cobol"})
	if len(all) != 1 {
		t.Fatalf("%s: %+v", key, all)
	}
	if _, err := os.Stat("../../../" + all[0].Page); err != nil {
		t.Error(err)
	}
	return all[0]
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// program is a service that has the Go lines, one around its handler and one in it. It answers one request, and prints by how many
// permits, for which limit.
const program = `
func main() {
	classOf := func(*http.Request) budget.Class { return budget.App }
	work := func() { runtime.Gosched() }
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		%[2]s
		fmt.Fprintln(w, err)
	})
	%[1]s
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	s := budget.Process().Snapshot()
	limit := 0.0
	if s.LimitCPUs != nil {
		limit = *s.LimitCPUs
	}
	fmt.Printf("answer %%s permits %%d limit %%.1f\n", strings.TrimSpace(w.Body.String()), s.Classes[budget.App].Started, limit)
}
`

// built builds the program.
func built(t *testing.T) string {
	t.Helper()
	require.Inputs(t, "../../..", "libs/go")
	l := one(t, forecast.LanguageGo)
	library, err := filepath.Abs("../../../libs/go")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	imports := ""
	for _, path := range append([]string{"fmt", "net/http", "net/http/httptest", "runtime", "strings"}, l.Imports...) {
		imports += fmt.Sprintf("import %q\n", path)
	}
	if len(l.Lines) != 2 {
		t.Fatalf("%q: the program has a line around its handler and one in it", l.Lines)
	}
	write(t, folder, "main.go", "package main\n"+imports+fmt.Sprintf(program, l.Lines[0], l.Lines[1]))
	module := strings.TrimPrefix(l.Get, "go get ")
	write(t, folder, "go.mod", fmt.Sprintf("module shown\n\ngo 1.25.0\n\nrequire %s v0.0.0\n\nreplace %s => %q\n", module, module, library))
	build := exec.Command("go", "build", "-o", "shown", ".")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(folder, "shown")
}

func answers(t *testing.T, cmd *exec.Cmd, want string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("%v, %q; want %q", err, out, want)
	}
}

// The Go lines compile together and run together: a request within the budget that asks it again has its permit already.
func TestGoLinesRun(t *testing.T) {
	exe := built(t)
	answers(t, exec.Command(exe), "answer <nil> permits 1 limit 0.0")
}

// Under a limit of less than a CPU App has one permit. On v1 the program is also in a cgroup of cpu alone, as where trees are apart.
func TestGoLinesRunUnderALimit(t *testing.T) {
	exe := built(t)
	tr := cgrouptest.New(t)
	at := tr.Make("service")
	tr.Limit(at, 0.8)
	controllers := [][]cgroup.Controller{{cgroup.CPU, cgroup.CPUAcct}}
	if v, ok := tr.Host.Version(cgroup.CPU); ok && v == cgroup.V1 && tr.Host.Dir(cgroup.CPU, at) != tr.Host.Dir(cgroup.CPUAcct, at) {
		controllers = append(controllers, []cgroup.Controller{cgroup.CPU})
	}
	for _, in := range controllers {
		enter := ""
		for _, c := range in {
			if _, ok := tr.Host.Version(c); ok {
				enter += fmt.Sprintf("echo $$ >'%s/cgroup.procs' && ", tr.Host.Dir(c, at))
			}
		}
		answers(t, exec.Command("sh", "-c", enter+"exec "+exe), "answer <nil> permits 1 limit 0.8")
	}
}

// The Java lines compile with libs/java and run, a task of theirs within a task as well: by its permit.
func TestJavaLinesRun(t *testing.T) {
	require.JDK(t)
	l := one(t, forecast.LanguageJVM)
	library, err := filepath.Abs("../../../libs/java/budget/src/main/java")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write(t, folder, "Shown.java", "import "+strings.Join(l.Imports, ";\nimport ")+
		";\nimport java.util.concurrent.Executor;\nclass Shown {\n"+
		"static Executor shown(Runnable work, Executor threads) throws InterruptedException {\n"+
		strings.Join(l.Lines, "\n")+"\nreturn app;\n}\n"+
		"static void within() {\ntry {\nshown(() -> { }, Runnable::run);\n} catch (InterruptedException e) {\nthrow "+
		"new RuntimeException(e);\n}\n}\n"+
		"public static void main(String[] args) throws Exception {\nshown(Shown::within, Runnable::run).execute(Shown::within);\n"+
		"System.out.println(\"permits \" + CpuBudget.ofProcess().snapshot().classes().get(TaskClass.APP.ordinal()).started());\n}\n}\n")
	// The library's module descriptor is not of its source path here: its package is compiled as one of no module.
	sources := filepath.Join(folder, "src")
	if err := os.CopyFS(filepath.Join(sources, "io"), os.DirFS(filepath.Join(library, "io"))); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("javac", "--release", "17", "-sourcepath", sources, "-d", filepath.Join(folder, "classes"),
		filepath.Join(folder, "Shown.java"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	answers(t, exec.Command("java", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(folder, "classes"), "Shown"), "permits 2")
}

func TestText(t *testing.T) {
	for _, l := range All() {
		text := l.Text()
		if len(text) != len(l.Lines)+1 || !strings.Contains(text[0], l.Page) || !strings.Contains(text[0], l.Get) ||
			text[1] != "    "+l.Lines[0] {
			t.Errorf("%q", text)
		}
	}
	if got := Of(nil); got == nil || len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
