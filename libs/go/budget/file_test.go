package budget

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The file says what is in force, follows the limit, and is replaced whole.
func TestTheFileSaysWhatIsInForce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "budget")
	read := func() string {
		text, err := os.ReadFile(path)
		must(t, err)
		return string(text)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHost(150 * ms)
		h.says = file{path: path, process: "7 99"}
		b := h.start(t, Options{})
		if got, want := read(), "unthrottle-budget 1\nprocess 7 99\nlimit_cpus 1.5\npaced false\ngomaxprocs "+
			"3\npermits io 8\npermits app 2\npermits background 1\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for range 100 {
			must(t, b.Do(t.Context(), App, func() { h.burn(20 * ms) }))
		}
		time.Sleep(pollEvery)
		if got := read(); !strings.Contains(got, "\npaced true\n") {
			t.Errorf("after work: %q", got)
		}
		h.set(func() { h.quota = 0 })
		time.Sleep(2 * time.Second)
		if got := read(); strings.Contains(got, "limit_cpus") || !strings.Contains(got, "permits app 0\n") {
			t.Errorf("without a limit: %q", got)
		}
		if said := h.warned(); len(said) != 1 || !strings.Contains(said[0], "limit is gone") {
			t.Errorf("%q", said)
		}
	})
	if _, err := os.Stat(path + ".new"); err == nil {
		t.Error("a file is left")
	}
}

// A file that cannot be written is told once, and the budget works on. Nothing is written through a link.
func TestAFileThatCannotBeWritten(t *testing.T) {
	folder := t.TempDir()
	precious := filepath.Join(folder, "precious")
	must(t, os.WriteFile(precious, []byte("mine"), 0o600))
	must(t, os.Symlink(precious, filepath.Join(folder, "budget.new")))
	f := file{path: filepath.Join(folder, "budget")}
	must(t, f.write(Snapshot{}))
	if text, err := os.ReadFile(precious); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHost(70 * ms)
		h.says = file{path: filepath.Join(folder, "none", "budget")}
		b := h.start(t, Options{})
		time.Sleep(3 * time.Second)
		must(t, b.Do(t.Context(), App, func() {}))
		if said := h.warned(); len(said) != 1 || !strings.Contains(said[0], fileVariable) {
			t.Errorf("%q", said)
		}
	})
}

func TestProcessOf(t *testing.T) {
	got, err := processOf("7 (a b) c) S" + strings.Repeat(" 1", 18) + " 4711 0")
	if err != nil || got != "7 4711" {
		t.Errorf("%q, %v", got, err)
	}
	for _, wrong := range []string{"", "7", "7 (a) S 1 2", "x (a) S" + strings.Repeat(" 1", 30)} {
		if got, err := processOf(wrong); err == nil {
			t.Errorf("%q: %q", wrong, got)
		}
	}
	if f, err := newFile("/x"); err != nil || f.process == "" {
		t.Errorf("this process: %+v, %v", f, err)
	}
	if f, err := newFile(""); err != nil || f.path != "" {
		t.Errorf("not asked for: %+v, %v", f, err)
	}
}
