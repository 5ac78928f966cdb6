package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// kubelet answers for ephemeral containers: each comes to a state as soon as it is there.
func (w *world) kubelet(state core.ContainerState) {
	w.client.PrependReactor("update", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "ephemeralcontainers" {
			return false, nil, nil
		}
		pod := action.(clienttesting.UpdateAction).GetObject().(*core.Pod).DeepCopy()
		for _, e := range pod.Spec.EphemeralContainers {
			status := core.ContainerStatus{Name: e.Name, State: state}
			pod.Status.EphemeralContainerStatuses = append(pod.Status.EphemeralContainerStatuses, status)
		}
		return true, pod, w.client.Tracker().Update(core.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace)
	})
}

func ended(code int32) core.ContainerState {
	return core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: "no such process"}}
}

// ephemeral is the container that a look made.
func (w *world) ephemeral(pod string) core.EphemeralContainer {
	w.t.Helper()
	got, err := w.client.Tracker().Get(core.SchemeGroupVersion.WithResource("pods"), "shop-a", pod)
	if err != nil {
		w.t.Fatal(err)
	}
	all := got.(*core.Pod).Spec.EphemeralContainers
	if len(all) != 1 {
		w.t.Fatalf("%d ephemeral containers", len(all))
	}
	return all[0]
}

// A look runs as the container's own user under Pod Security restricted, in its process namespace, with the image of the agent.
func TestLook(t *testing.T) {
	w := newWorld(t)
	w.agent.Spec.Containers[0].Image = "registry.example/unthrottle:1"
	if err := w.client.Tracker().Update(core.SchemeGroupVersion.WithResource("pods"), w.agent, "unthrottle"); err != nil {
		t.Fatal(err)
	}
	pod := podOf("own", "", "", nil)
	pod.Spec.Containers[0].SecurityContext = &core.SecurityContext{RunAsUser: new(int64(1000))}
	if err := w.client.Tracker().Add(pod); err != nil {
		t.Fatal(err)
	}
	w.kubelet(ended(1)) // stopped above the bound, which is an answer
	out, said := w.good("look", "own", "--for", "20s")
	has(t, out, "fake logs")
	has(t, said, "container app of pod shop-a/own for 20s")
	e := w.ephemeral("own")
	s := e.SecurityContext
	if e.TargetContainerName != "app" || e.Image != "registry.example/unthrottle:1" || strings.Join(e.Args, " ") != "look 1 --for 20s" ||
		!strings.HasPrefix(e.Name, lookPrefix) || *s.RunAsUser != 1000 || !*s.RunAsNonRoot || *s.AllowPrivilegeEscalation ||
		len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" ||
		s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
		s.Privileged != nil || len(s.Capabilities.Add) != 0 {
		t.Errorf("%+v", e)
	}
}

// JSON is passed on; a user that only the image knows is told.
func TestLookAsData(t *testing.T) {
	w := newWorld(t)
	w.kubelet(ended(0))
	_, said := w.good("look", cartPod, "--image", "u", "-o", "json")
	has(t, said, "without --user UID its counters may not be readable")
	if e := w.ephemeral(cartPod); e.Args[len(e.Args)-1] != "--json" || *e.SecurityContext.RunAsUser == 0 {
		t.Errorf("%+v", e)
	}
	w = newWorld(t)
	w.kubelet(ended(0))
	if _, said = w.good("look", cartPod, "--image", "u", "--user", "0", "--pid", "7"); strings.Contains(said, "--user UID") {
		t.Errorf("%s", said)
	}
	if e := w.ephemeral(cartPod); *e.SecurityContext.RunAsNonRoot || e.Args[1] != "7" {
		t.Errorf("%+v", e)
	}
}

// What fails says what it is and what would help.
func TestLookFails(t *testing.T) {
	two := podOf("two", "", "", nil)
	two.Spec.Containers = append(two.Spec.Containers, core.Container{Name: "sidecar"})
	waiting := core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, cartPod, errors.New("no"))
	for name, c := range map[string]struct {
		args  []string
		state core.ContainerState
		fails error
		want  string
	}{
		"several containers": {args: []string{"two", "--image", "u"}, want: "give one with -c: app, sidecar"},
		"no such container":  {args: []string{"two", "-c", "db", "--image", "u"}, want: "has no container db: it has app, sidecar"},
		"no image":           {args: []string{cartPod, "--agent-namespace", "none"}, want: "with --image"},
		"no such image":      {args: []string{cartPod, "--image", "u"}, state: waiting, want: "does not start: ErrImagePull (not found)"},
		"it failed":          {args: []string{cartPod, "--image", "u"}, state: ended(3), want: "exit code 3: Error (no such process)"},
		"no time":            {args: []string{cartPod, "--for", "0s"}, want: "give a time from 200ms"},
		"no right":           {args: []string{cartPod, "--image", "u"}, fails: forbidden, want: "'update' on pods/ephemeralcontainers"},
	} {
		w := newWorld(t, two.DeepCopy())
		w.kubelet(c.state)
		if c.fails != nil {
			w.client.PrependReactor("update", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, c.fails
			})
		}
		if _, _, err := w.run(append([]string{"look"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the pod's container says moves no cursor.
func TestLookEscapes(t *testing.T) {
	var out, told bytes.Buffer
	if err := copyLines(&out, &told, strings.NewReader("good\n\x1b[2Jbad\n"), false); err != nil || out.String() != "good\n\\x1b[2Jbad\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// A pod's log has reports and messages mixed: a report is told apart, so that JSON can be read.
func TestLookMessages(t *testing.T) {
	const goesOn = "looking at process 1 goes on, for 4 s so far\n"
	const says = "unthrottle: counters alone do not decide\n"
	for _, json := range []bool{false, true} {
		var out, told bytes.Buffer
		if err := copyLines(&out, &told, strings.NewReader(goesOn+"{\n \"a\": {\n"+goesOn+" }\n}\n"), json); err != nil ||
			out.String() != "{\n \"a\": {\n }\n}\n" || told.String() != goesOn+goesOn {
			t.Errorf("json %v: %q, %q, %v", json, out.String(), told.String(), err)
		}
	}
	var out, told bytes.Buffer
	if err := copyLines(&out, &told, strings.NewReader("{\n"+says+"}\n"+says), true); err != nil || out.String() != "{\n}\n" ||
		told.String() != says+says {
		t.Errorf("%q, %q, %v", out.String(), told.String(), err)
	}
}
