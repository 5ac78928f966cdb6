package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authn "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/kubernetes/reader"
)

const (
	askFor    = time.Minute
	mostBytes = 64 << 20
	// mostRecording is the most that the agent keeps of all recordings.
	mostRecording = 256 << 20
)

// reach opens a way to a port of a pod: the base URL of what listens there.
type reach func(ctx context.Context, pod *core.Pod, port int) (base string, done func(), err error)

// connected is a cluster that can be asked.
type connected struct {
	*plugin
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
	bearer    string // "": not asked for yet
}

func (p *plugin) connect() (*connected, error) {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	namespace, _, err := p.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	return &connected{plugin: p, config: config, client: client, namespace: namespace}, nil
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
	all, err := c.client.CoreV1().Pods(c.agentNamespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("the agent's pods cannot be found: %w", err)
	}
	var running []core.Pod
	for _, pod := range all.Items {
		if pod.Status.Phase == core.PodRunning {
			running = append(running, pod)
		}
	}
	if len(running) == 0 {
		on := "any node"
		if node != "" {
			on = "node " + node
		}
		return nil, fmt.Errorf("no agent of unthrottle runs on %s: no pod with labels %s in namespace %s; install the chart there, or give --agent-namespace and --agent-labels", on, c.agentLabels, c.agentNamespace)
	}
	return running, nil
}

// token is what says to the reader who the user is.
func (c *connected) token(ctx context.Context) (string, error) {
	if c.bearer != "" {
		return c.bearer, nil
	}
	if c.serviceAccount != "" {
		namespace, name, slash := strings.Cut(c.serviceAccount, "/")
		if !slash {
			namespace, name = c.namespace, c.serviceAccount
		}
		made, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authn.TokenRequest{Spec: authn.TokenRequestSpec{
			Audiences: []string{reader.Audience}, ExpirationSeconds: new(int64(600))}}, meta.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("--service-account %s: no token: %w", text.Shown(c.serviceAccount), err)
		}
		c.bearer = made.Status.Token
		return c.bearer, nil
	}
	var seen capture
	wrapped, err := rest.HTTPWrappersForConfig(c.config, &seen)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.Host, nil)
	if err != nil {
		return "", err
	}
	if _, err := wrapped.RoundTrip(request); !errors.Is(err, errCaptured) {
		return "", fmt.Errorf("the kubeconfig's credentials: %w", err)
	}
	token, ok := strings.CutPrefix(seen.authorization, "Bearer ")
	if !ok || token == "" {
		return "", errors.New("this kubeconfig's user has a client certificate and no token. A certificate ends at the API server, so that the agent " +
			"cannot tell who asks. Give --service-account [NAMESPACE/]NAME to read as a service account, or a token by --token \"$(kubectl create token NAME)\"")
	}
	c.bearer = token
	return token, nil
}

// capture takes down the header that the kubeconfig's credentials add, and sends nothing.
type capture struct{ authorization string }

var errCaptured = errors.New("captured")

func (c *capture) RoundTrip(r *http.Request) (*http.Response, error) {
	c.authorization = r.Header.Get("Authorization")
	return nil, errCaptured
}

// agent is the reader beside the agent of one node.
type agent struct {
	*connected
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
	base, done, err := open(ctx, pod, c.agentPort)
	if err != nil {
		return nil, fmt.Errorf("node %s: pod %s/%s cannot be reached: %w", pod.Spec.NodeName, pod.Namespace, pod.Name, err)
	}
	return &agent{c, pod.Spec.NodeName, base, done}, nil
}

// agentAt reaches the reader on the node of a pod.
func (c *connected) agentAt(ctx context.Context, pod *core.Pod) (*agent, error) {
	all, err := c.agents(ctx, pod.Spec.NodeName)
	if err != nil {
		return nil, err
	}
	return c.agentOf(ctx, &all[0])
}

// forward forwards a free local port to the pod's, through the API server: by websocket, or by SPDY where the API server is
// older.
func (c *connected) forward(ctx context.Context, pod *core.Pod, port int) (string, func(), error) {
	at := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return "", nil, err
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialer(at, c.config)
	if err != nil {
		return "", nil, err
	}
	dialer := portforward.NewFallbackDialer(websocket, spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) })
	ctx, cancel := context.WithCancel(ctx)
	ready := make(chan struct{})
	var said strings.Builder
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ctx.Done(), ready, io.Discard, &said)
	if err != nil {
		cancel()
		return "", nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		cancel()
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w; you need 'create' on pods/portforward in namespace %s", err, pod.Namespace)
		}
		return "", nil, err
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		cancel()
		return "", nil, err
	}
	return fmt.Sprintf("http://127.0.0.1:%d", ports[0].Local), func() { cancel(); <-ended }, nil
}

// open asks the reader. The body is the caller's to close.
func (a *agent) open(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+a.bearer)
	client := http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		if plain := new(url.Error); errors.As(err, &plain) {
			err = plain.Err
		}
		return nil, fmt.Errorf("node %s: the reader beside the agent does not answer at port %d of its pod: %w; the chart runs it with 'kubernetes.enabled'", a.node, a.agentPort, err)
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
	return nil, fmt.Errorf("node %s: %s: %s", a.node, answer.Status, said)
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

// completePods completes names of pods.
func (p *plugin) completePods(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := p.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := c.client.CoreV1().Pods(c.namespace).List(cmd.Context(), meta.ListOptions{Limit: 500})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, pod := range all.Items {
		names = append(names, pod.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
