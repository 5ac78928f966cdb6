package features

import (
	"strings"
	"testing"
	"testing/fstest"
)

// Defaults of hosts as their kernels write them, and the settings of well-known tuning profiles.
func TestUnusualTunables(t *testing.T) {
	const debug = "sys/kernel/debug/sched/"
	host := func(cpus string, files ...string) fstest.MapFS {
		root := fstest.MapFS{
			"sys/devices/system/cpu/online":                file(cpus + "\n"),
			"proc/sys/kernel/sched_cfs_bandwidth_slice_us": file("5000\n"),
			"proc/sys/kernel/sched_rt_runtime_us":          file("950000\n"),
		}
		for i := 0; i < len(files); i += 2 {
			root[files[i]] = file(files[i+1] + "\n")
		}
		return root
	}
	for _, tc := range []struct {
		name  string
		root  fstest.MapFS
		want  []string
		known Answer
	}{
		{"6.18, 2 CPUs", host("0-1", debug+"base_slice_ns", "1400000", debug+"tunable_scaling", "1",
			debug+"migration_cost_ns", "500000"), nil, Yes},
		{"6.12, 64 CPUs", host("0-63", debug+"base_slice_ns", "3000000", debug+"tunable_scaling", "1"), nil, Yes},
		{"4.18, 48 CPUs", host("0-47", "proc/sys/kernel/sched_min_granularity_ns", "3000000",
			"proc/sys/kernel/sched_latency_ns", "24000000",
			"proc/sys/kernel/sched_wakeup_granularity_ns", "4000000", "proc/sys/kernel/sched_tunable_scaling", "1"), nil, Yes},
		{"no debugfs", host("0-1"), nil, Unknown},
		{"lockdown hides how times are scaled", host("0-1", debug+"base_slice_ns", "9"), nil, Unknown},
		{"a profile for throughput", host("0-15", "proc/sys/kernel/sched_min_granularity_ns", "10000000",
			"proc/sys/kernel/sched_wakeup_granularity_ns", "15000000",
			"proc/sys/kernel/sched_tunable_scaling", "1", "proc/sys/kernel/sched_migration_cost_ns", "5000000"),
			[]string{"min_granularity_ns is 10 ms, usually 2.8 ms: a thread that wakes waits longer",
				"wakeup_granularity_ns is 15 ms, usually 4 ms", "migration_cost_ns is 5 ms, usually 500 us: an idle CPU leaves"}, Yes},
		{"not scaled", host("0-15", debug+"base_slice_ns", "700000", debug+"tunable_scaling", "0"),
			[]string{"tunable_scaling is 0, usually 1: the scheduler's times are those of a host with one CPU"}, Yes},
		{"real-time threads without a bound, large slices",
			host("0", "proc/sys/kernel/sched_rt_runtime_us", "-1", "proc/sys/kernel/sched_cfs_bandwidth_slice_us", "20000"),
			[]string{"cfs_bandwidth_slice_us is 20 ms, usually 5 ms: a CPU takes more",
				"rt_runtime_us is -1, usually 950 ms: real-time threads may take less of each second; at -1, all of it"}, Unknown},
		{"junk", host("0-1", debug+"base_slice_ns", "many", debug+"tunable_scaling", "x"), nil, Unknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			unusual, known := readTunables(tc.root)
			if known != tc.known || len(unusual) != len(tc.want) {
				t.Fatalf("%v, known %s; want %v, %s", unusual, known, tc.want, tc.known)
			}
			for i, want := range tc.want {
				if says := unusual[i].String(); !strings.Contains(says, want) {
					t.Errorf("%q does not say %q", says, want)
				}
			}
		})
	}
}
