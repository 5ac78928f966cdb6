package scratch

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// exists reports whether a name is there.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// What a killed run left goes; a run's folder, what links lead to, and what has another name or is another user's
// stays.
func TestOnlyWhatIsLeftGoes(t *testing.T) {
	temp, outside := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	at := func(name string) string { return filepath.Join(temp, name) }
	kept := filepath.Join(outside, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{prefix + "left/deep/er", prefix + "other", "another"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at(prefix+"file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{prefix + "link", prefix + "left/link", prefix + "left/deep/link"} {
		if err := os.Symlink(outside, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	stay := []string{prefix + "file", prefix + "link", "another"}
	want := 2
	if os.Geteuid() == 0 { // only root can give a folder away
		if err := os.Chown(at(prefix+"other"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		stay, want = append(stay, prefix+"other"), 1
	}
	first, removed, err := Make()
	if err != nil {
		t.Fatal(err)
	}
	if removed != want || exists(at(prefix+"left")) {
		t.Errorf("%d removed, want %d", removed, want)
	}
	if info, err := os.Stat(first.Name); err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(first.Name) != temp {
		t.Errorf("%s: %v, %v", first.Name, info, err)
	}
	if free, err := first.Free(); err != nil || free <= 0 {
		t.Errorf("%d bytes free, %v", free, err)
	}
	second, removed, err := Make()
	if err != nil || removed != 0 || !exists(first.Name) {
		t.Errorf("%d removed beside a run, %v", removed, err)
	}
	for _, name := range stay {
		if !exists(at(name)) {
			t.Errorf("%s is gone", name)
		}
	}
	if !exists(kept) {
		t.Error("a link was followed")
	}
	for _, d := range []*Dir{first, second} {
		if err := d.Remove(); err != nil || exists(d.Name) {
			t.Errorf("%v", err)
		}
	}
}

// Runs that begin at once never take each other's folder.
func TestRunsBeginAtOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var runs sync.WaitGroup
	for range 8 {
		runs.Go(func() {
			for range 200 {
				d, _, err := Make()
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(filepath.Join(d.Name, "row"), nil, 0o600); err != nil {
					t.Error(err)
				}
				if err := d.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	runs.Wait()
}

// The lock of a folder under removal keeps a second one from it.
func TestLockedIsLeft(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	name := filepath.Join(temp, prefix+"held")
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := open(unix.AT_FDCWD, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := flock(held); err != nil {
		t.Fatal(err)
	}
	if removed := removeLeft(temp); removed != 0 || !exists(name) {
		t.Errorf("%d removed", removed)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if removed := removeLeft(temp); removed != 1 || exists(name) {
		t.Errorf("%d removed once nobody holds it", removed)
	}
}

// Without a place the error names the way out.
func TestNoPlace(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if _, _, err := Make(); err == nil || !strings.Contains(err.Error(), "TMPDIR names another place") {
		t.Errorf("%v", err)
	}
}
