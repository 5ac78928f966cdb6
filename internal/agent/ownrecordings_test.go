package agent

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/curetest"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
)

// A fix chooses from the recording that the flight recorder made by itself, after waiting for it, if it was made after the
// last change of the container's settings and is fresh.
func TestChoosesFromItsOwnRecording(t *testing.T) {
	const own = 7
	web := container.Container{Name: "web", Group: cgroup.Group{Path: "/web", CPUSetPath: "/web"}}
	recorded, err := curetest.Record(curetest.Bursts,
		curetest.Setting{Limit: cgroup.Limit{Quota: 100 * time.Millisecond, Period: 100 * time.Millisecond}, CPUs: 4}, 4, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		id     uint64
		fails  error
		after  time.Duration                     // of the end
		change func(k *cgroupmodel.Kernel) error // while it is recorded
		says   string
	}{
		"as it ends":        {id: own},
		"a minute later":    {id: own, after: freshFor},
		"too late":          {id: own, after: freshFor + time.Second, says: "older than 1m0s"},
		"another container": {id: 8, says: "has none of it"},
		"it failed":         {id: own, fails: errors.New("the ring is gone"), says: "failed"},
		"its limit changed": {id: own, change: func(k *cgroupmodel.Kernel) error {
			return k.Write(cgroup.CPU, "/web", "cpu.cfs_quota_us", "50000")
		}, says: "its settings have changed"},
		"its CPUs changed": {id: own, change: func(k *cgroupmodel.Kernel) error {
			return k.Write(cgroup.CPUSet, "/web", "cpuset.cpus", "0-1")
		}, says: "its settings have changed"},
		"its weight changed": {id: own, change: func(k *cgroupmodel.Kernel) error {
			return k.Write(cgroup.CPU, "/web", "cpu.shares", "2048")
		}, says: "its settings have changed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := flightAgent(t, func(ctx context.Context, _ container.Container, w io.Writer) error {
					if err := clock.Sleep(ctx, RecordFor); err != nil {
						return err
					}
					_, err := io.WriteString(w, "events")
					return errors.Join(err, tc.fails)
				})
				a.Flight.Read = func(context.Context, string) (fix.Learned, error) {
					return fix.Learned{Explanation: recorded.Explanation, Load: recorded.Load, Runs: recorded.Runs}, nil
				}
				k := a.Env.FS.(*cgroupmodel.Kernel)
				for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
					if err := k.Make(c, "/web"); err != nil {
						t.Fatal(err)
					}
				}
				if err := k.Write(cgroup.CPUSet, "/web", "cpuset.cpus", "0-3"); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				go a.recorder.recordOne(t.Context(), dueRecording{web, own, false})
				synctest.Wait()
				if tc.change != nil {
					if err := tc.change(k); err != nil {
						t.Fatal(err)
					}
				}
				if tc.after > 0 {
					time.Sleep(RecordFor + tc.after)
				}
				learned, why := a.recorder.recordedOf(t.Context(), tc.id, web)
				if waited := time.Since(began); waited < RecordFor {
					t.Errorf("it did not wait for the end of the recording: %v", waited)
				}
				if tc.says != "" {
					if !strings.Contains(why, tc.says) || learned.Load != nil {
						t.Errorf("%q, want %q", why, tc.says)
					}
					return
				}
				recordings, err := a.recorder.store.List()
				if err != nil || len(recordings) != 1 {
					t.Fatal(recordings, err)
				}
				if why != "" || learned.Load == nil || learned.From != "the flight recorder's "+filepath.Base(recordings[0].File) {
					t.Errorf("%q, from %q", why, learned.From)
				}
			})
		})
	}
}
