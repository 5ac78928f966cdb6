// Package podowner tells what makes a pod, by the pod alone: so no right on ReplicaSets or Jobs is needed.
//
// A ReplicaSet with the pod's template hash at the end of its name is a Deployment's, and a Job whose name ends in the minutes of its
// start a CronJob's.
//
// Limits: another program's object above a ReplicaSet, such as a Rollout of Argo, is not found: the owner is the ReplicaSet.
package podowner

import (
	"regexp"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A CronJob names its jobs after itself and the minute.
var cronJobs = regexp.MustCompile(`^(.+)-[0-9]{8,}$`)

// Of is the kind and the name of a pod's owner; "": nothing makes it.
func Of(pod meta.Object) (kind, name string) {
	c := meta.GetControllerOf(pod)
	if c == nil {
		return "", ""
	}
	switch c.Kind {
	case "ReplicaSet":
		if name, ok := strings.CutSuffix(c.Name, "-"+pod.GetLabels()["pod-template-hash"]); ok && name != "" {
			return "Deployment", name
		}
	case "Job":
		if m := cronJobs.FindStringSubmatch(c.Name); m != nil {
			return "CronJob", m[1]
		}
	}
	return c.Kind, c.Name
}
