package realapi

import (
	"os"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDescheduler: the example's descheduler evicts pods from the node where threads wait for CPUs, though its pods request least,
// and from no other; not what a PodDisruptionBudget or the policy protects; and nothing where threads wait for quotas only, or an
// agent has no figure. What it reads is in the rules of packaging/mixin, and these name what the agent exports (internal/agent
// compares them): a metric that is renamed there has no value here.
func TestDescheduler(t *testing.T) {
	bin, prometheus := os.Getenv(deschedulerBinaries), os.Getenv(prometheusBinaries)
	if bin == "" || prometheus == "" {
		t.Skipf("%s and %s do not name folders with the descheduler and Prometheus: make e2e-descheduler", deschedulerBinaries,
			prometheusBinaries)
	}
	d := newDescheduled(t, bin)
	// Nodes whose threads wait for 2 and for 43 % of the time in which they run or wait.
	calm, contended := load{used: 2, contention: 0.04}, load{used: 2, contention: 1.5}
	for _, c := range []struct {
		name, says string
		loads      map[string]load
	}{
		{"threads wait for quotas", "All nodes are under target utilization",
			map[string]load{"n1": {used: 2, contention: 0.3, quota: 5}, "n2": calm, "n3": calm}},
		{"no node is calm", "No node is underutilized", map[string]load{"n1": contended, "n2": contended, "n3": contended}},
		{"an agent without the probe", "unable to find metric entry for n3",
			map[string]load{"n1": contended, "n2": calm, "n3": {used: 2, unprobed: true}}},
		{"no agents", "unable to find metric entry for n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.t = t
			d.evicts(d.sees(prometheus, c.loads), "", c.says)
		})
	}
	t.Run("threads of one node wait for CPUs", func(t *testing.T) {
		d.t = t
		address := d.sees(prometheus, map[string]load{"n1": contended, "n2": calm, "n3": calm})
		d.evicts(address, "cart of n1", "violate the pod's disruption budget")
		d.evicts(address, "cart of n1", "violate the pod's disruption budget")
		d.evicts(address, "", "violate the pod's disruption budget") // all that are left are protected
		if err := d.client.PolicyV1().PodDisruptionBudgets("shop-a").Delete(t.Context(), "guarded", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		d.evicts(address, "guarded of n1", "Evicted pod")
	})
}

// evicts has the descheduler look once, and expects what it evicts, as OWNER of NODE, and says.
func (d *descheduled) evicts(prometheus, want, says string) {
	d.t.Helper()
	p := d.run(prometheus)
	got := strings.Join(d.evicted(), ", ")
	_ = p.End(syscall.SIGTERM) // it says that it was ended
	if printed := p.Printed(); got != want || !strings.Contains(printed, says) || strings.Contains(printed, "forbidden") {
		d.t.Fatalf("it evicted %q, want %q, and to be told %q, and not that something is forbidden:\n%s", got, want, says, printed)
	}
}
