package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/unthrottle/unthrottle/internal/text"
)

// connected is a cluster that can be asked.
type connected struct {
	*plugin
	config    *rest.Config
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	namespace string

	lock   sync.Mutex
	bearer string // of the service account; "": not asked for yet
	until  time.Time
}

func (p *plugin) connect() (*connected, error) {
	if p.dial != nil {
		return p.dial(p)
	}
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	namespace, _, err := p.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	return &connected{plugin: p, config: config, client: client, dynamic: objects, namespace: namespace}, nil
}

// pod finds the pod that an argument names.
func (c *connected) pod(ctx context.Context, name string) (*core.Pod, error) {
	kind, rest, slash := strings.Cut(name, "/")
	if slash {
		switch kind {
		case "pod", "pods", "po":
			name = rest
		default:
			return nil, fmt.Errorf("%s: only pods can be looked at: 'kubectl get pods' names them", text.Shown(name))
		}
	}
	pod, err := c.client.CoreV1().Pods(c.namespace).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return nil, err
	}
	if pod.Spec.NodeName == "" {
		return nil, fmt.Errorf("pod %s/%s is on no node yet: 'kubectl describe pod %s' says why", pod.Namespace, pod.Name, pod.Name)
	}
	return pod, nil
}

// agents are the agent's pods that run, on one node or ("") on all.
func (c *connected) agents(ctx context.Context, node string) ([]core.Pod, error) {
	options := meta.ListOptions{LabelSelector: c.agentLabels}
	if node != "" {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}
	list, err := c.client.CoreV1().Pods(c.agentNamespace).List(ctx, options)
	if err == nil && len(list.Items) == 0 && node != "" { // one that waits for its node has only the wish for it
		list, err = c.client.CoreV1().Pods(c.agentNamespace).List(ctx, meta.ListOptions{LabelSelector: c.agentLabels})
		if err == nil {
			list.Items = slices.DeleteFunc(list.Items, func(pod core.Pod) bool { return !waitsForNode(&pod, node) })
		}
	}
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("the agent's pods cannot be found: %w; you need 'list' on pods, and 'get' and "+
			"'create' on pods/portforward, in namespace %s", err, c.agentNamespace)
	}
	if err != nil {
		return nil, fmt.Errorf("the agent's pods cannot be found: %w", err)
	}
	var running []core.Pod
	waits := ""
	for _, pod := range list.Items {
		if pod.Status.Phase == core.PodRunning {
			running = append(running, pod)
		} else if waits == "" {
			waits = waitsFor(&pod)
		}
	}
	if len(running) == 0 {
		on := "any node"
		if node != "" {
			on = "node " + node
		}
		if waits != "" {
			return nil, fmt.Errorf("no agent of unthrottle runs on %s yet: %s; 'kubectl -n %s get pods,events' says more", on, waits,
				c.agentNamespace)
		}
		return nil, fmt.Errorf("no agent of unthrottle runs on %s: no pod with labels %s in namespace %s; install "+
			"the chart there, or give --agent-namespace and --agent-labels", on, c.agentLabels, c.agentNamespace)
	}
	return running, nil
}

// waitsForNode reports whether a pod of a DaemonSet is for a node that it is not on yet.
func waitsForNode(pod *core.Pod, node string) bool {
	if pod.Spec.NodeName != "" || pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil ||
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if slices.ContainsFunc(term.MatchFields, func(f core.NodeSelectorRequirement) bool {
			return f.Key == meta.ObjectNameField && slices.Contains(f.Values, node)
		}) {
			return true
		}
	}
	return false
}

// mostSaid bounds what is repeated of others' messages, in bytes.
const mostSaid = 300

// waitsFor says of a pod that does not run what it waits for.
func waitsFor(pod *core.Pod) string {
	state := fmt.Sprintf("pod %s/%s is %s", pod.Namespace, pod.Name, pod.Status.Phase)
	for _, c := range append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...) {
		if w := c.State.Waiting; w != nil {
			return fmt.Sprintf("%s: container %s: %s", state, c.Name, reasonWith(w.Reason, w.Message))
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == core.ConditionFalse && c.Message != "" {
			return fmt.Sprintf("%s: %s", state, reasonWith(c.Reason, c.Message))
		}
	}
	if pod.Status.Reason+pod.Status.Message != "" {
		return fmt.Sprintf("%s: %s", state, reasonWith(pod.Status.Reason, pod.Status.Message))
	}
	return state
}

// reasonWith is a reason with its message, of which others choose the text.
func reasonWith(reason, message string) string {
	if message == "" {
		return text.Sanitize(reason, mostSaid)
	}
	return text.Sanitize(reason+" ("+message+")", mostSaid)
}

// completePods completes names of pods.
func (p *plugin) completePods(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := p.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list, err := c.client.CoreV1().Pods(c.namespace).List(cmd.Context(), meta.ListOptions{Limit: 500})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
