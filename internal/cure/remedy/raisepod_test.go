package remedy

import (
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

func TestRaisePod(t *testing.T) {
	const podUID = "8e0d9d7a-ef34-4f39-8e36-66d5a0f0c1aa"
	const pod = "/kubepods/burstable/pod" + podUID
	limits := map[string]float64{"/kubepods": 0, "/kubepods/burstable": 0, pod: 0.5, pod + "/web": 0.5}
	for name, c := range map[string]struct {
		change  func(p *hoststate.Pod)
		above   float64 // quota of a level above the pod; 0: none
		r       Request
		to      string
		warned  string
		refused string
	}{
		"the spec alone, and the kubelet does the rest": {r: Request{Kind: Raise}, to: "1"},
		"an odd limit is rounded up to a thousandth":    {r: Request{Kind: Raise, To: 1.23456}, to: "1235m"},
		"for a start up to the next whole number":       {r: Request{Kind: Raise, Starting: 1e9}, to: "1"},
		"a Guaranteed pod": {r: Request{Kind: Raise}, to: "1",
			change: func(p *hoststate.Pod) { p.CPU.Guaranteed = true },
			warned: "its request is raised with the limit"},
		"another pod of the name": {r: Request{Kind: Raise}, change: func(p *hoststate.Pod) { p.CPU.UID = "two" },
			refused: "is another pod by now"},
		"it would restart": {r: Request{Kind: Raise}, change: func(p *hoststate.Pod) { p.CPU.Restarts = true },
			refused: "RestartContainer, so that a resize would restart it"},
		"the pod's own resources": {r: Request{Kind: Raise}, change: func(p *hoststate.Pod) { p.CPU.PodLevel = true },
			refused: "its pod has CPU resources of its own"},
		"an autoscaler's pod": {r: Request{Kind: Raise}, change: func(p *hoststate.Pod) {
			p.CPU.Autoscaler = "VerticalPodAutoscaler cart (updateMode Recreate)"
		}, refused: "resized by VerticalPodAutoscaler cart (updateMode Recreate), and the two would undo each other's limits"},
		"perhaps an autoscaler's": {r: Request{Kind: Raise}, change: func(p *hoststate.Pod) { p.CPU.Untold = "no answer" },
			refused: "whether a VerticalPodAutoscaler resizes it cannot be told: no answer"},
		"a resize under way": {r: Request{Kind: Raise}, change: func(p *hoststate.Pod) { p.CPU.Running = true },
			refused: "another resize of its pod is under way"},
		"spec and kernel differ": {r: Request{Kind: Raise}, change: func(p *hoststate.Pod) { p.CPU.Limit = 700 },
			refused: "its pod's spec has 0.7 CPUs, and the kernel enforces 0.5 CPUs"},
		"nobody to ask": {r: Request{Kind: Raise}, change: func(p *hoststate.Pod) { p.Unread = "no answer" },
			refused: "cannot be read: no answer"},
		"a level above the pod": {r: Request{Kind: Raise}, above: 0.8,
			refused: "the quota of 0.8 CPUs at /kubepods/burstable would still bind"},
	} {
		t.Run(name, func(t *testing.T) {
			f := tree(t, cgroup.V2, limits)
			f.Pod = &hoststate.Pod{Name: "shop/cart/web", CPU: podresize.CPU{UID: podUID, Limit: 500, Actual: 500}}
			if c.change != nil {
				c.change(f.Pod)
			}
			if c.above > 0 {
				g := f.Groups["/kubepods/burstable"]
				g.Limit = cgroup.Limit{Quota: bandwidth.QuotaOf(c.above, cgroup.DefaultPeriod),
					Period: cgroup.DefaultPeriod}
				f.Groups["/kubepods/burstable"] = g
			}
			of := target(pod+"/web", podUID)
			if c.refused != "" {
				if got := refusal(t, f, of, c.r).Error(); !strings.Contains(got, c.refused) {
					t.Errorf("got %q, want %q in it", got, c.refused)
				}
				return
			}
			p, err := Make(f, of, c.r)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Changes) != 1 || p.Changes[0].Kind != change.KindPodCPU || p.Changes[0].From != "500m" ||
				p.Changes[0].To != c.to ||
				p.Changes[0].Path != pod || p.Changes[0].Unit != "shop/cart/web" {
				t.Errorf("%+v", p.Changes)
			}
			if warned := strings.Join(p.Warnings, "\n"); !strings.Contains(warned, c.warned) {
				t.Errorf("warned %q", warned)
			}
		})
	}
	f := tree(t, cgroup.V2, limits)
	p, err := Make(f, target(pod+"/web", podUID), Request{Kind: Raise})
	if err != nil || !strings.Contains(strings.Join(p.Warnings, "\n"), "the kubelet's next resize writes that again") {
		t.Errorf("without the sidecar: %+v, %v", p.Warnings, err)
	}
}
