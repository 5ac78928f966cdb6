package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// reach opens a way to a port of a pod: the base URL of what listens there.
type reach func(ctx context.Context, pod *core.Pod, port int) (base string, done func(), err error)

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
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)},
		ctx.Done(), ready, io.Discard, &said)
	if err != nil {
		cancel()
		return "", nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		cancel()
		if apierrors.IsForbidden(err) || strings.Contains(err.Error(), "is forbidden") { // an answer to an upgrade comes as a text
			err = fmt.Errorf("%w; you need 'get' and 'create' on pods/portforward in namespace %s", err, pod.Namespace)
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
