package apply

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// TestTwoWriters: two writers of one state directory take turns, whatever they hold in common, and readers between
// them never see a journal that they cannot read.
func TestTwoWriters(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		s.env.LockWait = time.Minute
		before := s.k.Snapshot()
		rounds := max(5, require.Rounds(t, 15))
		var writers, readers sync.WaitGroup
		failed := make(chan error, 100)
		for _, next := range []func() (txn.Purpose, []change.Change){s.pinA, s.pinC} {
			writers.Go(func() {
				for range rounds {
					purpose, changes := next()
					r, err := Apply(t.Context(), s.env, purpose, changes)
					if err == nil {
						_, err = Restore(t.Context(), s.env, Selector{IDs: []string{r.ID}})
					}
					if err != nil {
						failed <- err
						return
					}
				}
			})
		}
		stop := make(chan struct{})
		readers.Go(func() {
			last := ""
			for {
				select {
				case <-stop:
					return
				default:
				}
				stamp, err := Stamp(s.env)
				if err == nil && stamp != last {
					_, err = Status(s.env)
				}
				if last = stamp; err != nil {
					failed <- err
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
		writers.Wait()
		close(stop)
		readers.Wait()
		close(failed)
		for err := range failed {
			t.Error(err)
		}
		s.must(s.everythingBack(before))
		past, err := History(s.env, 0)
		s.must(err)
		if len(past) != 2*rounds {
			t.Errorf("%d transactions in the history", len(past))
		}
	})
}

// TestChurnLeavesNothing: transactions on containers that come and go leave neither entries nor open files behind.
func TestChurnLeavesNothing(t *testing.T) {
	s := newScene(t, cgroup.V1)
	s.env.KeepHistory = 10
	handles := openFiles(t)
	for i := range max(30, require.Rounds(t, 150)) {
		path := fmt.Sprintf("/pods/x%d", i)
		for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
			s.must(s.k.Make(c, path))
		}
		s.must(s.k.Write(cgroup.CPUSet, path, cgroup.FileCPUs, "0-7"))
		s.apply(txn.Purpose{Target: txn.Target{Path: path}}, append(s.unlimited(path), without(path, "7"), without("/pods/c", "7")))
		for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
			s.must(s.k.Remove(c, path))
		}
		_, err := Restore(t.Context(), s.env, Selector{Target: path})
		s.must(err)
	}
	if open, err := Status(s.env); err != nil || len(open) != 0 {
		t.Errorf("in force: %d, %v", len(open), err)
	}
	if now := openFiles(t); now > handles {
		t.Errorf("%d open files, %d before", now, handles)
	}
	if got := s.read(cgroup.CPUSet, "/pods/c", cgroup.FileCPUs); got != "0-7" {
		t.Errorf("/pods/c has %q", got)
	}
}
