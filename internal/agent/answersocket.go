package agent

import (
	"context"
	"net/http"
)

// serveAnswers answers /containers, /policy, /status and /recordings on a socket, for one program that may ask: the rights of the
// socket's folder say which.
func (a *agent) serveAnswers(ctx context.Context) error {
	l, err := a.Listeners.unix(ctx, a.Answers)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	a.handle(mux, &a.spent)
	mux.Handle("GET /policy", a.spent.handler(policyPage(a.report)))
	return serveOn(ctx, l, mux)
}
