package agent

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"

	"golang.org/x/sys/unix"
)

// serveAnswers answers /containers, /policy, /status and /recordings on a socket, for one program that may ask.
func (a *agent) serveAnswers(ctx context.Context) error {
	l, err := a.Listeners.unix(ctx, a.Answers)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	a.handle(mux, &a.spent)
	mux.Handle("GET /policy", a.spent.Handler(policyPage(a.report)))
	return serveOn(ctx, l, a.toThoseWhoMay(mux))
}

// toThoseWhoMay answers to root, to the agent's own user and to AnswersUID.
func (a *agent) toThoseWhoMay(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uid, known := r.Context().Value(peerUID{}).(int)
		switch {
		case !known:
			http.Error(w, "the kernel does not say who asks", http.StatusForbidden)
		case uid != 0 && uid != os.Geteuid() && uid != a.AnswersUID:
			http.Error(w, fmt.Sprintf("uid %d may not ask: the agent answers root here, and the user of --answers-uid", uid),
				http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// peerUID is the key of a request's context for the user who connected to a Unix socket.
type peerUID struct{}

// withPeer adds the user at the other end of a Unix socket, as the kernel knows it (SO_PEERCRED of unix(7)).
func withPeer(ctx context.Context, c net.Conn) context.Context {
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return ctx
	}
	var peer *unix.Ucred
	if raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }) != nil || err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerUID{}, int(peer.Uid))
}
