package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
)

// serveAnswers answers /containers, /policy, /status and /recordings on a socket, for one program that may ask: the rights of the
// socket's folder say which. A socket that an agent left behind makes way.
func (a *agent) serveAnswers(ctx context.Context) error {
	was, err := os.Lstat(a.Answers)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case was.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket: give another path by --answers", a.Answers)
	default:
		if err := os.Remove(a.Answers); err != nil {
			return err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", a.Answers)
	if err != nil {
		return err
	}
	if err := os.Chmod(a.Answers, 0o666); err != nil {
		l.Close()
		return err
	}
	mux := http.NewServeMux()
	a.handle(mux, &a.spent)
	mux.Handle("GET /policy", a.spent.handler(policyPage(a.report)))
	return serveOn(ctx, l, mux)
}
