package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// answering stands for a service that writes a latency into a log every 10 ms:
// 97 ms while its limit is below a CPU, 12 ms from there on. Where the host is busy
// it writes those that are due together, so that 500 of them are 5 s.
func answering(t *testing.T, tr *cgrouptest.Tree, path string) (log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "latencies")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(done); <-ended; f.Close() })
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		chance := rand.New(rand.NewPCG(1, 2))
		for wrote := time.Now(); ; {
			levels, err := cgroup.Levels(tr.Host, path)
			if err != nil {
				return
			}
			ms := 12.0
			if limit, limited, _ := cgroup.Effective(levels); limited && limit < 1 {
				ms = 97
			}
			for now := time.Now(); !wrote.After(now); wrote = wrote.Add(10 * time.Millisecond) {
				fmt.Fprintf(f, "%.6f\n", ms+chance.Float64())
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return log
}

// A source that always looks back five seconds, which is longer than a slow host takes between two answers, and says
// six, finds what came of the change; one that does not say so is not taken for proof that nothing did.
func TestFixWithASourceThatLooksBack(t *testing.T) {
	require.CheckAll(t, "it waits for half a minute; TestTurnsByTheSource of internal/cure/fix has the rule")
	t.Parallel()
	tr := cgrouptest.New(t)
	busy := tr.Make("busy")
	tr.Limit(busy, 0.3)
	tr.Work(busy, 2)
	before := tr.Settings()
	log := answering(t, tr, busy)
	time.Sleep(6 * time.Second) // so that there are six seconds of it
	for _, lookBack := range []string{"6s", ""} {
		args := []string{"fix", busy, "--yes", "--remedy", "raise", "--to", "1", "--json", "--for", "1s", "--scope",
			tr.Top, "--state-dir", tr.StateDir,
			"--slo", "p90<20ms", "--slo-command", "tail -n 500 " + log}
		if lookBack != "" {
			args = append(args, "--slo-look-back", lookBack)
		}
		r := unthrottle(t, args...)
		if !strings.Contains(r.out, `"verdict": "unverified"`) && !strings.Contains(r.out, `"verdict": "better"`) ||
			lookBack != "" && !strings.Contains(r.out, `"verdict": "better"`) {
			t.Errorf("looks back %q: exit code %d: %s%s", lookBack, r.code, r.out, r.errors)
		}
		putBack(t, tr)
		if got := tr.Settings(); got != before {
			t.Errorf("settings\n%s\nwant\n%s", got, before)
		}
		time.Sleep(6 * time.Second)
	}
}
