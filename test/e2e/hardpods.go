package main

import (
	"errors"
	"fmt"
	"strings"
)

// securedNamespaces are namespaces by the standard that Kubernetes' own admission enforces in them.
var securedNamespaces = []string{"baseline", "restricted"}

// securedPod is a throttled pod that the strictest standard takes, and its namespace.
func securedPod(standard string, hostUsers bool) string {
	runtime := "runc"
	if !hostUsers {
		runtime = "crun" // the distribution's runc is older than user namespaces of pods
	}
	pod := otherPod{name: "secured", namespace: standard, requests: "{cpu: 20m, memory: 16Mi}", limits: "{cpu: 50m, memory: 32Mi}",
		pod: []string{fmt.Sprintf("hostUsers: %t", hostUsers), "runtimeClassName: " + runtime,
			"securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}"},
		container: []string{"securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"}}
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %[1]s, labels: "+
		"{pod-security.kubernetes.io/enforce: %[1]s}}\n---\n%[2]s",
		standard, pod.object())
}

// secured looks at pods that are secured as far as Kubernetes can: they are other users' processes, in namespaces of their own. And
// it installs the chart where it must not be.
func (s *suite) secured(k *cluster, o chartOptions) {
	for _, runtime := range []string{"runc", "crun"} {
		err := s.create(k, fmt.Sprintf("apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: %[1]s}\nhandler: %[1]s", runtime))
		if s.check("secured: a class of pods for "+runtime, err) != nil {
			return
		}
	}
	for i, standard := range securedNamespaces {
		hostUsers := i == 0
		err := eventually(func() error { return s.create(k, securedPod(standard, hostUsers)) })
		if err == nil {
			err = s.podReady(k, standard, "secured")
		}
		title := fmt.Sprintf("secured: a pod of a namespace with the standard %s, hostUsers %t", standard, hostUsers)
		if s.check(title+", runs", err) != nil {
			continue
		}
		name := standard + "/secured/app"
		var all struct{ Containers []listed }
		err = eventually(func() error {
			if err := s.inAgent(k, &all, "ls", "--for", "2s"); err != nil {
				return err
			}
			for _, l := range all.Containers {
				if l.Name == name && l.Throttled != nil && *l.Throttled > 0 {
					return nil
				}
			}
			return fmt.Errorf("no throttled %s is listed", name)
		})
		s.check(title+": ls has it by its name, throttled", err)
		var told struct {
			Stopped *float64 `json:"stopped_seconds"`
		}
		err = s.inAgent(k, &told, "explain", name, "--for", "3s")
		if err == nil && (told.Stopped == nil || *told.Stopped <= 0) {
			err = fmt.Errorf("stopped %v s", told.Stopped)
		}
		s.check(title+": explain has its stops", err)
		err = s.inAgent(k, nil, "apply", name, "--remedy", "raise", "--to", "0.1")
		s.check(title+": a remedy is applied and undone", errors.Join(err, s.inAgent(k, nil, "restore")))
	}
	// The agent sees the node's processes and folders: neither standard takes its pods, and Kubernetes says what they ask for.
	for _, standard := range securedNamespaces {
		_, err := s.helm(o, k.config, "install", "unthrottle-"+standard, o.chart, "-n", standard, "--set", "image.tag=e2e")
		if err == nil {
			err = eventually(func() error {
				events, err := s.kubectl(k, "get", "events", "-n", standard)
				return errors.Join(err, contains(events, "violates PodSecurity"))
			})
		}
		pods, failed := s.kubectl(k, "get", "pods", "-n", standard, "-o", "name")
		if strings.Contains(pods, "unthrottle") {
			failed = errors.Join(failed, errors.New(pods))
		}
		s.check("secured: the agent's pods are refused in a namespace with the standard "+standard+", with the reason",
			errors.Join(err, failed))
		_, _ = s.helm(o, k.config, "uninstall", "unthrottle-"+standard, "-n", standard)
		_, _ = s.kubectl(k, "delete", "namespace", standard, "--wait=false")
	}
}
