package libs_test

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// programs are the Go programs that a page shows.
func programs(t *testing.T, page string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```go\n")[1:] {
		program, _, _ := strings.Cut(block, "```")
		if strings.HasPrefix(program, "package main\n") {
			all = append(all, program)
		}
	}
	return all
}

// The core has no dependency outside the standard library.
func TestTheCoreRequiresNoModule(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if word, _, _ := strings.Cut(line, " "); strings.TrimSpace(word) == "require" {
			t.Errorf("go.mod has %q", line)
		}
	}
}

// The program that the page shows is built and answers a request.
func TestTheProgramsOfThePagesRun(t *testing.T) {
	module, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// The go command notes what a test looks at, and takes a cached result only if that is as it was.
	if err := filepath.WalkDir(module, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
		t.Fatal(err)
	}
	const page = "../../docs/howto/in-your-go-code.md"
	all := programs(t, page)
	if len(all) != 1 {
		t.Errorf("%s shows %d programs", page, len(all))
	}
	for _, program := range all {
		folder := t.TempDir()
		for name, text := range map[string]string{"main.go": program, "go.mod": fmt.Sprintf("module shown\n\ngo 1.25.0\n\n"+
			"require github.com/unthrottle/unthrottle/libs/go v0.0.0\n\nreplace "+
			"github.com/unthrottle/unthrottle/libs/go => %q\n", module)} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		run(t, page, folder)
	}
}

// run builds a program and asks it, while it has a minute to answer.
func run(t *testing.T, page, folder string) {
	build := exec.Command("go", "build", "-o", "shown", ".")
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", page, err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	program := exec.Command(filepath.Join(folder, "shown"))
	program.Env = append(os.Environ(), "LISTEN="+address)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer program.Wait()
	defer program.Process.Kill()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r, err := http.Get("http://" + address + "/")
		if err != nil && time.Now().Before(deadline) {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", page, err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(text), "hello") {
			t.Errorf("%s: %d %q %v", page, r.StatusCode, text, err)
		}
		return
	}
}
