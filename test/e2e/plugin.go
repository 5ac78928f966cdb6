package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// shopAllowed lets users of the shop's namespace apply what is found.
const shopAllowed = `
apiVersion: unthrottle.dev/v1alpha1
kind: ClusterThrottlePolicy
metadata: {name: shop}
spec:
  namespaces: [shop]
  allow: {mode: apply, remedies: [auto]}
`

// plugin runs kubectl unthrottle, which is beside kubectl or beside the program, and returns what it printed also where it failed.
func (s *suite) plugin(k *cluster, args ...string) (string, error) {
	beside, err := filepath.Abs(filepath.Dir(s.exe))
	if err != nil {
		return "", err
	}
	env := []string{"KUBECONFIG=" + k.config, "PATH=" + beside + ":" + k.bin + ":" + os.Getenv("PATH")}
	got, err := s.run(nil, env, k.program("kubectl"), append([]string{"unthrottle"}, args...)...)
	return got.out, err
}

// byUsers has a user of the cluster ask for a remedy with kubectl unthrottle, through objects of Kubernetes alone.
func (s *suite) byUsers(k *cluster, p *cart, o chartOptions) {
	err := s.inAgent(k, nil, "restore") // what other parts left
	before, podBefore := p.kernel.read(), p.pod.read()
	_, failed := s.upgradeChart(k, o, "--set", "mode=apply", "--set", "policies.enabled=true", "--set", "reader.enabled=true")
	if s.check("plugin: helm upgrades the chart to mode apply with policies and the reader", errors.Join(err, failed, s.rolledOut(k))) != nil {
		return
	}
	plugin := func(args ...string) (string, error) { return s.plugin(k, append([]string{"-n", "shop"}, args...)...) }
	var told string
	err = eventually(func() error {
		told, err = plugin("top")
		return errors.Join(err, contains(told, "cart/app"))
	})
	s.check("plugin: top shows the pod", err)
	told, err = plugin("status")
	s.check("plugin: status names the node's agent", errors.Join(err, contains(told, k.node)))
	_, err = plugin("fix", "cart", "--wait", "10m")
	s.check("plugin: fix is refused where no ClusterThrottlePolicy allows it", wants(err, "spec.mode: apply is not allowed here"))
	err = s.create(k, shopAllowed)
	told, failed = plugin("fix", "cart", "--wait", "10m")
	err = errors.Join(err, failed)
	settings := s.inForce(p)
	if err == nil && p.kernel.read() == before {
		settings = errors.New("the settings are those of before:\n" + told)
	}
	s.check("plugin: fix applies a remedy by a ThrottlePolicy, and waits for its verdict", errors.Join(err, settings))
	told, err = plugin("policy", "cart")
	s.check("plugin: policy names it", errors.Join(err, contains(told, "shop/")))
	told, err = plugin("restore", "cart", "--wait", "5m")
	if err != nil {
		err = errors.Join(err, errors.New(strings.TrimSpace(told)))
	}
	s.check("plugin: restore lets the rule go, and says what stays in force", errors.Join(err, contains(told, "is in force")))
	err = s.inAgent(k, nil, "restore") // as it says
	s.check("plugin: restore in the agent's pod puts it back", errors.Join(err, equal("settings", p.kernel.read(), before),
		equal("the pod's settings", p.pod.read(), podBefore), s.sameContainer(k, p)))
	_, err = s.kubectl(k, "delete", "clusterthrottlepolicy", "shop", s.timeout())
	_, failed = s.upgradeChart(k, o, "--set", "mode=observe")
	err = errors.Join(err, failed)
	s.check("plugin: helm sets mode observe again", errors.Join(err, s.rolledOut(k)))
}
