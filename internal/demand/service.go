package demand

import (
	"strings"

	"github.com/unthrottle/unthrottle/internal/container"
)

// ServiceOf is what the replicas of one workload have in common: of a pod its namespace, its controller's name and the
// container's, by the forms of names that Kubernetes makes; of compose the service; of a unit the unit; else the
// container's name.
//
// Worked example: cart-7d9c5b8f6-x2x4x (Deployment), db-0 (StatefulSet) and log-x2x4x (DaemonSet) with a container app,
// in the namespace shop, are shop/cart/app, shop/db/app and shop/log/app. A name that has none of these forms is its
// own workload. Services of one name in two namespaces are two: another team's cart has another limit.
func ServiceOf(c *container.Container) string {
	switch {
	case c.Pod != "":
		workload, _ := WorkloadOf(c.Pod, c.TemplateHash)
		return strings.TrimPrefix(c.Namespace+"/"+workload+"/"+c.ContainerName, "/")
	case c.Service != "":
		return strings.Trim(c.Project+"/"+c.Service, "/")
	case c.Unit != "":
		return c.Unit
	}
	return c.Name
}

// Kinds of controllers that a pod's name tells; "" tells none.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
	// DaemonSetOrJob: pods of both have names of one form.
	DaemonSetOrJob = "DaemonSet or Job"
	CronJob        = "CronJob"
)

// Kubernetes makes a pod's name of its controller's, a dash and five characters, and cuts what is before these to 58
// bytes (k8s.io/apiserver/pkg/storage/names).
const (
	generated = 5
	longest   = 63
)

// WorkloadOf cuts what a controller of Kubernetes adds to a pod's name, and says which kind adds that. hash is the
// pod's label pod-template-hash, which a Deployment gives it; "": it is not known. Of a controller whose own name was
// cut the name is what is left, the same for all pods of one ReplicaSet, and the kind is not told.
func WorkloadOf(pod, hash string) (name, kind string) {
	if hash != "" && len(pod) > generated {
		if name, whole := beforeHash(pod[:len(pod)-generated], hash); name != "" {
			if !whole {
				return name, ""
			}
			return name, Deployment
		}
	}
	if head := pod[:max(0, len(pod)-generated)]; len(pod) == longest && isSafe(pod[len(head):]) &&
		head[len(head)-1] != '-' {
		return cutWorkload(head)
	}
	return wholeWorkload(pod)
}

// beforeHash is the Deployment's name in what is before a pod's generated characters, of which the end may be cut:
// "cart-7d9c5b8f6-", "cart-7d9c5b8f6", "cart-7d9". whole: the name itself is not cut. "": the hash is not in it.
func beforeHash(head, hash string) (name string, whole bool) {
	if name, ok := strings.CutSuffix(head, "-"+hash+"-"); ok {
		return name, true
	}
	if len(head) != longest-generated {
		return "", false
	}
	for n := len(hash); n > 0; n-- {
		if name, ok := strings.CutSuffix(head, "-"+hash[:n]); ok {
			return name, true
		}
	}
	return head, false
}

// cutWorkload is for a name that was cut, without its five characters. Most of a hash, or of a Job's minutes, at its
// end is no part of the controller's name; fewer characters may be, and stay.
func cutWorkload(head string) (name, kind string) {
	above, last, ok := cutLast(head)
	switch {
	case ok && (len(last) == 7 || len(last) == 8) && isNumber(last):
		return above, CronJob
	case ok && len(last) >= 6 && len(last) <= 10 && isSafe(last):
		return above, Deployment
	}
	return head, ""
}

func wholeWorkload(pod string) (name, kind string) {
	head, last, ok := cutLast(pod)
	switch {
	case !ok:
		return pod, ""
	case isNumber(last):
		return head, StatefulSet
	case len(last) != 5 || !isSafe(last):
		return pod, ""
	}
	// Below a ReplicaSet, whose name ends in the hash of its template, or a CronJob's Job, whose name ends in the minutes
	// since 1970 (8 digits from 1989 to 2160).
	above, hash, ok := cutLast(head)
	switch {
	case ok && len(hash) == 8 && isNumber(hash):
		return above, CronJob
	case ok && len(hash) >= 6 && len(hash) <= 10 && isSafe(hash):
		return above, Deployment
	}
	return head, DaemonSetOrJob
}

func cutLast(name string) (head, last string, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 || i == len(name)-1 {
		return "", "", false
	}
	return name[:i], name[i+1:], true
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }

// isSafe tells the alphabet of Kubernetes' generated suffixes: no vowels, and no 0, 1 and 3
// (k8s.io/apimachinery/pkg/util/rand).
func isSafe(s string) bool { return strings.Trim(s, "bcdfghjklmnpqrstvwxz2456789") == "" }
