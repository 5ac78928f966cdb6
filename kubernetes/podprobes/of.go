package podprobes

import (
	"cmp"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/explain/prober"
)

// restartsFor is how long a container's end is remembered.
const restartsFor = 24 * time.Hour

// Ends are the ends of containers that were seen, by the pod's uid and the container's name.
type Ends map[[2]string][]answers.Restart

// Of is what the agent is told of pods. It adds to what is remembered of their containers' ends, and forgets what is
// too old or gone.
func Of(pods []*core.Pod, ends Ends, now time.Time) answers.Pods {
	out := answers.Pods{Schema: answers.PodsSchema, Version: answers.Version, Containers: []answers.PodContainer{}}
	there := map[[2]string]bool{}
	for _, pod := range pods {
		for _, spec := range probed(pod) {
			key := [2]string{string(pod.UID), spec.Name}
			there[key] = true
			status := statusOf(pod, spec.Name)
			if status == nil {
				continue
			}
			ends.add(key, status.LastTerminationState.Terminated, now)
			var id string // "" while it is not probed: the agent keeps what it counted of its earlier lives
			var began time.Time
			if running := status.State.Running; running != nil && (status.Started == nil || *status.Started) {
				_, id, _ = strings.Cut(status.ContainerID, "://")
				began = running.StartedAt.Time
			}
			c := answers.PodContainer{ID: id, Namespace: pod.Namespace, Pod: pod.Name, UID: string(pod.UID),
				Container: spec.Name, Probes: probesOf(spec, began), Restarts: slices.Clone(ends[key])}
			if c.Restarts == nil {
				c.Restarts = []answers.Restart{}
			}
			out.Containers = append(out.Containers, c)
		}
	}
	for key := range ends {
		if !there[key] {
			delete(ends, key)
		}
	}
	slices.SortFunc(out.Containers, func(a, b answers.PodContainer) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod),
			cmp.Compare(a.Container, b.Container))
	})
	if beyond := len(out.Containers) - answers.MaxPodContainers; beyond > 0 {
		out.Containers, out.LeftOut = out.Containers[:answers.MaxPodContainers], beyond
	}
	return out
}

// probed are a pod's containers that have a probe with figures. Those of a sidecar are init containers that are always
// restarted. A pod that is over has none.
func probed(pod *core.Pod) (found []core.Container) {
	if pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed {
		return nil
	}
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == core.ContainerRestartPolicyAlways &&
			len(probesOf(c, time.Time{})) > 0 {
			found = append(found, c)
		}
	}
	for _, c := range pod.Spec.Containers {
		if len(probesOf(c, time.Time{})) > 0 {
			found = append(found, c)
		}
	}
	return found
}

func statusOf(pod *core.Pod, name string) *core.ContainerStatus {
	for _, all := range [][]core.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
	}
	return nil
}

// probesOf are the probes of a container that began then (zero: it is not probed now), without those that stops make miss nothing.
func probesOf(c core.Container, began time.Time) (found []answers.PodProbe) {
	for _, p := range []struct {
		kind string
		spec *core.Probe
	}{{"liveness", c.LivenessProbe}, {"readiness", c.ReadinessProbe}} {
		handler := ""
		switch {
		case p.spec == nil:
			continue
		case p.spec.HTTPGet != nil:
			handler = prober.HTTPGet
		case p.spec.GRPC != nil:
			handler = prober.GRPC
		case p.spec.Exec != nil:
			handler = prober.Exec
		}
		if prober.Answers(handler, time.Second) == nil {
			continue
		}
		told := answers.PodProbe{Probe: p.kind, Handler: handler, TimeoutSeconds: int(p.spec.TimeoutSeconds),
			PeriodSeconds: int(p.spec.PeriodSeconds), FailureThreshold: int(p.spec.FailureThreshold)}
		if !began.IsZero() {
			told.From = began.Add(time.Duration(p.spec.InitialDelaySeconds) * time.Second).UTC()
		}
		found = append(found, told)
	}
	return found
}

// add remembers an end, unless it is known.
func (e Ends) add(key [2]string, end *core.ContainerStateTerminated, now time.Time) {
	known := slices.DeleteFunc(e[key], func(r answers.Restart) bool { return now.Sub(r.At) >= restartsFor })
	if end != nil && now.Sub(end.FinishedAt.Time) < restartsFor &&
		!slices.ContainsFunc(known, func(r answers.Restart) bool { return r.At.Equal(end.FinishedAt.Time) }) {
		known = append(known, answers.Restart{At: end.FinishedAt.UTC(), ExitCode: int(end.ExitCode),
			Reason: end.Reason})
	}
	if len(known) == 0 {
		delete(e, key)
		return
	}
	e[key] = known[max(0, len(known)-answers.MaxRestarts):]
}
