package main

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/bench/rivals/rules"
	"github.com/unthrottle/unthrottle/bench/services"
)

// served are the services of the page, by their names in package services, and chained is the chain of services.
var served = []string{
	"postgres-tpcb", "redis-gets", "memcached-gets", "nginx-gzip", "spring-orders", "gunicorn-pbkdf2", "tomcat-batch", "mariadb-sort",
	"kafka-produces", "cassandra-reads", "opensearch-searches", "hdfs-reads", chained,
}

const chained = "chain"

// beside is the neighbour: a cache that needs little.
func beside() services.Case {
	c, _ := services.Find("memcached-healthy")
	c.Streams = slices.Clone(c.Streams)
	c.Streams[0].PerSecond = neighbourPerSecond
	return c
}

// neighbourPerSecond is how many requests a second the neighbour gets.
const neighbourPerSecond = 300

// variant is one thing that somebody can do with the container.
type variant struct {
	name string
	// rule is what is asked; nil: tool or nothing.
	rule func(spec rules.Resources) rules.Rule
	// apply are the arguments of apply after the target, fix tells that fix is run; both by this project's program.
	apply []string
	fix   bool
	// agent runs this project's agent, which tries remedies by itself.
	agent bool
	// advised starts the service with the setting of its pool that explain advises.
	advised bool
	// period that it brings; 0: 100 ms.
	period time.Duration
	// left is what stays of it when it is taken away, by its source.
	left string
}

// usual is no limit, by which objective and history are made.
var usual = variant{name: "no limit", rule: always(rules.NoLimit()), left: leftSpec}

// What variants leave behind.
const (
	leftSpec    = "the spec as changed"
	leftNothing = "nothing"
	leftQuota   = "the last quota, until the container starts anew"
)

const captainTarget = 0.1

var variants = []variant{
	{name: "quota", rule: always(rules.Raised(1)), left: leftNothing},
	usual,
	{name: "twice the limit", rule: always(rules.Raised(2)), left: leftSpec},
	{name: "pool sized", rule: always(rules.Raised(1)), advised: true, left: leftSpec},
	{name: "period 10 ms", rule: always(rules.In(10*time.Millisecond, 0)), period: 10 * time.Millisecond, left: leftSpec},
	{name: "period 20 ms", rule: always(rules.In(20*time.Millisecond, 0)), period: 20 * time.Millisecond, left: leftSpec},
	{name: "burst in 100 ms", rule: always(rules.In(100*time.Millisecond, 1)), left: leftSpec},
	{name: "burst in 300 ms", rule: always(rules.In(300*time.Millisecond, 1)), period: 300 * time.Millisecond, left: leftSpec},
	{name: "burst in 1 s", rule: always(rules.In(time.Second, 1)), period: time.Second, left: leftSpec},
	{name: "kubelet exclusive CPUs with quota", rule: kubelet(false), left: leftNothing},
	{name: "kubelet exclusive CPUs", rule: kubelet(true), left: leftNothing},
	{name: "Koordinator", rule: func(rules.Resources) rules.Rule { return rules.DefaultKoordinator() }, left: leftQuota},
	{name: "Captain at 0.1", rule: func(spec rules.Resources) rules.Rule { return rules.NewCaptain(captainTarget, spec.LimitCPUs) },
		left: leftQuota},
	{name: "VPA", rule: func(rules.Resources) rules.Rule { return rules.VPA{} }, left: leftSpec},
	{name: "KRR", rule: func(rules.Resources) rules.Rule { return rules.KRR{} }, left: leftSpec},
	{name: "Attune", rule: func(rules.Resources) rules.Rule { return rules.Attune{} }, left: leftSpec},
	{name: "unthrottle narrow", apply: []string{"--remedy", "narrow"}, left: leftNothing},
	{name: "unthrottle fix", fix: true, left: leftNothing},
	{name: "unthrottle agent", agent: true, left: leftNothing},
}

func always(f rules.Fixed) func(rules.Resources) rules.Rule {
	return func(rules.Resources) rules.Rule { return f }
}

func kubelet(withoutQuota bool) func(rules.Resources) rules.Rule {
	return func(rules.Resources) rules.Rule { return rules.Kubelet{DisableCPUQuotaWithExclusiveCPUs: withoutQuota} }
}

// ours tells whether this project's program decides.
func (v variant) ours() bool { return v.fix || v.agent || len(v.apply) > 0 }

// decides is how long it has the usual load of a case before the first step, at most.
func (v variant) decides(c services.Case) time.Duration {
	const live, tried = 20 * time.Second, 4 * time.Minute
	switch {
	case v.fix, v.agent:
		return tried * time.Duration(1+len(c.Containers))
	case v.live():
		return live
	}
	return 0
}

// live tells whether its rule is asked while the service runs: those that are asked each minute or less often decide by the day before.
func (v variant) live() bool {
	if v.rule == nil {
		return false
	}
	cadence := v.rule(rules.Resources{LimitCPUs: 1}).Cadence()
	return cadence > 0 && cadence <= time.Second
}

// applies says why it cannot be applied to a service; "": it can.
func (v variant) applies(c services.Case) string {
	switch {
	case v.advised && c.Setting.Name == "":
		return "its pool has no setting"
	case strings.HasPrefix(v.name, "kubelet") && c.Limit != math.Trunc(c.Limit):
		return "the limit is no whole number of CPUs"
	}
	return ""
}

// isChain tells whether a case is a chain of containers.
func isChain(c services.Case) bool { return len(c.Containers) > 0 }

// loadsOf are the steps of a case.
func loadsOf(c services.Case) []float64 {
	if isChain(c) {
		return chainLoads
	}
	return loads
}

// asWritten is what a container with a spec has.
func asWritten(r rules.Resources) rules.Setting { return rules.Raised(1)(r) }

// settled is what a rule that decides by history asks for after a day, and the rule then. It is asked at its cadence until it has no more
// to change for a day; of what happened since nothing was throttled.
func settled(r rules.Rule, of rules.Resources, history []rules.Sample) rules.Setting {
	now := asWritten(of)
	cadence := r.Cadence()
	if cadence == 0 {
		next, _ := r.Next(rules.Observed{Spec: of, Now: now, History: history})
		return next
	}
	for at := 24 * time.Hour; at < 48*time.Hour; at += cadence {
		now, r = r.Next(rules.Observed{At: at, Spec: of, Now: now, For: cadence, History: history})
	}
	return now
}

// day is a day of use in samples so far apart: the load goes from a quarter of the usual one at midnight to all of it at noon and back, and
// use with it.
func day(usedCPUs float64, apart time.Duration) (history []rules.Sample) {
	const night, length = 0.25, 24 * time.Hour
	for at := apart; at <= length; at += apart {
		load := night + (1-night)*(1-math.Cos(2*math.Pi*float64(at)/float64(length)))/2
		history = append(history, rules.Sample{At: at, CPUs: usedCPUs * load})
	}
	return history
}

// apart is how far apart the samples are that a rule's project takes.
func apart(r rules.Rule) time.Duration {
	switch r.(type) {
	case rules.KRR:
		return 75 * time.Second
	case rules.Attune:
		return 5 * time.Minute
	}
	return time.Minute
}

// shown is a setting in words.
func shown(s rules.Setting) string {
	if s.ExclusiveCPUs > 0 {
		return strings.TrimSuffix(limitWords(s.Limit), ", ") + ", " + cpus(s.ExclusiveCPUs)
	}
	return limitWords(s.Limit)
}

func cpus(n int) string {
	if n == 1 {
		return "a CPU of its own"
	}
	return "CPUs of its own"
}

// limitWords is a limit in words.
func limitWords(l bandwidth.Limit) string {
	if !l.Limited() {
		return "no limit"
	}
	words := short(l.CPUs()) + " CPUs"
	if l.Period != bandwidth.DefaultPeriod {
		words += ", period " + l.Period.String()
	}
	if l.Burst > 0 {
		words += ", burst " + l.Burst.String()
	}
	return words
}
