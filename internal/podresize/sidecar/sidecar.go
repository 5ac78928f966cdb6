// Package sidecar asks the container resize of the chart, which may use the Kubernetes API, over its socket.
package sidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Socket is where the chart has it.
const Socket = "/run/unthrottle-resize/resize.sock"

const (
	// answerIn bounds one answer, mostBytes its length.
	answerIn  = 10 * time.Second
	mostBytes = 64 << 10
	// A kubelet needs a few seconds: it is looked at every pause, and looks times.
	pause = 500 * time.Millisecond
	looks = 60
)

// Resize is what is asked for with PUT.
type Resize struct {
	From podresize.Milli `json:"from"`
	To   podresize.Milli `json:"to"`
}

// Client implements podresize.FS.
type Client struct{ http http.Client }

// New returns a client; nil: the socket's folder is not there, so that nobody will listen.
func New(socket string) podresize.FS {
	if _, err := os.Stat(filepath.Dir(socket)); err != nil {
		return nil
	}
	return &Client{http.Client{Timeout: answerIn, Transport: &http.Transport{Proxy: nil,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}}
}

// Read implements podresize.FS.
func (c *Client) Read(ctx context.Context, name string) (cpu podresize.CPU, err error) {
	answer, err := c.ask(ctx, http.MethodGet, name, nil)
	if err == nil {
		err = json.Unmarshal(answer, &cpu)
	}
	return cpu, err
}

// Write implements podresize.FS.
func (c *Client) Write(ctx context.Context, name string, from, to podresize.Milli) error {
	body, err := json.Marshal(Resize{from, to})
	if err == nil {
		_, err = c.ask(ctx, http.MethodPut, name, body)
	}
	return err
}

// Wait implements podresize.FS.
func (c *Client) Wait(ctx context.Context, n int) bool {
	return n <= looks && clock.Sleep(ctx, pause) == nil
}

func (c *Client) ask(ctx context.Context, method, name string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://resize/cpu?container="+url.QueryEscape(name),
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	got, err := c.http.Do(request)
	if err != nil {
		err = errors.Unwrap(err)
		if errors.Is(err, fs.ErrNotExist) { // of its socket: that says nothing of a pod
			err = errors.New(err.Error())
		}
		return nil, fmt.Errorf("the container resize of the agent's pod does not answer: %w", err)
	}
	defer got.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(got.Body, mostBytes))
	if err != nil {
		return nil, err
	}
	said := strings.TrimSpace(string(answer))
	switch got.StatusCode {
	case http.StatusOK:
		return answer, nil
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s: %w", text.Sanitize(said, text.MaxName), fs.ErrNotExist)
	case http.StatusConflict:
		return nil, podresize.ErrChanged
	case http.StatusForbidden:
		return nil, &podresize.Refused{Message: said}
	}
	return nil, errors.New("the container resize of the agent's pod: " + text.Sanitize(said, text.MaxName))
}
