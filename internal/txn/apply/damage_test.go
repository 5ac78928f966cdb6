package apply

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// spoil flips a bit of one line of the journal and tells how many lines there are.
func (s *scene) spoil(line int) (lines int) {
	s.t.Helper()
	file := journal.File(s.env.StateDir)
	data, err := os.ReadFile(file)
	s.must(err)
	all := bytes.SplitAfter(data, []byte("\n"))
	if line < len(all)-1 {
		// A digit of what the line says, not of its form.
		at := bytes.LastIndexAny(all[line], "0123456789")
		all[line][at] ^= 1
		s.must(os.WriteFile(file, bytes.Join(all, nil), 0o600))
	}
	return len(all) - 1
}

// settings are the values that pinA and pinAlone change.
func (s *scene) settings() map[string]string {
	all := map[string]string{}
	for _, path := range []string{"/pods", "/pods/a", "/pods/b", "/pods/c", "/svc"} {
		if text, err := s.k.Read(cgroup.CPUSet, path, cgroup.FileCPUs); err == nil {
			all[path+" "+cgroup.FileCPUs] = text
		}
		for _, file := range cgroup.LimitFiles(s.v) {
			all[path+" "+file] = s.read(cgroup.CPU, path, file)
		}
	}
	return all
}

// TestADamagedLineIsTold damages each line of the journal in turn: what does not come back is named, and restore fails
// for once.
func TestADamagedLineIsTold(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		const beginning = 1 // after the header
		for line, lines := 0, 1; line < lines; line++ {
			s := newScene(t, v)
			before := s.settings()
			s.apply(s.pinA())
			lines = s.spoil(line)
			plan, err := Plan(s.env, txn.Purpose{}, nil)
			if s.must(err); len(plan.Warnings) != 1 || !strings.Contains(plan.Warnings[0], "1 damaged lines") {
				t.Errorf("line %d: planned with warnings %q", line, plan.Warnings)
			}
			if h, err := ReadHealth(s.env); err != nil || h.Damaged != 1 || h.Unreported != 1 || len(h.Kept) != 0 {
				t.Errorf("line %d: health %+v, %v", line, h, err)
			}
			r, err := Restore(t.Context(), s.env, Selector{})
			var damaged *Damaged
			if !errors.As(err, &damaged) || damaged.Lines != 1 || len(damaged.Kept) != 1 || r.Verdict != verdictPartly {
				t.Fatalf("line %d: verdict %q, %v", line, r.Verdict, err)
			}
			if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, damaged.Kept[0]) }) ||
				r.Skipped[0].Path != damaged.File {
				t.Errorf("line %d: warnings %q, skipped %v", line, r.Warnings, r.Skipped)
			}
			named := whys(r)
			for what, now := range s.settings() {
				if now != before[what] {
					if line != beginning {
						t.Errorf("line %d: %s is %q, was %q: the beginning tells what it was", line, what, now, before[what])
					}
					if named[what] == "" {
						t.Errorf("line %d: %s is %q, was %q, and no report names it: %v", line, what, now, before[what], named)
					}
				}
			}
			if h, err := ReadHealth(s.env); err != nil || h.Damaged != 0 || h.Unreported != 0 || !slices.Equal(h.Kept, damaged.Kept) {
				t.Errorf("line %d: health %+v, %v", line, h, err)
			}
			if r, err := Restore(t.Context(), s.env, Selector{}); err != nil || r.Verdict != VerdictNothing {
				t.Errorf("line %d: told again: %q, %v", line, r.Verdict, err)
			}
		}
	})
}

// TestDamageInWhatWasMade: cgroups, controllers and moves of a damaged journal; nothing is called restored, no task
// loses its CPUs.
func TestDamageInWhatWasMade(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for line, lines := 0, 1; line < lines; line++ {
			s := newScene(t, v)
			s.apply(s.pinAlone())
			lines = s.spoil(line)
			s.k.Before = func(op cgroupmodel.Op) error {
				if bad := s.k.Check(); op.Changes() && len(bad) > 0 {
					t.Fatalf("line %d: before %v: %v", line, op, bad)
				}
				return nil
			}
			r, err := Restore(t.Context(), s.env, Selector{})
			if !errors.As(err, new(*Damaged)) || r.Verdict != verdictPartly && r.Verdict != verdictNotRestored {
				t.Errorf("line %d: verdict %q, %v", line, r.Verdict, err)
			}
		}
	})
}

// TestGarbageForAJournal is kept, told once by restore, also where another command came upon it first.
func TestGarbageForAJournal(t *testing.T) {
	for _, first := range []string{"restore", "apply", "recover", "restore by id"} {
		s := newScene(t, cgroup.V1)
		garbage := []byte("garbage\nmore of it, without an end")
		s.must(os.MkdirAll(s.env.StateDir, 0o700))
		s.must(os.WriteFile(journal.File(s.env.StateDir), garbage, 0o600))
		var r Result
		var err error
		switch first {
		case "apply":
			purpose, changes := s.pinA()
			r, err = Apply(t.Context(), s.env, purpose, changes)
		case "recover":
			r, err = Recover(t.Context(), s.env)
		case "restore by id":
			purpose, changes := s.pinA()
			r, err = Apply(t.Context(), s.env, purpose, changes)
			s.must(err)
			r, err = Restore(t.Context(), s.env, Selector{IDs: []string{r.ID}})
			if r.Verdict != verdictPartly {
				t.Errorf("by id: %q", r.Verdict)
			}
		}
		s.must(err)
		if first != "restore" && (len(r.Warnings) == 0 || !strings.Contains(r.Warnings[0], "2 damaged lines")) {
			t.Errorf("%s: warnings %q", first, r.Warnings)
		}
		var damaged *Damaged
		if r, err = Restore(t.Context(), s.env, Selector{}); !errors.As(err, &damaged) || r.Verdict != verdictPartly || damaged.Lines != 2 {
			t.Fatalf("%s: %q, %v", first, r.Verdict, err)
		}
		if kept, err := os.ReadFile(damaged.Kept[0]); err != nil || !bytes.Equal(kept, garbage) {
			t.Errorf("%s: kept %q, %v", first, kept, err)
		}
		if r, err = Restore(t.Context(), s.env, Selector{}); err != nil || r.Verdict != VerdictNothing {
			t.Errorf("%s: told again: %q, %v", first, r.Verdict, err)
		}
	}
}

// TestForeignValuesInADamagedJournal are still not written over.
func TestForeignValuesInADamagedJournal(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for line, lines := 0, 1; line < lines; line++ {
			s := newScene(t, v)
			s.apply(s.pinA())
			lines = s.spoil(line)
			s.must(s.k.Write(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs, "0-1"))
			_, err := Restore(t.Context(), s.env, Selector{})
			if now := s.read(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs); now != "0-1" {
				t.Errorf("line %d: a stranger's value became %q (%v)", line, now, err)
			}
		}
	})
}

func TestDamagedSaysWhatToDo(t *testing.T) {
	why := errors.New("no room")
	text := fmt.Sprint(&Damaged{File: "/s/journal.jsonl", Lines: 3, NotKept: why})
	for _, part := range []string{"/s/journal.jsonl", "3 damaged lines", "no room", "check the file"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in %q", part, text)
		}
	}
	if !errors.Is(&Damaged{NotKept: why}, why) {
		t.Error("the cause is lost")
	}
	for _, kept := range [][]string{nil, {"/s/journal.jsonl.damaged-1"}} {
		text := fmt.Sprint(&Damaged{File: "/s/journal.jsonl", Lines: 3, Kept: kept})
		if strings.Contains(text, "kept as found in ") != (kept != nil) || strings.Contains(text, "remove the file") != (kept != nil) {
			t.Errorf("kept in %q: %s", kept, text)
		}
	}
}
