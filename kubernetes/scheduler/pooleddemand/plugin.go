package pooleddemand

import (
	"cmp"
	"context"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/nodefit"
	"github.com/unthrottle/unthrottle/internal/demand/packing"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
)

// Name is that of the plugin in a profile.
const Name = "PooledDemand"

// The keys of what a scheduling cycle keeps, and of the part of a pod's signature.
const (
	podKey      = "unthrottle.dev/" + Name
	reservedKey = "unthrottle.dev/" + Name + "/reserved"
	signature   = "unthrottle.dev/" + Name
)

// Plugin filters and scores nodes by what their pods want together.
type Plugin struct {
	handle   fwk.Handle
	rule     nodefit.Rule
	age      time.Duration
	feed     *feed
	now      func() time.Time
	requests noderesources.ResourceRequestsOptions
	draGate  bool
	// fit is NodeResourcesFit's own check, which is quick where all fits.
	fit interface {
		fwk.PreFilterPlugin
		fwk.FilterPlugin
	}
	slots    slots
	refusals refusals
}

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.ScorePlugin       = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.PostBindPlugin    = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
)

// New makes the plugin and starts to read the NodeDemands, for whose first ones it waits for a few seconds. Until they are
// read, and while the cluster does not know the resource, pods count as their requests.
func New(ctx context.Context, given runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	p, err := newPlugin(ctx, given, h, time.Now)
	if err != nil {
		return nil, err
	}
	if err := p.feed.read(ctx, h.KubeConfig()); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	if p.rule.MaxRequestsRatio > 1 {
		if err := p.refusals.read(ctx, h.ClientSet(), p.now); err != nil {
			return nil, fmt.Errorf("plugin %s: %w", Name, err)
		}
	}
	_, err = h.SharedInformerFactory().Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(gone any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(gone); err == nil {
				p.slots.forget(key)
				p.refusals.forget(key)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("plugin %s: nodes: %w", Name, err)
	}
	return p, nil
}

// newPlugin makes it, with an empty feed.
func newPlugin(ctx context.Context, given runtime.Object, h fwk.Handle, now func() time.Time) (*Plugin, error) {
	a, err := argsOf(given)
	if err != nil {
		return nil, err
	}
	gates := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	strategy := &config.ScoringStrategy{Type: config.LeastAllocated, // it must have one, and never scores
		Resources: []config.ResourceSpec{{Name: string(core.ResourceCPU), Weight: 1}}}
	fit, err := noderesources.NewFit(ctx, &config.NodeResourcesFitArgs{ScoringStrategy: strategy}, h, gates)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return &Plugin{
		fit: fit.(*noderesources.Fit), handle: h, feed: newFeed(), now: now, age: a.MaxAge.Duration,
		draGate: gates.EnableDRAExtendedResource,
		rule: nodefit.Rule{Rule: packing.NewRule(a.Risk), MaxRequestsRatio: a.MaxRequestsRatio, Reserve: a.Reserve,
			Most: a.Scoring == MostWanted},
		requests: noderesources.ResourceRequestsOptions{
			EnablePodLevelResources: gates.EnablePodLevelResources, EnableDRAExtendedResource: gates.EnableDRAExtendedResource},
	}, nil
}

// Name is that in a profile.
func (p *Plugin) Name() string { return Name }

// podLoad is what the pod of a cycle requests and wants, and when the cycle began.
type podLoad struct {
	nodefit.Load
	now time.Time
}

// Clone returns the same: nobody changes it.
func (l *podLoad) Clone() fwk.StateData { return l }

// PreFilter works out what the pod wants. It skips Filter where no node is refused.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *core.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult,
	*fwk.Status) {
	l := &podLoad{now: p.now()}
	p.add(&l.Load, pod, p.requestOf(pod), nil, l.now)
	state.Write(podKey, l)
	if p.rule.MaxRequestsRatio <= 1 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return p.fit.PreFilter(ctx, state, pod, nodes)
}

// PreFilterExtensions are none: Filter reads a node's pods from the node that it is given.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter refuses nodes on which a resource other than CPU lacks, as NodeResourcesFit does, those that do not hold the pod by the
// rule, and those whose requests it would exceed although their kubelet refused such a pod lately.
func (p *Plugin) Filter(ctx context.Context, state fwk.CycleState, pod *core.Pod, node fwk.NodeInfo) *fwk.Status {
	l, err := podOf(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if !p.fit.Filter(ctx, state, pod, node).IsSuccess() {
		if status := p.lacks(pod, node); status != nil {
			return status
		}
	}
	with, cpus := p.with(l, node)
	if why := p.rule.WhyNot(cpus, with); why != "" {
		return fwk.NewStatus(fwk.Unschedulable, why)
	}
	if !packing.Fits(with.RequestsRatio, 1) && p.refusals.rests(node.Node().Name, l.now) {
		return fwk.NewStatus(fwk.Unschedulable, Rests)
	}
	return nil
}

// lacks is which resources other than CPU a node lacks; nil: none.
func (p *Plugin) lacks(pod *core.Pod, node fwk.NodeInfo) *fwk.Status {
	var dra fwk.SharedDRAManager
	if p.draGate {
		dra = p.handle.SharedDRAManager()
	}
	var reasons []string
	code := fwk.Unschedulable
	for _, lacks := range noderesources.Fits(pod, node, dra, p.requests) {
		if lacks.ResourceName != core.ResourceCPU || lacks.Unresolvable { // a pod that alone requests more is never held
			reasons = append(reasons, lacks.Reason)
		}
		if lacks.Unresolvable {
			code = fwk.UnschedulableAndUnresolvable
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return fwk.NewStatus(code, reasons...)
}

// Score is nodefit's.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *core.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	l, err := podOf(state)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	with, cpus := p.with(l, node)
	return p.rule.Score(cpus, with), nil
}

// ScoreExtensions are none: scores of all nodes are on one scale.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

// reserved is what the chosen node has with the pod.
type reserved struct{ nodefit.With }

// Clone returns the same: nobody changes it.
func (r *reserved) Clone() fwk.StateData { return r }

// Reserve notes what the chosen node has with the pod, for PostBind.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, _ *core.Pod, nodeName string) *fwk.Status {
	l, err := podOf(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	node, err := p.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return fwk.AsStatus(err)
	}
	with, _ := p.with(l, node)
	state.Write(reservedKey, &reserved{with})
	return nil
}

// Unreserve does nothing: the next node has a note of its own.
func (p *Plugin) Unreserve(context.Context, fwk.CycleState, *core.Pod, string) {}

// Reason is that of the event.
const Reason = "RequestsExceedNode"

// PostBind tells on the pod, as an event, that its node's requests now exceed what it has, and what it is expected to want.
func (p *Plugin) PostBind(_ context.Context, state fwk.CycleState, pod *core.Pod, nodeName string) {
	noted, err := state.Read(reservedKey)
	if err != nil {
		return
	}
	with := noted.(*reserved)
	if packing.Fits(with.RequestsRatio, 1) {
		return
	}
	p.handle.EventRecorder().Eventf(pod, nil, core.EventTypeNormal, Reason, "Scheduling",
		"requests of CPU on %s are now %.2f times what it has (at most %.2f); its pods "+
			"are expected to want at most %.2f CPUs for all but %g %% of the time",
		nodeName, with.RequestsRatio, p.rule.MaxRequestsRatio, with.TailCPUs, 100*p.rule.Risk())
}

// SignPod tells what Filter and Score depend on of a pod, so that the scheduler may use one decision for pods that are alike.
func (p *Plugin) SignPod(_ context.Context, pod *core.Pod) ([]fwk.SignFragment, *fwk.Status) {
	type wanted struct{ Service, Request string }
	var all []wanted
	for c := range containersOf(pod) {
		all = append(all, wanted{serviceOf(pod, c.Name), c.Resources.Requests.Cpu().String()})
	}
	if p.requestsAsWhole(pod) {
		all = append(all, wanted{Request: pod.Spec.Resources.Requests.Cpu().String()}) // of no container
	}
	return []fwk.SignFragment{{Key: signature, Value: all}, {Key: fwk.ResourcesSignerName, Value: resource.PodRequests(pod,
		resource.PodResourcesOptions{SkipPodLevelResources: !p.requests.EnablePodLevelResources})}}, nil
}

// EventsToRegister are those after which a refused pod may fit: pods that end or request less, and nodes that come or grow.
// What nodes newly tell of demand is none of them; the scheduler tries each pod again after five minutes at most.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete | fwk.UpdatePodScaleDown}},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeTaint |
			fwk.UpdateNodeLabel}},
	}, nil
}

func podOf(state fwk.CycleState) (*podLoad, error) {
	kept, err := state.Read(podKey)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w; enable it with multiPoint, so that its PreFilter runs", Name, err)
	}
	return kept.(*podLoad), nil
}

// cpusOf is how many CPUs a node has for pods: no more than it has at all, where what it can allocate was raised.
func cpusOf(n *core.Node) float64 {
	cpus := n.Status.Allocatable.Cpu().MilliValue()
	if all, ok := n.Status.Capacity[core.ResourceCPU]; ok {
		cpus = min(cpus, all.MilliValue())
	}
	return float64(cpus) / 1000
}

// requestOf is how many CPUs a pod requests.
func (p *Plugin) requestOf(pod *core.Pod) float64 {
	return cpuOf(resource.PodRequests(pod, resource.PodResourcesOptions{SkipPodLevelResources: !p.requests.EnablePodLevelResources}))
}

// requestsAsWhole tells whether a pod has a request of CPU for all of its containers (KEP-2837).
func (p *Plugin) requestsAsWhole(pod *core.Pod) bool {
	if !p.requests.EnablePodLevelResources || pod.Spec.Resources == nil {
		return false
	}
	_, ok := pod.Spec.Resources.Requests[core.ResourceCPU]
	return ok
}

// add adds a pod that requests so many CPUs to a load: what its node tells of its containers, or what their services want, or
// their requests. Where the pod requests as a whole, the request of those that nothing is known of is what the others leave of it.
func (p *Plugin) add(l *nodefit.Load, pod *core.Pod, requested float64, node *told, now time.Time) {
	l.RequestedCPUs += requested
	var days []*phases.Day
	rest, left, unknown := cpuOf(pod.Spec.Overhead), requested, false
	for c := range containersOf(pod) {
		own := cpuOf(c.Resources.Requests)
		if day := p.dayOf(pod, c.Name, node, now); day != nil {
			days, left = append(days, day), left-own
		} else {
			rest, unknown = rest+own, true
		}
	}
	switch {
	case len(days) == 0:
		rest = requested
	case unknown && p.requestsAsWhole(pod):
		rest = max(rest, left)
	}
	for _, day := range days {
		wants, most := day.Moments()
		p.rule.Add(&l.Wants, wants, most)
	}
	if rest > 0 {
		p.rule.Add(&l.Wants, phases.Constant(rest), rest)
	}
}

// dayOf is what is measured of a container; nil: nothing.
func (p *Plugin) dayOf(pod *core.Pod, container string, node *told, now time.Time) *phases.Day {
	of := p.feed.service(serviceOf(pod, container), now, p.age)
	if node == nil {
		return of
	}
	day := node.containers[name{pod.Namespace, pod.Name, container}]
	switch {
	case day == nil:
		return of
	case of == nil:
		return day
	}
	return day.Or(of)
}

// serviceOf is what the rows call a container's service.
func serviceOf(pod *core.Pod, name string) string {
	// The API server makes a name of its prefix where there is none.
	return demand.ServiceOf(&container.Container{Namespace: pod.Namespace, Pod: cmp.Or(pod.Name, pod.GenerateName),
		TemplateHash: pod.Labels["pod-template-hash"], ContainerName: name})
}

// containersOf are those that run as long as the pod.
func containersOf(pod *core.Pod) func(yield func(*core.Container) bool) {
	return func(yield func(*core.Container) bool) {
		for i := range pod.Spec.InitContainers {
			c := &pod.Spec.InitContainers[i]
			if c.RestartPolicy != nil && *c.RestartPolicy == core.ContainerRestartPolicyAlways && !yield(c) {
				return
			}
		}
		for i := range pod.Spec.Containers {
			if !yield(&pod.Spec.Containers[i]) {
				return
			}
		}
	}
}

func cpuOf(of core.ResourceList) float64 { return float64(of.Cpu().MilliValue()) / 1000 }
