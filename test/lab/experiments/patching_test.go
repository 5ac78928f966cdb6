package experiments

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTracepointsMayBeTurnedOn checks that the guest survives package probe's changes to its tracepoints a hundred
// times over, with all CPUs at work. Without the users that package guest gives the tracepoints, it ended within the
// first hundred, with another guest beside it.
func TestTracepointsMayBeTurnedOn(t *testing.T) {
	m := asked(t)
	const instances = "/sys/kernel/tracing/instances"
	if _, err := os.Stat(instances); os.IsNotExist(err) {
		t.Fatalf("%s: this kernel has no tracefs, which every kernel of lab list has", instances)
	}
	stop := make(chan struct{})
	defer close(stop)
	for range m.CPUs() {
		go func() {
			for nap := time.NewTicker(100 * time.Microsecond); ; {
				select {
				case <-stop:
					return
				case <-nap.C:
				}
			}
		}()
	}
	own := filepath.Join(instances, "test")
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(own)
	events := []string{"sched/sched_switch", "sched/sched_wakeup", "timer/hrtimer_expire_entry"}
	for _, event := range events {
		for _, name := range []string{"patched-1", "patched-2"} {
			on, err := os.ReadFile(filepath.Join(instances, name, "events", event, "enable"))
			if err != nil || strings.TrimSpace(string(on)) != "1" {
				t.Errorf("%s of %s is %q, %v: want it on", event, name, on, err)
			}
		}
	}
	for n := range 200 {
		for _, event := range events {
			if err := os.WriteFile(filepath.Join(own, "events", event, "enable"), []byte{'1' - byte(n%2)}, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}
