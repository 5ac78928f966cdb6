package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The kernel replaces its own code while it runs. It does so for a tracepoint whose first or second user comes or goes
// (tracepoint_add_func of kernel/tracepoint.c). It also does so for the check for quotas with the first cgroup that has
// one (cfs_bandwidth_usage_inc of kernel/sched/fair.c). It uses a breakpoint that other CPUs may meet meanwhile (int3,
// smp_text_poke_batch_finish of arch/x86/kernel/alternative.c).
//
// The host may take away the thread of an emulated CPU while it translates that code. The CPU may then meet the
// breakpoint after its removal, which the kernel treats as a fault: "Oops: int3". Turning four tracepoints on and off
// all the time ended every guest within half a minute, a quota within one. So the guest replaces this code once, before
// the tests.

// patched are the tracepoints that package probe attaches to: in the paths that every CPU of the guest runs all the
// time.
var patched = []string{
	"sched/sched_switch", "sched/sched_wakeup", "sched/sched_wakeup_new", "sched/sched_waking", "sched/sched_migrate_task",
	"task/task_newtask", "task/task_rename", "timer/hrtimer_expire_entry", "timer/hrtimer_expire_exit", "cgroup/cgroup_rmdir",
}

// keepTracepoints gives each of them two permanent users: the events are on in two instances, whose rings are off.
func keepTracepoints(tracing string) error {
	for _, name := range []string{"patched-1", "patched-2"} {
		instance := filepath.Join(tracing, "instances", name)
		err := os.Mkdir(instance, 0o755)
		if errors.Is(err, os.ErrNotExist) {
			return nil // a kernel without instances of tracefs
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(instance, "tracing_on"), []byte("0"), 0)
		}
		for _, event := range patched {
			if err == nil {
				err = os.WriteFile(filepath.Join(instance, "events", event, "enable"), []byte("1"), 0)
			}
		}
		if err != nil {
			return fmt.Errorf("keep tracepoints on: %w", err)
		}
	}
	return nil
}

// keepQuotas makes a cgroup with a quota and removes it. The kernel does not notice that a quota ended in this way
// (tg_set_cfs_bandwidth alone calls cfs_bandwidth_usage_dec), so its check for quotas stays on.
func keepQuotas(version int) error {
	dir, file, quota := filepath.Join(cgroupRoot, "quota"), "cpu.max", "100000 100000"
	if version == 1 {
		dir, file, quota = filepath.Join(cgroupRoot, "cpu", "quota"), "cpu.cfs_quota_us", "100000"
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, file), []byte(quota), 0), os.Remove(dir))
}
