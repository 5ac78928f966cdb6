package main

import (
	"errors"
	"os"
	"path/filepath"
)

// starting is ready a minute after it began.
var starting = otherPod{name: "starting", command: "sleep 60; echo > /tmp/ready; sleep 100000",
	requests: "{cpu: 50m, memory: 16Mi}", limits: "{cpu: 300m, memory: 32Mi}",
	container: []string{"readinessProbe: {exec: {command: [cat, /tmp/ready]}, periodSeconds: 2, timeoutSeconds: 10}"}}

// startRules raise the limit of that pod while it starts.
const startRules = `mode: apply
resize: {enabled: true, image: {repository: docker.io/library/unthrottle-kubernetes, tag: e2e}}
config:
  rules:
  - match: {namespace: shop, name: "*starting*"}
    startup: {remedy: raise, most: 10m}
`

// resizedInSpec has raise change the pod's spec, so that spec, kubelet and kernel agree, and a pod's limit raised while it starts.
func (s *suite) resizedInSpec(k *cluster, p *cart, o chartOptions) {
	before, podBefore := p.kernel.read(), p.pod.read()
	values := filepath.Join(s.dir, "resize.yaml")
	err := os.WriteFile(values, []byte(startRules), 0o600)
	if err == nil {
		_, err = s.upgradeChart(k, o, "-f", values)
	}
	if s.check("raise: helm upgrades the chart to resize.enabled", errors.Join(err, s.rolledOut(k))) != nil {
		return
	}
	limits := func(pod string) (string, error) {
		return s.kubectl(k, "get", "pod", "-n", "shop", pod, "-o",
			"jsonpath={.spec.containers[0].resources.limits.cpu} {.status.containerStatuses[0].resources.limits.cpu}")
	}
	has := func(pod, limit string) error {
		got, err := limits(pod)
		return errors.Join(err, equal("the limit in spec and status", got, limit+" "+limit))
	}
	_, err = s.show(k, p, "apply", cartName, "--remedy", "raise", "--to", "0.6")
	s.check("raise: spec, kubelet and kernel have the same limit",
		errors.Join(err, has("cart", "600m"), equal("quota", p.kernel.quota(), "60000"),
			equal("the pod's quota", p.pod.quota(), "60000"), s.sameContainer(k, p)))
	_, err = s.show(k, p, "restore")
	s.check("raise: restore resizes it back", errors.Join(err, eventually(func() error {
		return errors.Join(has("cart", nextLimit), equal("settings", p.kernel.read(), before),
			equal("the pod's settings", p.pod.read(), podBefore))
	}), s.sameContainer(k, p)))
	_, err = s.show(k, p, "apply", cartName, "--remedy", "raise", "--to", "100")
	s.check("raise: more than the node has is refused, and nothing is left of it",
		errors.Join(wants(err, "unthrottle: "), eventually(func() error {
			return errors.Join(has("cart", nextLimit), equal("settings", p.kernel.read(), before),
				equal("the pod's settings", p.pod.read(), podBefore))
		})))

	err = s.create(k, starting.object())
	if err == nil {
		err = eventually(func() error { return has("starting", "1") })
	}
	s.check("startup: a pod that is not ready has the next whole CPU, in its spec too", err)
	if err == nil {
		err = eventually(func() error { return has("starting", "300m") })
	}
	ready, failed := s.kubectl(k, "get", "pod", "-n", "shop", "starting", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
	s.check("startup: once it is ready it has its own limit again", errors.Join(err, failed, equal("Ready", ready, "True")))
	_, err = s.kubectl(k, "delete", "pod", "-n", "shop", "starting", s.timeout())
	if err == nil {
		_, err = s.upgradeChart(k, o, "--set", "mode=observe",
			"--set", "resize.enabled=false", "--set", "config.rules=null")
	}
	s.check("raise: resize.enabled is off again", errors.Join(err, s.rolledOut(k)))
}
