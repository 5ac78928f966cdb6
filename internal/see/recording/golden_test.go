package recording_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// golden is the content of testdata/v1.utr.
func golden() recording.Recording {
	return recording.Recording{
		Header: recording.Header{
			Version: 1, Created: time.Date(2026, 11, 21, 3, 12, 0, 5, time.UTC), StartNS: 12345,
			Host: recording.Host{Kernel: "6.18.44", CPUs: cpuset.New(0, 1, 2, 3), HZ: new(250),
				SliceNS: new(int64(5_000_000)), SchedExt: "x"},
			Target: recording.Target{Path: "/a/b", ID: 7, Name: "shop/cart"},
			Levels: []recording.Level{{Path: "/a/b", ID: 7, QuotaNS: new(int64(50_000_000)), PeriodNS: 100_000_000,
				BurstNS: 1, Weight: 39}, {Path: "/", ID: 1}},
			SubLevels: []recording.Level{{Path: "/a/b/c", ID: 8, PeriodNS: 10_000_000}}, CPUsAllowed: cpuset.New(1, 2),
			Threads: []recording.Thread{
				{TID: 11, TGID: 10, Comm: "w-\xff", Cgroup: 7, State: recording.Running, CPU: 2, Nice: -3, Allowed: "1-2"}},
			Processes:   []recording.Process{{TGID: 10, Exe: "/usr/bin/x", Cmdline: []string{"x", "-y"}, Libraries: []string{"/lib/z.so"}}},
			Features:    recording.Features{Mark: recording.MarkQueue, Periods: true, Migrations: true},
			NotMeasured: []string{"steal: none"},
		},
		Events: []recording.Event{
			{Kind: recording.Switch, CPU: 3},
			{AtNS: 10, Kind: recording.Define, Owner: 3, OwnerKind: recording.OwnerContainer, Text: "batch/etl", Cgroup: 99},
			{AtNS: 10, Kind: recording.Name, Thread: 12, TGID: 10, Text: "w-2", Cgroup: 7},
			{AtNS: 1000, Kind: recording.Wakeup, Flags: recording.New, Thread: 12, CPU: 1, Waker: 11},
			{AtNS: 2000, Kind: recording.Switch, CPU: 2, Flags: recording.PrevRunnable | recording.Throttled,
				Thread: 11, NextThread: 12, Cgroup: 7},
			{AtNS: 2500, Kind: recording.Hold, CPU: 2, Thread: 13, Cgroup: 7},
			{AtNS: 100_000_000, Kind: recording.Period, Cgroup: 7,
				Period: recording.PeriodState{QuotaNS: 50_000_000, LeftNS: -5, BurstNS: 1, Periods: 9, Throttled: 4, StoppedCPUs: 2}},
			{AtNS: 100_000_900, Kind: recording.Release, CPU: 2, Thread: 11},
			{AtNS: 100_001_000, Kind: recording.Switch, CPU: 2, Thread: 12, NextOwner: 3},
			{AtNS: 100_001_000, Kind: recording.Exit, Thread: 12},
			{AtNS: 100_001_001, Kind: recording.Lost, CPU: 1, Count: 17},
		},
		Footer: recording.Footer{
			EndNS: 200_000_000, StealNS: map[int]int64{1: 10}, UsageNS: new(int64(4000)), Periods: new(uint64(2)),
			ThrottledPeriods: new(uint64(1)),
			ThrottledNS:      new(int64(3)), WidthNS: []int64{1, 2}, WantedNS: []int64{0, 3}, OnCPUNS: map[int]int64{2: 5},
			Threads: []recording.ThreadTime{{TID: 11, UserNS: 1, KernelNS: 2}}, LostEvents: 17,
			Neighbours: []recording.Neighbour{
				{Owner: 3, Name: "batch/etl", Path: "/batch/etl", Periods: new(uint64(2)), ThrottledPeriods: new(uint64(2))}},
		},
	}
}

// The golden file is version 1 of the format as first released, and must stay readable. UPDATE_GOLDEN=1 writes it
// again, which is right only before a release.
func TestGolden(t *testing.T) {
	path := filepath.Join("testdata", "v1.utr")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, written(t, golden()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := recording.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(golden(), got, asWritten); diff != "" {
		t.Error(diff)
	}
}
