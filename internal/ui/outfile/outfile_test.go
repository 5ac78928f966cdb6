package outfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	link := filepath.Join(dir, "link")
	if err := os.WriteFile(kept, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("kept", link); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string, whole bool) {
		t.Helper()
		f, err := Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.End(whole); err != nil {
			t.Fatal(err)
		}
	}
	has := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(kept); err != nil || string(got) != want {
			t.Errorf("it holds %q, %v; want %q", got, err, want)
		}
	}
	write(kept, "half", false)
	has("before")
	write(kept, "whole", true)
	has("whole")
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("who may read it changed: %v, %v", info, err)
	}
	write(link, "behind the link", true)
	has("behind the link")
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What is no file must not be replaced by one, nor be found out only after the recording.
func TestFileRefuses(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"/dev/null":                    "it is the kernel's",
		"/dev/stdout":                  "it is the kernel's",
		pipe:                           "it is no file but a device, pipe",
		dir:                            "it is a folder",
		filepath.Join(dir, "no", "at"): "there is no folder",
	} {
		if _, err := Create(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want an error that says %q", name, err, says)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
