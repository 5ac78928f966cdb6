package apply

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// fill writes until the file system is full, but for about the given room.
func fill(t *testing.T, dir string, room int64) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{64 << 10, 4 << 10} {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Truncate(max(0, info.Size()-room))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk keeps the journal on a file system of 1 MB and fills it at several moments.
func TestFullDisk(t *testing.T) {
	require.Root(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		s.env.StateDir, s.env.wrap = filepath.Join(dir, "state-"+v.String()), nil
		const many = 120
		path := func(i int) string { return fmt.Sprintf("/pods/many-%d", i) }
		for i := range many {
			s.must(s.k.Make(cgroup.CPU, path(i)))
		}
		before := s.k.Snapshot()
		purpose, changes := s.pinA()

		// Full beforehand: refused, nothing touched.
		s.must(os.MkdirAll(s.env.StateDir, 0o700))
		fill(t, dir, 8<<10)
		text := fmt.Sprint(s.k.Snapshot())
		if _, err := Apply(t.Context(), s.env, purpose, changes); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("on a full disk: %v", err)
		}
		if fmt.Sprint(s.k.Snapshot()) != text {
			t.Error("something was written although the journal had no room")
		}
		s.must(os.Remove(ballast))

		// Filled while in force: what was reserved is enough to take it back.
		s.apply(purpose, changes)
		fill(t, dir, 0)
		s.must(s.everythingBack(before))
		s.must(os.Remove(ballast))

		// The same where many changes are in force, each of which took a part of what the one before had left.
		for i := range many {
			s.apply(txn.Purpose{Target: txn.Target{Path: path(i)}}, []change.Change{{Kind: change.KindFile, Op: change.OpSet,
				Controller: cgroup.CPU, Path: path(i), File: cgroup.WeightFile(v), From: s.read(cgroup.CPU, path(i), cgroup.WeightFile(v)),
				To: "200"}})
		}
		fill(t, dir, 0)
		s.must(s.everythingBack(before))
		s.must(os.Remove(ballast))

		// Filled and cut short in the middle of an entry.
		s.apply(purpose, changes)
		file := journal.File(s.env.StateDir)
		data, err := os.ReadFile(file)
		s.must(err)
		lines := bytes.SplitAfter(data, []byte("\n"))
		torn := len(data) - len(lines[len(lines)-2])/2
		s.must(os.Truncate(file, int64(torn)))
		fill(t, dir, 32<<10)
		s.must(s.everythingBack(before))
		s.must(os.Remove(ballast))
	})
}
