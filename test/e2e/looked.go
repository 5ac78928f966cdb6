package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// lookWithin is how long a finding may take, from typing: the bound of docs/reference/look.md for a cluster. On emulated CPUs it
// is told, and no more.
const lookWithin = time.Minute

// looked has kubectl unthrottle look at a throttled pod without an agent: as the pod's user, and as another one.
func (s *suite) looked(k *cluster) {
	standard, pod := "restricted", []string{"securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}"}
	if !k.whole { // pods without a network of their own are taken by no standard
		standard, pod = "privileged", append(pod, "hostNetwork: true")
	}
	err := s.create(k, "apiVersion: v1\nkind: Namespace\nmetadata: {name: looked, labels: {pod-security.kubernetes.io/enforce: "+standard+"}}")
	if err == nil {
		err = eventually(func() error {
			return s.create(k, otherPod{name: "busy", namespace: "looked", requests: "{cpu: 50m, memory: 16Mi}",
				limits: "{cpu: 200m, memory: 32Mi}", pod: pod,
				container: []string{"securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"}}.object())
		})
	}
	if err == nil {
		err = s.podReady(k, "looked", "busy")
	}
	if s.check("look: a throttled pod of a namespace with the standard "+standard+" runs", err) != nil {
		return
	}
	for _, user := range []string{"1000", "2000"} {
		var told struct {
			Cause, Seen string
			Stopped     *float64 `json:"stopped_seconds"`
			Limit       *float64 `json:"limit_cpus"`
		}
		began := time.Now()
		out, err := s.plugin(k, "-n", "looked", "look", "busy", "--image", "docker.io/library/unthrottle:e2e", "--user", user, "-o", "json")
		took := time.Since(began).Round(time.Second)
		if k.whole && out != "" { // on emulated CPUs its own start costs all that it may use, so that it finds no cause
			err = nil
		}
		if err == nil {
			err = json.Unmarshal([]byte(out), &told)
		}
		switch {
		case err != nil:
		case told.Seen != "counters":
			err = fmt.Errorf("seen %q: %.600s", told.Seen, out)
		case (told.Limit != nil && *told.Limit == 0.2) != (user == "1000"):
			err = fmt.Errorf("the limit is for the pod's own user to see: %.900s", out)
		case k.whole:
		case told.Cause != "shortage" && (user == "1000" || told.Cause != "ancestor"):
			err = fmt.Errorf("what only computes needs more CPU, or is stopped by a quota that another user does not see: %.9000s", out)
		case told.Stopped == nil || *told.Stopped <= 0:
			err = fmt.Errorf("it was never stopped: %.9000s", out)
		case took > lookWithin:
			err = fmt.Errorf("it took %s", took)
		}
		s.check(fmt.Sprintf("look: as user %s, beside one that runs as 1000: cause %q, in %s", user, told.Cause, took), err)
	}
	_, err = s.kubectl(k, "delete", "namespace", "looked", s.timeout())
	s.check("look: the namespace is deleted", err)
}
