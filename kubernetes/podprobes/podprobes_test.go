package podprobes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/test/wait"
)

var began = time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC)

// cart is a pod of node n1 with a container that runs.
func cart(name string, change func(*core.Container, *core.ContainerStatus)) *core.Pod {
	c := core.Container{Name: "app", Env: []core.EnvVar{{Name: "PASSWORD", Value: "secret"}},
		LivenessProbe: &core.Probe{
			ProbeHandler:        core.ProbeHandler{HTTPGet: &core.HTTPGetAction{}},
			InitialDelaySeconds: 30, TimeoutSeconds: 1, PeriodSeconds: 10, FailureThreshold: 3}}
	s := core.ContainerStatus{Name: "app", ContainerID: "containerd://" + name, Started: new(true),
		State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: metav1.NewTime(began)}}}
	change(&c, &s)
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
		Spec:   core.PodSpec{NodeName: "n1", Containers: []core.Container{c}},
		Status: core.PodStatus{ContainerStatuses: []core.ContainerStatus{s}}}
}

func ended(code int32, reason string, at time.Time) core.ContainerState {
	return core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: code, Reason: reason,
		FinishedAt: metav1.NewTime(at)}}
}

// line is what the agent is told of a container.
func line(c answers.PodContainer) string {
	out := fmt.Sprintf("%s/%s/%s %s %s:", c.Namespace, c.Pod, c.Container, c.UID, c.ID)
	for _, p := range c.Probes {
		out += fmt.Sprintf(" %s %s %d/%d/%d from %s", p.Probe, p.Handler, p.TimeoutSeconds, p.PeriodSeconds,
			p.FailureThreshold, p.From.Format(time.TimeOnly))
	}
	for _, r := range c.Restarts {
		out += fmt.Sprintf(" ended %s %d %s", r.At.Format(time.TimeOnly), r.ExitCode, r.Reason)
	}
	return out
}

func TestOf(t *testing.T) {
	other := func(p *core.Pod, change func(*core.Pod)) *core.Pod { change(p); return p }
	exec := core.ProbeHandler{Exec: &core.ExecAction{}}
	for name, c := range map[string]struct {
		pod  *core.Pod
		want string
	}{
		"one probe": {cart("a", func(*core.Container, *core.ContainerStatus) {}),
			"shop/a/app uid-a a: liveness httpGet 1/10/3 from 03:00:30"},
		"both": {cart("a", func(c *core.Container, _ *core.ContainerStatus) {
			c.ReadinessProbe = &core.Probe{ProbeHandler: exec, TimeoutSeconds: 5, PeriodSeconds: 7, FailureThreshold: 2}
		}), "shop/a/app uid-a a: liveness httpGet 1/10/3 from 03:00:30 readiness exec 5/7/2 from 03:00:00"},
		"grpc and an end": {cart("a", func(c *core.Container, s *core.ContainerStatus) {
			c.LivenessProbe.ProbeHandler = core.ProbeHandler{GRPC: &core.GRPCAction{}}
			s.LastTerminationState = ended(137, "Error", began.Add(-time.Second))
		}), "shop/a/app uid-a a: liveness grpc 1/10/3 from 03:00:30 ended 02:59:59 137 Error"},
		"an old end": {cart("a", func(_ *core.Container, s *core.ContainerStatus) {
			s.LastTerminationState = ended(137, "Error", began.Add(-25*time.Hour))
		}), "shop/a/app uid-a a: liveness httpGet 1/10/3 from 03:00:30"},
		"tcpSocket": {cart("a", func(c *core.Container, _ *core.ContainerStatus) {
			c.LivenessProbe.ProbeHandler = core.ProbeHandler{TCPSocket: &core.TCPSocketAction{}}
		}), ""},
		"a startup probe alone": {cart("a", func(c *core.Container, _ *core.ContainerStatus) {
			c.StartupProbe, c.LivenessProbe = c.LivenessProbe, nil
		}), ""},
		"not started": {cart("a", func(_ *core.Container, s *core.ContainerStatus) { s.Started = new(false) }),
			"shop/a/app uid-a : liveness httpGet 1/10/3 from 00:00:00"},
		"waits to be started again": {cart("a", func(_ *core.Container, s *core.ContainerStatus) {
			s.State = core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			s.LastTerminationState = ended(137, "Error", began.Add(-time.Second))
		}), "shop/a/app uid-a : liveness httpGet 1/10/3 from 00:00:00 ended 02:59:59 137 Error"},
		"over": {other(cart("a", func(_ *core.Container, s *core.ContainerStatus) { s.State = ended(1, "Error", began) }),
			func(p *core.Pod) { p.Status.Phase = core.PodFailed }), ""},
		"without a status": {other(cart("a", func(*core.Container, *core.ContainerStatus) {}),
			func(p *core.Pod) { p.Status = core.PodStatus{} }), ""},
		"a sidecar": {other(cart("a", func(c *core.Container, _ *core.ContainerStatus) {
			c.RestartPolicy = new(core.ContainerRestartPolicyAlways)
		}), func(p *core.Pod) {
			p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = p.Status.ContainerStatuses, nil
		}), "shop/a/app uid-a a: liveness httpGet 1/10/3 from 03:00:30"},
	} {
		got := ""
		kept, err := needed(c.pod)
		if err != nil {
			t.Fatal(err)
		}
		if pod := kept.(*core.Pod); strings.Contains(pod.String(), "secret") {
			t.Errorf("%s: the pod's environment is kept", name)
		}
		for _, of := range Of([]*core.Pod{kept.(*core.Pod)}, Ends{}, began.Add(time.Minute)).Containers {
			got += line(of)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestEnds: ends are remembered for a day, once each, for as long as the pod is there.
func TestEnds(t *testing.T) {
	ends := Ends{}
	of := func(at time.Time, code int32) string {
		pod := cart("a", func(_ *core.Container, s *core.ContainerStatus) {
			s.LastTerminationState = ended(code,
				"Error", at)
		})
		out := ""
		for _, c := range Of([]*core.Pod{pod}, ends, at.Add(time.Minute)).Containers {
			for _, r := range c.Restarts {
				out += fmt.Sprint(r.ExitCode, " ")
			}
		}
		return out
	}
	if got := of(began, 1) + of(began, 1) + of(began.Add(time.Hour), 2) +
		of(began.Add(24*time.Hour), 3); got != "1 1 1 2 2 3 " {
		t.Errorf("%q", got)
	}
	for i := range 2 * answers.MaxRestarts {
		of(began.Add(25*time.Hour+time.Duration(i)*time.Second), 9)
	}
	if n := len(ends[[2]string{"uid-a", "app"}]); n != answers.MaxRestarts {
		t.Errorf("%d ends are remembered", n)
	}
	if Of(nil, ends, began); len(ends) != 0 {
		t.Errorf("a pod that is gone is remembered: %v", ends)
	}
}

// TestBound: what is beyond the bound is left out, and the file is as large as the agent reads.
func TestBound(t *testing.T) {
	ends := Ends{}
	var pods []*core.Pod
	for i := range answers.MaxPodContainers + 3 {
		pod := cart(fmt.Sprint(strings.Repeat("p", 60), i), func(c *core.Container, s *core.ContainerStatus) {
			c.ReadinessProbe = c.LivenessProbe
			s.ContainerID = "containerd://" + strings.Repeat("f", 64)
		})
		for n := range answers.MaxRestarts {
			ends.add([2]string{string(pod.UID), "app"}, ended(137, "Error",
				began.Add(time.Duration(n)*time.Second)).Terminated, began)
		}
		pods = append(pods, pod)
	}
	out := Of(pods, ends, began)
	text, err := json.Marshal(out)
	if err != nil || out.LeftOut != 3 || len(out.Containers) != answers.MaxPodContainers ||
		len(text) > answers.MaxPodsBytes {
		t.Errorf("%v: %d left out, %d containers, %d bytes", err, out.LeftOut, len(out.Containers), len(text))
	}
}

// TestRun: the node's pods reach the file, the agent's findings become events, one for each probe and day.
func TestRun(t *testing.T) {
	at := cart("b", func(*core.Container, *core.ContainerStatus) {})
	elsewhere := cart("c", func(*core.Container, *core.ContainerStatus) {})
	elsewhere.Spec.NodeName = "n2"
	client := fake.NewClientset(cart("a", func(*core.Container, *core.ContainerStatus) {}), elsewhere)
	var asked atomic.Int32
	now := time.Now()
	finding := func(pod, uid string) answers.ProbeFinding {
		return answers.ProbeFinding{Namespace: "shop", Pod: pod, UID: uid, Container: "app",
			Probe: answers.PodProbe{Probe: "liveness"}, Says: "liveness probe " + pod +
				strings.Repeat(" too late", 200)}
	}
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/trials" {
			end := func(uid, outcome string, ago time.Duration) answers.TrialEnd {
				return answers.TrialEnd{Namespace: "shop", Pod: "a", UID: uid, Container: "app", At: now.Add(-ago),
					Outcome: outcome, Says: "burst 50ms is in force"}
			}
			_ = json.NewEncoder(w).Encode(answers.Trials{Schema: answers.TrialsSchema, Version: answers.Version, Ended: []answers.TrialEnd{
				end("uid-a", answers.TrialKept, time.Minute), end("uid-a", answers.TrialUseless, 0),
				end("uid-a", answers.TrialNone, 25*time.Hour), end("another", answers.TrialNone, 0)}})
			return
		}
		if r.URL.Path != "/probes" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(answers.Probes{Schema: answers.ProbesSchema, Version: answers.Version,
			Findings: []answers.ProbeFinding{
				finding("a", "uid-a"), finding("c", "uid-c"), finding("a", "another"), finding("gone", "uid-gone")}})
	}))
	defer agent.Close()
	file := filepath.Join(t.TempDir(), "pods.json")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	begin := func() {
		go func() {
			done <- Run(ctx, Options{Client: client, Node: "n1", Out: file, Agent: agent.URL,
				LeastInterval: time.Millisecond,
				AskInterval:   10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		}()
	}
	told := func() string {
		text, err := os.ReadFile(file)
		var pods answers.Pods
		if err != nil || json.Unmarshal(text, &pods) != nil {
			return "nothing"
		}
		names := ""
		for _, c := range pods.Containers {
			names += c.Pod + " "
		}
		return names
	}
	begin()
	wait.Until(t, "pod a is told", func() bool { return told() == "a " })
	if _, err := client.CoreV1().Pods("shop").Create(ctx, at, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "pod b is told", func() bool { return told() == "a b " })
	if err := client.CoreV1().Pods("shop").Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "pod b is told no more", func() bool { return told() == "a " })

	events := func() []core.Event {
		list, err := client.CoreV1().Events("shop").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	wait.Until(t, "an event is made", func() bool { return len(events()) > 0 })
	// Another program of the same node begins, and asks some times: the event is there.
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	begin()
	was := asked.Load()
	wait.Until(t, "it asked again", func() bool { return asked.Load() > was+5 })
	var got []core.Event
	trials := map[string]string{}
	for _, e := range events() {
		if strings.HasPrefix(e.Name, "unthrottle-trial-") {
			trials[e.Reason] = e.Type + ": " + e.Message
		} else {
			got = append(got, e)
		}
	}
	if want := map[string]string{"RemedyKept": "Normal: burst 50ms is in force",
		"RemedyTakenBack": "Warning: burst 50ms is in force"}; !maps.Equal(trials, want) {
		t.Errorf("of trials: %v", trials)
	}
	if len(got) > 2 { // two, if midnight came meanwhile
		t.Errorf("%d events", len(got))
	}
	for _, e := range got {
		if e.InvolvedObject.Name != "a" || e.InvolvedObject.UID != "uid-a" || e.Reason != Reason ||
			e.Type != "Warning" ||
			!strings.HasPrefix(e.Message, "liveness probe a too late") || len(e.Message) > 1024 ||
			e.InvolvedObject.Kind != "Pod" {
			t.Errorf("%+v", e)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestStaticPod: the agent knows a static pod by the kubelet's hash. Its event is about the pod that mirrors it in the API, and a pod of
// another hash gets none.
func TestStaticPod(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef"
	mirror := cart("proxy-n1", func(*core.Container, *core.ContainerStatus) {})
	mirror.Annotations = map[string]string{core.MirrorPodAnnotationKey: hash, "another": "secret"}
	plain := cart("plain", func(*core.Container, *core.ContainerStatus) {})
	client := fake.NewClientset()
	of := &teller{Options: Options{Client: client, Node: "n1", Log: slog.New(slog.DiscardHandler)}, told: map[string]time.Time{}}
	if err := of.watch(func() {}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []*core.Pod{mirror, plain} {
		kept, err := needed(pod)
		if err != nil || strings.Contains(kept.(*core.Pod).String(), "secret") {
			t.Fatalf("%v: %v is kept", err, kept)
		}
		if err := of.pods.GetStore().Add(kept); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range [][2]string{{"proxy-n1", hash}, {"proxy-n1", "fedcba98"}, {"plain", hash}, {"plain", ""}} {
		if err := of.event(t.Context(), told{namespace: "shop", pod: c[0], uid: c[1], container: "app", kind: "trial",
			key: "once", reason: "RemedyKept", message: "burst 50ms is in force"}, began); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
	list, err := client.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].InvolvedObject.Name != "proxy-n1" ||
		list.Items[0].InvolvedObject.UID != "uid-proxy-n1" {
		t.Errorf("%v: %+v", err, list.Items)
	}
}

// TestOtherVersion: of an answer of another version or schema nothing is read.
func TestOtherVersion(t *testing.T) {
	for _, said := range []string{`{"schema": "agent_trials", "version": 99, "ended": [{"pod": "a"}]}`,
		`{"schema": "agent_status", "version": 1, "ended": [{"pod": "a"}]}`} {
		agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, said) }))
		defer agent.Close()
		var got answers.Trials
		err := (&teller{Options: Options{Agent: agent.URL}}).answer(t.Context(), "/trials", answers.TrialsSchema, &got)
		if err == nil || !strings.Contains(err.Error(), "another version") || len(got.Ended) != 0 {
			t.Errorf("%s: %+v, %v", said, got, err)
		}
	}
}
