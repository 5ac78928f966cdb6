package pooleddemand

import (
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A node whose kubelet refused a pod for its request of CPU gets none beyond what it has, for a while; others do, and pods that fit.
func TestRefused(t *testing.T) {
	nodes := []*core.Node{nodeOf("low", "4"), nodeOf("other", "4")}
	w := newWorld(t, upTo, nodes, []*core.Pod{podOn("low", "idle-0", "3500m", "1Gi"), podOn("other", "idle-1", "3500m", "1Gi")})
	for _, node := range []string{"low", "other"} {
		w.tell(t, node, tells(map[string]int{"idle-0": 0, "idle-1": 0}))
	}
	more := podOn("", "idle-7", "1", "1Gi")
	refused := func(node, name, reason string, at time.Time) *core.Pod {
		p := podOn(node, name, "1", "1Gi")
		p.Status = core.PodStatus{Phase: core.PodFailed, Reason: reason, StartTime: &metav1.Time{Time: at}}
		return p
	}
	client := fake.NewClientset(refused("low", "web-0", outOfCPU, noon), refused("other", "web-1", "Evicted", noon),
		refused("other", "web-2", outOfCPU, noon.Add(-time.Hour)), refused("", "web-3", outOfCPU, noon))
	if err := w.plugin.refusals.read(t.Context(), client, func() time.Time { return noon }); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !w.plugin.refusals.rests("low", noon); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a refusal is not noted")
		}
	}
	for _, c := range []struct {
		node string
		pod  *core.Pod
		want string
	}{
		{"low", more, Rests}, {"low", podOn("", "idle-7", "500m", "1Gi"), ""}, {"other", more, ""},
	} {
		if got, _ := w.tried(t, c.pod, c.node); got != c.want {
			t.Errorf("%s on %s: %q, want %q", c.pod.Spec.Containers[0].Resources.Requests.Cpu(), c.node, got, c.want)
		}
	}
	if w.now = noon.Add(restsFor); w.plugin.refusals.rests("low", w.now) {
		t.Error("it rests for ever")
	}
	now := tells(map[string]int{"idle-0": 0})
	now.Until = w.now
	w.tell(t, "low", now)
	if got, _ := w.tried(t, more, "low"); got != "" {
		t.Errorf("after its rest: %q", got)
	}
}

// What is noted is bounded by the nodes that rest, and by this scheduler's clock.
func TestRefusals(t *testing.T) {
	var r refusals
	r.note("a", noon, noon)
	r.note("a", noon.Add(-time.Minute), noon) // an older one
	r.note("b", noon.Add(24*time.Hour), noon) // by a clock that is ahead
	r.note("c", noon.Add(-time.Hour), noon)
	if all := *r.now.Load(); len(all) != 2 || !all["a"].Equal(noon.Add(restsFor)) || !all["b"].Equal(noon.Add(restsFor)) {
		t.Errorf("%v", all)
	}
	r.forget("b")
	r.note("d", noon.Add(restsFor), noon.Add(restsFor))
	if all := *r.now.Load(); len(all) != 1 || all["d"].IsZero() {
		t.Errorf("%v", all)
	}
}
