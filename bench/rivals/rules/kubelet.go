package rules

import "time"

// Kubelet is the kubelet's CPU manager with the policy static: a container of class Guaranteed that asks for whole CPUs gets
// them for itself. Whether the quota stays is what the feature gate changes.
//
// Which CPUs it gets, and that a pod is not admitted where too few are free, is not decided here.
//
// Source: kubernetes 1.33, pkg/kubelet/cm/cpumanager/policy_static.go (guaranteedCPUs) and
// pkg/kubelet/kuberuntime/kuberuntime_container_linux.go (calculateLinuxResources); for the gate its page on kubernetes.io and
// pull request 127525.
type Kubelet struct {
	// DisableCPUQuotaWithExclusiveCPUs is the gate: on by default since 1.33, before which there was the quota always.
	DisableCPUQuotaWithExclusiveCPUs bool
}

// Cadence is 0: the CPUs of a container are chosen when its pod is admitted.
func (Kubelet) Cadence() time.Duration { return 0 }

// Next takes the class to be Guaranteed where request and limit are equal: memory is not in a [Resources].
func (k Kubelet) Next(o Observed) (Setting, Rule) {
	limit := milli(o.Spec.LimitCPUs)
	request := milli(o.Spec.RequestCPUs)
	if request == 0 {
		request = limit // as the API server does
	}
	s := Setting{RequestCPUs: cpusOf(request), Limit: limitOf(limit)}
	if limit > 0 && request == limit && limit%1000 == 0 {
		s.ExclusiveCPUs = int(limit / 1000)
		if k.DisableCPUQuotaWithExclusiveCPUs {
			s.Limit = limitOf(0)
		}
	}
	return s, k
}
