package main

import (
	"errors"
	"fmt"
)

// cartPolicy is an object of Kubernetes that has a rule for the throttled pod.
const cartPolicy = `
apiVersion: unthrottle.dev/v1alpha1
kind: ThrottlePolicy
metadata: {name: carts, namespace: shop}
spec:
  mode: observe
  rules:
  - match: {labels: {app: cart}}
    remedy: auto
`

// policies turns the chart's policies on: an object of Kubernetes reaches the rules of the agent on the node.
func (s *suite) policies(k *cluster, p *cart, o chartOptions) {
	_, err := s.upgradeChart(k, o, "--set", "policies.enabled=true")
	if err == nil { // the API server serves a definition soon after it has it
		err = eventually(func() error { return s.create(k, cartPolicy) })
	}
	if s.check("kubernetes: helm upgrades it to policies.enabled, the API server takes a ThrottlePolicy",
		errors.Join(err, s.rolledOut(k))) != nil {
		return
	}
	sidecar := func() error {
		logs, err := s.kubectl(k, "logs", "-n", "unthrottle", "ds/unthrottle", "-c", "policies", "--tail=20")
		return errors.Join(err, errors.New(logs))
	}
	err = eventually(func() error {
		got, err := s.kubectl(k, "get", "throttlepolicy", "-n", "shop", "carts", "-o",
			`jsonpath={.status.conditions[?(@.type=="Accepted")].status}`)
		return errors.Join(err, equal("Accepted", got, "True"))
	})
	if err != nil {
		err = errors.Join(err, sidecar())
	}
	s.check("kubernetes: the container policies accepts it, in its status", err)
	var rule struct {
		Agent      *struct{ Version string }
		Containers []struct {
			Cgroup string
			Values []struct{ Name, Value string }
		}
	}
	err = eventually(func() error {
		if err := s.inAgent(k, &rule, "policy", cartName, "--config", "/run/unthrottle/rules.yaml"); err != nil {
			return err
		}
		if rule.Agent == nil || len(rule.Containers) != 1 {
			return fmt.Errorf("agent %v, %d containers", rule.Agent, len(rule.Containers))
		}
		values := map[string]string{}
		for _, v := range rule.Containers[0].Values {
			values[v.Name] = v.Value
		}
		return errors.Join(equal("cgroup", rule.Containers[0].Cgroup, p.kernel.path),
			contains(values["policy"], "shop/carts"), equal("remedy", values["remedy"], "auto"))
	})
	if err != nil {
		err = errors.Join(err, sidecar())
	}
	s.check("kubernetes: the agent's rule for the pod is that policy's", err)
	// The pod of the agent that ended put it back, and the new one only observes.
	s.check("kubernetes: an upgrade puts back what was in force",
		errors.Join(s.sameContainer(k, p), equal("settings", p.kernel.read(), resizedTo(p.before)),
			equal("the pod's settings", p.pod.read(), resizedTo(p.podBefore))))
	_, err = s.kubectl(k, "delete", "throttlepolicy", "-n", "shop", "carts")
	s.check("kubernetes: the policy is deleted", err)
}
