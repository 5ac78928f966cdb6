package pooleddemand

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/unthrottle/unthrottle/internal/demand/nodedemand"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
)

const (
	benchNodes    = 1000
	podsPerNode   = 10
	benchServices = 200
)

// manyContainers is what a node tells of its pods: two levels in each phase, other ones for each service.
func manyContainers(pods []*core.Pod) nodedemand.Spec {
	s := nodedemand.Spec{Version: nodedemand.Version, Until: noon}
	for _, p := range pods {
		var n int
		if _, err := fmt.Sscanf(p.Name, "s%d-", &n); err != nil {
			panic(err) // a name of our own
		}
		c := nodedemand.Container{Namespace: p.Namespace, Pod: p.Name, Container: "app", Service: serviceOf(p, "app"), MostCPUs: 2}
		share := 0.01 * float64(1+n%20)
		spread := share * (1 - share)
		for range phases.Count {
			c.Phases = append(c.Phases, nodedemand.Phase{180, 0.2 + share, spread, spread * (1 - 2*share)})
		}
		s.Containers = append(s.Containers, c)
	}
	return s
}

// BenchmarkDecision decides on pods in a cluster of 1,000 nodes with 10 pods each, in turns with the default profile and with
// the plugin, which scores in one profile and filters too in the other. It prints the p99 of a decision in milliseconds, and
// by how much it is longer than the default profile's in the same run. Each pod stays for the decisions of one round and is
// taken away, so that all profiles see the same cluster; a node tells anew before one decision in thirty, as 1,000 nodes do
// every five minutes at a hundred decisions a second.
func BenchmarkDecision(b *testing.B) {
	metrics.Register()
	ctx, cancel := context.WithCancel(klog.NewContext(b.Context(), klog.NewKlogr().V(0)))
	defer cancel()
	usual, err := latest.Default()
	if err != nil {
		b.Fatal(err)
	}
	names := []string{"default", "scores", "filters"}
	var profiles []config.KubeSchedulerProfile
	for i, args := range []string{"", `{}`, upTo} {
		p := usual.Profiles[0].DeepCopy()
		p.SchedulerName = names[i]
		if i > 0 {
			p.Plugins.MultiPoint.Enabled = append(p.Plugins.MultiPoint.Enabled, config.Plugin{Name: Name, Weight: 5})
			p.PluginConfig = append(p.PluginConfig, config.PluginConfig{Name: Name, Args: &runtime.Unknown{Raw: []byte(args)}})
		}
		if i == 2 {
			p.Plugins.Filter.Disabled = append(p.Plugins.Filter.Disabled, config.Plugin{Name: "NodeResourcesFit"})
		}
		profiles = append(profiles, *p)
	}
	var plugins []*Plugin
	client := fake.NewClientset()
	informers := scheduler.NewInformerFactory(client, 0)
	sched, err := scheduler.New(ctx, client, informers, nil, profile.NewRecorderFactory(events.NewBroadcaster(
		&events.EventSinkImpl{Interface: client.EventsV1()})), scheduler.WithProfiles(profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{
			Name: func(ctx context.Context, given runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
				p, err := newPlugin(ctx, given, h, func() time.Time { return noon })
				plugins = append(plugins, p)
				return p, err
			}}))
	if err != nil {
		b.Fatal(err)
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	log := klog.FromContext(ctx)
	podOf := func(n int, node string) *core.Pod {
		p := podOn(node, fmt.Sprintf("s%d-%d", n%benchServices, n), "300m", "128Mi")
		p.UID = types.UID(fmt.Sprint(n))
		return p
	}
	on := map[string][]*core.Pod{}
	for i := range benchNodes {
		of := fmt.Sprintf("node-%04d", i)
		sched.Cache.AddNode(log, nodeOf(of, "16"))
		for k := range podsPerNode {
			p := podOf(i*podsPerNode+k, of)
			on[of] = append(on[of], p)
			if err := sched.Cache.AddPod(log, p); err != nil {
				b.Fatal(err)
			}
		}
		for _, p := range plugins {
			s := manyContainers(on[of])
			if err := s.Check(); err != nil {
				b.Fatal(err)
			}
			p.feed.set(of, toldBy(&s))
		}
	}
	took := make([][]time.Duration, len(names))
	var before []*core.Pod
	decide := func(round int, counts bool) {
		if round%30 == 0 {
			of := fmt.Sprintf("node-%04d", round%benchNodes)
			for _, p := range plugins {
				s := manyContainers(on[of])
				p.feed.set(of, toldBy(&s))
			}
		}
		for _, p := range before {
			if err := sched.Cache.ForgetPod(log, p); err != nil {
				b.Fatal(err)
			}
		}
		before = before[:0]
		for i := range names {
			i := (i + round) % len(names) // none is always the first
			of := sched.Profiles[names[i]]
			pod := podOf(1e6+round*len(names)+i, "")
			pod.Spec.SchedulerName = names[i]
			info, err := framework.NewPodInfo(pod)
			if err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			if err := sched.Cache.UpdateSnapshot(log, of.SnapshotSharedLister().(*cache.Snapshot)); err != nil {
				b.Fatal(err)
			}
			got, err := sched.SchedulePod(ctx, of, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
			if lasted := time.Since(began); counts {
				took[i] = append(took[i], lasted)
			}
			if err != nil {
				b.Fatal(err)
			}
			pod.Spec.NodeName = got.SuggestedHost
			if err := sched.Cache.AssumePod(log, pod); err != nil {
				b.Fatal(err)
			}
			before = append(before, pod)
		}
	}
	for round := range 50 { // the nodes' loads are made
		decide(round, false)
	}
	for b.Loop() {
		decide(50+len(took[0]), true)
	}
	p99 := func(of []time.Duration) float64 {
		slices.Sort(of)
		return of[(len(of)-1)*99/100].Seconds() * 1000
	}
	for i, of := range names {
		b.ReportMetric(p99(took[i]), of+"-p99-ms")
		if i > 0 {
			b.ReportMetric(p99(took[i])/p99(took[0]), of+"-p99-ratio")
			b.ReportMetric(float64(took[i][len(took[i])/2])/float64(took[0][len(took[0])/2]), of+"-p50-ratio")
		}
	}
}
