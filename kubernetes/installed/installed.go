// Package installed tells whether the chart works on a node: helm test.
//
// Problem: an agent can be ready and see nothing, since a node's security module, mount or kernel keeps the files from it that
// names and counters come from.
//
// Rule: a pod with a small limit computes on the node. Within a time the agent of that node must have throttled periods of it, by
// namespace, pod and container, on its /metrics.
//
// Limits: it looks at the node that the pod was given to alone.
package installed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/unthrottle/unthrottle/internal/clock"
)

// maxPage bounds an agent's page of metrics, in bytes.
const maxPage = 16 << 20

// metricsPort is the name of the port in the chart.
const metricsPort = "metrics"

// Pod is the throttled container, and where it runs.
type Pod struct {
	Namespace, Name, Container, Node string
	// AgentHost is where the node's agent answers; "" is its pod's address.
	AgentHost string
}

// Throttled asks the agent on the pod's node, by the labels of the chart's pods in a namespace, until it has throttled periods of the
// container, and returns how many and the agent's name. It waits the given time between two answers and ends with ctx.
func Throttled(ctx context.Context, client kubernetes.Interface, namespace, labels string, p Pod, between time.Duration) (periods uint64,
	agent string, err error) {
	for {
		if periods, agent, err = ask(ctx, client, namespace, labels, p); err == nil {
			return periods, agent, nil
		}
		if clock.Sleep(ctx, between) != nil {
			return 0, agent, fmt.Errorf("node %s: %w; kubectl -n %s logs %s", p.Node, err, namespace, agent)
		}
	}
}

// ask asks once.
func ask(ctx context.Context, client kubernetes.Interface, namespace, labels string, p Pod) (uint64, string, error) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{LabelSelector: labels})
	if err != nil {
		return 0, "", fmt.Errorf("list the agent's pods: %w", err)
	}
	for _, agent := range pods.Items {
		port := portOf(agent)
		if agent.Spec.NodeName != p.Node || port == 0 || agent.Status.PodIP == "" {
			continue
		}
		page, err := get(ctx, "http://"+net.JoinHostPort(cmp.Or(p.AgentHost, agent.Status.PodIP), strconv.Itoa(int(port)))+"/metrics")
		if err != nil {
			return 0, agent.Name, fmt.Errorf("agent %s does not answer: %w", agent.Name, err)
		}
		periods, err := throttledOn(page, p)
		return periods, agent.Name, err
	}
	return 0, "", errors.New("no agent runs there")
}

// portOf is the port of an agent's metrics; 0: it is another pod.
func portOf(p core.Pod) int32 {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == metricsPort {
				return port.ContainerPort
			}
		}
	}
	return 0
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(io.LimitReader(answer.Body, maxPage))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, answer.Status)
	}
	return string(page), err
}

// throttledOn reads the container's throttled periods from a page of metrics.
func throttledOn(page string, p Pod) (uint64, error) {
	series := regexp.MustCompile(fmt.Sprintf(
		`(?m)^unthrottle_container_throttled_periods_total\{container=%q,id="[^"]*",namespace=%q,pod=%q\} (\d+)$`,
		p.Container, p.Namespace, p.Name))
	found := series.FindStringSubmatch(page)
	if found == nil {
		return 0, fmt.Errorf("it does not know container %s of pod %s/%s by its name", p.Container, p.Namespace, p.Name)
	}
	periods, err := strconv.ParseUint(found[1], 10, 64)
	if err == nil && periods == 0 {
		err = fmt.Errorf("container %s of pod %s/%s is not throttled yet", p.Container, p.Namespace, p.Name)
	}
	return periods, err
}

// Compute computes until ctx ends.
func Compute(ctx context.Context) {
	for ctx.Err() == nil {
	}
}
