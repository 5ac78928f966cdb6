package apply

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// sameTwice is a source of chance that draws 1, 1, 2.
func sameTwice() *bytes.Reader { return bytes.NewReader([]byte{0, 0, 1, 0, 0, 1, 0, 0, 2}) }

// An id that the journal has is not given again, and neither is one of the same call.
func TestTransactionsHaveIDsOfTheirOwn(t *testing.T) {
	narrow := func(path, to string) change.Change {
		return change.Change{Kind: change.KindFile, Op: change.OpSet, Controller: cgroup.CPUSet, Path: path,
			File: "cpuset.cpus", From: "0-7", To: to}
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []string{"20300102-030405-000001", "20300102-030405-000002"}
	t.Run("one after the other", func(t *testing.T) {
		s := newScene(t, cgroup.V1)
		s.env.Now, s.env.chance = func() time.Time { return at }, sameTwice()
		for i, path := range []string{"/pods/a", "/pods/b"} {
			res, err := Apply(context.Background(), s.env, txn.Purpose{}, []change.Change{narrow(path, "0-3")})
			s.must(err)
			if res.ID != want[i] {
				t.Errorf("%s has the id %q, want %q", path, res.ID, want[i])
			}
		}
	})
	t.Run("in one call", func(t *testing.T) {
		s := newScene(t, cgroup.V1)
		s.env.Now, s.env.chance = func() time.Time { return at }, sameTwice()
		res, err := Replace(context.Background(), s.env, []txn.Part{{Changes: []change.Change{narrow("/pods/a", "0-3")}},
			{Changes: []change.Change{narrow("/pods/b", "0-3")}}})
		s.must(err)
		if strings.Join(res.IDs, " ") != strings.Join(want, " ") {
			t.Errorf("ids %q, want %q", res.IDs, want)
		}
	})
}

func TestAnIDThatIsAlwaysTakenIsAnError(t *testing.T) {
	_, err := newID(time.Time{}, bytes.NewReader(make([]byte, 3*maxDraws)), func(string) bool { return true })
	if err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("error %v, want one that says to try again", err)
	}
	if _, err := newID(time.Time{}, bytes.NewReader(nil), func(string) bool { return false }); err == nil {
		t.Error("no chance, and no error")
	}
}
