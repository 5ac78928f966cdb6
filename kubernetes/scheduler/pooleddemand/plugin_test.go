package pooleddemand

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/unthrottle/unthrottle/internal/demand/nodedemand"
	"github.com/unthrottle/unthrottle/internal/demand/nodefit"
	"github.com/unthrottle/unthrottle/internal/demand/packing"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// podOn is a pod with one container that requests so many CPUs.
func podOn(node, name, cpus, memory string) *core.Pod {
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: core.PodSpec{NodeName: node, Containers: []core.Container{{Name: "app", Resources: core.ResourceRequirements{
			Requests: core.ResourceList{core.ResourceCPU: resource.MustParse(cpus), core.ResourceMemory: resource.MustParse(memory)}}}}},
	}
}

func nodeOf(name string, cpus string) *core.Node {
	has := core.ResourceList{core.ResourceCPU: resource.MustParse(cpus), core.ResourceMemory: resource.MustParse("8Gi"),
		core.ResourcePods: resource.MustParse("20")}
	return &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: core.NodeStatus{Allocatable: has, Capacity: has}}
}

// tells is what a node tells of pods that always want so many CPUs.
func tells(wants map[string]int) nodedemand.Spec {
	s := nodedemand.Spec{Version: nodedemand.Version, Until: noon}
	for pod, cpus := range wants {
		c := nodedemand.Container{Namespace: "shop", Pod: pod, Container: "app", Service: "shop/" + workload(pod) + "/app", MostCPUs: cpus}
		for range phases.Count {
			c.Phases = append(c.Phases, nodedemand.Phase{180, float64(cpus)})
		}
		s.Containers = append(s.Containers, c)
	}
	return s
}

// workload is a StatefulSet's name in that of its pod.
func workload(pod string) string { return pod[:strings.LastIndexByte(pod, '-')] }

// world is a framework with the plugin alone.
type world struct {
	framework.Framework
	plugin *Plugin
	nodes  map[string]fwk.NodeInfo
	said   chan string
	now    time.Time
}

func newWorld(t *testing.T, args string, nodes []*core.Node, pods []*core.Pod) *world {
	t.Helper()
	metrics.Register()
	recorder := events.NewFakeRecorder(10)
	w := &world{nodes: map[string]fwk.NodeInfo{}, said: recorder.Events, now: noon}
	snapshot := cache.NewSnapshot(pods, nodes)
	all, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		w.nodes[n.Node().Name] = n
	}
	registry := frameworkruntime.Registry{
		queuesort.Name: queuesort.New, defaultbinder.Name: defaultbinder.New,
		Name: func(ctx context.Context, given runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			w.plugin, err = newPlugin(ctx, given, h, func() time.Time { return w.now })
			return w.plugin, err
		},
	}
	profile := &config.KubeSchedulerProfile{SchedulerName: "test", Plugins: &config.Plugins{
		QueueSort:  config.PluginSet{Enabled: []config.Plugin{{Name: queuesort.Name}}},
		Bind:       config.PluginSet{Enabled: []config.Plugin{{Name: defaultbinder.Name}}},
		MultiPoint: config.PluginSet{Enabled: []config.Plugin{{Name: Name, Weight: 1}}}},
		PluginConfig: []config.PluginConfig{{Name: Name, Args: &runtime.Unknown{Raw: []byte(args)}}}}
	w.Framework, err = frameworkruntime.NewFramework(t.Context(), registry, profile, frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithEventRecorder(recorder.WithLogger(ktesting.NewLogger(t, ktesting.NewConfig()))))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// tell has a node tell of its pods.
func (w *world) tell(t *testing.T, node string, s nodedemand.Spec) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	w.plugin.feed.set(node, toldBy(&s))
}

// tried is why a node does not hold a pod; "": it does.
func (w *world) tried(t *testing.T, pod *core.Pod, node string) (why string, state *framework.CycleState) {
	t.Helper()
	state = framework.NewCycleState()
	if _, status, _ := w.RunPreFilterPlugins(t.Context(), state, pod); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	if status := w.RunFilterPlugins(t.Context(), state, pod, w.nodes[node]); !status.IsSuccess() {
		why = strings.Join(status.Reasons(), ", ")
	}
	return why, state
}

const upTo = `{"maxRequestsRatio": 1.5}`

func TestFilter(t *testing.T) {
	// Requests of low are full, of busy half full; what they want is the other way round.
	nodes := []*core.Node{nodeOf("low", "4"), nodeOf("busy", "4"), nodeOf("silent", "4")}
	pods := []*core.Pod{podOn("low", "idle-0", "2", "1Gi"), podOn("low", "idle-1", "2", "1Gi"), podOn("busy", "burn-0", "2", "1Gi"),
		podOn("silent", "new-0", "2", "1Gi"), podOn("silent", "new-1", "2", "1Gi")}
	for name, c := range map[string]struct {
		args, node string
		pod        *core.Pod
		want       string
	}{
		"requests full, demand low":          {upTo, "low", podOn("", "web-0", "1", "1Gi"), ""},
		"more than the ratio":                {upTo, "low", podOn("", "web-0", "2500m", "1Gi"), nodefit.TooManyRequests},
		"a lower ratio":                      {`{"maxRequestsRatio": 1.2}`, "low", podOn("", "web-0", "1", "1Gi"), nodefit.TooManyRequests},
		"requests fit, demand full":          {upTo, "busy", podOn("", "web-0", "1", "1Gi"), nodefit.TooMuchDemand},
		"no rows: requests count":            {upTo, "silent", podOn("", "web-0", "1", "1Gi"), nodefit.TooMuchDemand},
		"memory is as ever":                  {upTo, "low", podOn("", "web-0", "1", "7Gi"), "Insufficient memory"},
		"alone more than the node":           {upTo, "low", podOn("", "web-0", "5", "1Gi"), "Insufficient cpu"},
		"nothing is known of its pods":       {upTo, "silent", podOn("", "idle-7", "1", "1Gi"), nodefit.TooMuchDemand},
		"off: nothing is refused":            {`{}`, "busy", podOn("", "web-0", "1", "1Gi"), ""},
		"its service wants more than it has": {upTo, "low", podOn("", "burn-7", "1", "1Gi"), nodefit.TooMuchDemand},
	} {
		w := newWorld(t, c.args, nodes, pods)
		w.tell(t, "low", tells(map[string]int{"idle-0": 0, "idle-1": 1}))
		w.tell(t, "busy", tells(map[string]int{"burn-0": 4}))
		if got, _ := w.tried(t, c.pod, c.node); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The rows of a service on another node count for its pods where nobody tells of them. Rows that are too old count no more.
func TestServiceAndAge(t *testing.T) {
	nodes := []*core.Node{nodeOf("a", "4"), nodeOf("b", "4")}
	w := newWorld(t, upTo, nodes, []*core.Pod{podOn("a", "idle-0", "2", "1Gi"), podOn("b", "idle-1", "2", "1Gi"),
		podOn("b", "idle-2", "2", "1Gi")})
	pod := podOn("", "web-0", "1", "1Gi")
	if why, _ := w.tried(t, pod, "b"); why != nodefit.TooMuchDemand {
		t.Errorf("nothing is known: %q", why)
	}
	w.tell(t, "a", tells(map[string]int{"idle-0": 1}))
	w.now = noon.Add(16 * time.Minute) // b's load is made anew, and a's rows are too old
	if why, _ := w.tried(t, pod, "b"); why != nodefit.TooMuchDemand {
		t.Errorf("the rows are 16 minutes old: %q", why)
	}
	now := tells(map[string]int{"idle-0": 1})
	now.Until = noon.Add(30 * time.Minute)
	w.tell(t, "a", now)
	w.now = noon.Add(33 * time.Minute)
	if why, _ := w.tried(t, pod, "b"); why != "" {
		t.Errorf("its pods want one CPU each, as their service on a: %q", why)
	}
	w.plugin.feed.set("a", nil)
	w.now = noon.Add(60 * time.Minute)
	if why, _ := w.tried(t, pod, "b"); why != nodefit.TooMuchDemand || len(w.plugin.feed.services) != 0 {
		t.Errorf("a tells nothing any more: %q, %v", why, w.plugin.feed.services)
	}
}

// Nodes whose pods want less get the better score, or with MostWanted those whose pods want more.
func TestScore(t *testing.T) {
	nodes := []*core.Node{nodeOf("low", "4"), nodeOf("busy", "4")}
	pods := []*core.Pod{podOn("low", "idle-0", "2", "1Gi"), podOn("busy", "burn-0", "2", "1Gi")}
	for args, want := range map[string][2]int64{`{"reserve": 0}`: {50, 0}, `{"scoring": "MostWanted", "reserve": 0}`: {50, 100}} {
		w := newWorld(t, args, nodes, pods)
		w.tell(t, "low", tells(map[string]int{"idle-0": 1}))
		w.tell(t, "busy", tells(map[string]int{"burn-0": 3}))
		pod := podOn("", "web-0", "1", "1Gi")
		_, state := w.tried(t, pod, "low")
		scores, status := w.RunScorePlugins(t.Context(), state, pod, []fwk.NodeInfo{w.nodes["low"], w.nodes["busy"]})
		if !status.IsSuccess() {
			t.Fatal(status.AsError())
		}
		if got := [2]int64{scores[0].TotalScore, scores[1].TotalScore}; got != want {
			t.Errorf("%s: %v, want %v", args, got, want)
		}
	}
}

// A pod that makes requests exceed its node is told so, and no other one.
func TestTold(t *testing.T) {
	w := newWorld(t, upTo, []*core.Node{nodeOf("low", "4")}, []*core.Pod{podOn("low", "idle-0", "3500m", "1Gi")})
	w.tell(t, "low", tells(map[string]int{"idle-0": 1}))
	for cpus, want := range map[string]string{"500m": "", "1": "requests of CPU on low are now 1.12 times what it has " +
		"(at most 1.50); its pods " +
		"are expected to want at most 2.00 CPUs for all but 0.1 % of the time"} {
		pod := podOn("", "web-0", cpus, "1Gi")
		why, state := w.tried(t, pod, "low")
		if status := w.RunReservePluginsReserve(t.Context(), state, pod, "low"); why != "" || !status.IsSuccess() {
			t.Fatal(why, status.AsError())
		}
		w.RunPostBindPlugins(t.Context(), state, pod, "low")
		got := ""
		select {
		case got = <-w.said:
		default:
		}
		if (got == "") != (want == "") || !strings.HasSuffix(got, want) {
			t.Errorf("%s CPUs: %q, want %q", cpus, got, want)
		}
	}
}

// Pods of one service that request the same are alike for the scheduler; of two they are not.
func TestSignPod(t *testing.T) {
	w := newWorld(t, upTo, nil, nil)
	of := func(pod *core.Pod) string {
		fragments, status := w.plugin.SignPod(t.Context(), pod)
		if !status.IsSuccess() {
			t.Fatal(status.AsError())
		}
		return fmt.Sprint(fragments)
	}
	a := of(podOn("", "web-0", "1", "1Gi"))
	if b := of(podOn("", "web-1", "1", "1Gi")); a != b {
		t.Errorf("%s and %s", a, b)
	}
	whole := podOn("", "web-0", "1", "1Gi")
	whole.Spec.Resources = &core.ResourceRequirements{Requests: core.ResourceList{core.ResourceCPU: resource.MustParse("1")}}
	for _, other := range []*core.Pod{podOn("", "cart-0", "1", "1Gi"), podOn("", "web-0", "2", "1Gi"), whole} {
		if a == of(other) {
			t.Errorf("%+v is like web-0", other.Spec)
		}
	}
}

// A node whose allocatable CPUs were raised has no more than it has.
func TestCPUsOf(t *testing.T) {
	n := nodeOf("raised", "4")
	n.Status.Allocatable = core.ResourceList{core.ResourceCPU: resource.MustParse("6")}
	if got := cpusOf(n); got != 4 {
		t.Errorf("%v CPUs, want 4", got)
	}
}

// Init containers that have ended want nothing; those that stay do, and count as what they request.
func TestAdd(t *testing.T) {
	w := newWorld(t, upTo, nil, nil)
	pod := podOn("", "web-0", "1", "1Gi")
	always := core.ContainerRestartPolicyAlways
	pod.Spec.InitContainers = []core.Container{*pod.Spec.Containers[0].DeepCopy(), *pod.Spec.Containers[0].DeepCopy()}
	pod.Spec.InitContainers[0].Name, pod.Spec.InitContainers[1].Name = "once", "proxy"
	pod.Spec.InitContainers[1].RestartPolicy = &always
	s := tells(map[string]int{"web-0": 3})
	var l nodefit.Load
	w.plugin.add(&l, pod, w.plugin.requestOf(pod), toldBy(&s), noon)
	if got := l.Wants.Wants(); l.RequestedCPUs != 2 || !packing.Fits(got, 4) || packing.Fits(got, 3.9) {
		t.Errorf("requests %v, wants %v; 2 and 4 (3 measured, 1 requested by the proxy)", l.RequestedCPUs, got)
	}
}

// Where a pod requests as a whole, containers of which nothing is known count as what the measured ones leave of that.
func TestAddRequestsAsWhole(t *testing.T) {
	for name, c := range map[string]struct {
		whole, app, proxy, overhead string // "": none
		want                        float64
	}{
		"no container requests":               {"3", "0", "0", "", 4}, // 1 measured; the proxy may be what 3 are for
		"the measured one requests":           {"3", "1", "0", "", 3},
		"both request, and there is overhead": {"3", "1", "500m", "250m", 3.25},
		"all is measured":                     {"3", "1", "", "250m", 1.25},
		"no request as a whole":               {"", "1", "500m", "250m", 1.75},
	} {
		w := newWorld(t, upTo, nil, nil)
		pod := podOn("", "web-0", c.app, "1Gi")
		if c.proxy != "" {
			proxy := pod.Spec.Containers[0].DeepCopy()
			proxy.Name, proxy.Resources.Requests[core.ResourceCPU] = "proxy", resource.MustParse(c.proxy)
			pod.Spec.Containers = append(pod.Spec.Containers, *proxy)
		}
		if c.overhead != "" {
			pod.Spec.Overhead = core.ResourceList{core.ResourceCPU: resource.MustParse(c.overhead)}
		}
		if c.whole != "" {
			pod.Spec.Resources = &core.ResourceRequirements{Requests: core.ResourceList{core.ResourceCPU: resource.MustParse(c.whole)}}
		}
		s := tells(map[string]int{"web-0": 1})
		var l nodefit.Load
		w.plugin.add(&l, pod, w.plugin.requestOf(pod), toldBy(&s), noon)
		if got := l.Wants.Wants(); !packing.Fits(got, c.want) || packing.Fits(got, c.want-0.1) {
			t.Errorf("%s: wants %v, want %v", name, got, c.want)
		}
	}
}

func TestArgs(t *testing.T) {
	for args, want := range map[string]string{
		"": "", `{"risk": 0.01, "maxRequestsRatio": 2, "maxAge": "1h", "scoring": "MostWanted"}`: "",
		`{"risk": 0.5}`: "args.risk: 0.5", `{"maxRequestsRatio": 0.9}`: "maxRequestsRatio: 0.9",
		`{"maxRequestsRatio": 11}`: "give 1 (off) to 10", `{"reserve": 1}`: "args.reserve: 1", `{"reserve": 0}`: "",
		`{"maxAge": "1m"}`: "at least 5m", `{"scoring": "Best"}`: `"Best"`, `{"ratio": 2}`: `unknown field "ratio"`, `[`: "args: ",
	} {
		_, err := argsOf(&runtime.Unknown{Raw: []byte(args)})
		if said := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(said, want) && want != "" {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	if a, err := argsOf(nil); err != nil || a.MaxRequestsRatio != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := argsOf(&core.Pod{}); err == nil {
		t.Error("a pod is no arguments")
	}
}
