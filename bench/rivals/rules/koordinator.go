package rules

import (
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// Koordinator is the plugin CPUBurst of koordlet: a burst from the limit once and for all, and a quota that rises while the
// container is throttled and the node's shared CPUs are not busy.
//
// koordlet writes the burst first and then the quota, each by itself. A write that is refused leaves what was there and is
// tried again a second later. A kernel with CFS bandwidth control as in mainline refuses a burst above the quota, so that
// 1000 %, the default, never comes into force: the quota ends at 300 %. With a burst of 101 to 300 % the quota can rise above
// the burst and the burst is taken, but then the quota cannot fall below it (koordinator issues 2326 and 2778). With 100 % or
// less both work.
//
// Source: koordinator v1.8.0, pkg/koordlet/qosmanager/plugins/cpuburst/cpu_burst.go; defaults in
// pkg/util/sloconfig/nodeslo_config.go and pkg/koordlet/qosmanager/framework/config.go.
type Koordinator struct {
	Burst             bool  // policies cpuBurstOnly and auto; without it the burst is 0
	QuotaBurst        bool  // policies cfsQuotaBurstOnly and auto; without it the quota is the limit's
	BurstPercent      int64 // cpuBurstPercent: of the limit
	QuotaBurstPercent int64 // cfsQuotaBurstPercent: to how much of the limit the quota may rise
	// QuotaBurstSeconds is cfsQuotaBurstPeriodSeconds: how long the quota may be used up to its highest; below 0: for ever.
	QuotaBurstSeconds int64
	SharePoolPercent  int64 // sharePoolThresholdPercent: from which use of the node's shared CPUs the quota falls
	// TokenShare is how full the bucket of tokens is when the container is first seen, 0 to 1. koordlet draws it between 0 and
	// 0.5.
	TokenShare float64

	begun  bool
	tokens int64
	at     time.Duration
}

// DefaultKoordinator is the policy auto with the default of every other value. The default policy is none, which sets nothing.
func DefaultKoordinator() Koordinator {
	return Koordinator{Burst: true, QuotaBurst: true, BurstPercent: 1000, QuotaBurstPercent: 300, QuotaBurstSeconds: -1,
		SharePoolPercent: 50}
}

// Steps and thresholds of cpu_burst.go.
const (
	koordinatorUp      = 1.2
	koordinatorDown    = 0.8
	koordinatorCooling = 0.9 // of the threshold: from here on no quota rises
	koordinatorSpends  = 100 // percent of the limit: a container that uses as much spends tokens
	koordinatorSaves   = 60  // below it saves some
)

// operation is what is done to a quota.
type operation int

const (
	remain operation = iota
	up
	down
	reset
)

// Cadence is reconcile-interval-seconds.
func (k Koordinator) Cadence() time.Duration { return time.Second }

// Next leaves a container without a limit alone, but for its burst, which is 0.
func (k Koordinator) Next(o Observed) (Setting, Rule) {
	s := o.Now
	limit := milli(o.Spec.LimitCPUs)
	s.Limit.Burst = 0
	if k.Burst && limit > 0 {
		cpus := cpusOf(limit) * (float64(k.BurstPercent) / 100)
		s.Limit.Burst = time.Duration(cpus*float64(bandwidth.DefaultPeriod/bandwidth.Unit)) * bandwidth.Unit
	}
	if limit <= 0 {
		return s, k
	}
	allowed, k := k.allow(o)
	base := limitOf(limit).Quota
	most := base
	if k.QuotaBurstPercent > 100 {
		most = scaled(base, float64(k.QuotaBurstPercent)/100)
	}
	switch onNode(k.stateOf(o.Node), k.wish(o, allowed)) {
	case up:
		s.Limit.Quota = scaled(s.Limit.Quota, koordinatorUp)
	case down:
		s.Limit.Quota = scaled(s.Limit.Quota, koordinatorDown)
	case reset:
		s.Limit.Quota = base
	}
	s.Limit.Quota = max(base, min(s.Limit.Quota, most))
	return s, k
}

// scaled is a quota times a factor, in whole microseconds.
func scaled(quota time.Duration, factor float64) time.Duration {
	return time.Duration(float64(quota/bandwidth.Unit)*factor) * bandwidth.Unit
}

// allow tells whether the bucket has tokens left after what was used, where there is a bucket.
func (k Koordinator) allow(o Observed) (bool, Koordinator) {
	if k.QuotaBurstSeconds < 0 {
		return true, k
	}
	full := k.QuotaBurstSeconds * (k.QuotaBurstPercent - 100)
	if !k.begun {
		k.begun, k.tokens, k.at = true, int64(float64(full)*k.TokenShare), o.At
	}
	seconds := int64((o.At - k.at).Seconds())
	if percent := int64(o.cpus() / o.Spec.LimitCPUs * 100); percent >= koordinatorSpends || percent < koordinatorSaves {
		k.tokens += (100 - percent) * seconds
	}
	k.tokens, k.at = max(-full, min(k.tokens, full)), o.At
	return k.tokens > 0, k
}

// wish is what the container by itself would get.
func (k Koordinator) wish(o Observed, allowed bool) operation {
	switch {
	case !k.QuotaBurst:
		return reset
	case !allowed:
		return down
	case o.Throttled > 0:
		return up
	}
	return remain
}

// nodeState is how busy the CPUs are that containers share.
type nodeState int

const (
	nodeUnknown nodeState = iota
	nodeIdle
	nodeCooling
	nodeOverload
)

// stateOf compares the use of the shared CPUs with the threshold; without such CPUs the node is as if all were used.
func (k Koordinator) stateOf(n *Node) nodeState {
	if n == nil {
		return nodeUnknown
	}
	used, threshold := 1.0, float64(k.SharePoolPercent)/100
	if n.SharedCPUs > 0 {
		used = n.UsedCPUs / n.SharedCPUs
	}
	switch {
	case used >= threshold:
		return nodeOverload
	case used >= threshold*koordinatorCooling:
		return nodeCooling
	}
	return nodeIdle
}

// onNode is what the node's state leaves of a wish.
func onNode(state nodeState, wish operation) operation {
	switch {
	case state == nodeOverload && (wish == up || wish == remain):
		return down
	case (state == nodeCooling || state == nodeUnknown) && wish == up:
		return remain
	}
	return wish
}
