package main

import (
	"context"
	"fmt"
	"strings"

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
	bearer    string // "": not asked for yet
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
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("the agent's pods cannot be found: %w; you need 'list' on pods, and 'get' and "+
			"'create' on pods/portforward, in namespace %s", err, c.agentNamespace)
	}
	if err != nil {
		return nil, fmt.Errorf("the agent's pods cannot be found: %w", err)
	}
	var running []core.Pod
	for _, pod := range list.Items {
		if pod.Status.Phase == core.PodRunning {
			running = append(running, pod)
		}
	}
	if len(running) == 0 {
		on := "any node"
		if node != "" {
			on = "node " + node
		}
		return nil, fmt.Errorf("no agent of unthrottle runs on %s: no pod with labels %s in namespace %s; install "+
			"the chart there, or give --agent-namespace and --agent-labels", on, c.agentLabels, c.agentNamespace)
	}
	return running, nil
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
