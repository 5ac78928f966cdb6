package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Listeners are the sockets on which an agent answers. They stay open while one run of it ends and the next begins with other
// rules: a request meanwhile waits for its answer, and a port of the kernel's choice stays. The zero value has none, and nil
// keeps none.
type Listeners struct {
	mu   sync.Mutex
	open map[string]net.Listener // by address, or by path
}

// Close closes them, and removes the socket's path; a run that still answers ends by itself.
func (l *Listeners) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	for at, listener := range l.open {
		err = errors.Join(err, listener.Close())
		delete(l.open, at)
	}
	return err
}

// on is a listener of one run on the socket of an address or path, which listen opens the first time.
func (l *Listeners) on(at string, listen func() (net.Listener, error)) (net.Listener, error) {
	if l == nil {
		return listen()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[at] == nil {
		first, err := listen()
		if err != nil {
			return nil, err
		}
		if l.open == nil {
			l.open = map[string]net.Listener{}
		}
		l.open[at] = first
	}
	file, err := l.open[at].(interface{ File() (*os.File, error) }).File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return net.FileListener(file)
}

func (l *Listeners) tcp(ctx context.Context, address string) (net.Listener, error) {
	return l.on(address, func() (net.Listener, error) {
		first, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if errors.Is(err, unix.EADDRINUSE) {
			err = fmt.Errorf("%w: another agent may run already; end it, or give this one another listen address in its file", err)
		}
		return first, err
	})
}

// unix makes a socket to which any process can connect that reaches its path: who asks is checked for each connection. One that an
// agent left behind makes way.
func (l *Listeners) unix(ctx context.Context, path string) (net.Listener, error) {
	return l.on(path, func() (net.Listener, error) {
		switch was, err := os.Lstat(path); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case was.Mode().Type() != fs.ModeSocket:
			return nil, fmt.Errorf("%s is there and is no socket: give another path by --answers", path)
		default:
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
		first, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
		if err != nil {
			return nil, err
		}
		if err := os.Chmod(path, 0o666); err != nil {
			first.Close()
			return nil, err
		}
		return first, nil
	})
}
