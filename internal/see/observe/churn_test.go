package observe

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// A thousand cgroups are made and removed at random under a running watcher. It logs nothing above debug and leaks no
// handle and no goroutine. At the end it knows exactly the cgroups that exist.
func TestChurn(t *testing.T) {
	require.EachCgroup(t, "the folders of cgroups")
	onEachKernelInterface(t, func(t *testing.T) {
		tr := newTree(t)
		files, goroutines := openFiles(t), runtime.NumGoroutine()
		var log bytes.Buffer
		known := map[string]bool{}
		w := NewWatcher(tr.host, WatchOptions{Scope: tr.top, Interval: 50 * ms, PollInterval: 10 * ms,
			Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo})),
			Changed: func(came, gone []container.Container) {
				for _, c := range gone {
					if !known[c.Group.Path] {
						t.Errorf("%s is gone and never came", c.Group.Path)
					}
					delete(known, c.Group.Path)
				}
				for _, c := range came {
					known[c.Group.Path] = true
				}
			}})
		ctx, cancel := context.WithCancel(t.Context())
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		churned := make(chan map[string]bool)
		go func() { churned <- tr.churn(rand.New(rand.NewPCG(seed, 0)), require.Rounds(t, 1000)) }()
		var left map[string]bool
		var snapshots, most, after int
		err := w.Run(ctx, func(s Snapshot) {
			snapshots++
			most = max(most, s.Handles)
			select {
			case left = <-churned:
			default:
			}
			if left != nil {
				// The watcher catches up within one full rescan and a sample.
				if after++; after > 4 && len(known) == len(left) || after > 300 {
					cancel()
				}
			}
		})
		if err != context.Canceled {
			t.Errorf("Run: %v", err)
		}
		for path := range left {
			if !known[path] {
				t.Errorf("%s is there and not known", path)
			}
		}
		if len(known) != len(left) {
			t.Errorf("%d known, %d there", len(known), len(left))
		}
		if log.Len() > 0 {
			t.Errorf("logged above debug:\n%s", log.String())
		}
		if now := openFiles(t); now > files {
			t.Errorf("%d open files, %d before; at most %d handles kept", now, files, most)
		}
		if now := runtime.NumGoroutine(); now > goroutines {
			t.Errorf("%d goroutines, %d before", now, goroutines)
		}
		if s := w.sampler; len(s.levels)+len(s.cpusets)+len(s.usages) > 0 || s.files.kept != 0 {
			t.Errorf("kept after the end: %d levels, %d cpusets, %d usages, %d handles", len(s.levels), len(s.cpusets),
				len(s.usages), s.files.kept)
		}
		t.Logf("%d snapshots, at most %d handles, %d reads", snapshots, most, w.sampler.Reads())
	})
}

// churn makes n cgroups and removes them at random, never more than 40 at one time; it returns those that are left.
// Names repeat, so that new cgroups appear under old paths.
func (tr *tree) churn(chance *rand.Rand, n int) map[string]bool {
	alive := map[string]bool{}
	for made := 0; made < n; {
		path := tr.path(fmt.Sprintf("c%d", chance.IntN(60)))
		if alive[path] || len(alive) > 40 {
			if !alive[path] {
				continue
			}
			for _, c := range tr.hierarchies() {
				if err := tr.host.Remove(c, path); err != nil {
					tr.t.Error(err)
				}
			}
			delete(alive, path)
		} else {
			for _, c := range tr.hierarchies() {
				if err := tr.host.Make(c, path); err != nil {
					tr.t.Error(err)
				}
			}
			made++
			alive[path] = true
			if v, _ := tr.host.Version(cgroup.CPU); chance.IntN(3) == 0 {
				for _, w := range cgroup.LimitWrites(v, cgroup.Unlimited(), cgroup.Limit{Quota: 10 * ms, Period: 100 * ms}, false) {
					_ = tr.host.Write(cgroup.CPU, path, w.File, w.Value)
				}
			}
		}
		if chance.IntN(8) == 0 {
			time.Sleep(time.Duration(chance.IntN(8)) * ms)
		}
	}
	return alive
}
