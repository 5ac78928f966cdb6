package main

import (
	"errors"
	"fmt"
	"time"
)

// sickPod computes below a limit that leaves its liveness probe, which starts a process beside it, too little time.
const sickPod = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: shop}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: %[2]s
    imagePullPolicy: Never
    command: [sh, -c, "while :; do :; done & while :; do :; done & while :; do :; done"]
    livenessProbe: {exec: {command: [echo, alive]}, timeoutSeconds: 1, periodSeconds: 5, failureThreshold: 2}
    resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 20m, memory: 64Mi}}
`

// probed has the kubelet kill a container whose liveness probe its quota fails, and wants an event of the pod that says so. The
// agent says it of a probe that it has watched for ten minutes.
func (s *suite) probed(k *cluster, o chartOptions) {
	_, err := s.helm(o, k.config, "upgrade", "unthrottle", o.chart, "-n", "unthrottle", "--reuse-values", "--set", "policies.probes=true")
	if err == nil {
		err = errors.Join(s.rolledOut(k), s.create(k, fmt.Sprintf(sickPod, "sick", imageName)))
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
	s.check(fmt.Sprintf("probes: after %s restarts an event of the pod says why (%.300s)", restarts, events),
		errors.Join(err, contains(events, "liveness probe")))
	_, err = s.kubectl(k, "delete", "pod", "-n", "shop", "sick", s.timeout())
	_, failed := s.helm(o, k.config, "upgrade", "unthrottle", o.chart, "-n", "unthrottle", "--reuse-values", "--set",
		"policies.probes=false")
	s.check("probes: they are off again", errors.Join(err, failed, s.rolledOut(k)))
}
