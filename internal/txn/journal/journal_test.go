package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

func open(t *testing.T, dir string, o Options) *Journal {
	t.Helper()
	j, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func add(t *testing.T, j *Journal, records ...Record) {
	t.Helper()
	if err := j.Append(true, records...); err != nil {
		t.Fatal(err)
	}
}

func setting(path string) Setting {
	return Setting{Kind: change.KindFile, Controller: cgroup.CPUSet, Path: Path(path), File: "cpuset.cpus", ID: 7, Boot: "b"}
}

func begin(id, path string) Record {
	return Record{Begin: &Begin{Txn: id, Boot: "b", Target: Path(path),
		Holds: []Hold{{Setting: setting(path), Op: change.OpSet, To: "1", Original: "0-1"}}}}
}

func write(j *Journal, id, path, before, want string) Record {
	return Record{Write: &Write{N: j.Next(), Txn: id, Setting: setting(path), Before: Path(before), Want: Path(want)}}
}

func closed(id string) Record { return Record{Close: &Close{Txn: id, Reason: "restored"}} }

func TestWhatIsOurs(t *testing.T) {
	j := open(t, t.TempDir()+"/s", Options{})
	ours := func(value string) bool {
		t.Helper()
		back, err := Load(j.dir)
		if err != nil {
			t.Fatal(err)
		}
		last, ok := back.Last(setting("/a"))
		return ok && last.Ours("cpuset.cpus", value)
	}
	add(t, j, begin("1", "/a"))
	if ours("0-1") || ours("1") {
		t.Error("nothing was written yet")
	}
	n := j.Next()
	add(t, j, write(j, "1", "/a", "0-1", "1"))
	if !ours("0-1") || !ours("1") || !ours("1-1") || ours("0") {
		t.Error("between entry and read-back, before and want are ours")
	}
	add(t, j, Record{Done: &Done{N: n, Value: "1"}})
	if ours("0-1") || !ours("1") {
		t.Error("after the read-back, only that is ours")
	}
	add(t, j, Record{Done: &Done{N: 99, Value: "5"}})
	if !ours("1") {
		t.Error("a read-back of no write changed something")
	}
}

func TestPhases(t *testing.T) {
	j := open(t, t.TempDir()+"/s", Options{})
	phase := func() Phase {
		s, _ := Load(j.dir)
		txn, _ := s.Txn("1")
		return txn.Phase
	}
	for _, step := range []struct {
		add  Record
		want Phase
	}{
		{begin("1", "/a"), Applying},
		{Record{Commit: &Commit{Txn: "1"}}, InForce},
		{Record{Release: &Release{Txns: []string{"1", "none"}}}, Releasing},
		{Record{Commit: &Commit{Txn: "1"}}, Releasing},
		{closed("1"), Closed},
		{Record{Release: &Release{Txns: []string{"1"}}}, Closed},
	} {
		add(t, j, step.add)
		if got := phase(); got != step.want {
			t.Errorf("after %+v: %s, want %s", step.add, got, step.want)
		}
	}
}

// TestTornTail cuts the journal at every single byte: what was complete before the cut is read, a writer goes on.
func TestTornTail(t *testing.T) {
	dir := t.TempDir() + "/s"
	j := open(t, dir, Options{})
	add(t, j, begin("1", "/a"))
	add(t, j, write(j, "1", "/a", "0-1", "1"))
	add(t, j, Record{Commit: &Commit{Txn: "1"}})
	j.Close()
	data, err := os.ReadFile(File(dir))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(data) {
		notSplit := bytes.Count(data[:cut], []byte("\n"))
		s := Parse(data[:cut])
		if len(s.raw) != notSplit || s.Damaged != 0 || s.good+s.TornBytes != int64(cut) {
			t.Fatalf("cut at %d: %d lines of %d, %d damaged, torn %d", cut, len(s.raw), notSplit, s.Damaged, s.TornBytes)
		}
		if cut%7 != 0 {
			continue
		}
		next := fmt.Sprintf("%s/cut%d", t.TempDir(), cut)
		if err := os.Mkdir(next, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(File(next), data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		j := open(t, next, Options{})
		add(t, j, begin("2", "/b"))
		j.Close()
		if s, err := Load(next); err != nil || s.TornBytes != 0 || s.Damaged != 0 || s.byID["2"] == nil {
			t.Fatalf("cut at %d, then written: %v, %v", cut, s, err)
		}
	}
}

func TestDamageInTheMiddle(t *testing.T) {
	dir := t.TempDir() + "/s"
	j := open(t, dir, Options{})
	add(t, j, begin("1", "/a"))
	add(t, j, begin("2", "/b"))
	add(t, j, begin("3", "/c"))
	j.Close()
	data, _ := os.ReadFile(File(dir))
	at := bytes.Index(data, []byte(`"txn":"2"`))
	data[at+8] ^= 1
	s := Parse(data)
	if s.Damaged != 1 || len(s.Open()) != 2 || s.TornBytes != 0 {
		t.Errorf("%v, %d damaged", s, s.Damaged)
	}
}

// TestLaterVersions: a later format is read as far as it is understood, and never written; records and fields that
// this version does not know are counted and survive compaction to the letter.
func TestLaterVersions(t *testing.T) {
	raw := func(rec string) string { return fmt.Sprintf(`{"crc":%q,"rec":%s}`+"\n", checksum([]byte(rec)), rec) }
	later := raw(`{"header":{"version":2}}`) + raw(`{"begin":{"txn":"1","boot":"b","target":"/a","shiny":[1,2],"holds":[]}}`) +
		raw(`{"sparkle":{"x":1}}`) + raw(`{"begin":[]}`)
	dir := t.TempDir()
	if err := os.WriteFile(File(dir), []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(dir)
	if err != nil || s.Version != 2 || len(s.Open()) != 1 || s.Unknown != 2 || s.Damaged != 0 {
		t.Errorf("%v, %d unknown, %d damaged, %v", s, s.Unknown, s.Damaged, err)
	}
	var newer *Newer
	if _, err := Open(t.Context(), dir, Options{}); !errors.As(err, &newer) || newer.Version != 2 {
		t.Errorf("got %v", err)
	}
	if now, _ := os.ReadFile(File(dir)); string(now) != later {
		t.Error("a later format was changed")
	}

	same := strings.Replace(later, raw(`{"header":{"version":2}}`), raw(`{"header":{"version":1,"colour":"red"}}`), 1)
	if err := os.WriteFile(File(dir), []byte(same), 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, dir, Options{Keep: 1})
	bulk := strings.Repeat("x", 1000)
	for i := range 300 {
		id := fmt.Sprint("t", i)
		add(t, j, begin(id, "/"+bulk), closed(id))
	}
	if err := j.Compact(); err != nil {
		t.Fatal(err)
	}
	now, _ := os.ReadFile(File(dir))
	for line := range strings.Lines(same) {
		if !bytes.Contains(now, []byte(line)) {
			t.Errorf("lost: %s", line)
		}
	}
	if len(now) > 10_000 {
		t.Errorf("%d bytes after compaction", len(now))
	}
}

// TestCompaction keeps what is open, the last writes to what it holds, by any program, and the latest history.
func TestCompaction(t *testing.T) {
	dir := t.TempDir() + "/s"
	j := open(t, dir, Options{Keep: 10})
	add(t, j, begin("kept", "/shared"))
	add(t, j, write(j, "kept", "/shared", "0-1", "1"))
	add(t, j, Record{Commit: &Commit{Txn: "kept"}})
	largest := int64(0)
	for i := range 2000 {
		id := fmt.Sprint("t", i)
		add(t, j, begin(id, "/shared"))
		add(t, j, write(j, id, "/shared", fmt.Sprint(i), fmt.Sprint(i+1)))
		add(t, j, Record{Outcome: &Outcome{Txn: "kept", Outcome: []byte(fmt.Sprint(i))}})
		add(t, j, closed(id))
		if err := j.Compact(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(File(dir))
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size())
	}
	if largest > 4*minGarbage {
		t.Errorf("the journal grew to %d bytes", largest)
	}
	s, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	last, ok := s.Last(setting("/shared"))
	if !ok || string(last.Write.Want) != "2000" || s.next != j.Next() {
		t.Errorf("last write %+v, next %d and %d", last.Write, s.next, j.Next())
	}
	kept, ok := s.Txn("kept")
	if !ok || kept.Phase != InForce || string(kept.Outcome.Outcome) != "1999" {
		t.Errorf("kept: %+v", kept)
	}
	if len(s.Txns) < 11 {
		t.Errorf("history of %d", len(s.Txns)-1)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".journal*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestLeftoversOfADirectoryWithOddName: the name is taken literally.
func TestLeftoversOfADirectoryWithOddName(t *testing.T) {
	parent := t.TempDir()
	var files []string
	for _, dir := range []string{"s[1]", "s1"} {
		if err := os.Mkdir(filepath.Join(parent, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(parent, dir, ".journal.jsonl123"))
		if err := os.WriteFile(files[len(files)-1], nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, filepath.Join(parent, "s[1]"), Options{})
	if _, err := os.Stat(files[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a dead writer left is still there: %v", err)
	}
	if _, err := os.Stat(files[1]); err != nil {
		t.Errorf("another directory's file was removed: %v", err)
	}
}

func TestStateDir(t *testing.T) {
	dir := t.TempDir() + "/made/here"
	j := open(t, dir, Options{})
	add(t, j, begin("1", "/a"))
	for name, want := range map[string]os.FileMode{dir: 0o700, File(dir): 0o600, dir + "/lock": 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	loose := t.TempDir()
	if err := os.Chmod(loose, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), loose, Options{}); err == nil || !strings.Contains(err.Error(), "can be written by others") {
		t.Errorf("got %v", err)
	}
	if os.Geteuid() == 0 {
		theirs := t.TempDir()
		if err := os.Chown(theirs, 1234, 1234); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), theirs, Options{}); err == nil ||
			!strings.Contains(err.Error(), "belongs to uid 1234") || !strings.Contains(err.Error(), "--state-dir") {
			t.Errorf("a directory of another user's: %v", err)
		}
	}
	linked := t.TempDir()
	if err := os.Symlink("/etc/hostname", File(linked)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), linked, Options{}); err == nil {
		t.Error("a link was followed")
	}
}

// TestLock: the second writer is told the first one's PID; a dead one's lock is no lock.
func TestLock(t *testing.T) {
	dir := t.TempDir() + "/s"
	j := open(t, dir, Options{})
	var locked *Locked
	if _, err := Open(t.Context(), dir, Options{Wait: 30 * time.Millisecond}); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("got %v", err)
	}
	j.Close()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/lock", fmt.Appendln(nil, ended.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, dir, Options{Wait: -1})
}

func TestNamesThatAreNoText(t *testing.T) {
	dir := t.TempDir() + "/s"
	j := open(t, dir, Options{})
	path := "/a b\n\x1b[31m/\xff\xfe/" + strings.Repeat("ü", 100) + `\x2d\xff`
	add(t, j, begin("1", path))
	s, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(s.Txns[0].Holds[0].Path); got != path {
		t.Errorf("got %q", got)
	}
	if data, _ := os.ReadFile(File(dir)); bytes.Count(data, []byte("\n")) != 2 {
		t.Errorf("not one line each: %q", data)
	}
}

func FuzzParse(f *testing.F) {
	line, _ := encode(begin("1", "/a"))
	f.Add(append(line, line[:20]...))
	var tried []byte
	for _, r := range append(trial("1", "1", "/a"), Record{Kept: &Kept{Trial: "1"}}) {
		line, _ := encode(r)
		tried = append(tried, line...)
	}
	f.Add(tried)
	f.Add([]byte("{}\n\n\x00\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := Parse(data)
		if s.good+s.TornBytes != int64(len(data)) || s.good < 0 || s.TornBytes < 0 {
			t.Fatalf("good %d, torn %d of %d", s.good, s.TornBytes, len(data))
		}
		// What is kept is read the same way again.
		again := Parse(data[:s.good])
		if again.TornBytes != 0 || len(again.Txns) != len(s.Txns) || again.Damaged != s.Damaged {
			t.Fatalf("read again: %v and %v", s, again)
		}
	})
}

// TestStateDirByAnothersLink: neither the directory itself, nor one above it, nor one that is yet to be made may lie behind a
// symbolic link of another user; root's own links are fine.
func TestStateDirByAnothersLink(t *testing.T) {
	require.Root(t)
	top := t.TempDir()
	real := filepath.Join(top, "real")
	if err := os.MkdirAll(filepath.Join(real, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"to-state": filepath.Join(real, "state"), "to-real": "real", "to-link": "to-real",
		"round": "round"} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	try := func(dir string) error {
		_, err := os.Stat(dir)
		j, openErr := Open(t.Context(), dir, Options{})
		if openErr == nil {
			j.Close()
		}
		if checked := CheckStateDir(dir); err == nil && (checked == nil) != (openErr == nil) {
			t.Errorf("%s: %v, and %v", dir, checked, openErr)
		}
		return openErr
	}
	paths := []string{"to-state", "to-real/state", "to-link/state", "to-real/made", "to-real/../real/made"}
	for _, dir := range paths {
		if err := try(filepath.Join(top, dir)); err != nil {
			t.Errorf("by root's links: %s: %v", dir, err)
		}
	}
	if err := try(filepath.Join(top, "round", "state")); err == nil {
		t.Error("a link to itself")
	}
	for _, link := range []string{"to-state", "to-real"} {
		if err := os.Lchown(filepath.Join(top, link), 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range paths[:4] {
		if err := try(filepath.Join(top, dir)); err == nil ||
			!strings.Contains(err.Error(), "belongs to uid 65534, who decides where it leads") {
			t.Errorf("by another's link: %s: %v", dir, err)
		}
	}
}
