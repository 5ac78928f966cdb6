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
	socket := s.file("resize.sock")
	args := append(arguments(s.t, "resize", "resize"), "--socket", socket, "--kubeconfig",
		s.kubeconfigAs("resize-kubeconfig", s.token("unthrottle", "unthrottle")))
	p := start(s.t, s.dir, "resize", exec.Command(s.program(), args...))
	eventually(s.t, "it listens", func() bool { _, err := os.Stat(socket); return err == nil || p.ended() }, p.printed)
	return resizer.New(socket)
}

// A limit is raised and put back with the rights of the chart. What the API server or the kubelet refuses is told, and
// undone.
func TestResize(t *testing.T) {
	s := newServer(t)
	if _, err := s.client.CoreV1().ServiceAccounts("shop-a").Create(t.Context(),
		&core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.CoreV1().Nodes().Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status: core.NodeStatus{Allocatable: core.ResourceList{core.ResourceCPU: resource.MustParse("4"),
			core.ResourceMemory: resource.MustParse("1Gi")}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	resizes := s.resizes()
	s.limited("cart", "100m", "500m")
	s.limited("sure", "500m", "500m")
	kubelet := &byHand{FS: resizes, s: s}
	env := apply.Env{FS: cgroupmodel.New(cgroupmodel.V2("0-3")), StateDir: t.TempDir(), BootID: "this", By: "test",
		Pods: kubelet}
	if err := env.FS.Make(cgroup.CPU, "/pod"); err != nil {
		t.Fatal(err)
	}
	raise := func(pod, to string) error {
		_, err := apply.Apply(t.Context(), env, txn.Purpose{Target: txn.Target{Path: "/pod/app"}, Remedy: "raise"},
			[]change.Change{{Kind: change.KindPodCPU, Op: change.OpSet, Path: "/pod", Unit: "shop-a/" + pod + "/app",
				File: podresize.Setting, From: "500m", To: to}})
		return err
	}
	has := func(pod, request, limit string) {
		t.Helper()
		p, err := s.client.CoreV1().Pods("shop-a").Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r := p.Spec.Containers[0].Resources; r.Limits.Cpu().String() != limit ||
			r.Requests.Cpu().String() != request {
			t.Errorf("%s: request %s, limit %s; want %s, %s", pod, r.Requests.Cpu(), r.Limits.Cpu(), request, limit)
		}
	}
	for _, err := range []error{raise("cart", "1"), raise("sure", "1500m")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	has("cart", "100m", "1")
	has("sure", "1500m", "1500m")
	if res, err := apply.Restore(t.Context(), env, apply.Selector{}); err != nil ||
		res.Verdict != apply.VerdictRestored {
		t.Fatalf("%+v, %v", res, err)
	}
	has("cart", "100m", "500m")
	has("sure", "500m", "500m")
	hard := core.ResourceList{core.ResourceLimitsCPU: resource.MustParse("1500m")}
	quota, err := s.client.CoreV1().ResourceQuotas("shop-a").Create(t.Context(), &core.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "most"}, Spec: core.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = core.ResourceQuotaStatus{Hard: hard,
		Used: core.ResourceList{core.ResourceLimitsCPU: resource.MustParse("1")}}
	if _, err := s.client.CoreV1().ResourceQuotas("shop-a").UpdateStatus(t.Context(), quota,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.CoreV1().LimitRanges("shop-a").Create(t.Context(),
		&core.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "range"},
			Spec: core.LimitRangeSpec{Limits: []core.LimitRangeItem{{Type: core.LimitTypeContainer,
				Max: core.ResourceList{core.ResourceCPU: resource.MustParse("1200m")}}}}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
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
		kubelet.says = c.says
		if err := raise("cart", c.to); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("to %s: %v, want %q", c.to, err, c.want)
		}
		has("cart", "100m", "500m")
	}
	if held, err := apply.Status(env); err != nil || len(held) > 0 {
		t.Errorf("in force %+v, %v", held, err)
	}
	events, err := s.client.CoreV1().Events("shop-a").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, e := range events.Items {
		said += e.InvolvedObject.Name + ": " + e.Type + ": " + e.Message + "\n"
	}
	for _, want := range []string{"cart: Normal: unthrottle set limits.cpu of container app from 500m to 1\n",
		"cart: Warning: unthrottle set limits.cpu of container app from 600m to 500m, " +
			"as the kubelet had not accepted it: Infeasible: never\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("no event %q in\n%s", want, said)
		}
	}
}
