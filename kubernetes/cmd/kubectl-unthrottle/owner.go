package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/kubernetes/podowner"
)

// owner is what makes pods: a Deployment, a StatefulSet or another controller; or a pod that nothing makes.
type owner struct{ kind, name string }

// String names it as kubectl does: deployment/cart.
func (o owner) String() string { return strings.ToLower(o.kind) + "/" + o.name }

// ownerOf is the owner of a pod.
func ownerOf(pod *core.Pod) owner {
	kind, name := podowner.Of(pod)
	if kind == "" {
		return owner{"Pod", pod.Name}
	}
	return owner{kind, name}
}

// pattern fits the names of all pods of an owner, also of those that it makes later. It is the pod's own name where the owner
// names its pods in another way, as where a long name was cut off.
func (o owner) pattern(pod *core.Pod) string {
	of := policy.PodsOf(o.kind, o.name)
	if _, indexed := pod.Labels["batch.kubernetes.io/job-completion-index"]; indexed && o.kind == "Job" {
		of = o.name + "-*-?????"
	}
	if ok, err := path.Match(of, pod.Name); !ok || err != nil {
		return pod.Name
	}
	return of
}

// match is a rule's `match.name` for the containers of an owner that are asked for; container "": for all.
func match(o owner, pod *core.Pod, container string) string {
	if container == "" {
		return o.pattern(pod)
	}
	return o.pattern(pod) + "/" + container
}

// fits reports whether a rule's `match.name` matches a container of a pod, as the agent compares them.
func fits(pattern string, pod *core.Pod) bool {
	glob := func(name string) bool { ok, err := path.Match(pattern, name); return ok && err == nil }
	if glob(pod.Name) {
		return true
	}
	for _, containers := range [][]core.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		if slices.ContainsFunc(containers, func(c core.Container) bool {
			return glob(c.Name) || glob(pod.Name+"/"+c.Name) || glob(pod.Namespace+"/"+pod.Name+"/"+c.Name)
		}) {
			return true
		}
	}
	return false
}

// others are the owners, beside one, of pods that a pattern matches: "deployment/cart-api (pod cart-api-5d9c7-abcde and 2 more)".
func others(of owner, pattern string, all []core.Pod) []string {
	pods := map[owner][]string{}
	var order []owner
	for i := range all {
		o := ownerOf(&all[i])
		if o == of || !fits(pattern, &all[i]) {
			continue
		}
		if pods[o] == nil {
			order = append(order, o)
		}
		pods[o] = append(pods[o], all[i].Name)
	}
	var out []string
	for _, o := range order {
		more := ""
		if n := len(pods[o]) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		out = append(out, fmt.Sprintf("%s (pod %s%s)", o, pods[o][0], more))
	}
	slices.Sort(out)
	return out
}
