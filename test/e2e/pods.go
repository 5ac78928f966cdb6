package main

import (
	"fmt"
	"strings"
)

// loop computes for ever.
const loop = "while :; do :; done"

// otherPod is a pod beside the cart. Its further lines are YAML in the flow style.
type otherPod struct {
	// namespace is the shop by default, command is of sh -c, and computes for ever by default.
	name, namespace, command string
	// requests and limits are of the container; "" are none.
	requests, limits string
	// pod and container are further lines of their specs.
	pod, container []string
}

// object is the pod for the API server.
func (o otherPod) object() string {
	var b strings.Builder
	if o.namespace == "" {
		o.namespace = "shop"
	}
	if o.command == "" {
		o.command = loop
	}
	if o.limits != "" {
		o.container = append(o.container, fmt.Sprintf("resources: {requests: %s, limits: %s}", o.requests, o.limits))
	}
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec:\n", o.name, o.namespace)
	for _, line := range append([]string{"automountServiceAccountToken: false", "terminationGracePeriodSeconds: 1"}, o.pod...) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	fmt.Fprintf(&b, "  containers:\n  - name: app\n    image: %s\n    imagePullPolicy: Never\n    command: [sh, -c, "+
		"%q]\n", imageName, o.command)
	for _, line := range o.container {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	return b.String()
}

// podReady waits until a pod is ready. An error has what Kubernetes says of the pods.
func (s *suite) podReady(k *cluster, namespace, name string) error {
	_, err := s.kubectl(k, "wait", "-n", namespace, "--for=condition=Ready", "pod/"+name, s.timeout())
	if err != nil {
		events, _ := s.kubectl(k, "get", "events", "-A")
		err = fmt.Errorf("%w\n%s", err, events)
	}
	return err
}
