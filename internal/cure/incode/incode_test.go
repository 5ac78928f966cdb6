package incode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// The Go lines compile with libs/go.
func TestGoLinesCompile(t *testing.T) {
	l := one(t, forecast.LanguageGo)
	library, err := filepath.Abs("../../../libs/go")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	imports := ""
	for _, path := range append([]string{"context", "net/http"}, l.Imports...) {
		imports += fmt.Sprintf("import %q\n", path)
	}
	write(t, folder, "shown.go", "package shown\n"+imports+
		"func shown(ctx context.Context, handler http.Handler, classOf func(*http.Request) budget.Class, work func()) (http.Handler, error) {\n"+
		strings.Join(l.Lines, "\n")+"\nreturn handler, err\n}\n")
	module := strings.TrimPrefix(l.Get, "go get ")
	write(t, folder, "go.mod", fmt.Sprintf("module shown\n\ngo 1.25.0\n\nrequire %s v0.0.0\n\nreplace %s => %q\n", module, module, library))
	build := exec.Command("go", "build", ".")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The Java lines compile with libs/java.
func TestJavaLinesCompile(t *testing.T) {
	require.JDK(t)
	l := one(t, forecast.LanguageJVM)
	library, err := filepath.Abs("../../../libs/java/budget/src/main/java")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write(t, folder, "Shown.java", "import "+strings.Join(l.Imports, ";\nimport ")+";\nimport java.util.concurrent.Executor;\nclass Shown {\n"+
		"static Executor shown(Runnable work, Executor threads) throws InterruptedException {\n"+strings.Join(l.Lines, "\n")+"\nreturn app;\n}\n}\n")
	// The library's module descriptor is not of its source path here: its package is compiled as one of no module.
	sources := filepath.Join(folder, "src")
	if err := os.CopyFS(filepath.Join(sources, "io"), os.DirFS(filepath.Join(library, "io"))); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("javac", "--release", "17", "-sourcepath", sources, "-d", filepath.Join(folder, "classes"), filepath.Join(folder, "Shown.java"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestText(t *testing.T) {
	for _, l := range All() {
		text := l.Text()
		if len(text) != len(l.Lines)+1 || !strings.Contains(text[0], l.Page) || !strings.Contains(text[0], l.Get) || text[1] != "    "+l.Lines[0] {
			t.Errorf("%q", text)
		}
	}
	if got := Of(nil); got == nil || len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
