package runtimes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/internal/container/names"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Bounds of asking a socket.
const (
	maxAnswer = 32 << 20
	// fresh is how long an answer without a container is believed.
	fresh = time.Second
	// pause is how long a socket that cost time or lied is left alone.
	pause = 10 * time.Minute
)

// asked is what a socket said last.
type asked struct {
	containers map[string]names.Names
	// until is when it may be asked again.
	until time.Time
	// denied says that it refuses this user; told says that a warning said so.
	denied, told bool
}

// fromSockets asks the sockets of the container's runtime. Denied is one that refuses this user.
func (h *Host) fromSockets(q Query) (found names.Names, denied Socket) {
	for _, s := range h.o.Sockets {
		if !speaksFor(s.Runtime, q.Runtime) {
			continue
		}
		a := h.asked[s]
		if a == nil {
			a = &asked{}
			h.asked[s] = a
		}
		if found, ok := a.containers[q.ID]; ok {
			return found, Socket{}
		}
		if !h.o.Now().Before(a.until) {
			h.ask(s, a)
		}
		if found, ok := a.containers[q.ID]; ok {
			return found, Socket{}
		}
		if a.denied {
			denied = s
		}
	}
	return names.Names{}, denied
}

// speaksFor reports whether a socket of one runtime knows the containers of another. Amazon's ECS agent uses Docker.
func speaksFor(socket, container string) bool {
	return socket == container || socket == names.Docker && container == "ecs"
}

// ask asks one socket for all containers.
func (h *Host) ask(s Socket, a *asked) {
	containers, err := get(s, h.o.Timeout)
	a.containers, a.denied = containers, errors.Is(err, fs.ErrPermission)
	for id, n := range containers {
		n.Runtime = s.Runtime
		containers[id] = n
	}
	a.until = h.o.Now().Add(fresh)
	var timeout net.Error
	switch {
	case err == nil, a.denied, errors.Is(err, errNotServed):
	case errors.As(err, &timeout) && timeout.Timeout():
		a.until = h.o.Now().Add(pause)
		h.warn(fmt.Sprintf("%s did not answer at %s within %v: names come from its files", s.Runtime, text.Shown(s.Path), h.o.Timeout))
	default:
		a.until = h.o.Now().Add(pause)
		h.warn(fmt.Sprintf("%s at %s gave no answer that can be used (%v): names come from its files", s.Runtime, text.Shown(s.Path), err))
	}
}

// deny warns once that a socket refuses this user and nothing else has the name.
func (h *Host) deny(s Socket) {
	if a := h.asked[s]; !a.told {
		a.told = true
		h.warn(fmt.Sprintf("%s at %s refuses this user, and its files are not readable: containers are shown by id; run as root",
			s.Runtime, text.Shown(s.Path)))
	}
}

// errNotServed is a runtime that does not run: its files tell.
var errNotServed = errors.New("nothing listens there")

// get asks for the running containers.
func get(s Socket, timeout time.Duration) (map[string]names.Names, error) {
	switch info, err := os.Stat(s.Path); {
	case errors.Is(err, fs.ErrPermission):
		return nil, err
	case err != nil || info.Mode().Type() != fs.ModeSocket:
		return nil, errNotServed
	}
	client := http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", s.Path)
			},
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Get("http://runtime/containers/json")
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, errNotServed
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("more than %d bytes", maxAnswer)
	}
	return names.Containers(body)
}
