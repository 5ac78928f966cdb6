package nri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

// TestSubscription: no event that a runtime waits for before it creates a container, and none that older runtimes lack.
func TestSubscription(t *testing.T) {
	var h any = &handlers{}
	if _, ok := h.(stub.CreateContainerInterface); ok {
		t.Error("pods would wait for us")
	}
	if _, ok := h.(stub.ValidateContainerAdjustmentInterface); ok {
		t.Error("runtimes before NRI 0.10 refuse this")
	}
	if _, ok := h.(stub.UpdatePodInterface); ok {
		t.Error("runtimes before NRI 0.10 refuse this")
	}
}

// TestNames: what the runtime says, made safe, for as long as the container is there.
func TestNames(t *testing.T) {
	p := live(&runtime{})
	h := handlers{p, p.session}
	pod := &api.PodSandbox{Id: "p", Name: "cart-0", Namespace: "shop",
		Labels: map[string]string{"app": "cart", "pod-template-hash": "7d9c5b8f6", strings.Repeat("k", 400): "v"}}
	c := &api.Container{Id: id, PodSandboxId: "p", Name: "app",
		Annotations: map[string]string{"io.kubernetes.cri.image-name": "cart:2\x1b[2J"}}
	if _, err := h.Synchronize(t.Context(), []*api.PodSandbox{pod}, []*api.Container{c, {Id: "../../etc", Name: "no id"}}); err != nil {
		t.Fatal(err)
	}
	n, ok := p.Names(id)
	if !ok || n.Namespace != "shop" || n.Pod != "cart-0" || n.PodContainer != "app" || strings.ContainsRune(n.Image, '\x1b') || !n.CRI {
		t.Errorf("%+v", n)
	}
	if l := p.Labels(id); len(l) != 2 || l["app"] != "cart" || n.TemplateHash != "7d9c5b8f6" {
		t.Errorf("labels %v", l)
	}
	if f := p.Figures(); f.Containers != 1 {
		t.Errorf("%d containers, want the one with an id", f.Containers)
	}
	hostile := &api.PodSandbox{Name: "a\nb", Namespace: "$(reboot)"}
	_ = h.StartContainer(t.Context(), hostile, &api.Container{Id: strings.Repeat("cd", 32), Name: "../x"})
	if n, _ := p.Names(strings.Repeat("cd", 32)); n.Known() {
		t.Errorf("hostile names are kept: %+v", n)
	}
	_ = h.RemoveContainer(t.Context(), pod, c)
	if _, ok := p.Names(id); ok {
		t.Error("a removed container is kept")
	}
	p.session.end()
	_ = h.StartContainer(t.Context(), pod, c)
	if _, ok := p.Names(id); ok {
		t.Error("a session that is over still counts")
	}
}

// TestAnnotations: those of our prefix, bounded, as the pod's owner wrote them.
func TestAnnotations(t *testing.T) {
	p := New(Options{AnnotationPrefix: "unthrottle.dev/"})
	s := &session{updater: &runtime{}, conn: io.NopCloser(nil), over: make(chan struct{})}
	h := handlers{p, s}
	pod := &api.PodSandbox{Id: "p", Name: "cart-0", Annotations: map[string]string{
		"unthrottle.dev/remedy": "none", "kubernetes.io/config.source": "api", "unthrottle.dev/long": strings.Repeat("x", 1<<20)}}
	c := &api.Container{Id: id, PodSandboxId: "p", Name: "app"}
	if _, err := h.Synchronize(t.Context(), []*api.PodSandbox{pod}, []*api.Container{c}); err != nil {
		t.Fatal(err)
	}
	got := p.Annotations(id)
	if len(got) != 2 || got["unthrottle.dev/remedy"] != "none" || len(got["unthrottle.dev/long"]) > 1024 {
		t.Errorf("%.300q", got)
	}
	was := p.Generation()
	for i := range 1000 {
		pod.Annotations[fmt.Sprintf("unthrottle.dev/k%d", i)] = "v"
	}
	_ = h.StartContainer(t.Context(), pod, c)
	if got := p.Annotations(id); len(got) != maxAnnotations || p.Generation() == was {
		t.Errorf("%d annotations, generation %d after %d", len(got), p.Generation(), was)
	}
	var none *Plugin
	if none.Annotations(id) != nil || none.Generation() != 0 {
		t.Error("no plugin knows something")
	}
}

// TestReady: with a live session, or with none where none is wanted.
func TestReady(t *testing.T) {
	var none *Plugin
	missing := filepath.Join(t.TempDir(), "nri.sock")
	if err := errors.Join(none.Ready(), live(&runtime{}).Ready(), New(Options{Socket: missing, Optional: true}).Ready()); err != nil {
		t.Error(err)
	}
	if New(Options{Socket: missing}).Ready() == nil {
		t.Error("a socket that is asked for and not there is no error")
	}
	p := live(&runtime{})
	p.lost(errors.New("gone"))
	if p.Ready() == nil {
		t.Error("ready without a session")
	}
	if _, ok := p.Names(id); !ok {
		t.Error("names go with the session")
	}
}

// TestRunDialsAgain: a runtime that closes each connection, then one that never answers.
func TestRunDialsAgain(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "nri.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	held := make(chan net.Conn, 1)
	go func() {
		for i := 0; ; i++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if i == 2 {
				held <- conn
				return
			}
			conn.Close()
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	p := New(Options{Socket: l.Addr().String(), Log: silentLog})
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, nil) }()
	select {
	case conn := <-held:
		defer conn.Close()
	case <-time.After(patience):
		t.Fatal("it did not dial three times")
	}
	if p.Ready() == nil {
		t.Error("ready without an answer")
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Run does not end with its context")
	}
}
