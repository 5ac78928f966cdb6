package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// spoiled makes a journal of three transactions and flips a bit of the second one.
func spoiled(t *testing.T) (dir string, data []byte) {
	t.Helper()
	dir = t.TempDir() + "/s"
	j := open(t, dir, Options{})
	add(t, j, begin("1", "/a"))
	add(t, j, begin("2", "/b"))
	add(t, j, begin("3", "/c"))
	j.Close()
	data, err := os.ReadFile(File(dir))
	if err != nil {
		t.Fatal(err)
	}
	data[bytes.Index(data, []byte(`"txn":"2"`))+8] ^= 1
	put(t, dir, data)
	return dir, data
}

// A begin under an id that began is damage: told, kept aside, and the first transaction stands.
func TestARepeatedBeginIsDamage(t *testing.T) {
	dir := t.TempDir() + "/s"
	j := open(t, dir, Options{})
	add(t, j, begin("1", "/a"))
	j.Close()
	data, err := os.ReadFile(File(dir))
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir() + "/s"
	j = open(t, other, Options{})
	add(t, j, begin("1", "/b"))
	j.Close()
	second, err := os.ReadFile(File(other))
	if err != nil {
		t.Fatal(err)
	}
	repeated := bytes.SplitAfter(second, []byte("\n"))[1]
	data = append(data, repeated...)
	put(t, dir, data)
	if s := Parse(data); s.Damaged != 1 || s.damagedBytes != int64(len(repeated)) {
		t.Errorf("%d damaged lines of %d bytes, want 1 of %d", s.Damaged, s.damagedBytes, len(repeated))
	}
	j = open(t, dir, Options{})
	if open := j.State().Open(); len(open) != 1 || open[0].Target != "/a" {
		t.Errorf("open %+v, want the first", open)
	}
	if d := j.State().Damage(); len(d) != 1 || d[0].Lines != 1 {
		t.Errorf("damage %+v, want one line", d)
	}
	if kept, err := KeptFiles(dir); err != nil || len(kept) != 1 {
		t.Errorf("kept %v, %v", kept, err)
	}
}

func put(t *testing.T, dir string, data []byte) {
	t.Helper()
	if err := os.WriteFile(File(dir), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamageIsKeptAside: the journal as it was found stays, for us alone, and what is intact goes on without it.
func TestDamageIsKeptAside(t *testing.T) {
	dir, data := spoiled(t)
	for round := range 2 {
		j := open(t, dir, Options{})
		s := j.State()
		if s.Damaged != 0 || len(s.Open()) != 2 || s.Version != Version || j.NotKept() != nil {
			t.Fatalf("round %d: %v, %d damaged, %v", round, s, s.Damaged, j.NotKept())
		}
		if d := s.Damage(); len(d) != 1 || d[0].Lines != 1 || d[0].Reported ||
			d[0].Bytes != int64(len(bytes.SplitAfter(data, []byte("\n"))[2])) {
			t.Fatalf("round %d: %+v", round, d)
		}
		j.Close()
		kept, err := KeptFiles(dir)
		if err != nil || len(kept) != 1 {
			t.Fatalf("kept %v, %v", kept, err)
		}
		if have, _ := os.ReadFile(kept[0]); !bytes.Equal(have, data) {
			t.Error("not as it was found")
		}
		if info, _ := os.Stat(kept[0]); info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
	}
	// Told is told, also after compaction.
	j := open(t, dir, Options{Keep: 1})
	d := j.State().Damage()[0]
	d.Reported = true
	add(t, j, Record{Damage: &d})
	bulk := strings.Repeat("x", 1000)
	for i := range 300 {
		id := fmt.Sprint("t", i)
		add(t, j, begin(id, "/"+bulk), closed(id))
	}
	if err := j.Compact(); err != nil {
		t.Fatal(err)
	}
	s, err := Load(dir)
	if err != nil || len(s.Damage()) != 1 || !s.Damage()[0].Reported || len(s.raw) > 20 {
		t.Errorf("%+v, %d lines, %v", s.Damage(), len(s.raw), err)
	}
}

// TestGarbageIsNoTornTail: only what a writer that died may have left is cut off without a word.
func TestGarbageIsNoTornTail(t *testing.T) {
	notSplit, err := encode(begin("1", "/a"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(notSplit[:len(notSplit)-1])
	for tail, wantTorn := range map[string]bool{
		"":                          true,
		`{"cr`:                      true,
		text[:30]:                   true,
		text:                        true,
		"\x00\x00\x00":              true,
		text[:30] + "\x00\x00":      true,
		text + "\x0b":               false, // the newline itself was damaged
		text + text:                 false,
		"garbage":                   false,
		"[1,2":                      false,
		"\x00\x00" + text[:30]:      false,
		`{"crc":"1a2b3c4d","rec":}`: false,
		"garbage\n":                 false,
		"\n\n\n":                    false,
		text[:30] + "\n":            false,
	} {
		for _, before := range []string{"", text + "\n"} {
			dir := t.TempDir()
			put(t, dir, []byte(before+tail))
			s, err := Load(dir)
			if err != nil || (s.Damaged == 0) != wantTorn || (s.TornBytes > 0) != (wantTorn && tail != "") {
				t.Errorf("%q after %d bytes: %d damaged, %d torn, %v", tail, len(before), s.Damaged, s.TornBytes, err)
			}
			j := open(t, dir, Options{})
			add(t, j, begin("2", "/b"))
			j.Close()
			kept, _ := KeptFiles(dir)
			if (len(kept) == 0) != wantTorn {
				t.Errorf("%q after %d bytes: kept %v", tail, len(before), kept)
			}
			if s, err := Load(dir); err != nil || s.Damaged != 0 || s.TornBytes != 0 || s.Version != Version || s.byID["2"] == nil ||
				before != "" && s.byID["1"] == nil {
				t.Errorf("%q after %d bytes, written: %v, %d damaged, %v", tail, len(before), s, s.Damaged, err)
			}
		}
	}
}

// TestKeepingIsBounded: where nothing more can be kept, nothing is cut away either, and the journal still works.
func TestKeepingIsBounded(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1e9, 0)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	for i := range maxKept {
		put(t, dir, fmt.Appendf(nil, "garbage %d\n", i))
		open(t, dir, Options{Now: clock}).Close()
	}
	last := "one more, without an end"
	put(t, dir, []byte(last))
	for round := range 2 {
		j := open(t, dir, Options{Now: clock})
		if err := j.NotKept(); err == nil || !strings.Contains(err.Error(), "could not be kept aside") || j.State().Damaged != 1 {
			t.Errorf("%v, %d damaged", err, j.State().Damaged)
		}
		add(t, j, begin(fmt.Sprint(round), "/a"))
		if err := j.Compact(); err != nil {
			t.Fatal(err)
		}
		j.Close()
	}
	data, _ := os.ReadFile(File(dir))
	s := Parse(data)
	if !bytes.HasPrefix(data, []byte(last+"\n")) || s.Damaged != 1 || len(s.Open()) != 2 || s.Version != Version {
		t.Errorf("%v, %d damaged: %.100q", s, s.Damaged, data)
	}
	kept, _ := KeptFiles(dir)
	if len(kept) != maxKept {
		t.Errorf("%d kept", len(kept))
	}
	if err := os.Remove(kept[0]); err != nil {
		t.Fatal(err)
	}
	j := open(t, dir, Options{Now: clock})
	if j.NotKept() != nil || j.State().Damaged != 0 || len(j.State().Open()) != 2 {
		t.Errorf("%v, %d damaged", j.NotKept(), j.State().Damaged)
	}
}

// TestWhatIsNoFileIsRefused: and no program waits for the other end of a pipe.
func TestWhatIsNoFileIsRefused(t *testing.T) {
	for _, name := range []string{fileName, lockName} {
		for kind, make := range map[string]func(string) error{
			"pipe":      func(p string) error { return unix.Mkfifo(p, 0o600) },
			"directory": func(p string) error { return os.Mkdir(p, 0o700) },
			"link":      func(p string) error { return os.Symlink("/etc/hostname", p) },
		} {
			dir := t.TempDir()
			if err := make(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), dir, Options{Wait: -1})
			var not *NotRegular
			if !errors.As(err, &not) || !strings.Contains(err.Error(), "--state-dir") {
				t.Errorf("%s as %s: %v", kind, name, err)
			}
			if name == fileName {
				if _, err := Load(dir); !errors.As(err, &not) {
					t.Errorf("%s as %s, read: %v", kind, name, err)
				}
			}
		}
	}
}

// TestErrorsNameTheWayOut: a user who cannot write the state directory is told what to do.
func TestErrorsNameTheWayOut(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOSPC} {
		err := wayOut(&os.PathError{Op: "open", Path: "/x", Err: errno})
		if text := err.Error(); !errors.Is(err, errno) || !strings.Contains(text, "--state-dir") || !strings.Contains(text, "run as root") {
			t.Errorf("%v", err)
		}
	}
	if wayOut(nil) != nil || wayOut(os.ErrClosed) != os.ErrClosed {
		t.Error("what has no way out was changed")
	}
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, file + "/below"} {
		if _, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "--state-dir") {
			t.Errorf("%v", err)
		}
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("%v", err)
	}
}

// TestReadOnlyStateDir asks the kernel itself.
func TestReadOnlyStateDir(t *testing.T) {
	require.Root(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, "size=64k,mode=700"); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	for _, dir := range []string{dir, dir + "/new"} {
		if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "--state-dir") {
			t.Errorf("%v", err)
		}
	}
}
