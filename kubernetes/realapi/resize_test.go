package realapi

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/podresize"
	resizer "github.com/unthrottle/unthrottle/internal/podresize/sidecar"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// byHand is the container resize, with a test for a kubelet: what it says of a resize is written where the agent waits
// for one.
type byHand struct {
	podresize.FS
	s    *server
	says *core.PodCondition // instead of doing it
}

func (b *byHand) Wait(ctx context.Context, n int) bool {
	pods := b.s.client.CoreV1().Pods("shop-a")
	all, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		b.s.t.Fatal(err)
	}
	for _, p := range all.Items {
		p.Status.Conditions = nil
		if b.says != nil {
			says := *b.says
			says.ObservedGeneration = p.Generation
			p.Status.Conditions = []core.PodCondition{says}
		} else {
			p.Status.ContainerStatuses[0].Resources = &p.Spec.Containers[0].Resources
		}
		if _, err := pods.UpdateStatus(ctx, &p, metav1.UpdateOptions{}); err != nil {
			b.s.t.Fatal(err)
		}
	}
	return n < 5
}

// limited makes a pod whose container has a CPU limit and request, as a kubelet of node n1 has it.
func (s *server) limited(name, request, limit string) {
	s.t.Helper()
	list := func(cpu string) core.ResourceList {
		return core.ResourceList{core.ResourceCPU: resource.MustParse(cpu),
			core.ResourceMemory: resource.MustParse("32Mi")}
	}
	no := false
	pods := s.client.CoreV1().Pods("shop-a")
	p, err := pods.Create(s.t.Context(), &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: core.PodSpec{NodeName: "n1",
			AutomountServiceAccountToken: &no, Containers: []core.Container{{Name: "app", Image: "i",
				Resources: core.ResourceRequirements{Requests: list(request), Limits: list(limit)}}}}},
		metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	p.Status.Phase = core.PodRunning
	p.Status.ContainerStatuses = []core.ContainerStatus{{Name: "app", Resources: &p.Spec.Containers[0].Resources}}
	if _, err := pods.UpdateStatus(s.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// resizes starts the container resize of the chart, with its rights.
func (s *server) resizes() podresize.FS {
	s.t.Helper()
	s.install("resize")
	socket := s.File("resize.sock")
	args := append(arguments(s.t, "resize", "resize"), "--socket", socket, "--kubeconfig",
		s.kubeconfigAs("resize-kubeconfig", s.token("unthrottle", "unthrottle")))
	p := apiserver.Start(s.t, s.Dir, "resize", exec.Command(s.program(), args...))
	wait.Until(s.t, "it listens", func() bool { _, err := os.Stat(socket); return err == nil || p.Ended() }, p.Printed)
	return resizer.New(socket)
}

// A limit is raised and put back with the rights of the chart. What the API server or the kubelet refuses is told, and
// undone.
func TestResize(t *testing.T) {
	s := newServer(t)
	s.nodeWithRoom()
	resizes := s.resizes()
	s.limited("cart", "100m", "500m")
	s.limited("sure", "500m", "500m")
	r := raises{s: s, kubelet: &byHand{FS: resizes, s: s}}
	r.env = apply.Env{FS: cgroupmodel.New(cgroupmodel.V2("0-3")), StateDir: t.TempDir(), BootID: "this", By: "test",
		Pods: r.kubelet}
	if err := r.env.FS.Make(cgroup.CPU, "/pod"); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{r.raise("cart", "1"), r.raise("sure", "1500m")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.has("cart", "100m", "1")
	r.has("sure", "1500m", "1500m")
	if res, err := apply.Restore(t.Context(), r.env, apply.Selector{}); err != nil ||
		res.Verdict != apply.VerdictRestored {
		t.Fatalf("%+v, %v", res, err)
	}
	r.has("cart", "100m", "500m")
	r.has("sure", "500m", "500m")
	s.bounds("1500m", "1", "1200m")
	t.Run("what is refused", r.refused)
	if held, err := apply.Status(r.env); err != nil || len(held) > 0 {
		t.Errorf("in force %+v, %v", held, err)
	}
	r.events("cart: Normal: unthrottle set limits.cpu of container app from 500m to 1\n",
		"cart: Warning: unthrottle set limits.cpu of container app from 600m to 500m, "+
			"as the kubelet had not accepted it: Infeasible: never\n")
}

// nodeWithRoom is n1, with four CPUs, and the namespace's account.
func (s *server) nodeWithRoom() {
	s.t.Helper()
	if _, err := s.client.CoreV1().ServiceAccounts("shop-a").Create(s.t.Context(),
		&core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.client.CoreV1().Nodes().Create(s.t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status: core.NodeStatus{Allocatable: core.ResourceList{core.ResourceCPU: resource.MustParse("4"),
			core.ResourceMemory: resource.MustParse("1Gi")}}}, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// bounds gives the namespace a ResourceQuota, of which some is used, and a LimitRange.
func (s *server) bounds(hard, used, most string) {
	s.t.Helper()
	bound := core.ResourceList{core.ResourceLimitsCPU: resource.MustParse(hard)}
	quota, err := s.client.CoreV1().ResourceQuotas("shop-a").Create(s.t.Context(), &core.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "most"}, Spec: core.ResourceQuotaSpec{Hard: bound}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	quota.Status = core.ResourceQuotaStatus{Hard: bound,
		Used: core.ResourceList{core.ResourceLimitsCPU: resource.MustParse(used)}}
	if _, err := s.client.CoreV1().ResourceQuotas("shop-a").UpdateStatus(s.t.Context(), quota,
		metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.client.CoreV1().LimitRanges("shop-a").Create(s.t.Context(),
		&core.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "range"},
			Spec: core.LimitRangeSpec{Limits: []core.LimitRangeItem{{Type: core.LimitTypeContainer,
				Max: core.ResourceList{core.ResourceCPU: resource.MustParse(most)}}}}},
		metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// raises are transactions on pods of shop-a.
type raises struct {
	s       *server
	kubelet *byHand
	env     apply.Env
}

// raise gives a pod's container another limit, from 500m.
func (r raises) raise(pod, to string) error {
	_, err := apply.Apply(r.s.t.Context(), r.env, txn.Purpose{Target: txn.Target{Path: "/pod/app"}, Remedy: "raise"},
		[]change.Change{{Kind: change.KindPodCPU, Op: change.OpSet, Path: "/pod", Unit: "shop-a/" + pod + "/app",
			File: podresize.Setting, From: "500m", To: to}})
	return err
}

// has expects a pod's request and limit.
func (r raises) has(pod, request, limit string) {
	r.s.t.Helper()
	p, err := r.s.client.CoreV1().Pods("shop-a").Get(r.s.t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		r.s.t.Fatal(err)
	}
	if got := p.Spec.Containers[0].Resources; got.Limits.Cpu().String() != limit ||
		got.Requests.Cpu().String() != request {
		r.s.t.Errorf("%s: request %s, limit %s; want %s, %s", pod, got.Requests.Cpu(), got.Limits.Cpu(), request, limit)
	}
}

// events expects these events, in the form POD: TYPE: MESSAGE.
func (r raises) events(want ...string) {
	r.s.t.Helper()
	events, err := r.s.client.CoreV1().Events("shop-a").List(r.s.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.s.t.Fatal(err)
	}
	said := ""
	for _, e := range events.Items {
		said += e.InvolvedObject.Name + ": " + e.Type + ": " + e.Message + "\n"
	}
	has(r.s.t, said, want...)
}

// refused is each way in which the API server or the kubelet refuses a resize: the pod stays as it was.
func (r raises) refused(t *testing.T) {
	for _, c := range []struct {
		to, want string
		says     *core.PodCondition
	}{
		{to: "1100m", want: "the API server refuses it: pods \"cart\" is forbidden: exceeded quota: most"},
		{to: "1300m", want: "the API server refuses it: pods \"cart\" is forbidden: " +
			"maximum cpu usage per Container is 1200m"},
		{to: "600m", want: "no room for it now (Deferred: full)", says: &core.PodCondition{Type: core.PodResizePending,
			Status: core.ConditionTrue, Reason: core.PodReasonDeferred, Message: "full"}},
		{to: "600m", want: "cannot do it on this node (Infeasible: never)",
			says: &core.PodCondition{Type: core.PodResizePending,
				Status: core.ConditionTrue, Reason: core.PodReasonInfeasible, Message: "never"}},
		{to: "600m", want: "the kubelet has not done it", says: &core.PodCondition{Type: core.PodResizeInProgress,
			Status: core.ConditionTrue}},
	} {
		r.kubelet.says = c.says
		if err := r.raise("cart", c.to); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("to %s: %v, want %q", c.to, err, c.want)
		}
		r.has("cart", "100m", "500m")
	}
}
