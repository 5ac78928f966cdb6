package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/kubernetes/reader"
)

const (
	// readerContainer is the container of the chart that users read.
	readerContainer = "reader"
	askFor          = time.Minute
	mostBytes       = 64 << 20
	// mostRecording is the most that the agent keeps of all recordings.
	mostRecording = 256 << 20
)

// agent is the reader beside the agent of one node.
type agent struct {
	*connected
	pod  *core.Pod // the agent's
	node string
	base string
	done func()
}

// agentOf reaches the reader of one of the agent's pods.
func (c *connected) agentOf(ctx context.Context, pod *core.Pod) (*agent, error) {
	if _, err := c.token(ctx); err != nil {
		return nil, err
	}
	open := c.reach
	if open == nil {
		open = c.forward
	}
	port, err := readerPort(pod)
	if err != nil {
		return nil, err
	}
	base, done, err := open(ctx, pod, port)
	if err != nil {
		return nil, fmt.Errorf("node %s: pod %s/%s cannot be reached: %w", pod.Spec.NodeName, pod.Namespace, pod.Name, err)
	}
	return &agent{c, pod, pod.Spec.NodeName, base, done}, nil
}

// readerPort is where the container reader of an agent's pod listens, by its arguments.
func readerPort(pod *core.Pod) (int, error) {
	for _, c := range pod.Spec.Containers {
		if c.Name != readerContainer {
			continue
		}
		listen := reader.DefaultListen
		if at := slices.Index(c.Args, "--listen"); at >= 0 && at+1 < len(c.Args) {
			listen = c.Args[at+1]
		}
		_, given, err := net.SplitHostPort(listen)
		if err != nil {
			return 0, fmt.Errorf("pod %s/%s: its container %s listens on %s: %w", pod.Namespace, pod.Name,
				readerContainer, text.Shown(listen), err)
		}
		return strconv.Atoi(given)
	}
	return 0, fmt.Errorf("node %s: the agent's pod %s/%s has no container %s, which shows users their pods: upgrade "+
		"the chart with --set reader.enabled=true", pod.Spec.NodeName, pod.Namespace, pod.Name, readerContainer)
}

// agentAt reaches the reader on the node of a pod.
func (c *connected) agentAt(ctx context.Context, pod *core.Pod) (*agent, error) {
	pods, err := c.agents(ctx, pod.Spec.NodeName)
	if err != nil {
		return nil, err
	}
	return c.agentOf(ctx, &pods[0])
}

// each asks the readers of all nodes, or of one. A node that cannot be asked is said, and is an error only if none can.
func (c *connected) each(ctx context.Context, node string, ask func(*agent) error) error {
	pods, err := c.agents(ctx, node)
	if err != nil {
		return err
	}
	var failed []error
	for i := range pods {
		err := func() error {
			a, err := c.agentOf(ctx, &pods[i])
			if err != nil {
				return err
			}
			defer a.done()
			return ask(a)
		}()
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) == len(pods) {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		fmt.Fprintln(c.ErrOut, "warning:", err)
	}
	return nil
}

// mostAsked is how often a reader is asked that says it will have an answer soon.
const mostAsked = 60

// open asks the reader, again where the agent is busy or reads new rules. The body is the caller's to close.
func (a *agent) open(ctx context.Context, path string) (*http.Response, error) {
	for asked := 1; ; asked++ {
		answer, err := a.openOnce(ctx, path)
		if later := new(askAgain); !errors.As(err, &later) || asked == mostAsked || ctx.Err() != nil {
			return answer, err
		}
		a.pause(ctx)
	}
}

// askAgain is an answer of a reader that will have another one soon.
type askAgain struct{ error }

func (a *agent) openOnce(ctx context.Context, path string) (*http.Response, error) {
	token, err := a.token(ctx)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		if plain := new(url.Error); errors.As(err, &plain) {
			err = plain.Err
		}
		return nil, fmt.Errorf("node %s: the container %s of pod %s/%s does not answer: %w; 'kubectl -n %[3]s logs "+
			"%[4]s -c %[2]s' says more", a.node, readerContainer, a.pod.Namespace, a.pod.Name, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	why, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
	said := text.Shown(strings.TrimSpace(string(why)))
	if answer.StatusCode == http.StatusUnauthorized {
		return nil, fmt.Errorf("node %s: %s; give another by --token, or --service-account", a.node, said)
	}
	err = fmt.Errorf("node %s: %s: %s", a.node, answer.Status, said)
	if answer.StatusCode == http.StatusServiceUnavailable {
		err = &askAgain{err}
	}
	return nil, err
}

// ask reads a document.
func (a *agent) ask(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	answer, err := a.open(ctx, path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostBytes)).Decode(into); err != nil {
		return fmt.Errorf("node %s: the answer to %s cannot be read: %w", a.node, path, err)
	}
	return nil
}

// fetch writes a recording into a file of a folder that the caller removes.
func (a *agent) fetch(ctx context.Context, name, dir string) (string, error) {
	answer, err := a.open(ctx, "/recordings/"+url.PathEscape(name))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	file, err := os.CreateTemp(dir, "*.recording")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, io.LimitReader(answer.Body, mostRecording))
	return file.Name(), errors.Join(err, file.Close())
}

// isOf reports whether names are those of a pod's container that is asked for. The pod's sandbox has no name of a container.
func (a *agent) isOf(pod *core.Pod, namespace, name, container *string) bool {
	return namespace != nil && name != nil && *namespace == pod.Namespace && *name == pod.Name &&
		container != nil && (a.container == "" || *container == a.container)
}

// notSeen is why a pod is not shown. An agent that has just started has not seen it yet.
type notSeen struct{ error }

func (a *agent) notSeen(pod *core.Pod) error {
	what := fmt.Sprintf("pod %s/%s", pod.Namespace, pod.Name)
	if a.container != "" {
		what = fmt.Sprintf("container %s of %s", text.Shown(a.container), what)
	}
	return &notSeen{fmt.Errorf("the agent on node %s shows you nothing of %s: it has not seen it run, it does not know its "+
		"names yet, or the user of your token may not get pods in namespace %s", a.node, what, pod.Namespace)}
}
