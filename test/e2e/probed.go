package main

import (
	"errors"
	"fmt"
	"time"
)

// sick computes below a limit that leaves its liveness probe, which starts a process beside it, too little time. With less it would
// not start on a slow node: its init process has the same limit.
var sick = otherPod{name: "sick", command: loop + " & " + loop + " & " + loop, requests: "{cpu: 10m, memory: 16Mi}",
	limits:    "{cpu: 100m, memory: 64Mi}",
	container: []string{"livenessProbe: {exec: {command: [echo, alive]}, timeoutSeconds: 1, periodSeconds: 5, failureThreshold: 2}"}}

// probed has the kubelet kill a container whose liveness probe its quota fails, and wants an event of the pod that says so, while
// the kubelet waits ever longer before it starts the container again.
func (s *suite) probed(k *cluster, o chartOptions) {
	_, err := s.upgradeChart(k, o, "--set", "policies.enabled=true", "--set", "policies.probes=true")
	if err == nil {
		err = errors.Join(s.rolledOut(k), s.create(k, sick.object()))
	}
	if s.check("probes: the chart with policies.probes, a pod whose liveness probe gets too little time", err) != nil {
		return
	}
	var restarts, events string
	for range 100 { // each waits for ten seconds
		time.Sleep(10 * time.Second)
		restarts, _ = s.kubectl(k, "get", "pod", "-n", "shop", "sick", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
		events, err = s.kubectl(k, "get", "events", "-n", "shop", "--field-selector", "involvedObject.name=sick,reason=ProbeMissesByQuota",
			"-o", "jsonpath={.items[*].message}")
		if err == nil && events != "" && restarts != "" && restarts != "0" {
			break
		}
	}
	if restarts == "" || restarts == "0" {
		err = errors.Join(err, errors.New("the kubelet did not restart it"))
	}
	if events == "" {
		page, bad := s.agentPage(k, "/probes")
		told, worse := s.kubectl(k, "logs", "-n", "unthrottle", "ds/unthrottle", "--all-containers", "--tail=40")
		pod, worst := s.kubectl(k, "describe", "pod", "-n", "shop", "sick")
		err = errors.Join(err, bad, worse, worst, fmt.Errorf("GET /probes: %s\n%s\n%s", page, told, pod))
	}
	s.check(fmt.Sprintf("probes: after %s restarts an event of the pod says why (%.300s)", restarts, events),
		errors.Join(err, contains(events, "liveness probe")))
	_, err = s.kubectl(k, "delete", "pod", "-n", "shop", "sick", s.timeout())
	_, failed := s.upgradeChart(k, o, "--set", "policies.probes=false")
	s.check("probes: they are off again", errors.Join(err, failed, s.rolledOut(k)))
}
